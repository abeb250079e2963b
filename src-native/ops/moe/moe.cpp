#include "base/error.h"
#include "kernel/op_registrar.h"
#include "ops/common/reals.h"
#include "ops/matmul/product.h"
#include "ops/moe/experts.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

constexpr const char* kName = "MoE";
constexpr std::size_t kFc1 = 2, kFc2 = 4, kFc3 = 6;  // weights; their biases follow them

/// com.microsoft's mixture of experts: the k best experts of each token, weighted by the softmax of their scores.
class MoE final : public kernel::Kernel {
 public:
  explicit MoE(KernelInfo& info)
      : kernels_(info.kernels()),
        table_(product_table(info)),
        router_(info.attributes(), kName, false),
        activation_(info.attributes(), kName, info.has_input(kFc3)) {}

  void run(KernelContext& ctx) const override {
    const Tensor &input = ctx.input(0), &fc2 = ctx.input(kFc2);
    ExpertSizes sizes = token_sizes(ctx, kName);
    sizes.has_fc3 = ctx.has_input(kFc3);
    if (fc2.rank() != 3) fail(ErrorCode::ShapeMismatch, cat(kName, ": fc2_experts_weights is ", fc2.to_string()));
    const std::int64_t experts = ctx.input(1).dim(1), width = input.shape().back(), inner = fc2.dim(2);
    const std::int64_t fused = inner * static_cast<std::int64_t>(activation_.fused());
    sizes.inner = static_cast<std::size_t>(inner);
    expect_shape(ctx, kName, kFc1, Shape{experts, fused, width});
    expect_shape(ctx, kName, kFc1 + 1, Shape{experts, fused});
    expect_shape(ctx, kName, kFc2, Shape{experts, width, inner});
    expect_shape(ctx, kName, kFc2 + 1, Shape{experts, width});
    expect_shape(ctx, kName, kFc3, Shape{experts, inner, width});
    expect_shape(ctx, kName, kFc3 + 1, Shape{experts, inner});
    const RealInput<float> x(ctx, kernels_, input), scores(ctx, kernels_, ctx.input(1)),
        bias1(ctx, kernels_, ctx.optional_input(kFc1 + 1)), bias2(ctx, kernels_, ctx.optional_input(kFc2 + 1)),
        bias3(ctx, kernels_, ctx.optional_input(kFc3 + 1));
    const Routes routes = router_.route(ctx, kernels_, scores, nullptr, sizes.tokens, sizes.experts);
    const Tensor y = ctx.output(0, input.shape());
    const RealOutput<float> out(ctx, kernels_, y);
    run_experts(ctx, kernels_, sizes, activation_, routes, x, out,
                [&](Projection which, std::size_t expert, std::size_t rows, const float* from, float* to) {
                  const bool first = which == Projection::Fc1, second = which == Projection::Fc2;
                  multiply(ctx,
                           ctx.input(first    ? kFc1
                                     : second ? kFc2
                                              : kFc3),
                           first    ? bias1
                           : second ? bias2
                                    : bias3,
                           expert, rows, from, to);
                });
    out.store();
  }

 private:
  /// By matrix `expert` of weights [experts, n, k].
  void multiply(KernelContext& ctx, const Tensor& weights, const float* biases, std::size_t expert, std::size_t rows,
                const float* x, float* y) const {
    microkernels::GemmArgs args;
    args.m = rows;
    args.n = static_cast<std::size_t>(weights.dim(1));
    args.k = static_cast<std::size_t>(weights.dim(2));
    args.a = x;
    args.lda = args.k;
    args.b = static_cast<const std::byte*>(weights.raw()) +
             expert * args.n * args.k * (tensor::bit_size(weights.dtype()) / 8);
    args.ldb = args.k;
    args.trans_b = true;
    args.b_type = *gemm_type(weights.dtype());
    args.c = y;
    args.ldc = args.n;
    args.epilogue.bias_n = biases == nullptr ? nullptr : biases + expert * args.n;
    run_gemm(ctx, table_, args);
  }

  const microkernels::KernelSet& kernels_;
  const microkernels::GemmTable& table_;
  Router router_;
  ExpertActivation activation_;
};

}  // namespace

void register_moe(kernel::OpRegistrar& r) {
  r.op("MoE", "com.microsoft")
      .version(1,
               "input:T, router_probs:T, fc1_experts_weights:T, fc1_experts_bias:T?, fc2_experts_weights:T, "
               "fc2_experts_bias:T?, fc3_experts_weights:T?, fc3_experts_bias:T? -> output:T; "
               "T = float|float16|bfloat16")
      .infer(kernel::infer_same_as_first)
      .kernel<MoE>();
}

}  // namespace infernode::ops
