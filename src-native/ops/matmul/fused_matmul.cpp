#include "kernel/op_registrar.h"
#include "ops/common/activation.h"
#include "ops/common/definition.h"
#include "ops/common/reals.h"
#include "ops/matmul/matmul_shapes.h"
#include "ops/matmul/product.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

/// infernode.FusedMatMul: Y = activation(alpha * A * B' + bias + residual); B' is B, with its last two dims exchanged
/// where transB is set; bias runs along the last dim; residual has Y's shape. With b_scale and b_zero_point (one each,
/// or one for each column of B'), B holds 8-bit codes, which are expanded as they are multiplied.
class FusedMatMul final : public kernel::Kernel {
 public:
  explicit FusedMatMul(KernelInfo& info)
      : kernels_(info.kernels()),
        loops_(info),
        alpha_(info.attributes().get_float("alpha", 1)),
        trans_b_(info.attributes().get_int("transB", 0) != 0),
        activation_(read_activation(info.attributes())) {
    const Tensor* b = info.constant(1);
    if (b == nullptr || b->rank() != 2 || b->numel() == 0 || info.has_input(4)) return;
    b_shape_ = b->shape();
    packed_ = PackedMatrix(info, loops_.packing(), 1, trans_b_);
  }

  void run(KernelContext& ctx) const override {
    const Tensor& a = ctx.input(0);
    const MatMulGeometry g =
        plan_matmul(ctx.run(), a.shape(), factor(packed_ ? b_shape_ : ctx.input(1).shape()), "FusedMatMul");
    const Tensor out = ctx.output(0, g.out);
    if (out.numel() == 0) return;
    const Tensor *bias = ctx.optional_input(2), *residual = ctx.optional_input(3);
    if (bias != nullptr && bias->shape() != Shape{static_cast<std::int64_t>(g.n)})
      fail(ErrorCode::ShapeMismatch, cat("FusedMatMul's bias ", bias->to_string(), " for ", g.n, " columns"));
    if (residual != nullptr && residual->shape() != g.out)
      fail(ErrorCode::ShapeMismatch,
           cat("FusedMatMul adds ", residual->shape().to_string(), " to ", g.out.to_string()));
    const RealInput<float> row(ctx, kernels_, bias), sum(ctx, kernels_, residual);
    const QuantizedColumns codes = packed_ ? QuantizedColumns() : QuantizedColumns(ctx, g.n);
    tensor::Buffer hold;
    const auto type = *gemm_type(a.dtype());
    microkernels::GemmArgs args{
        .m = g.m, .n = g.n, .k = g.k, .alpha = alpha_, .a = a.raw(), .lda = g.k, .a_type = type, .epilogue = {}};
    if (packed_) {
      args.packed_b = packed_.b();
    } else {
      args.b = ctx.input(1).raw();
      args.trans_b = trans_b_;
      args.ldb = trans_b_ ? g.k : g.n;
      args.b_type = type;
      args.b_quantized = codes.get();
    }
    args.c = float_target(ctx, out, hold);
    args.ldc = g.n;
    args.epilogue.bias_n = row.data();
    args.epilogue.ld_residual = g.n;
    args.epilogue.activation = activation_;
    if (residual == nullptr) {
      run_gemm(ctx, loops_, args,
               {.count = g.count,
                .a_offsets = g.a_offsets,
                .b_offsets = g.b_offsets,
                .c_stride = static_cast<std::int64_t>(g.m * g.n)});
    } else {
      run_with_residual(ctx, g, args, sum.data());
    }
    if (out.dtype() != DType::Float32) narrow(ctx, kernels_, args.c, out);
  }

 private:
  /// Scales and zero points of an 8-bit B as float32.
  class QuantizedColumns {
   public:
    QuantizedColumns() = default;
    QuantizedColumns(KernelContext& ctx, std::size_t n) {
      const DType type = ctx.input(1).dtype();
      const bool is_code = type == DType::Int8 || type == DType::UInt8;
      if (!is_code && type != ctx.input(0).dtype())
        fail(ErrorCode::InvalidArgument,
             cat("FusedMatMul of ", ctx.input(0).to_string(), " and ", ctx.input(1).to_string()));
      const Tensor *scale = ctx.optional_input(4), *zero = ctx.optional_input(5);
      if (is_code != (scale != nullptr))
        fail(ErrorCode::InvalidModel, "FusedMatMul takes b_scale where B is 8-bit, and only there");
      if (!is_code) return;
      if (zero != nullptr && (zero->dtype() != type || zero->numel() != scale->numel()))
        fail(ErrorCode::ShapeMismatch,
             cat("FusedMatMul's b_zero_point ", zero->to_string(), " for scales ", scale->to_string()));
      if (scale->numel() != 1 && scale->shape() != Shape{static_cast<std::int64_t>(n)})
        fail(ErrorCode::ShapeMismatch, cat("FusedMatMul's b_scale ", scale->to_string(), " for ", n, " columns"));
      scales_ = tensor::to_float_vector(*scale);
      zeros_ = zero == nullptr ? std::vector<float>(scales_.size()) : tensor::to_float_vector(*zero);
      args_ = {type == DType::Int8, scales_.size() > 1, scales_.data(), zeros_.data()};
    }
    const microkernels::QuantizedB* get() const { return scales_.empty() ? nullptr : &args_; }

