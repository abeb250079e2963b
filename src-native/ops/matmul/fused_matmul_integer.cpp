#include "base/error.h"
#include "kernel/op_registrar.h"
#include "microkernels/convert/convert.h"
#include "ops/common/activation.h"
#include "ops/common/definition.h"
#include "ops/matmul/integer_gemm.h"
#include "ops/quant/dynamic_quantize.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

/// infernode.FusedMatMulInteger: Y = activation((A - a_zero_point) * (B - b_zero_point) * (a_scale * b_scale) + bias +
/// residual), products of 8-bit matrices with exact sums. A has one scale and one zero point, B one or one for each
/// column; an absent scale of A is 1; bias runs along the last dim; residual has Y's shape. Where A is float32 it is
/// quantized as DynamicQuantizeLinear does, which gives its scale and zero point.
class FusedMatMulInteger final : public kernel::Kernel {
 public:
  explicit FusedMatMulInteger(KernelInfo& info)
      : convert_(info.kernels().convert), product_(info, 1), activation_(read_activation(info.attributes())) {}

  void run(KernelContext& ctx) const override {
    const Tensor& a = ctx.input(0);
    const MatMulGeometry g = product_.plan(ctx, a.shape());
    const Tensor out = ctx.output(0, g.out);
    if (out.numel() == 0) return;
    const Tensor *bias = ctx.optional_input(6), *residual = ctx.optional_input(7);
    if (bias != nullptr && bias->shape() != Shape{static_cast<std::int64_t>(g.n)})
      fail(ErrorCode::ShapeMismatch, cat("FusedMatMulInteger's bias ", bias->to_string(), " for ", g.n, " columns"));
    if (residual != nullptr && residual->shape() != g.out)
      fail(ErrorCode::ShapeMismatch,
           cat("FusedMatMulInteger adds ", residual->shape().to_string(), " to ", g.out.to_string()));
    IntegerProduct p(ctx.run());
    p.output = microkernels::QgemmOutput::kF32;
    p.scales = column_scales(ctx.run(), ctx.input(3), product_.b_shape(ctx));
    p.b_zeros = column_zeros(ctx.run(), ctx.optional_input(5), product_.b_shape(ctx));
    p.bias = bias == nullptr ? nullptr : bias->data<float>();
    p.residual = residual == nullptr ? nullptr : residual->data<float>();
    p.activation = activation_;
    if (a.dtype() != DType::Float32) {
      const Tensor* scale = ctx.optional_input(2);
      if (scale != nullptr && scale->numel() != 1)
        fail(ErrorCode::ShapeMismatch, cat("FusedMatMulInteger's a_scale is ", scale->to_string()));
      p.factor = scale == nullptr ? 1 : tensor::to_float_scalar(*scale);
      p.a_zeros = row_zeros(ctx.run(), ctx.optional_input(4), a.shape());
      return product_.run(ctx, g, a, p, out.mutable_raw());
    }
    const auto count = static_cast<std::size_t>(a.numel());
    const DynamicScale range = dynamic_scale(ctx, convert_, a.data<float>(), count);
    const tensor::Buffer codes = ctx.scratch(count);
    auto* const bytes = reinterpret_cast<std::uint8_t*>(codes.data());
    quantize_dynamically(ctx, convert_, a.data<float>(), count, range, bytes);
    p.factor = range.scale;
    p.a_zeros[0] = range.zero;
    product_.run(ctx, g, bytes, false, p, out.mutable_raw());
  }

 private:
  const microkernels::ConvertTable& convert_;
  IntegerMatMul product_;
  microkernels::ActivationArgs activation_;
};

void infer_fused_matmul_integer(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::Float32);
  infer_matmul_shape(ctx, 0, 1);
}

std::string define_integer_matmul(const graph::Graph& graph, const graph::Node& node) {
  Definition body(tensor::DType::Float32);
  const auto input = [&](std::size_t i) { return definition_input(node, i); };
  std::string a = input(0), scale = input(2), zero = input(4);
  if (graph.value(node.inputs[0]).type.elem == tensor::DType::Float32) {
    const std::vector<std::string> made = body.calls("DynamicQuantizeLinear", {a}, 3);
    a = made[0];
    scale = made[1];
    zero = made[2];
  }
  std::string t = body.call("MatMulInteger", {a, input(1), zero, input(5)});
  t = body.call("Cast<to = 1>", {t});
  t = body.call("Mul", {t, scale.empty() ? input(3) : body.call("Mul", {scale, input(3)})});
  if (!input(6).empty()) t = body.call("Add", {t, input(6)});
  if (!input(7).empty()) t = body.call("Add", {t, input(7)});
  body.finish(body.activate(t, node.attributes));
  return body.text();
}

}  // namespace

void register_fused_matmul_integer(kernel::OpRegistrar& r) {
  r.op("FusedMatMulInteger", "infernode")
      .version(1,
               "A:TA, B:TB, a_scale:float?, b_scale:float, a_zero_point:TA?, b_zero_point:TB?, bias:float?, "
               "residual:float? -> Y:float; TA = float|int8|uint8, TB = int8|uint8")
      .infer(infer_fused_matmul_integer)
      .kernel<FusedMatMulInteger>()
      .product()
      .definition(define_integer_matmul);
}

}  // namespace infernode::ops
