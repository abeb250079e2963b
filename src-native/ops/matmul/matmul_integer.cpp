#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/op_registrar.h"
#include "microkernels/elementwise/convert.h"
#include "ops/common/reals.h"
#include "ops/matmul/integer_gemm.h"
#include "ops/matmul/product.h"
#include "ops/quant/dynamic_quantize.h"
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

/// int32 products of 8-bit matrices less their zero points.
class MatMulInteger final : public kernel::Kernel {
 public:
  explicit MatMulInteger(KernelInfo& info) : product_(info, 1) {}

  void run(KernelContext& ctx) const override {
    const Tensor& a = ctx.input(0);
    const MatMulGeometry g = product_.plan(ctx, a.shape());
    const Tensor out = ctx.output(0, g.out);
    if (out.numel() == 0) return;
    IntegerProduct p;
    p.a_zeros = row_zeros(ctx.optional_input(2), a.shape());
    p.b_zeros = column_zeros(ctx.optional_input(3), product_.b_shape(ctx));
    product_.run(ctx, g, a, p, out.mutable_raw());
  }

 private:
  IntegerMatMul product_;
};

const float* bias_of(const KernelContext& ctx, std::size_t input, std::size_t n) {
  const Tensor* bias = ctx.optional_input(input);
  if (bias == nullptr) return nullptr;
  if (bias->numel() != static_cast<std::int64_t>(n))
    fail(ErrorCode::ShapeMismatch, cat("the bias is ", bias->to_string(), " for ", n, " columns"));
  return bias->data<float>();
}

/// com.microsoft: MatMulIntegerToFloat (A and its scale and zero point given) and DynamicQuantizeMatMul (A is float and
/// quantized here).
template <bool Dynamic>
class FloatProduct final : public kernel::Kernel {
 public:
  explicit FloatProduct(KernelInfo& info) : convert_(info.kernels().convert), product_(info, 1) {}

  void run(KernelContext& ctx) const override {
    const Tensor& given = ctx.input(0);
    const MatMulGeometry g = product_.plan(ctx, given.shape());
    const Tensor out = ctx.output(0, g.out);
    if (out.numel() == 0) return;
    const Shape& b_shape = product_.b_shape(ctx);
    IntegerProduct p;
    p.output = QgemmOutput::kF32;
    std::vector<float> a_scales(1);
    Tensor a = given;
    if constexpr (Dynamic) {
      const auto count = static_cast<std::size_t>(given.numel());
      const DynamicScale range = dynamic_scale(ctx, convert_, given.data<float>(), count);
      a = Tensor::make(DType::UInt8, given.shape(), *ctx.run().allocator);
      quantize_dynamically(ctx, convert_, given.data<float>(), count, range, a.mutable_data<std::uint8_t>());
      a_scales[0] = range.scale;
      p.a_zeros[0] = range.zero;
      p.scales = column_scales(ctx.input(2), b_shape);
      p.b_zeros = column_zeros(ctx.optional_input(3), b_shape);
      p.bias = bias_of(ctx, 4, g.n);
    } else {
      a_scales = row_scales(ctx.input(2), given.shape());
      p.scales = column_scales(ctx.input(3), b_shape);
      p.a_zeros = row_zeros(ctx.optional_input(4), given.shape());
      p.b_zeros = column_zeros(ctx.optional_input(5), b_shape);
      p.bias = bias_of(ctx, 6, g.n);
    }
    if (a_scales.size() != 1)
      fail(ErrorCode::UnsupportedOperator, "MatMulIntegerToFloat with a scale for each row of A");
    for (float& s : p.scales) s *= a_scales[0];
    product_.run(ctx, g, a, p, out.mutable_raw());
  }

 private:
  const microkernels::ConvertTable& convert_;
  IntegerMatMul product_;
};

/// y = quantize(dequantize(a) * dequantize(b)).
class QLinearMatMul final : public kernel::Kernel {
 public:
  explicit QLinearMatMul(KernelInfo& info) : kernels_(info.kernels()), product_(info, 3) {}

  void run(KernelContext& ctx) const override {
    const Tensor& a = ctx.input(0);
    const MatMulGeometry g = product_.plan(ctx, a.shape());
    const Tensor out = ctx.output(0, g.out);
    if (out.numel() == 0) return;
    const Shape& b_shape = product_.b_shape(ctx);
    const float y_scale = tensor::to_float_scalar(ctx.input(6));
    const std::vector<float> a_scales = row_scales(ctx.input(1), a.shape());
    const bool integer_out = is_integer8(out.dtype());
    if (!is_integer8(a.dtype()) || !is_integer8(ctx.input(5).dtype()))
      return quantize(ctx, out, float_sums(ctx, g, a, a_scales, static_cast<std::size_t>(out.numel())));
    IntegerProduct p;
    p.scales = column_scales(ctx.input(4), b_shape);
    p.a_zeros = row_zeros(&ctx.input(2), a.shape());
    p.b_zeros = column_zeros(&ctx.input(5), b_shape);
    if (a_scales.size() > 1 || !integer_out) return quantize(ctx, out, scaled_sums(ctx, g, a, a_scales, std::move(p)));
    for (float& s : p.scales) s = a_scales[0] * s / y_scale;
    p.out_zero = static_cast<std::int32_t>(tensor::to_int64_scalar(ctx.input(7)));
    p.output = out.dtype() == DType::Int8 ? QgemmOutput::kS8 : QgemmOutput::kU8;
    product_.run(ctx, g, a, p, out.mutable_raw());
  }

 private:
  static bool is_integer8(DType type) { return type == DType::Int8 || type == DType::UInt8; }

