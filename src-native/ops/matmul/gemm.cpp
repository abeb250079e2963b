#include "ops/matmul/product.h"

#include <optional>
#include <string>
#include <vector>

#include "kernel/counted.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "microkernels/elementwise/elementwise.h"
#include "ops/common/activation.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using microkernels::GemmArgs;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

/// Element of C for row i, column j, where C broadcasts to [m, n] from the right (numpy) or, in old versions, as its
/// shape says.
struct Addend {
  const Tensor* tensor = nullptr;
  std::int64_t row_stride = 0, column_stride = 0;

  Addend(const Tensor* c, const Shape& out) : tensor(c) {
    if (c == nullptr) return;
    const Shape strides = tensor::broadcast_strides(c->shape(), out);
    row_stride = strides[0];
    column_stride = strides[1];
  }
  std::int64_t at(std::size_t i, std::size_t j) const {
    return static_cast<std::int64_t>(i) * row_stride + static_cast<std::int64_t>(j) * column_stride;
  }
};

/// The activation of com.microsoft's FusedGemm, with parameters of its own spelling: part of the product's epilogue, or
/// a loop over the result for those that no epilogue knows.
struct FusedActivation {
  microkernels::ActivationArgs epilogue;
  std::optional<microkernels::UnaryOp> loop;
  float a = 0, b = 0;

  explicit FusedActivation(const graph::Attributes& attributes) {
    using microkernels::UnaryOp;
    struct Known {
      const char* name;
      UnaryOp op;
      float alpha, beta;  // defaults of the parameters
    };
    constexpr Known kKnown[] = {
        {"Elu", UnaryOp::kElu, 1, 0},           {"Selu", UnaryOp::kSelu, 1.67326319f, 1.05070102f},
        {"Celu", UnaryOp::kCelu, 1, 0},         {"Softplus", UnaryOp::kSoftplus, 0, 0},
        {"Softsign", UnaryOp::kSoftsign, 0, 0}, {"ThresholdedRelu", UnaryOp::kThresholdedRelu, 1, 0},
    };
    const std::string name = attributes.get_string("activation", "");
    for (const Known& known : kKnown) {
      if (name != known.name) continue;
      loop = known.op;
      a = attributes.get_float("activation_alpha", known.alpha);
      b = attributes.get_float(known.op == UnaryOp::kSelu ? "activation_gamma" : "activation_beta", known.beta);
      return;
    }
    epilogue = read_activation(attributes);
    epilogue.a = attributes.get_float("activation_alpha", epilogue.a);
    epilogue.b = attributes.get_float("activation_beta", epilogue.b);
  }
};

/// Y = alpha * A' * B' + beta * C; com.microsoft's FusedGemm applies an activation to it.
class Gemm final : public kernel::Kernel {
 public:
  explicit Gemm(KernelInfo& info)
      : kernels_(info.kernels()),
        loops_(info),
        alpha_(info.attributes().get_float("alpha", 1)),
        beta_(info.attributes().get_float("beta", 1)),
        trans_a_(info.attributes().get_int("transA", 0) != 0),
        trans_b_(info.attributes().get_int("transB", 0) != 0),
        elementwise_(kernels_.elementwise),
        activation_(info.attributes()) {
    const Tensor* b = info.constant(1);
    if (b == nullptr || b->rank() != 2 || b->numel() == 0 || !gemm_type(b->dtype())) return;
    b_shape_ = b->shape();
    packed_ = PackedMatrix(info, loops_.packing(), 1, trans_b_);
  }

  void run(KernelContext& ctx) const override {
    const Tensor& a = ctx.input(0);
    const Shape& b_shape = packed_ ? b_shape_ : ctx.input(1).shape();
    if (a.rank() != 2 || b_shape.rank() != 2) {
      fail(ErrorCode::ShapeMismatch,
           cat("Gemm takes matrices, got ", a.shape().to_string(), " x ", b_shape.to_string()));
    }
    const std::int64_t m = a.dim(trans_a_ ? 1 : 0), k = a.dim(trans_a_ ? 0 : 1);
    const std::int64_t n = b_shape[trans_b_ ? 0 : 1], b_k = b_shape[trans_b_ ? 1 : 0];
    if (k != b_k) {
      fail(ErrorCode::ShapeMismatch,
           cat("Gemm dimension mismatch: A ", a.shape().to_string(), trans_a_ ? " transposed" : "", " x B ",
               b_shape.to_string(), trans_b_ ? " transposed" : ""));
    }
    const Tensor out = ctx.output(0, Shape{m, n});
    if (out.numel() == 0) return;
    const Addend addend(beta_ == 0 ? nullptr : ctx.optional_input(2), out.shape());
    if (gemm_type(a.dtype())) {
      run_floats(ctx, a, out, addend, static_cast<std::size_t>(k));
    } else if (a.dtype() == DType::Float64) {
      run_double(ctx, a, out, addend, static_cast<std::size_t>(k));
    } else {
      tensor::dispatch<std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>(
          a.dtype(), "Gemm", [&]<class T>(TypeTag<T>) { run_integers<T>(ctx, a, out, addend, k); });
    }
  }