   private:
    std::vector<float> scales_, zeros_;
    microkernels::QuantizedB args_;
  };

  /// The shape of B'.
  Shape factor(const Shape& b) const {
    if (!trans_b_ || b.rank() < 2) return b;
    Shape out = b;
    std::swap(out[b.rank() - 1], out[b.rank() - 2]);
    return out;
  }

  /// One product after the other: the epilogue's residual is that of one matrix.
  void run_with_residual(KernelContext& ctx, const MatMulGeometry& g, microkernels::GemmArgs args,
                         const float* residual) const {
    float* const c = args.c;
    for (std::size_t i = 0; i < g.count; ++i) {
      args.c = c + i * g.m * g.n;
      args.epilogue.residual = residual + i * g.m * g.n;
      const auto at = [i](std::span<const std::int64_t> offsets) {
        return offsets.empty() ? std::span<const std::int64_t>() : std::span(offsets).subspan(i, 1);
      };
      run_gemm(ctx, loops_, args, {.count = 1, .a_offsets = at(g.a_offsets), .b_offsets = at(g.b_offsets)});
    }
  }

  const microkernels::KernelSet& kernels_;
  ProductLoops loops_;
  float alpha_;
  bool trans_b_;
  microkernels::ActivationArgs activation_;
  Shape b_shape_;
  PackedMatrix packed_;
};

void infer_fused_matmul(InferContext& ctx) {
  const graph::SymShape *a = ctx.input_shape(0), *b = ctx.input_shape(1);
  if (a == nullptr || b == nullptr) return;
  graph::SymShape factor = *b;
  if (ctx.attributes().get_int("transB", 0) != 0 && factor.size() >= 2)
    std::swap(factor[factor.size() - 1], factor[factor.size() - 2]);
  ctx.set_output_shape(0, matmul_shape(*a, factor, "FusedMatMul"));
}

std::string define_matmul(const graph::Graph& graph, const graph::Node& node) {
  Definition body(graph.value(node.inputs[0]).type.elem);
  const auto input = [&](std::size_t i) { return definition_input(node, i); };
  std::string b = input(1);
  if (!input(4).empty()) {
    const std::string axis = node.attributes.get_int("transB", 0) != 0 ? "0" : "1";
    const std::string expand = cat("DequantizeLinear<axis = ", axis, ">");
    b = !input(5).empty() ? body.call(expand, {b, input(4), input(5)}) : body.call(expand, {b, input(4)});
  }
  if (node.attributes.get_int("transB", 0) != 0) {
    const auto& shape = graph.value(node.inputs[1]).type.shape;
    if (!shape) fail(ErrorCode::Internal, "a transposed factor of unknown rank has no definition");
    std::vector<std::int64_t> perm(shape->size());
    for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<std::int64_t>(i);
    std::swap(perm.end()[-1], perm.end()[-2]);
    b = body.call(cat("Transpose<perm = ", perm, ">"), {b});
  }
  std::string t = body.call("MatMul", {input(0), b});
  if (const float alpha = node.attributes.get_float("alpha", 1); alpha != 1)
    t = body.call("Mul", {t, body.constant(alpha)});
  if (!input(2).empty()) t = body.call("Add", {t, input(2)});
  if (!input(3).empty()) t = body.call("Add", {t, input(3)});
  body.finish(body.activate(t, node.attributes));
  return body.text();
}

}  // namespace

void register_fused_matmul(kernel::OpRegistrar& r) {
  r.op("FusedMatMul", "infernode")
      .version(1,
               "A:T, B:TB, bias:T?, residual:T?, b_scale:T?, b_zero_point:TB? -> Y:T; T = float|float16|bfloat16, "
               "TB = float|float16|bfloat16|int8|uint8")
      .infer(infer_fused_matmul)
      .kernel<FusedMatMul>()
      .methods(product_methods)
      .product()
      .definition(define_matmul);
}

}  // namespace infernode::ops
