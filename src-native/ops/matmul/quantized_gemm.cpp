#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/op_registrar.h"
#include "kernel/scratch.h"
#include "microkernels/convert/convert.h"
#include "ops/matmul/integer_gemm.h"
#include "ops/quant/qlinear.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using microkernels::QgemmOutput;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// com.microsoft's QGemm: Y = alpha * a_scale * b_scale * (A' * B' + C), A and B less their zero points, as float or
/// quantized by y_scale and y_zero_point. C holds 32-bit integers.
class QuantizedGemm final : public kernel::Kernel {
 public:
  explicit QuantizedGemm(KernelInfo& info)
      : table_(info.kernels().qgemm),
        convert_(info.kernels().convert),
        alpha_(info.attributes().get_float("alpha", 1)),
        trans_a_(info.attributes().get_int("transA", 0) != 0),
        trans_b_(info.attributes().get_int("transB", 0) != 0) {
    if (info.has_input(7) != info.has_input(8))
      fail(ErrorCode::InvalidModel, "QGemm takes y_scale and y_zero_point together");
    const Tensor* b = info.constant(3);
    if (b == nullptr || b->rank() != 2 || b->numel() == 0) return;
    b_shape_ = b->shape();
    packed_ = PackedWeight(
        info, 3, trans_b_ ? "matrix.t" : "matrix", operand(b_shape_), 1,
        [&](const Tensor& weight, std::size_t, std::byte* to) { pack(weight, 0, operand(b_shape_).n, to); });
    info.release_constant(3);
  }