 private:
  void run_floats(KernelContext& ctx, const Tensor& a, const Tensor& out, const Addend& addend, std::size_t k) const {
    const auto m = static_cast<std::size_t>(out.dim(0)), n = static_cast<std::size_t>(out.dim(1));
    GemmArgs args{.m = m,
                  .n = n,
                  .k = k,
                  .alpha = alpha_,
                  .a = a.raw(),
                  .lda = static_cast<std::size_t>(a.dim(1)),
                  .trans_a = trans_a_,
                  .epilogue = {}};
    args.a_type = *gemm_type(a.dtype());
    if (packed_) {
      args.packed_b = packed_.b();
    } else {
      const Tensor& b = ctx.input(1);
      args.b = b.raw();
      args.ldb = static_cast<std::size_t>(b.dim(1));
      args.trans_b = trans_b_;
      args.b_type = args.a_type;
    }
    tensor::Buffer hold;
    args.c = float_target(ctx, out, hold);
    args.ldc = n;
    const kernel::Numbers<float> c(ctx.run(), addend.tensor);
    const kernel::CountedVector<float> scaled = add_to_epilogue(ctx.run(), args, addend, c.data());
    args.epilogue.activation = activation_.epilogue;
    run_gemm(ctx, loops_, args);
    if (activation_.loop) {
      ctx.parallel_for(m * n, 2, [&](std::size_t begin, std::size_t end, std::size_t) {
        elementwise_[*activation_.loop](args.c + begin, args.c + begin, end - begin, activation_.a, activation_.b);
      });
    }
    if (out.dtype() != DType::Float32) narrow(ctx, kernels_, args.c, out);
  }

  /// C, whose numbers are `c`, as the epilogue's row vector, column vector or whole matrix. Returns what had to be
  /// scaled.
  kernel::CountedVector<float> add_to_epilogue(const kernel::RunContext& run, GemmArgs& args, const Addend& addend,
                                               const float* c) const {
    kernel::CountedVector<float> scaled(run);
    if (addend.tensor == nullptr) return scaled;
    if (addend.row_stride != 0 && addend.column_stride != 0) {
      args.epilogue.residual = c;
      args.epilogue.ld_residual = args.n;
      args.epilogue.residual_scale = beta_;
      return scaled;
    }
    const bool by_row = addend.row_stride != 0;
    const std::size_t count = by_row ? args.m : args.n;
    const auto stride = static_cast<std::size_t>(by_row ? addend.row_stride : addend.column_stride);
    scaled.reserve(count);
    kernel::Watch watch(run);
    each_in_pieces(watch, count, 2.0, [&](std::size_t i) { scaled.push_back(beta_ * c[i * stride]); });
    (by_row ? args.epilogue.bias_m : args.epilogue.bias_n) = scaled.data();
    return scaled;
  }

