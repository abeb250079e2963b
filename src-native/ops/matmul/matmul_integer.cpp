#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/op_registrar.h"
#include "kernel/scratch.h"
#include "microkernels/convert/convert.h"
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
    IntegerProduct p(ctx.run());
    p.a_zeros = row_zeros(ctx.run(), ctx.optional_input(2), a.shape());
    p.b_zeros = column_zeros(ctx.run(), ctx.optional_input(3), product_.b_shape(ctx));
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
    IntegerProduct p(ctx.run());
    p.output = QgemmOutput::kF32;
    kernel::CountedVector<float> a_scales(1, 1, ctx.run());
    Tensor a = given;
    if constexpr (Dynamic) {
      const auto count = static_cast<std::size_t>(given.numel());
      const DynamicScale range = dynamic_scale(ctx, convert_, given.data<float>(), count);
      a = Tensor::make(DType::UInt8, given.shape(), *ctx.run().allocator);
      quantize_dynamically(ctx, convert_, given.data<float>(), count, range, a.mutable_data<std::uint8_t>());
      a_scales[0] = range.scale;
      p.a_zeros[0] = range.zero;
      p.scales = column_scales(ctx.run(), ctx.input(2), b_shape);
      p.b_zeros = column_zeros(ctx.run(), ctx.optional_input(3), b_shape);
      p.bias = bias_of(ctx, 4, g.n);
    } else {
      a_scales = row_scales(ctx.run(), ctx.input(2), given.shape());
      p.scales = column_scales(ctx.run(), ctx.input(3), b_shape);
      p.a_zeros = row_zeros(ctx.run(), ctx.optional_input(4), given.shape());
      p.b_zeros = column_zeros(ctx.run(), ctx.optional_input(5), b_shape);
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
    const kernel::CountedVector<float> a_scales = row_scales(ctx.run(), ctx.input(1), a.shape());
    const bool integer_out = is_integer8(out.dtype());
    if (!is_integer8(a.dtype()) || !is_integer8(ctx.input(5).dtype())) return float_sums(ctx, g, a, a_scales, out);
    IntegerProduct p(ctx.run());
    p.scales = column_scales(ctx.run(), ctx.input(4), b_shape);
    p.a_zeros = row_zeros(ctx.run(), &ctx.input(2), a.shape());
    p.b_zeros = column_zeros(ctx.run(), &ctx.input(5), b_shape);
    if (a_scales.size() > 1 || !integer_out) return scaled_sums(ctx, g, a, a_scales, std::move(p), out);
    for (float& s : p.scales) s = a_scales[0] * s / y_scale;
    p.out_zero = static_cast<std::int32_t>(tensor::to_int64_scalar(ctx.input(7)));
    p.output = out.dtype() == DType::Int8 ? QgemmOutput::kS8 : QgemmOutput::kU8;
    product_.run(ctx, g, a, p, out.mutable_raw());
  }

 private:
  static bool is_integer8(DType type) { return type == DType::Int8 || type == DType::UInt8; }

  /// A scale for each row of A, which the integer kernel does not know, or a result that is no integer.
  void scaled_sums(KernelContext& ctx, const MatMulGeometry& g, const Tensor& a,
                   const kernel::CountedVector<float>& a_scales, IntegerProduct p, const Tensor& out) const {
    const kernel::Scratch<float> sums(ctx.run(), static_cast<std::size_t>(out.numel()));
    p.output = QgemmOutput::kF32;
    product_.run(ctx, g, a, p, sums.data());
    quantize(ctx, out, [&](std::size_t i) {
      const std::size_t product = i / (g.m * g.n), row = i / g.n % g.m;
      const std::int64_t at = g.a_offsets.empty() ? 0 : g.a_offsets[product];
      return sums[i] * (a_scales.size() == 1 ? a_scales[0] : a_scales[static_cast<std::size_t>(at) / g.k + row]);
    });
  }

  /// What the codes of `t` stand for; place(i) is that of element i's scale and zero point, where there are several.
  template <class Place>
  static kernel::Scratch<float> numbers(KernelContext& ctx, const Tensor& t, const kernel::CountedVector<float>& scales,
                                        const kernel::CountedVector<std::int32_t>& zeros, const Place& place) {
    const auto count = static_cast<std::size_t>(t.numel());
    kernel::Scratch<float> to(ctx.run(), count);
    tensor::dispatch<std::int8_t, std::uint8_t, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ>(
        t.dtype(), "QLinearMatMul", [&]<class T>(tensor::TypeTag<T>) {
          const T* const from = t.data<T>();
          ctx.parallel_for(count, 4, [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t i = begin; i < end; ++i) {
              const float zero = static_cast<float>(zeros[zeros.size() == 1 ? 0 : place(i)]);
              to[i] = (static_cast<float>(from[i]) - zero) * scales[scales.size() == 1 ? 0 : place(i)];
            }
          });
        });
    return to;
  }

  /// 8-bit floats, through float32.
  void float_sums(KernelContext& ctx, const MatMulGeometry& g, const Tensor& a,
                  const kernel::CountedVector<float>& a_scales, const Tensor& out) const {
    const Tensor& b = ctx.input(3);
    const kernel::Scratch<float> left = numbers(ctx, a, a_scales, row_zeros(ctx.run(), &ctx.input(2), a.shape()),
                                                [&](std::size_t i) { return i / g.k; });
    const kernel::Scratch<float> right = numbers(ctx, b, column_scales(ctx.run(), ctx.input(4), b.shape()),
                                                 column_zeros(ctx.run(), &ctx.input(5), b.shape()),
                                                 [&](std::size_t i) { return i / (g.k * g.n) * g.n + i % g.n; });
    const kernel::Scratch<float> sums(ctx.run(), static_cast<std::size_t>(out.numel()));
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
    quantize(ctx, out, [&](std::size_t i) { return sums[i]; });
  }

  /// The codes of value(i).
  template <class Value>
  static void quantize(KernelContext& ctx, const Tensor& out, const Value& value) {
    const float scale = tensor::to_float_scalar(ctx.input(6));
    const Quantized8 codes(ctx.input(6), &ctx.input(7), out.dtype());
    tensor::dispatch<std::int8_t, std::uint8_t, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ>(
        out.dtype(), "QLinearMatMul", [&]<class T>(tensor::TypeTag<T>) {
          T* to = out.mutable_data<T>();
          ctx.parallel_for(static_cast<std::size_t>(out.numel()), 8,
                           [&](std::size_t begin, std::size_t end, std::size_t) {
                             for (std::size_t i = begin; i < end; ++i) {
                               if constexpr (std::is_integral_v<T>) {
                                 to[i] = static_cast<T>(codes.quantize(value(i)));
                               } else {
                                 to[i] = T::from_float(value(i) / scale, true);
                               }
                             }
                           });
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
