// What follows a convolution while its result is still in registers: a sum with another tensor and an activation.

#include <algorithm>
#include <string_view>

#include "fusions/activation.h"

namespace infernode::fusions {
namespace {

bool is_fusable(const Match& match) {
  const graph::Node& conv = match.maker("t");
  return may_fuse_sums(match, "t") && !conv.attributes.has("activation");
}

/// What com.microsoft's FusedConv may have as its activation, or none.
bool is_published(const kernel::FusedActivation& activation) {
  constexpr std::string_view kNames[] = {"", "Clip", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Tanh"};
  return std::ranges::find(kNames, activation.name) != std::end(kNames);
}

/// The convolution of the match with these inputs: com.microsoft's where that has the activation, our own otherwise.
graph::Node fused_conv(const Match& match, std::vector<graph::ValueId> inputs,
                       const kernel::FusedActivation& activation) {
  const graph::Node& conv = match.maker("t");
  graph::Node node = make_node(match, is_published(activation) ? kMicrosoft : kOwn, kFusedConv, std::move(inputs));
  node.name = conv.name;
  node.opset = 1;
  node.attributes = conv.attributes;
  activation.set(node.attributes);
  return node;
}

bool guard_activation(const Match& match) { return is_fusable(match) && read_activation(match, match.maker("y")); }

std::vector<graph::ValueId> replace_activation(const Match& match, graph::GraphPatch& patch) {
  return put(match, patch, fused_conv(match, match.maker("t").inputs, *read_activation(match, match.maker("y"))));
}

bool guard_sum(const Match& match) {
  return is_fusable(match) && match.type("z").elem == match.type("t").elem &&
         same_shape(match.type("t"), match.type("z"));
}

std::vector<graph::ValueId> replace_sum(const Match& match, graph::GraphPatch& patch) {
  return put(match, patch,
             fused_conv(match, {match.value("x"), match.value("w"), match.value("o_b"), match.value("z")}, {}));
}

}  // namespace

void register_conv_activation(FusionRegistry& registry) {
  registry.describe({"ConvActivationFusion", "ConvAddActivationFusion"}, "activation and residual go into a Conv",
                    "the activation's parameters are not constant");
  registry.add({"ConvAddActivationFusion", 2, "(x, w, o_b, z) => (y) { t = Conv(x, w, o_b)  y = Add(t, z) }", guard_sum,
                replace_sum});
  for (const auto& [activation, inputs] : activation_patterns(registry.operators())) {
    registry.add({"ConvActivationFusion", 2,
                  "(x, w, o_b" + inputs + ") => (y) { t = Conv(x, w, o_b)  " + activation + " }", guard_activation,
                  replace_activation});
    registry.add(
        {"ConvAddActivationFusion", 2,
         "(x, w, o_b, o_z" + inputs + ") => (y) { t = com.microsoft.FusedConv(x, w, o_b, o_z)  " + activation + " }",
         guard_activation, replace_activation});
  }
}

}  // namespace infernode::fusions
