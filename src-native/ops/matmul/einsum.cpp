#include <algorithm>
#include <map>

#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/arithmetic.h"
#include "ops/common/convert.h"
#include "ops/common/mover.h"
#include "ops/common/strided_copy.h"
#include "ops/matmul/einsum_equation.h"
#include "ops/matmul/matmul_shapes.h"
#include "ops/matmul/product.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;
using Labels = EinsumEquation::Labels;

bool has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

/// An operand whose dims are named; each label once.
struct Operand {
  Tensor tensor;
  Labels labels;
  Shape strides;  ///< by label
};

/// One evaluation: sizes of all labels, and the steps from operands to the output.
class Evaluation {
 public:
  Evaluation(KernelContext& ctx, const EinsumEquation& equation, const ProductLoops& loops, std::vector<Tensor> inputs)
      : ctx_(ctx), equation_(equation), loops_(loops) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      for (std::size_t axis = 0; axis < inputs[i].rank(); ++axis)
        add_size(equation.inputs[i][axis], inputs[i].dim(axis));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) operands_.push_back(name_dims(inputs[i], equation.inputs[i]));
  }

  Shape output_shape() const { return shape_of(equation_.output); }

  void run(const Tensor& out) {
    Operand result = std::move(operands_[0]);
    for (std::size_t i = 1; i < operands_.size(); ++i) {
      Labels needed = equation_.output;
      for (std::size_t later = i + 1; later < operands_.size(); ++later)
        needed.insert(needed.end(), operands_[later].labels.begin(), operands_[later].labels.end());
      result = contract(result, operands_[i], needed);
    }
    result = sum_out(result, equation_.output);
    copy(result, equation_.output, out);
  }

 private:
  void add_size(int label, std::int64_t dim) {
    std::int64_t& size = sizes_.try_emplace(label, dim).first->second;
    if (size == 1) size = dim;
    if (dim != size && dim != 1)
      fail(ErrorCode::ShapeMismatch, cat("Einsum: a label stands for dims of ", size, " and of ", dim));
  }

  Shape shape_of(const Labels& labels) const {
    Shape out;
    for (int label : labels) out.push_back(sizes_.at(label));
    return out;
  }

  /// Repeated labels walk a diagonal: their strides add up. A dim of 1 repeats along a longer label.
  Operand name_dims(const Tensor& tensor, const Labels& labels) const {
    Operand out{tensor, {}, {}};
    const Shape strides = tensor.shape().strides();
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
      const std::int64_t stride = tensor.dim(axis) == 1 ? 0 : strides[axis];
      const auto at = std::find(out.labels.begin(), out.labels.end(), labels[axis]);
      if (at != out.labels.end()) {
        out.strides[static_cast<std::size_t>(at - out.labels.begin())] += stride;
      } else {
        out.labels.push_back(labels[axis]);
        out.strides.push_back(stride);
      }
    }
    return out;
  }

  std::int64_t stride(const Operand& operand, int label) const {
    const auto at = std::find(operand.labels.begin(), operand.labels.end(), label);
    return at == operand.labels.end() ? 0 : operand.strides[static_cast<std::size_t>(at - operand.labels.begin())];
  }

  void copy(const Operand& from, const Labels& order, const Tensor& to) const {
    Shape strides;
    for (int label : order) strides.push_back(stride(from, label));
    const Shape dims = shape_of(order);
    strided_copy(ctx_.run(), dims, {from.tensor, 0, strides}, {to, 0, dims.strides()});
  }

  /// Whether the elements lie in the order of `order`, which has all of the operand's labels.
  bool in_order(const Operand& from, const Labels& order) const {
    const Shape dims = shape_of(order), plain = dims.strides();
    bool so = dims.numel() == from.tensor.numel();
    for (std::size_t i = 0; i < order.size() && so; ++i) so = dims[i] == 1 || stride(from, order[i]) == plain[i];
    return so;
  }

  /// The elements in the order of `order`, which has all of the operand's labels; no copy where they lie so already.
  Tensor arranged(const Operand& from, const Labels& order) const {
    const Shape dims = shape_of(order);
    if (in_order(from, order)) return from.tensor.reshaped(dims);
    const Tensor out = Tensor::make(from.tensor.dtype(), dims, *ctx_.run().allocator);
    copy(from, order, out);
    return out;
  }

  Operand plain(Tensor tensor, Labels labels) const {
    Operand out{std::move(tensor), std::move(labels), {}};
    out.strides = shape_of(out.labels).strides();
    return out;
  }

  /// Sums over the labels that are not `needed`.
  Operand sum_out(const Operand& from, const Labels& needed) const {
    Labels kept, dropped;
    for (int label : from.labels) (has(needed, label) ? kept : dropped).push_back(label);
    if (dropped.empty()) return from;
    Labels order = kept;
    order.insert(order.end(), dropped.begin(), dropped.end());
    const Tensor in = arranged(from, order);
    const Tensor out = Tensor::make(in.dtype(), shape_of(kept), *ctx_.run().allocator);
    const std::int64_t count = shape_of(dropped).numel();
    dispatch_computed(in.dtype(), [&]<class T>(TypeTag<T>) {
      const T* x = in.data<T>();
      T* y = out.mutable_data<T>();
      ctx_.parallel_for(static_cast<std::size_t>(out.numel()), 0.5 * static_cast<double>(count),
                        [&](std::size_t begin, std::size_t end, std::size_t) {
                          kernel::Watch watch(ctx_.run());
                          for (std::size_t i = begin; i < end; ++i) {
                            const T* line = x + static_cast<std::int64_t>(i) * count;
                            T total{};
                            each_in_pieces(watch, static_cast<std::size_t>(count), 1.0,
                                           [&](std::size_t j) { total = wrap_add(total, line[j]); });
                            y[i] = total;
                          }
                        });
    });
    return plain(out, kept);
  }

  Operand contract(const Operand& left, const Operand& right, const Labels& needed) const {
    // What only one side has and nobody needs later is summed first.
    Labels keep_left = needed, keep_right = needed;
    keep_left.insert(keep_left.end(), right.labels.begin(), right.labels.end());
    keep_right.insert(keep_right.end(), left.labels.begin(), left.labels.end());
    const Operand a = sum_out(left, keep_left), b = sum_out(right, keep_right);

    Labels batch, rows, columns, summed;
    for (int label : a.labels) (!has(b.labels, label) ? rows : has(needed, label) ? batch : summed).push_back(label);
    for (int label : b.labels) {
      if (!has(a.labels, label)) columns.push_back(label);
    }
    const auto join = [](const Labels& x, const Labels& y, const Labels& z) {
      Labels out = x;
      out.insert(out.end(), y.begin(), y.end());
      out.insert(out.end(), z.begin(), z.end());
      return out;
    };
    const Labels turned = join(batch, columns, summed);  // products of float32 take these as they are
    const bool trans = a.tensor.dtype() == DType::Float32 && in_order(b, turned);
    const Tensor x = arranged(a, join(batch, rows, summed)),
                 y = arranged(b, trans ? turned : join(batch, summed, columns));
    const Labels labels = join(batch, rows, columns);
    const Tensor out = Tensor::make(x.dtype(), shape_of(labels), *ctx_.run().allocator);
    multiply(x, y, trans, out, shape_of(batch).numel(), shape_of(rows).numel(), shape_of(columns).numel(),
             shape_of(summed).numel());
    return plain(out, labels);
  }

  void multiply_elements(const Tensor& x, const Tensor& y, const Tensor& out) const {
    dispatch_computed(x.dtype(), [&]<class T>(TypeTag<T>) {
      const T *p = x.data<T>(), *q = y.data<T>();
      T* to = out.mutable_data<T>();
      ctx_.parallel_for(static_cast<std::size_t>(out.numel()), 0.5,
                        [&](std::size_t begin, std::size_t end, std::size_t) {
                          for (std::size_t i = begin; i < end; ++i) to[i] = wrap_multiply(p[i], q[i]);
                        });
    });
  }

  /// out[count, m, n] = x[count, m, k] * y[count, k, n], y [count, n, k] where `trans`: of float32 only.
  void multiply(const Tensor& x, const Tensor& y, bool trans, const Tensor& out, std::int64_t count, std::int64_t m,
                std::int64_t n, std::int64_t k) const {
    if (out.numel() == 0) return;
    if (m * n * k == 1) return multiply_elements(x, y, out);
    const auto rows = static_cast<std::size_t>(m), columns = static_cast<std::size_t>(n),
               depth = static_cast<std::size_t>(k);
    const Shape products{count};
    const auto x_offsets = broadcast_offsets(ctx_.run(), products, products, m * k),
               y_offsets = broadcast_offsets(ctx_.run(), products, products, k * n);
    const GemmBatch batch{
        .count = static_cast<std::size_t>(count), .a_offsets = x_offsets, .b_offsets = y_offsets, .c_stride = m * n};
    if (x.dtype() == DType::Float32) {
      microkernels::GemmArgs args{.m = rows,
                                  .n = columns,
                                  .k = depth,
                                  .a = x.raw(),
                                  .lda = depth,
                                  .b = y.raw(),
                                  .ldb = trans ? depth : columns,
                                  .trans_b = trans,
                                  .epilogue = {}};
      args.c = out.mutable_data<float>();
      args.ldc = columns;
      return run_gemm(ctx_, loops_, args, batch);
    }
    if (x.dtype() == DType::Float64) {
      return run_dgemm(ctx_, loops_.packing(),
                       {.m = rows,
                        .n = columns,
                        .k = depth,
                        .a = x.data<double>(),
                        .lda = depth,
                        .b = y.data<double>(),
                        .ldb = columns,
                        .c = out.mutable_data<double>(),
                        .ldc = columns},
                       batch);
    }
    tensor::dispatch_ints(x.dtype(), "Einsum", [&]<class T>(TypeTag<T>) {
      const T *p = x.data<T>(), *q = y.data<T>();
      T* to = out.mutable_data<T>();
      ctx_.parallel_for(static_cast<std::size_t>(count * m), static_cast<double>(n * k),
                        [&](std::size_t begin, std::size_t end, std::size_t) {
                          Mover mover(ctx_.run());
                          kernel::Watch watch(ctx_.run());
                          for (std::size_t row = begin; row < end; ++row) {
                            const T* line = p + row * depth;
                            const T* matrix = q + static_cast<std::int64_t>(row / rows) * k * n;
                            T* result = to + row * columns;
                            mover.fill(result, n, T{});
                            for (std::size_t i = 0; i < depth; ++i) {
                              each_in_pieces(watch, columns, 1.0, [&](std::size_t j) {
                                result[j] = wrap_add(result[j], wrap_multiply(line[i], matrix[i * columns + j]));
                              });
                            }
                          }
                        });
    });
  }

  template <class F>
  static void dispatch_computed(DType type, F&& f) {
    tensor::dispatch<float, double, std::int64_t, std::int32_t, std::uint8_t, std::int8_t, std::uint16_t, std::int16_t,
                     std::uint32_t, std::uint64_t>(type, "Einsum", static_cast<F&&>(f));
  }

  KernelContext& ctx_;
  const EinsumEquation& equation_;
  const ProductLoops& loops_;
  std::map<int, std::int64_t> sizes_;
  std::vector<Operand> operands_;
};

