#include "fusions/matcher.h"

#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;
using fusions::Match;
using fusions::Pattern;

namespace {
/// The pattern's match at the node that makes the graph's first output.
std::optional<Match> match(const char* pattern, const graph::Model& model) {
  const graph::Graph& graph = *model.graph;
  return fusions::match_at(Pattern(pattern, registry()), graph, graph.value(graph.outputs()[0]).producer,
                           graph.consumers());
}
std::string name_of(const Match& match, const char* value) { return match.graph().value(match.value(value)).name; }
}  // namespace

TEST_CASE("a pattern binds its values to the graph's") {
  const graph::Model model = parse("(float[2] a, float[2] b) => (y) { t = Sub(a, b)  y = Relu(t) }");
  const auto found = match("(p, q) => (s) { r = Sub(p, q)  s = Relu(r) }", model);
  REQUIRE(found);
  CHECK(name_of(*found, "p") == "a");
  CHECK(name_of(*found, "q") == "b");
  CHECK(name_of(*found, "r") == "t");
  CHECK(found->node(0).op_type == "Sub");
  CHECK(found->maker("s").op_type == "Relu");
}

TEST_CASE("commutative operators match either way round, others do not") {
  const graph::Model model = parse("(float[2] a, float[2] b) => (y) { t = Neg(b)  y = Mul(a, t) }");
  CHECK(match("(p, q) => (s) { r = Neg(q)  s = Mul(r, p) }", model));
  const graph::Model minus = parse("(float[2] a, float[2] b) => (y) { t = Neg(b)  y = Sub(a, t) }");
  CHECK_FALSE(match("(p, q) => (s) { r = Neg(q)  s = Sub(r, p) }", minus));
}

TEST_CASE("a way round that fits at first is taken back when it fails later") {
  const graph::Model model = parse("(float[2] a, float[2] b) => (y) { s = Add(a, b)  t = Sub(s, b)  y = Mul(t, b) }");
  const auto found = match("(p, q) => (y) { s = Add(q, p)  t = Sub(s, q)  y = Mul(t, q) }", model);
  REQUIRE(found);
  CHECK(name_of(*found, "q") == "b");
  const graph::Model deep =
      parse("(float[2] a, float[2] b) => (y) { s = Add(a, b)  t = Exp(s)  u = Neg(b)  y = Mul(t, u) }");
  const auto far = match("(p, q) => (y) { s = Add(q, p)  t = Exp(s)  u = Neg(q)  y = Mul(t, u) }", deep);
  REQUIRE(far);
  CHECK(name_of(*far, "q") == "b");
}

TEST_CASE("one value in a pattern is one value in the graph") {
  const char* square = "(p) => (s) { s = Mul(p, p) }";
  CHECK(match(square, parse("(float[2] a) => (y) { y = Mul(a, a) }")));
  CHECK_FALSE(match(square, parse("(float[2] a, float[2] b) => (y) { y = Mul(a, b) }")));
}

TEST_CASE("two nodes in a pattern are two nodes in the graph") {
  const char* twice = "(p, q) => (s) { t = Neg(p)  u = Neg(q)  s = Mul(t, u) }";
  CHECK(match(twice, parse("(float[2] a) => (y) { t = Neg(a)  u = Neg(a)  y = Mul(t, u) }")));
  CHECK_FALSE(match(twice, parse("(float[2] a) => (y) { t = Neg(a)  y = Mul(t, t) }")));
}

TEST_CASE("c_ values are constants that no feed can override") {
  const char* pattern = "(p, c_k) => (s) { s = Add(p, c_k) }";
  CHECK(match(pattern, parse("(float[2] a) => (y) <float k = {1}> { y = Add(k, a) }")));
  CHECK_FALSE(match(pattern, parse("(float[2] a, float[2] k) => (y) { y = Add(a, k) }")));
  CHECK_FALSE(match(pattern, parse("(float[2] a, float k = {1}) => (y) { y = Add(a, k) }")));
}

