#include <cmath>

#include "fusions/conv/conv_weights.h"

namespace infernode::fusions {
namespace {

/// Batch normalization at inference over a convolution's result is an affine map per channel.
bool guard(const Match& match) {
  if (!foldable_weights(match)) return false;
  const graph::Node& norm = match.node(1);
  if (norm.attributes.get_int("training_mode", 0) != 0 || norm.attributes.get_int("spatial", 1) == 0) return false;
  for (std::size_t o = 1; o < norm.outputs.size(); ++o) {
    if (norm.outputs[o] != graph::kNoValue) return false;
  }
  const std::int64_t channels = match.constant("c_w")->dim(0);
  for (const char* name : {"c_scale", "c_shift", "c_mean", "c_var"}) {
    const tensor::Tensor* t = match.constant(name);
    if (t == nullptr || t->dtype() != tensor::DType::Float32 || t->numel() != channels) return false;
  }
  return true;
}

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch) {
  const float epsilon = match.node(1).attributes.get_float("epsilon", 1e-5f);
  const float* scale = match.constant("c_scale")->data<float>();
  const float* shift = match.constant("c_shift")->data<float>();
  const float* mean = match.constant("c_mean")->data<float>();
  const float* var = match.constant("c_var")->data<float>();
  ChannelAffine affine;
  for (std::int64_t c = 0; c < match.constant("c_w")->dim(0); ++c) {
    const float factor = scale[c] / std::sqrt(var[c] + epsilon);
    affine.scale.push_back(factor);
    affine.shift.push_back(shift[c] - mean[c] * factor);
  }
  return {replace_conv(match, patch, affine)};
}

}  // namespace

void register_conv_batch_norm(FusionRegistry& registry) {
  registry.describe({"ConvBatchNormFusion"}, "BatchNormalization goes into a Conv's weights and bias", "training");
  registry.add({"ConvBatchNormFusion", 1,
                "(x, c_w, o_b, c_scale, c_shift, c_mean, c_var) => (y) { t = Conv(x, c_w, o_b)  "
                "y = BatchNormalization(t, c_scale, c_shift, c_mean, c_var) }",
                guard, replace});
}

}  // namespace infernode::fusions