/// Contracts operands from left to right, each pair as a batch of matrix products. 16-bit floats compute in float32.
class Einsum final : public Kernel {
 public:
  explicit Einsum(KernelInfo& info)
      : equation_(info.attributes().get_string("equation")), loops_(info), convert_(info.kernels().convert) {}

  void run(KernelContext& ctx) const override {
    std::vector<std::size_t> ranks;
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < ctx.input_count(); ++i) {
      ranks.push_back(ctx.input(i).rank());
      inputs.push_back(computed(ctx, ctx.input(i)));
    }
    const EinsumEquation equation = EinsumEquation::parse(equation_, ranks);
    Evaluation evaluation(ctx, equation, loops_, inputs);
    const Tensor out = ctx.output(0, evaluation.output_shape());
    if (out.dtype() == inputs[0].dtype()) return evaluation.run(out);
    const Tensor wide = Tensor::make(inputs[0].dtype(), out.shape(), *ctx.run().allocator);
    evaluation.run(wide);
    convert_elements(ctx.run(), convert_, wide, out);
  }

 private:
  Tensor computed(KernelContext& ctx, const Tensor& in) const {
    if (in.dtype() != DType::Float16 && in.dtype() != DType::BFloat16) return in;
    const Tensor out = Tensor::make(DType::Float32, in.shape(), *ctx.run().allocator);
    convert_elements(ctx.run(), convert_, in, out);
    return out;
  }

  std::string equation_;
  ProductLoops loops_;
  const microkernels::ConvertTable& convert_;
};