  void run(KernelContext& ctx) const override {
    const Tensor& a = ctx.input(0);
    const Shape& b_shape = packed_ ? b_shape_ : ctx.input(3).shape();
    const bool fits = a.rank() == 2 && b_shape.rank() == 2 && a.dim(trans_a_ ? 0 : 1) == b_shape[trans_b_ ? 1 : 0];
    if (!fits)
      fail(ErrorCode::ShapeMismatch, cat("QGemm: A ", a.to_string(), " and B ", b_shape.to_string(), " do not fit"));
    const std::size_t m = size(a.dim(trans_a_ ? 1 : 0)), k = size(a.dim(trans_a_ ? 0 : 1)),
                      n = size(b_shape[trans_b_ ? 0 : 1]);
    const Tensor y = ctx.output(0, Shape{static_cast<std::int64_t>(m), static_cast<std::int64_t>(n)});
    if (y.numel() == 0) return;
    const Quantized8 qa(ctx.input(1), &ctx.input(2), a.dtype());
    std::vector<float> scales = vector_of(ctx.input(4), n, "b_scale");
    std::vector<std::int32_t> zeros;
    for (const float v : vector_of(ctx.input(5), n, "b_zero_point")) zeros.push_back(static_cast<std::int32_t>(v));
    for (float& s : scales) s *= alpha_ * qa.scale;

    const auto fill = [&](std::size_t, std::size_t begin, std::size_t end, std::byte* to) {
      pack(ctx.input(3), begin, end, to);
    };
    const PackedWeight weights = packed_ ? packed_ : PackedWeight(ctx.run(), operand(b_shape), 1, table_.nr, fill);
    kernel::Scratch<std::uint8_t> turned;
    microkernels::QgemmArgs args{.m = m, .n = n, .k = k, .a = a.raw(), .lda = k, .a_signed = qa.is_signed};
    if (trans_a_) {
      turned = kernel::Scratch<std::uint8_t>(ctx.run(), checked_mul(m, k));
      ctx.parallel_for(m * k, 2, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i) turned[i] = bytes_of(a)[i % k * m + i / k];
      });
      args.a = turned.data();
    }
    args.a_zero = qa.zero;
    args.packed_b = weights.read(table_.weights.name);
    args.b_zero = zeros[0];
    if (zeros.size() > 1) args.b_zeros = zeros.data();
    args.ldc = n;
    args.scale = scales[0];
    if (scales.size() > 1) args.scales = scales.data();

    const Tensor* c = ctx.optional_input(6);
    const Shape strides = c == nullptr ? Shape{0, 0} : tensor::broadcast_strides(c->shape(), y.shape());
    const bool by_column = c == nullptr || strides[0] == 0 || m == 1;
    std::vector<std::int32_t> bias(c == nullptr ? 0 : n);
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = c->data<std::int32_t>()[i * size(strides[1])];
    if (by_column) {
      if (c != nullptr) args.bias = bias.data();
      return finish(ctx, args, y);
    }
    const kernel::Scratch<std::int32_t> sums(ctx.run(), checked_mul(m, n));
    args.c = sums.data();
    run_qgemm(ctx, table_, args);
    const std::int32_t* added = c->data<std::int32_t>();
    const bool is_float = y.dtype() == DType::Float32;
    ctx.parallel_for(m, static_cast<double>(n) * 4, [&](std::size_t begin, std::size_t end, std::size_t) {
      std::vector<float> values(is_float ? 0 : n);
      for (std::size_t r = begin; r < end; ++r) {
        float* row = is_float ? y.mutable_data<float>() + r * n : values.data();
        for (std::size_t j = 0; j < n; ++j) {
          const std::size_t at = r * size(strides[0]) + j * size(strides[1]);
          const std::uint32_t sum = static_cast<std::uint32_t>(sums[r * n + j]) + static_cast<std::uint32_t>(added[at]);
          row[j] = static_cast<float>(static_cast<std::int32_t>(sum)) * scales[scales.size() == 1 ? 0 : j];
        }
        if (!is_float) result_codes(ctx, y).store(convert_, row, mutable_bytes_of(y) + r * n, n);
      }
    });
  }

 private:
  microkernels::PackedOperand operand(const Shape& b) const {
    return table_.weights.packed(size(b[trans_b_ ? 0 : 1]), size(b[trans_b_ ? 1 : 0]), nullptr);
  }
  void pack(const Tensor& b, std::size_t begin, std::size_t end, std::byte* to) const {
    const microkernels::PackedOperand one = operand(b.shape());
    table_.weights.pack(one.n, one.k, b.raw(), b.dtype() == DType::Int8, size(b.dim(1)), trans_b_, to, begin, end);
  }

  static std::vector<float> vector_of(const Tensor& t, std::size_t n, const char* what) {
    if (t.numel() != 1 && (t.rank() != 1 || size(t.numel()) != n))
      fail(ErrorCode::ShapeMismatch, cat("QGemm: ", what, " is ", t.to_string(), " for ", n, " columns"));
    return tensor::to_float_vector(t);
  }

  static Quantized8 result_codes(const KernelContext& ctx, const Tensor& y) {
    return Quantized8(ctx.input(7), &ctx.input(8), y.dtype());
  }

  void finish(KernelContext& ctx, microkernels::QgemmArgs& args, const Tensor& y) const {
    args.output = QgemmOutput::kF32;
    std::vector<float> scales;
    if (y.dtype() != DType::Float32) {
      const Quantized8 q = result_codes(ctx, y);
      args.output = q.is_signed ? QgemmOutput::kS8 : QgemmOutput::kU8;
      args.out_zero = q.zero;
      args.scale /= q.scale;
      if (args.scales != nullptr) {
        scales.assign(args.scales, args.scales + args.n);
        for (float& s : scales) s /= q.scale;
        args.scales = scales.data();
      }
    }
    args.c = y.mutable_raw();
    run_qgemm(ctx, table_, args);
  }

  const microkernels::QgemmTable& table_;
  const microkernels::ConvertTable& convert_;
  float alpha_;
  bool trans_a_, trans_b_;
  Shape b_shape_;
  PackedWeight packed_;
};

void infer_quantized_gemm(InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.has_input(8) ? ctx.input_dtype(8) : DType::Float32);
  const graph::SymShape *a = ctx.input_shape(0), *b = ctx.input_shape(3);
  if (a == nullptr || b == nullptr || a->size() != 2 || b->size() != 2) return;
  ctx.set_output_shape(0, graph::SymShape{(*a)[ctx.attributes().get_int("transA", 0) != 0 ? 1 : 0],
                                          (*b)[ctx.attributes().get_int("transB", 0) != 0 ? 0 : 1]});
}

}  // namespace

void register_quantized_gemm(kernel::OpRegistrar& r) {
  r.op("QGemm", "com.microsoft")
      .version(1,
               "A:TA, a_scale:T, a_zero_point:TA, B:TB, b_scale:T, b_zero_point:TB, C:TC?, y_scale:T?, "
               "y_zero_point:TYZ? -> Y:TY; T = float, TA = int8|uint8, TB = int8|uint8, TC = int32, "
               "TYZ = int8|uint8, TY = float|int8|uint8")
      .infer(infer_quantized_gemm)
      .kernel<QuantizedGemm>()
      .product();
}

}  // namespace infernode::ops
