// Control flow over constants: branches that are always taken, loops that always give the same.
#include "fusions/graph_test.h"
#include "graph/captures.h"
#include "passes/pass.h"

using namespace infernode;
using namespace infernode::test;

TEST_CASE("an If with a constant condition becomes its branch") {
  const auto text = [](const char* condition) {
    return cat("(float[2] x) => (y) <bool c = {", condition,
               "}> { a = Exp(x)  r = If<then_branch = p () => (u) { k = Constant<value = float {2}>()  "
               "u = Mul(a, k) }, else_branch = q () => (v) { v = Abs(x) }>(c)  y = Neg(r) }");
  };
  check_optimized(text("1"), 1, "a = Exp (x)\nu = Mul (a, k)\ny = Neg (u)");
  check_optimized(text("0"), 1, "v = Abs (x)\ny = Neg (v)");
}

TEST_CASE("the branch's result may be a value from outside, a constant, or the graph's output") {
  check_optimized(
      "(float[2] x) => (y) <bool c = {1}> { y = If<then_branch = p () => (u) { u = Abs(x) }, "
      "else_branch = q () => (v) { v = Neg(x) }>(c) }",
      1, "y = Abs (x)");
  check_optimized(
      "(float[2] x) => (y) <bool c = {1}> { a, b = If<then_branch = p () => (u, w) { u = Identity(x) "
      "w = Constant<value = float[2] {1, 2}>() }, else_branch = q () => (v, z) { v = Neg(x)  z = Abs(x) }>(c)  "
      "y = Add(a, b) }",
      1, "y = Add (x, w)");
}

TEST_CASE("branches within the branch keep what they read") {
  check_optimized(
      "(float[2] x, bool d) => (y) <bool c = {1}> { y = If<then_branch = p () => (u) { t = Exp(x)  "
      "u = If<then_branch = r () => (m) { m = Neg(t) }, else_branch = s () => (n) { n = Abs(t) }>(d) }, "
      "else_branch = q () => (v) { v = Neg(x) }>(c) }",
      1,
      "t = Exp (x)\ny = If <else_branch = s () => (float[2] n)\n{\nn = Abs (t)\n}, then_branch = r () => (float[2] m)\n"
      "{\nm = Neg (t)\n}> (d)");
}

TEST_CASE("an If stays where its condition can be fed") {
  check_unchanged(
      "(float[2] x, bool c = {1}) => (y) { y = If<then_branch = p () => (u) { u = Abs(x) }, "
      "else_branch = q () => (v) { v = Neg(x) }>(c) }",
      1);
  check_unchanged(
      "(float[2] x, bool c) => (y) { y = If<then_branch = p () => (u) { u = Abs(x) }, "
      "else_branch = q () => (v) { v = Neg(x) }>(c) }",
      1);
}

namespace {
std::string loop(const char* inputs, const char* body, const char* constants = "") {
  return cat("(float[1] x", inputs, ") => (y) <int64 m = {4}, bool t = {1}, float[1] zero = {0}, float[1] one = {1}",
             constants, "> { r = Loop<body = b (int64 i, bool c, float[1] s) => (k, s2) { k = Identity(c)  ", body,
             " }>(m, t, zero)  y = Add(x, r) }");
}
bool kept(const std::string& text) {
  graph::Model model = parse(text);
  optimize(model, 1);
  return nodes(*model.graph).find("Loop") != std::string::npos;
}
}  // namespace

TEST_CASE("a Loop over constants is folded, with what its body reads from outside") {
  check_optimized(loop("", "s2 = Add(s, one)"), 1, "y = Add (x, r)");
  const std::string with_sequence =
      "<int64 m = {4}, bool t = {1}, float[1] zero = {0}> { e = SequenceEmpty()  r, q = Loop<body = b (int64 i, bool "
      "c, "
      "float[1] s, seq(float[1]) list) => (k, s2, longer) { k = Identity(c)  n = SequenceLength(list)  "
      "f = Cast<to = 1>(n)  s2 = Add(s, f)  longer = SequenceInsert(list, s2) }>(m, t, zero, e)  y = Add(x, r) ";
  check_optimized("(float[1] x) => (y) " + with_sequence + "}", 1, "y = Add (x, r)");
  // A sequence that somebody reads cannot be a constant.
  CHECK(kept("(float[1] x) => (y, z) " + with_sequence + " z = SequenceLength(q) }"));
}

TEST_CASE("a Loop stays that reads a feed, draws, or does not end") {
  CHECK(kept(loop("", "s2 = Add(s, x)")));
  CHECK(kept(loop(", float[1] z", "s2 = Add(s, z)")));
  CHECK(kept(loop("", "d = RandomUniform<shape = [1]>()  s2 = Add(s, d)")));
  CHECK(
      kept("(float[1] x) => (y) <bool t = {1}, float[1] zero = {0}, float[1] one = {1}> { r = Loop<body = b "
           "(int64 i, bool c, float[1] s) => (k, s2) { k = Identity(c)  s2 = Add(s, one) }>(, t, zero)  "
           "y = Add(x, r) }"));
}

TEST_CASE("loops of a whole model share one budget of time") {
  const graph::Model model = parse(loop("", "s2 = Add(s, one)"));
  graph::adopt_constants(*model.graph);
  passes::PassOptions options = pass_options(1);
  passes::FoldingBudget budget{SIZE_MAX, {}};
  options.folding = &budget;
  CHECK_FALSE(passes::fold_constants(*model.graph, options));
  constexpr std::chrono::hours kMuch{1};
  budget.time = kMuch;
  CHECK(passes::fold_constants(*model.graph, options));
  CHECK(budget.time < kMuch);
  CHECK(budget.bytes < SIZE_MAX);
}
