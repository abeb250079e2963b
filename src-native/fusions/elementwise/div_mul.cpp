#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

/// In whole numbers 1 / x is lost before it is multiplied.
bool guard(const Match& match) {
  return is_float(match.type("x")) && match.node(0).opset >= 7 && is_scalar(match, "c_one", "x", 1) &&
         tensor::to_float_scalar(*match.constant("c_one")) == 1;
}

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch) {
  return put(match, patch, make_node(match, "", kDiv, {match.value("y"), match.value("x")}));
}

}  // namespace

/// (1 / x) * y.
void register_div_mul(FusionRegistry& registry) {
  registry.describe({"DivMulFusion"}, "(1 / x) * y becomes y / x", "the constant is not 1");
  registry.add({"DivMulFusion", 1, "(c_one, x, y) => (z) { d = Div(c_one, x)  z = Mul(d, y) }", guard, replace});
}

}  // namespace infernode::fusions
