#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
std::string stacked(const std::string& perm, const std::string& back) {
  return "(float[B,3,S,4] x) => (y) <int64[1] all = {-1}, int64[1] c = {4}, int64[2] heads = {0, 3}, int64[1] zero = "
         "{0}, int64[1] two = {2}, int64[1] three = {3}> { d = Shape(x)  s = Slice(d, two, three)  l = Slice(d, zero, "
         "two)  "
         "f = Concat<axis = 0>(all, s, c)  b = Concat<axis = 0>(l, " +
         back + ")  r = Reshape(x, f)  t = Transpose<perm = " + perm + ">(r)  y = Reshape(t, b) }";
}
}  // namespace

TEST_CASE("matrices transposed as a stack are transposed where they are") {
  check_optimized(stacked("[0, 2, 1]", "c, s"), 1, "y = Transpose <perm = [0, 1, 3, 2]> (x)", 17, 1e-5,
                  {{"B", 2}, {"S", 5}});
}

TEST_CASE("other reshapes around a transposition stay") {
  const auto stays = [](const std::string& text) {
    const graph::Model before = parse(text);
    graph::Model after = parse(text);
    optimize(after, 1);
    CHECK(nodes(*after.graph).find("Reshape") != std::string::npos);
    const auto inputs = feeds(*before.graph, {{"B", 2}, {"S", 5}});
    check_same(evaluate(*after.graph, inputs), evaluate(*before.graph, inputs));
  };
  stays(stacked("[1, 0, 2]", "c, s"));
  stays(stacked("[0, 2, 1]", "s, c"));
  stays(
      "(float[2,3,4,4] x) => (y) <int64[3] f = {2, 12, 4}, int64[4] b = {2, 4, 3, 4}> { r = Reshape(x, f)  "
      "t = Transpose<perm = [0, 2, 1]>(r)  y = Reshape(t, b) }");
}
