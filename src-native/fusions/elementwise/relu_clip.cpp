#include <algorithm>
#include <limits>

#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

/// From version 11 on the bounds are inputs.
constexpr std::int64_t kBoundsAreInputs = 11;

bool guard(const Match& match) {
  if (!is_float(match.type("x"))) return false;
  if (match.last().opset < kBoundsAreInputs) return true;
  if (!match.has("o_min")) return true;
  const tensor::Tensor* low = match.constant("o_min");
  return low != nullptr && low->numel() == 1;
}

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch) {
  graph::Node clip = match.last();
  clip.inputs[0] = match.value("x");
  if (clip.opset < kBoundsAreInputs) {
    const float low = clip.attributes.get_float("min", std::numeric_limits<float>::lowest());
    clip.attributes.set("min", std::max(low, 0.0f));
  } else if (!match.has("o_min") || tensor::to_float_scalar(*match.constant("o_min")) < 0) {
    const tensor::DType type = match.type("x").elem;
    const tensor::Tensor zero(type, tensor::Shape{}, tensor::zeroed_host_buffer(tensor::byte_size(type, 1)));
    if (clip.inputs.size() < 2) clip.inputs.resize(2, graph::kNoValue);
    clip.inputs[1] = patch.add_constant(clip.name + "_min", zero);
  }
  return put(match, patch, std::move(clip));
}

}  // namespace

/// What a Relu cuts off, a Clip can.
void register_relu_clip(FusionRegistry& registry) {
  registry.describe({"FuseReluClip"}, "Relu and Clip become one Clip", "bounds are not constant");
  registry.add(
      {"FuseReluClip", 1, "(x, o_min, o_max) => (y) { r = Relu(x)  y = Clip(r, o_min, o_max) }", guard, replace});
}

}  // namespace infernode::fusions
