// Gemm over rows that were flattened before it and are unflattened after it: a product of any rank needs neither.

#include <algorithm>

#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

/// How many leading dims input and result share: all of the result's but the last one. 0 where that is not so.
std::size_t shared_dims(const Match& match) {
  const graph::ValueType &x = match.type("x"), &y = match.type("y"), &b = match.type("b");
  if (!is_float(x) || !x.shape || rank_of(match.type("a")) != 2u || rank_of(y).value_or(0) < 2 || rank_of(b) != 2u)
    return 0;
  const std::size_t count = y.shape->size() - 1;
  if (x.shape->size() <= count ||
      !std::equal(x.shape->begin(), x.shape->begin() + static_cast<std::ptrdiff_t>(count), y.shape->begin()))
    return 0;
  const bool transposed = match.maker("t").attributes.get_int("transB", 0) != 0;
  const graph::SymShape rest(x.shape->begin() + static_cast<std::ptrdiff_t>(count), x.shape->end());
  const graph::Dim &k = (*b.shape)[transposed ? 1 : 0], &n = (*b.shape)[transposed ? 0 : 1];
  return graph::numel(rest) == k && y.shape->back() == n ? count : 0;
}

bool guard(const Match& match) {
  const graph::Node& gemm = match.maker("t");
  if (gemm.attributes.get_int("transA", 0) != 0 || gemm.attributes.get_float("beta", 1) != 1) return false;
  return (!match.has("o_c") || is_row(match.type("o_c"), match.type("t"))) && shared_dims(match) > 0;
}

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch) {
  const std::size_t count = shared_dims(match);
  graph::ValueId x = match.value("x");
  if (match.type("x").shape->size() > count + 1) {
    graph::Node flatten = match.maker("a");
    std::vector<std::int64_t> dims(count, 0);
    dims.push_back(-1);
    const std::string name = match.graph().value(match.value("a")).name;
    flatten.inputs[1] =
        patch.add_constant(name + "_shape", tensor::Tensor::of<std::int64_t>({static_cast<std::int64_t>(dims.size())},
                                                                             std::span<const std::int64_t>(dims)));
    flatten.attributes = {};
    graph::ValueType rows = match.type("x");
    rows.shape->resize(count);
    rows.shape->push_back(match.type("a").shape->back());
    x = patch.add_value(name + "_rows", std::move(rows));
    flatten.outputs = {x};
    flatten.provenance.clear();
    const graph::NodeId from[] = {match.nodes().front()};
    patch.add_node(std::move(flatten), from);
  }
  const graph::Node& gemm = match.maker("t");
  graph::Node node = make_node(match, kOwn, kFusedMatMul, {x, match.value("b"), match.value("o_c")});
  node.name = gemm.name;
  for (const char* name : {"alpha", "transB"}) {
    if (const graph::Attribute* value = gemm.attributes.find(name)) node.attributes.set(name, *value);
  }
  return put(match, patch, std::move(node));
}

}  // namespace

void register_reshape_gemm(FusionRegistry& registry) {
  registry.describe({"ReshapeGemmFusion"}, "Reshape, Gemm, Reshape becomes one product of more dims");
  registry.add({"ReshapeGemmFusion", 2,
                "(x, s, b, o_c, d) => (y) { a = Reshape(x, s)  t = Gemm(a, b, o_c)  y = Reshape(t, d) }", guard,
                replace});
}

}  // namespace infernode::fusions
