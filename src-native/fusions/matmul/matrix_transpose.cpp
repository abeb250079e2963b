// Matrices that are transposed as one stack: Reshape, Transpose, Reshape become the Transpose of their last two dims.

#include <numeric>
#include <utility>

#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

bool swaps_last_two(const graph::Node& transpose) {
  return transpose.attributes.get_ints("perm") == std::vector<std::int64_t>{0, 2, 1};
}

/// x [..., R, C] as [N, R, C], that as [N, C, R], which is y [..., C, R].
bool guard(const Match& match) {
  const auto &x = match.type("x").shape, &stack = match.type("r").shape, &y = match.type("y").shape;
  if (!x || !stack || !y || x->size() < 3 || stack->size() != 3 || !swaps_last_two(match.maker("t"))) return false;
  graph::SymShape turned = *x;
  std::swap(turned.end()[-1], turned.end()[-2]);
  return turned == *y && (*stack)[1] == x->end()[-2] && (*stack)[2] == x->end()[-1];
}

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch) {
  graph::Node node = match.maker("t");
  std::vector<std::int64_t> perm(match.type("x").shape->size());
  std::iota(perm.begin(), perm.end(), std::int64_t{0});
  std::swap(perm.end()[-1], perm.end()[-2]);
  node.attributes.set("perm", perm);
  node.inputs = {match.value("x")};
  return put(match, patch, std::move(node));
}

}  // namespace

void register_matrix_transpose(FusionRegistry& registry) {
  registry.describe({"MatrixTransposeFusion"},
                    "matrices that are transposed as one stack, between two Reshapes, are transposed as they are");
  registry.add({"MatrixTransposeFusion", 1,
                "(x, to_stack, from_stack) => (y) { r = Reshape(x, to_stack)  t = Transpose(r)  "
                "y = Reshape(t, from_stack) }",
                guard, replace});
}

}  // namespace infernode::fusions