  void run_double(KernelContext& ctx, const Tensor& a, const Tensor& out, const Addend& addend, std::size_t k) const {
    const auto m = static_cast<std::size_t>(out.dim(0)), n = static_cast<std::size_t>(out.dim(1));
    const Tensor& b = ctx.input(1);
    double* y = out.mutable_data<double>();
    const double* c = addend.tensor == nullptr ? nullptr : addend.tensor->data<double>();
    ctx.parallel_for(m * n, 2, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i)
        y[i] = c == nullptr ? 0 : static_cast<double>(beta_) * c[addend.at(i / n, i % n)];
    });
    run_dgemm(ctx, loops_.packing(),
              {.m = m,
               .n = n,
               .k = k,
               .alpha = static_cast<double>(alpha_),
               .a = a.data<double>(),
               .lda = static_cast<std::size_t>(a.dim(1)),
               .trans_a = trans_a_,
               .b = b.data<double>(),
               .ldb = static_cast<std::size_t>(b.dim(1)),
               .trans_b = trans_b_,
               .c = y,
               .ldc = n,
               .accumulate = true});
  }

  template <class T>
  void run_integers(KernelContext& ctx, const Tensor& a, const Tensor& out, const Addend& addend,
                    std::int64_t k) const {
    using U = std::make_unsigned_t<T>;
    const Tensor& b = ctx.input(1);
    const std::int64_t m = out.dim(0), n = out.dim(1);
    const T* x = a.data<T>();
    const T* w = b.data<T>();
    T* y = out.mutable_data<T>();
    const auto depth = static_cast<std::size_t>(k), columns = static_cast<std::size_t>(n);
    const std::int64_t x_step = trans_a_ ? m : 1, w_step = trans_b_ ? 1 : n;
    ctx.parallel_for(
        static_cast<std::size_t>(m) * columns, static_cast<double>(k),
        [&](std::size_t begin, std::size_t end, std::size_t) {
          kernel::Watch watch(ctx.run());
          for (std::size_t at = begin; at < end; ++at) {
            const auto i = static_cast<std::int64_t>(at / columns), j = static_cast<std::int64_t>(at) % n;
            const T *row = x + (trans_a_ ? i : i * k), *column = w + (trans_b_ ? j * k : j);
            const U sum = sum_in_pieces<U>(watch, depth, 2.0, [&](std::size_t p) {
              const auto step = static_cast<std::int64_t>(p);
              return static_cast<U>(static_cast<U>(row[step * x_step]) * static_cast<U>(column[step * w_step]));
            });
            const T* c = addend.tensor == nullptr ? nullptr : addend.tensor->data<T>();
            y[at] = scaled_sum(static_cast<T>(sum), c == nullptr ? T{0} : c[addend.at(at / columns, at % columns)]);
          }
        });
  }

  /// alpha * sum + beta * c; exact where neither is scaled.
  template <class T>
  T scaled_sum(T sum, T c) const {
    using U = std::make_unsigned_t<T>;
    const auto times = [](float factor, T v) {
      return static_cast<U>(factor == 1 ? v : static_cast<T>(static_cast<double>(factor) * static_cast<double>(v)));
    };
    return static_cast<T>(times(alpha_, sum) + times(beta_, c));
  }

  const microkernels::KernelSet& kernels_;
  ProductLoops loops_;
  float alpha_, beta_;
  bool trans_a_, trans_b_;
  const microkernels::ElementwiseTable& elementwise_;
  FusedActivation activation_;
  Shape b_shape_;
  PackedMatrix packed_;
};

void infer_gemm(InferContext& ctx) {
  const graph::SymShape* a = ctx.input_shape(0);
  const graph::SymShape* b = ctx.input_shape(1);
  if (a == nullptr || b == nullptr) return;
  if (a->size() != 2 || b->size() != 2) {
    fail(ErrorCode::ShapeMismatch, cat("Gemm takes matrices, got ", graph::to_string(*a), " x ", graph::to_string(*b)));
  }
  const bool trans_a = ctx.attributes().get_int("transA", 0) != 0, trans_b = ctx.attributes().get_int("transB", 0) != 0;
  ctx.set_output_shape(0, {(*a)[trans_a ? 1 : 0], (*b)[trans_b ? 0 : 1]});
}

}  // namespace

void register_gemm(kernel::OpRegistrar& r) {
  r.op("Gemm")
      .version(1, "A:T, B:T, C:T -> Y:T; T = floats")
      .version(6, "A:T, B:T, C:T -> Y:T; T = floats")
      .version(7, "A:T, B:T, C:T -> Y:T; T = floats")
      .version(9, "A:T, B:T, C:T -> Y:T; T = floats|uint32|uint64|int32|int64")
      .version(11, "A:T, B:T, C:T? -> Y:T; T = floats|uint32|uint64|int32|int64")
      .version(13, "A:T, B:T, C:T? -> Y:T; T = floats|uint32|uint64|int32|int64|bfloat16")
      .infer(infer_gemm)
      .kernel<Gemm>()
      .methods(product_methods)
      .product();
  r.op("FusedGemm", "com.microsoft")
      .version(1, "A:T, B:T, C:T? -> Y:T; T = float|float16")
      .infer(infer_gemm)
      .kernel<Gemm>()
      .methods(product_methods)
      .product();
}

}  // namespace infernode::ops