TEST_CASE("constants written in a pattern match by value") {
  const char* pattern = "(p) => (s) <float k = {0.5}> { s = Mul(p, k) }";
  CHECK(match(pattern, parse("(float[2] a) => (y) <float[1] h = {0.5}> { y = Mul(h, a) }")));
  CHECK_FALSE(match(pattern, parse("(float[2] a) => (y) <float h = {0.25}> { y = Mul(a, h) }")));
}

TEST_CASE("values inside a match are read nowhere else") {
  const char* pattern = "(p) => (s) { t = Neg(p)  s = Relu(t) }";
  CHECK_FALSE(match(pattern, parse("(float[2] a) => (y, z) { t = Neg(a)  y = Relu(t)  z = Abs(t) }")));
  CHECK_FALSE(match(pattern, parse("(float[2] a) => (y, t) { t = Neg(a)  y = Relu(t) }")));
}

TEST_CASE("of two ways round the one is found whose values are read nowhere else") {
  const char* pattern = "(p, q) => (s) { t = Neg(p)  s = Add(t, q) }";
  const graph::Model model = parse("(float[2] a, float[2] b) => (y, t) { t = Neg(a)  u = Neg(b)  y = Add(t, u) }");
  const auto found = match(pattern, model);
  REQUIRE(found);
  CHECK(name_of(*found, "p") == "b");
  CHECK(name_of(*found, "q") == "t");
}

TEST_CASE("optional inputs are part of a pattern") {
  const graph::Model without = parse("(float[1,1,2,2] x, float[1,1,1,1] w) => (y) { y = Conv(x, w) }");
  const graph::Model with = parse("(float[1,1,2,2] x, float[1,1,1,1] w, float[1] b) => (y) { y = Conv(x, w, b) }");
  CHECK(match("(x, w) => (y) { y = Conv(x, w) }", without));
  CHECK_FALSE(match("(x, w) => (y) { y = Conv(x, w) }", with));
  CHECK_FALSE(match("(x, w, b) => (y) { y = Conv(x, w, b) }", without));
  CHECK(match("(x, w, b) => (y) { y = Conv(x, w, b) }", with));
  for (const graph::Model& model : {without, with}) CHECK(match("(x, w, o_b) => (y) { y = Conv(x, w, o_b) }", model));
}

TEST_CASE("attributes written in a pattern must be equal") {
  const char* pattern = "(p) => (s) { s = Softmax<axis = 1>(p) }";
  CHECK(match(pattern, parse("(float[2,3] a) => (y) { y = Softmax<axis = 1>(a) }")));
  CHECK_FALSE(match(pattern, parse("(float[2,3] a) => (y) { y = Softmax<axis = 0>(a) }")));
}

TEST_CASE("an operator that aligns its inputs by an attribute, as before version 7, matches no pattern") {
  const char* pattern = "(p, q) => (s) { s = Add(p, q) }";
  const auto model = [](const std::string& attributes) {
    return parse("(float[2,2] a, float[2] b) => (y) { y = Add" + attributes + "(a, b) }", 6);
  };
  CHECK(match(pattern, model("")));
  CHECK_FALSE(match(pattern, model("<axis = 0, broadcast = 1>")));
}

TEST_CASE("a value that may be shared may have other readers and be an output") {
  const graph::Model shared = parse("(float[2] a) => (y, u, t) { t = Exp(a)  u = Neg(t)  y = Relu(t) }");
  CHECK_FALSE(match("(p) => (y) { t = Exp(p)  y = Relu(t) }", shared));
  CHECK(match("(p) => (y) { s_t = Exp(p)  y = Relu(s_t) }", shared));
  const graph::Model deep = parse("(float[2] a) => (y, r) { r = Neg(a)  t = Exp(r)  y = Relu(t) }");
  CHECK_FALSE(match("(p) => (y) { r = Neg(p)  s_t = Exp(r)  y = Relu(s_t) }", deep));
}

TEST_CASE("a pattern that does not parse is a fault of ours") {
  CHECK_THROWS_WITH_AS(Pattern("(p) => (s) { s = ", registry()), doctest::Contains("pattern does not parse"), Error);
}
