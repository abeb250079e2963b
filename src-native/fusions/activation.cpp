#include "fusions/activation.h"

#include <limits>

namespace infernode::fusions {

void FusedActivation::set(graph::Attributes& attributes) const {
  if (name.empty()) return;
  attributes.set("activation", name);
  if (!params.empty()) attributes.set("activation_params", params);
}

namespace {

/// One limit of Clip: an attribute up to version 6, an input since.
bool read_limit(const Match& match, const graph::Node& node, const char* attribute, const char* input, float& limit) {
  limit = node.attributes.get_float(attribute, limit);
  if (!match.has(input)) return true;
  const std::optional<float> value = scalar(match, input, "t");
  if (value) limit = *value;
  return value.has_value();
}

}  // namespace

std::optional<FusedActivation> read_activation(const Match& match, const graph::Node& node) {
  const std::string& op = node.op_type;
  const graph::Attributes& attributes = node.attributes;
  if (op == "Relu" || op == "Sigmoid" || op == "Tanh") return FusedActivation{op, {}};
  if (op == "LeakyRelu") return FusedActivation{op, {attributes.get_float("alpha", 0.01f)}};
  if (op == "HardSigmoid")
    return FusedActivation{op, {attributes.get_float("alpha", 0.2f), attributes.get_float("beta", 0.5f)}};
  if (op == "HardSwish") return FusedActivation{op, {}, false};
  if (op == "FastGelu") return FusedActivation{"GeluTanh", {}, false};
  if (op == "Gelu") {
    const bool tanh = attributes.get_string("approximate", "none") == "tanh";
    return FusedActivation{tanh ? "GeluTanh" : "Gelu", {}, false};
  }
  if (op == "QuickGelu") {
    if (attributes.get_float("alpha", 1.702f) != 1.0f) return std::nullopt;
    return FusedActivation{"Silu", {}, false};
  }
  if (op == "Clip") {
    float low = std::numeric_limits<float>::lowest(), high = std::numeric_limits<float>::max();
    if (!read_limit(match, node, "min", "o_min", low) || !read_limit(match, node, "max", "o_max", high))
      return std::nullopt;
    return FusedActivation{op, {low, high}};
  }
  return std::nullopt;
}

}  // namespace infernode::fusions