  /// A scale for each row of A, which the integer kernel does not know, or a result that is no integer.
  std::vector<float> scaled_sums(KernelContext& ctx, const MatMulGeometry& g, const Tensor& a,
                                 const std::vector<float>& a_scales, IntegerProduct p) const {
    std::vector<float> sums(g.count * g.m * g.n);
    p.output = QgemmOutput::kF32;
    product_.run(ctx, g, a, p, sums.data());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::size_t product = i / (g.m * g.n), row = i / g.n % g.m;
      const std::int64_t at = g.a_offsets.empty() ? 0 : g.a_offsets[product];
      sums[i] *= a_scales.size() == 1 ? a_scales[0] : a_scales[static_cast<std::size_t>(at) / g.k + row];
    }
    return sums;
  }

  /// 8-bit floats, through float32.
  std::vector<float> float_sums(KernelContext& ctx, const MatMulGeometry& g, const Tensor& a,
                                const std::vector<float>& a_scales, std::size_t count) const {
    const Tensor& b = ctx.input(3);
    std::vector<float> left = tensor::to_float_vector(a), right = tensor::to_float_vector(b), sums(count);
    const std::vector<float> b_scales = column_scales(ctx.input(4), b.shape());
    const std::vector<std::int32_t> a_zeros = row_zeros(&ctx.input(2), a.shape());
    const std::vector<std::int32_t> b_zeros = column_zeros(&ctx.input(5), b.shape());
    const auto pick = [](const auto& values, std::size_t i) { return values[values.size() == 1 ? 0 : i]; };
    for (std::size_t i = 0; i < left.size(); ++i)
      left[i] = (left[i] - static_cast<float>(pick(a_zeros, i / g.k))) * pick(a_scales, i / g.k);
    for (std::size_t i = 0; i < right.size(); ++i) {
      const std::size_t column = i / (g.k * g.n) * g.n + i % g.n;
      right[i] = (right[i] - static_cast<float>(pick(b_zeros, column))) * pick(b_scales, column);
    }
    run_gemm(ctx, kernels_.gemm_float32,
             {.m = g.m,
              .n = g.n,
              .k = g.k,
              .a = left.data(),
              .lda = g.k,
              .b = right.data(),
              .ldb = g.n,
              .c = sums.data(),
              .ldc = g.n,
              .epilogue = {}},
             {.count = g.count,
              .a_offsets = g.a_offsets,
              .b_offsets = g.b_offsets,
              .c_stride = static_cast<std::int64_t>(g.m * g.n)});
    return sums;
  }

  static void quantize(const KernelContext& ctx, const Tensor& out, const std::vector<float>& values) {
    const float scale = tensor::to_float_scalar(ctx.input(6));
    const Quantized8 codes(ctx.input(6), &ctx.input(7), out.dtype());
    tensor::dispatch<std::int8_t, std::uint8_t, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ>(
        out.dtype(), "QLinearMatMul", [&]<class T>(tensor::TypeTag<T>) {
          T* to = out.mutable_data<T>();
          for (std::size_t i = 0; i < values.size(); ++i) {
            if constexpr (std::is_integral_v<T>) {
              to[i] = static_cast<T>(codes.quantize(values[i]));
            } else {
              to[i] = T::from_float(values[i] / scale, true);
            }
          }
        });
  }

  const microkernels::KernelSet& kernels_;
  IntegerMatMul product_;
};

void infer_matmul_integer(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::Int32);
  infer_matmul_shape(ctx, 0, 1);
}
void infer_float_product(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::Float32);
  infer_matmul_shape(ctx, 0, 1);
}
void infer_qlinear_matmul(InferContext& ctx) { infer_matmul_shape(ctx, 0, 3); }

}  // namespace

void register_matmul_integer(kernel::OpRegistrar& r) {
  r.op("MatMulInteger")
      .version(10,
               "A:T1, B:T2, a_zero_point:T1?, b_zero_point:T2? -> Y:T3; T1 = int8|uint8, T2 = int8|uint8, T3 = int32")
      .infer(infer_matmul_integer)
      .kernel<MatMulInteger>()
      .product();
  r.op("QLinearMatMul")
      .version(10,
               "a:T1, a_scale:float, a_zero_point:T1, b:T2, b_scale:float, b_zero_point:T2, y_scale:float, "
               "y_zero_point:T3 -> y:T3; T1 = int8|uint8, T2 = int8|uint8, T3 = int8|uint8")
      .version(21,
               "a:T1, a_scale:TS, a_zero_point:T1, b:T2, b_scale:TS, b_zero_point:T2, y_scale:TS, y_zero_point:T3 -> "
               "y:T3; TS = float|float16|bfloat16, T1 = int8|uint8|float8, T2 = int8|uint8|float8, "
               "T3 = int8|uint8|float8")
      .infer(infer_qlinear_matmul)
      .kernel<QLinearMatMul>()
      .product();
  r.op("DynamicQuantizeMatMul", "com.microsoft")
      .version(1, "A:T1, B:T2, b_scale:T1, b_zero_point:T2?, bias:T1? -> Y:T1; T1 = float, T2 = int8|uint8")
      .infer(infer_float_product)
      .kernel<FloatProduct<true>>()
      .product();
  r.op("MatMulIntegerToFloat", "com.microsoft")
      .version(1,
               "A:T1, B:T2, a_scale:T3, b_scale:T3, a_zero_point:T1?, b_zero_point:T2?, bias:T3? -> Y:T3; "
               "T1 = int8|uint8, T2 = int8|uint8, T3 = float")
      .infer(infer_float_product)
      .kernel<FloatProduct<false>>()
      .product();
}

}  // namespace infernode::ops
