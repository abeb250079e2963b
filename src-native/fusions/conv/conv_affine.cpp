#include "fusions/conv/conv_weights.h"

namespace infernode::fusions {
namespace {

/// Conv followed by a constant added to, or multiplied with, each channel.
std::optional<std::vector<float>> channel_constant(const Match& match) {
  if (!foldable_weights(match)) return std::nullopt;
  const tensor::Tensor& w = *match.constant("c_w");
  const auto values = per_channel(*match.constant("c_k"), w.dim(0), w.rank());
  // A constant of the result's rank must not widen it: only its channel axis may be other than 1, which per_channel has
  // seen to.
  return values;
}

bool guard(const Match& match) { return channel_constant(match).has_value(); }

std::vector<graph::ValueId> replace_add(const Match& match, graph::GraphPatch& patch) {
  std::vector<float> shift = *channel_constant(match);
  std::vector<float> ones(shift.size(), 1.0f);
  return {replace_conv(match, patch, {std::move(ones), std::move(shift)})};
}

std::vector<graph::ValueId> replace_mul(const Match& match, graph::GraphPatch& patch) {
  std::vector<float> scale = *channel_constant(match);
  std::vector<float> zeros(scale.size(), 0.0f);
  return {replace_conv(match, patch, {std::move(scale), std::move(zeros)})};
}

}  // namespace

void register_conv_affine(FusionRegistry& registry) {
  registry.describe({"ConvAddFusion", "ConvMulFusion"},
                    "a constant for each channel goes into a Conv's bias or weights", "the constant has other dims");
  registry.add(
      {"ConvAddFusion", 1, "(x, c_w, o_b, c_k) => (y) { t = Conv(x, c_w, o_b)  y = Add(t, c_k) }", guard, replace_add});
  registry.add(
      {"ConvMulFusion", 1, "(x, c_w, o_b, c_k) => (y) { t = Conv(x, c_w, o_b)  y = Mul(t, c_k) }", guard, replace_mul});
}

}  // namespace infernode::fusions
