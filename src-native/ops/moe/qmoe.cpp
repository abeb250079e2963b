#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "base/packed.h"
#include "kernel/op_registrar.h"
#include "ops/common/reals.h"
#include "ops/matmul/expanded_gemm.h"
#include "ops/moe/experts.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

constexpr const char* kName = "QMoE";
constexpr std::size_t kFc1 = 2, kFc2 = 5, kFc3 = 8;  // weights; scales and biases follow them
constexpr std::size_t kZeros = 11;                   // zero points of fc1, fc2 and fc3
constexpr std::size_t kRouterWeights = 14, kFirstOfDevices = 15;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// The matrices [n, k] of one projection of all experts, as codes. A row's codes lie together, the first in a byte's
/// low bits; each block of a row, or all of it, has a scale and a zero point.
struct Codes {
  std::int64_t bits = 4;
  std::size_t n = 0, k = 0, block = 0, blocks = 0;  ///< block: k where rows are not cut
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* zeros = nullptr;  ///< null: the middle of the range
  std::size_t zeros_row = 0;            ///< bytes: of a row's zero points, or where rows are not cut of an expert's
  RealInput<float> scales, bias;

  float code(const std::uint8_t* data, std::size_t i) const {
    return bits == 4 ? get_packed<4>(data, i) : bits == 8 ? data[i] : get_packed<2>(data, i);
  }
  float zero(std::size_t expert, std::size_t row, std::size_t at) const {
    if (zeros == nullptr) return static_cast<float>(1 << (bits - 1));
    return blocks == 0 ? code(zeros + expert * zeros_row, row) : code(zeros + (expert * n + row) * zeros_row, at);
  }
  /// Row `row` of an expert's matrix.
  void expand(std::size_t expert, std::size_t row, float* out) const {
    const std::size_t r = expert * n + row, count = std::max<std::size_t>(blocks, 1);
    const std::uint8_t* from = codes + r * (k * size(bits) / 8);
    for (std::size_t b = 0, i = 0; b < count; ++b) {
      const float factor = scales[r * count + b], middle = zero(expert, row, b);
      for (const std::size_t end = i + block; i < end; ++i) out[i] = (code(from, i) - middle) * factor;
    }
  }
};

