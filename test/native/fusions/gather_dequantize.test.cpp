#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
// Folding would take tables as small as these.
void check(std::string_view statements, bool fires) {
  const std::string text = cat(
      "(int64[N,2] i) => (y) <int8[3,2] q = {1,2,3,4,5,6}, float s = {0.5}, int8 z = {3}, float[3,1] rows = {0.5,1,2}, "
      "float[1,2] columns = {0.5,1}, float[3] each = {0.5,1,2}> { ",
      statements, " }");
  CAPTURE(text);
  const graph::Model before = parse(text);
  graph::Model after = parse(text);
  const auto applied = optimize(after, 1, {"ConstantFolding"});
  CHECK((std::find(applied.begin(), applied.end(), "GatherDequantizeFusion") != applied.end()) == fires);
  std::vector<Value> inputs = feeds(*before.graph);
  for (std::int64_t& at : inputs[0].tensor().mutable_span<std::int64_t>()) at = (at + 3) % 3;
  check_same(evaluate(*after.graph, inputs), evaluate(*before.graph, inputs));
}
}  // namespace

TEST_CASE("rows of 8-bit tables are looked up before they are expanded") {
  check("m = DequantizeLinear(q, s, z)  y = Gather(m, i)", true);
  check("m = DequantizeLinear(q, s)  y = Gather<axis = -2>(m, i)", true);
  check("f = Cast<to = 1>(q)  m = Mul(f, rows)  y = Gather(m, i)", true);
  check("f = Cast<to = 1>(q)  m = Mul(s, f)  y = Gather(m, i)", true);
}

TEST_CASE("a table that others read is expanded for them") {
  check("m = DequantizeLinear(q, s, z)  g = Gather(m, i)  u = ReduceSum(m)  y = Add(g, u)", true);
  check("f = Cast<to = 1>(q)  m = Mul(f, rows)  g = Gather(m, i)  u = ReduceSum(m)  y = Add(g, u)", true);
}

TEST_CASE("tables that are scaled otherwise are not") {
  check("m = DequantizeLinear<axis = 0>(q, each)  y = Gather(m, i)", false);
  check("f = Cast<to = 1>(q)  m = Mul(f, columns)  y = Gather(m, i)", false);
}
