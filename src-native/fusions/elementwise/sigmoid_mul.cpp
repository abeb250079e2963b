#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

bool guard(const Match& match) { return is_float(match.type("x")); }
bool guard_scaled(const Match& match) { return guard(match) && scalar(match, "c_alpha", "x"); }

std::vector<graph::ValueId> quick_gelu(const Match& match, graph::GraphPatch& patch, float alpha) {
  graph::Node node = make_node(match, kMicrosoft, "QuickGelu", {match.value("x")});
  node.attributes.set("alpha", alpha);
  return put(match, patch, std::move(node));
}

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch) {
  return quick_gelu(match, patch, 1.0f);
}
std::vector<graph::ValueId> replace_scaled(const Match& match, graph::GraphPatch& patch) {
  return quick_gelu(match, patch, *scalar(match, "c_alpha", "x"));
}

}  // namespace

/// x * sigmoid(alpha * x): SiLU (Swish) and the fast approximation of Gelu.
void register_sigmoid_mul(FusionRegistry& registry) {
  registry.describe({"QuickGeluFusion"}, "x * sigmoid(alpha * x) becomes `QuickGelu`", "neither float32 nor float16");
  registry.add({"QuickGeluFusion", 2, "(x) => (y) { s = Sigmoid(x)  y = Mul(x, s) }", guard, replace});
  registry.add({"QuickGeluFusion", 2, "(x, c_alpha) => (y) { a = Mul(x, c_alpha)  s = Sigmoid(a)  y = Mul(x, s) }",
                guard_scaled, replace_scaled});
}

}  // namespace infernode::fusions