/// com.microsoft's mixture of experts whose weights are codes of 2, 4 or 8 bits.
class QMoE final : public kernel::Kernel {
 public:
  explicit QMoE(KernelInfo& info)
      : kernels_(info.kernels()),
        router_(info.attributes(), kName, true),
        activation_(info.attributes(), kName, info.has_input(kFc3)),
        block_(info.attributes().get_int("block_size", 0)) {
    const std::string type = info.attributes().get_string("quant_type", "int");
    if (type != "int")
      fail(ErrorCode::UnsupportedOperator, cat(kName, " of quant_type '", type, "'; 'int' is supported"));
    if (block_ != 0 && (block_ < 16 || block_ > (std::int64_t{1} << 31) || (block_ & (block_ - 1)) != 0))
      fail(ErrorCode::InvalidModel, cat(kName, ": block_size is ", block_));
    const std::int64_t bits = info.attributes().get_int("expert_weight_bits", 4);
    constexpr const char* kNames[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"};
    for (std::size_t i = 0; i < 3; ++i) {
      bits_[i] = info.attributes().get_int(kNames[i], bits);
      if (bits_[i] != 2 && bits_[i] != 4 && bits_[i] != 8)
        fail(ErrorCode::UnsupportedOperator, cat(kName, " of ", bits_[i], " bits; 2, 4 and 8 are supported"));
    }
    for (std::size_t i = kFirstOfDevices; i < info.input_count(); ++i) {
      if (info.has_input(i))
        fail(ErrorCode::InvalidModel, cat(kName, ": input ", i, " is of no use where quant_type is 'int'"));
    }
  }

  void run(KernelContext& ctx) const override {
    const Tensor &input = ctx.input(0), &fc2 = ctx.input(kFc2);
    ExpertSizes sizes = token_sizes(ctx, kName);
    sizes.has_fc3 = ctx.has_input(kFc3);
    if (fc2.rank() != 3) fail(ErrorCode::ShapeMismatch, cat(kName, ": fc2_experts_weights is ", fc2.to_string()));
    const std::int64_t width = input.shape().back(), inner = checked_mul(fc2.dim(2), 8 / bits_[1]);
    sizes.inner = size(inner);
    const std::int64_t fused = checked_mul(inner, static_cast<std::int64_t>(activation_.fused()));
    const Codes first = codes_of(ctx, kFc1, 0, fused, width), second = codes_of(ctx, kFc2, 1, width, inner),
                third = sizes.has_fc3 ? codes_of(ctx, kFc3, 2, inner, width) : Codes();
    expect_shape(ctx, kName, kRouterWeights, ctx.input(1).shape());
    const RealInput<float> x(ctx, kernels_, input), scores(ctx, kernels_, ctx.input(1)),
        given(ctx, kernels_, ctx.optional_input(kRouterWeights));
    const Routes routes = router_.route(ctx, kernels_, scores, given, sizes.tokens, sizes.experts);
    const Tensor y = ctx.output(0, input.shape());
    const RealOutput<float> out(ctx, kernels_, y);
    run_experts(ctx, kernels_, sizes, activation_, routes, x, out,
                [&](Projection which, std::size_t expert, std::size_t rows, const float* from, float* to) {
                  const Codes& w = which == Projection::Fc1 ? first : which == Projection::Fc2 ? second : third;
                  multiply_expanded(ctx, kernels_.gemm_float32, rows, w.n, w.k, from,
                                    w.bias.data() == nullptr ? nullptr : w.bias + expert * w.n, to,
                                    [&](std::size_t row, float* hold) { w.expand(expert, row, hold); });
                });
    out.store();
  }

 private:
  /// Projection `which` (0 to 2), whose weights are input `input`.
  Codes codes_of(const KernelContext& ctx, std::size_t input, std::size_t which, std::int64_t n, std::int64_t k) const {
    const std::int64_t experts = ctx.input(1).dim(1), bits = bits_[which], blocks = block_ == 0 ? 0 : k / block_;
    if (k * bits % 8 != 0 || (block_ != 0 && k % block_ != 0))
      fail(ErrorCode::ShapeMismatch,
           cat(kName, ": rows of ", k, " codes of ", bits, " bits do not fill bytes and blocks of ", block_));
    const std::int64_t zeros_row = ceil_div((block_ == 0 ? n : blocks) * bits, std::int64_t{8});
    expect_shape(ctx, kName, input, Shape{experts, n, k * bits / 8});
    expect_shape(ctx, kName, input + 1, block_ == 0 ? Shape{experts, n} : Shape{experts, n, blocks});
    expect_shape(ctx, kName, input + 2, Shape{experts, n});
    expect_shape(ctx, kName, kZeros + which, block_ == 0 ? Shape{experts, zeros_row} : Shape{experts, n, zeros_row});
    if (!ctx.has_input(input + 1))
      fail(ErrorCode::InvalidArgument, cat(kName, " without input ", input + 1, ", the scales"));
    Codes out;
    out.bits = bits;
    out.n = size(n);
    out.k = size(k);
    out.block = block_ == 0 ? out.k : size(block_);
    out.blocks = size(blocks);
    out.codes = ctx.input(input).data<std::uint8_t>();
    if (const Tensor* zeros = ctx.optional_input(kZeros + which)) out.zeros = zeros->data<std::uint8_t>();
    out.zeros_row = size(zeros_row);
    out.scales = RealInput<float>(ctx, kernels_, ctx.input(input + 1));
    out.bias = RealInput<float>(ctx, kernels_, ctx.optional_input(input + 2));
    return out;
  }

  const microkernels::KernelSet& kernels_;
  Router router_;
  ExpertActivation activation_;
  std::int64_t block_;
  std::int64_t bits_[3] = {4, 4, 4};
};

}  // namespace

void register_qmoe(kernel::OpRegistrar& r) {
  using enum tensor::DType;
  r.op("QMoE", "com.microsoft")
      .version(1,
               "input:T, router_probs:T, fc1_experts_weights:T1, fc1_scales:T2?, fc1_experts_bias:T?, "
               "fc2_experts_weights:T1, fc2_scales:T2?, fc2_experts_bias:T?, fc3_experts_weights:T1?, fc3_scales:T2?, "
               "fc3_experts_bias:T?, fc1_zero_points:T1?, fc2_zero_points:T1?, fc3_zero_points:T1?, "
               "router_weights:T?, fc1_global_scale:T4?, fc2_global_scale:T4?, fc1_act_scale:T4?, fc2_act_scale:T4?, "
               "fc1_act_block_scale:T2?, fc2_act_block_scale:T2? -> output:T; T = float|float16|bfloat16, "
               "T1 = uint8|float8e4m3fn, T2 = float|float16|bfloat16|float8e8m0|float8e4m3fn, T4 = float")
      .infer(kernel::infer_same_as_first)
      .kernel<QMoE>({{"T1", {UInt8}}, {"T2", {Float32, Float16, BFloat16}}});
}

}  // namespace infernode::ops
