// x * clip(x + 3, 0, 6) / 6, which exporters write in pieces.

#include <algorithm>

#include "fusions/activation.h"

namespace infernode::fusions {
namespace {

/// The standard has HardSwish from this version on.
constexpr std::int64_t kStandard = 14;

/// `t` is what the pieces read.
bool is_hard_swish(const Match& match) {
  if (!is_float(match.type("t")) || !is_scalar(match, "c_three", "t", 3) ||
      !is_scalar(match, "c_six", "t", contains(match, kDiv) ? 6.0 : 1.0 / 6.0))
    return false;
  const std::optional<kernel::FusedActivation> clip = read_activation(match, match.maker("k"));
  return clip && clip->params == std::vector<float>{0, 6};
}

bool guard_standard(const Match& match) { return match.last().opset >= kStandard && is_hard_swish(match); }
std::vector<graph::ValueId> replace_standard(const Match& match, graph::GraphPatch& patch) {
  return put(match, patch, make_node(match, "", "HardSwish", {match.value("t")}));
}

bool guard_conv(const Match& match) {
  return match.type("t").elem == tensor::DType::Float32 && !match.maker("t").attributes.has("activation") &&
         is_hard_swish(match);
}
std::vector<graph::ValueId> replace_conv(const Match& match, graph::GraphPatch& patch) {
  const graph::Node& conv = match.maker("t");
  graph::Node node = make_node(match, kOwn, kFusedConv, conv.inputs);
  node.name = conv.name;
  node.attributes = conv.attributes;
  node.attributes.set("activation", "HardSwish");
  return put(match, patch, std::move(node));
}

}  // namespace

void register_hard_swish(FusionRegistry& registry) {
  registry.describe({"HardSwishFusion"},
                    "x * clip(x + 3, 0, 6) / 6 becomes HardSwish, or the activation of the Conv that makes x; level 1 "
                    "from opset 14 on, else level 2 after a Conv",
                    "other constants");
  // By six, or times a sixth.
  for (const std::string product : {"m = Mul(t, k)  y = Div(m, c_six)", "m = Div(k, c_six)  y = Mul(t, m)",
                                    "m = Mul(t, k)  y = Mul(m, c_six)", "m = Mul(k, c_six)  y = Mul(t, m)"}) {
    const std::string inputs = "c_three, o_min, o_max, c_six";
    const std::string pieces = "a = Add(t, c_three)  k = Clip(a, o_min, o_max)  " + product + " }";
    registry.add({"HardSwishFusion", 1, "(t, " + inputs + ") => (y) { " + pieces, guard_standard, replace_standard});
    registry.add({"HardSwishFusion", 2, "(x, w, o_b, " + inputs + ") => (y) { t = Conv(x, w, o_b)  " + pieces,
                  guard_conv, replace_conv});
  }
}

}  // namespace infernode::fusions
