#include "kernel/op_registrar.h"
#include "ops/activation.h"
#include "ops/gemm.h"
#include "ops/matmul_shapes.h"
#include "ops/reals.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

/// infernode.FusedMatMul: Y = activation(alpha * A * B' + bias + residual); B' is B, with its last two dims exchanged
/// where transB is set; bias runs along the last dim; residual has Y's shape.
class FusedMatMul final : public kernel::Kernel {
 public:
  explicit FusedMatMul(KernelInfo& info)
      : rung_(info.cpu_rung()),
        table_(microkernels::gemm_table(rung_)),
        alpha_(info.attributes().get_float("alpha", 1)),
        trans_b_(info.attributes().get_int("transB", 0) != 0),
        activation_(read_activation(info.attributes())) {
    const Tensor* b = info.constant(1);
    if (b == nullptr || b->rank() != 2 || b->numel() == 0) return;
    b_shape_ = b->shape();
    packed_ = PackedMatrix(info, 1, trans_b_);
  }

  void run(KernelContext& ctx) const override {
    const Tensor& a = ctx.input(0);
    const MatMulGeometry g = plan_matmul(a.shape(), factor(packed_ ? b_shape_ : ctx.input(1).shape()), "FusedMatMul");
    const Tensor out = ctx.output(0, g.out);
    if (out.numel() == 0) return;
    const Tensor *bias = ctx.optional_input(2), *residual = ctx.optional_input(3);
    if (bias != nullptr && bias->shape() != Shape{static_cast<std::int64_t>(g.n)})
      fail(ErrorCode::ShapeMismatch, cat("FusedMatMul's bias ", bias->to_string(), " for ", g.n, " columns"));
    if (residual != nullptr && residual->shape() != g.out)
      fail(ErrorCode::ShapeMismatch,
           cat("FusedMatMul adds ", residual->shape().to_string(), " to ", g.out.to_string()));
    const RealInput<float> row(ctx, rung_, bias), sum(ctx, rung_, residual);
    tensor::Buffer hold;
    const auto type = *gemm_type(a.dtype());
    microkernels::GemmArgs args{
        .m = g.m, .n = g.n, .k = g.k, .alpha = alpha_, .a = a.raw(), .lda = g.k, .a_type = type, .epilogue = {}};
    if (packed_) {
      args.packed_b = packed_.data();
    } else {
      args.b = ctx.input(1).raw();
      args.trans_b = trans_b_;
      args.ldb = trans_b_ ? g.k : g.n;
      args.b_type = type;
    }
    args.c = float_target(ctx, out, hold);
    args.ldc = g.n;
    args.epilogue.bias_n = row.data();
    args.epilogue.ld_residual = g.n;
    args.epilogue.activation = activation_;
    if (residual == nullptr) {
      run_gemm(ctx, table_, args,
               {.count = g.count,
                .a_offsets = g.a_offsets,
                .b_offsets = g.b_offsets,
                .c_stride = static_cast<std::int64_t>(g.m * g.n)});
    } else {
      run_with_residual(ctx, g, args, sum.data());
    }
    if (out.dtype() != DType::Float32) narrow(rung_, args.c, out);
  }

 private:
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
      const auto at = [i](const std::vector<std::int64_t>& offsets) {
        return offsets.empty() ? std::span<const std::int64_t>() : std::span(offsets).subspan(i, 1);
      };
      run_gemm(ctx, table_, args, {.count = 1, .a_offsets = at(g.a_offsets), .b_offsets = at(g.b_offsets)});
    }
  }

  CpuRung rung_;
  const microkernels::GemmTable& table_;
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

}  // namespace

void register_fused_matmul(kernel::OpRegistrar& r) {
  r.op("FusedMatMul", "infernode")
      .version(1, "A:T, B:T, bias:T?, residual:T? -> Y:T; T = float|float16|bfloat16")
      .infer(infer_fused_matmul)
      .kernel<FusedMatMul>();
}

}  // namespace infernode::ops