void infer_einsum(InferContext& ctx) {
  std::vector<std::size_t> ranks;
  for (std::size_t i = 0; i < ctx.input_count(); ++i) {
    const graph::SymShape* shape = ctx.input_shape(i);
    if (!shape) return;
    ranks.push_back(shape->size());
  }
  const EinsumEquation equation = EinsumEquation::parse(ctx.attributes().get_string("equation"), ranks);
  std::map<int, Dim> sizes;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (std::size_t axis = 0; axis < ranks[i]; ++axis) {
      const Dim& dim = (*ctx.input_shape(i))[axis];
      Dim& size = sizes.try_emplace(equation.inputs[i][axis], dim).first->second;
      if (size.is(1) || (dim.known() && !dim.is(1) && !size.known())) size = dim;
    }
  }
  graph::SymShape out;
  for (int label : equation.output) out.push_back(sizes.at(label));
  ctx.set_output_shape(0, std::move(out));
}

}  // namespace

void register_einsum(kernel::OpRegistrar& r) {
  r.op("Einsum")
      .version(12, "Inputs:T* -> Output:T; T = numeric")
      .version(28, "Inputs:T* -> Output:T; T = numeric_bf16")
      .infer(infer_einsum)
      .kernel<Einsum>();
}

}  // namespace infernode::ops
