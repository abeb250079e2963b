#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch) {
  graph::Node node = match.last();
  node.inputs = {match.value("c"), match.value("y"), match.value("x")};
  return put(match, patch, std::move(node));
}

}  // namespace

/// A choice by the opposite is the opposite choice.
void register_not_where(FusionRegistry& registry) {
  registry.describe({"NotWhereFusion"}, "Where of a Not becomes Where with its branches exchanged");
  registry.add({"NotWhereFusion", 1, "(c, x, y) => (z) { n = Not(c)  z = Where(n, x, y) }", nullptr, replace});
}

}  // namespace infernode::fusions
