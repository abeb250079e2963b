#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
bool changes(std::string_view text, std::int64_t opset = 17) {
  graph::Model model = parse(text, opset);
  return !optimize(model, 1).empty();
}
constexpr const char* kEverything =
    "(float[2,3] x) => (y, k, d) <float[3] a = {1,2,3}, float[3] b = {4,5,6}, int64[2] s = {2,3}> {"
    "k = Add(a, b)  i = Identity(x)  d, m = Dropout(i)  dead = Neg(x)  r = Reshape(d, s)  c = Cast<to = 1>(r)"
    "  t = Transpose<perm = [1,0]>(c)  u = Transpose<perm = [1,0]>(t)  p = Relu(u)  q = Relu(u)  y = Add(p, q) }";
}  // namespace

TEST_CASE("level disabled changes nothing") {
  graph::Model model = parse(kEverything);
  const std::string before = graph::to_text(*model.graph, true);
  CHECK(optimize(model, 0).empty());
  CHECK(graph::to_text(*model.graph, true) == before);
}

TEST_CASE("level basic brings a graph to its core") {
  check_optimized(kEverything, 1, "k = Add (a, b)\nd, m = Dropout (x)\np = Relu (d)\ny = Add (p, p)");
}

TEST_CASE("nodes over constants are folded, graph outputs keep their nodes") {
  check_optimized(
      "(float[2] x) => (y) <float[2] a = {1, 2}, float[2] b = {3, 4}>"
      "{ c = Add(a, b)  d = Mul(c, c)  y = Add(x, d) }",
      1, "y = Add (x, d)");
  check_optimized("(float[2] x) => (y, c) <float[2] a = {1, 2}, float[2] b = {3, 4}> { c = Add(a, b)  y = Add(x, c) }",
                  1, "c = Add (a, b)\ny = Add (x, c)");
  check_optimized("(float[2] x) => (y) { c = Constant<value = float[2] {1, 2}>()  y = Add(x, c) }", 1,
                  "y = Add (x, c)");
}

TEST_CASE("a constant that can be fed, a random one and one that would swell are not folded") {
  CHECK_FALSE(changes("(float[2] x, float[2] a = {1, 2}) => (y) { b = Neg(a)  y = Add(x, b) }"));
  CHECK_FALSE(changes("(float[2] x) => (y) { r = RandomUniform<shape = [2]>()  y = Add(x, r) }"));
  CHECK_FALSE(
      changes("(float[1] x) => (y) <int64[1] n = {1000000}> "
              "{ z = ConstantOfShape<value = float[1] {0}>(n)  y = Add(x, z) }"));
}

TEST_CASE("what folding makes is bounded, however often it doubles") {
  std::string text = "(float[N] x) => (y) <float[1] v0 = {1}> {";
  for (int i = 0; i < 40; ++i) text += cat("v", i + 1, " = Concat<axis = 0>(v", i, ", v", i, ") ");
  graph::Model model = parse(text + "y = Add(x, v40) }", 17);
  passes::PassOptions options;
  options.registry = &registry();
  options.allocator = &tensor::host_allocator();
  options.max_folded_bytes = 1024;
  passes::run_basic(model, options);
  for (const graph::ValueInfo& value : model.graph->values()) CHECK(value.constant.bytes() <= 4096);
}

TEST_CASE("what folding makes of texts is bounded by their length, also in a loop") {
  const auto most = [](const std::string& text) {
    graph::Model model = parse(text, 20);
    passes::PassOptions options;
    options.registry = &registry();
    options.allocator = &tensor::host_allocator();
    options.max_folded_bytes = 100'000;
    passes::run_basic(model, options);
    std::size_t longest = 0;
    for (const graph::ValueInfo& value : model.graph->values()) {
      if (!value.constant.is_tensor() || value.constant.tensor().dtype() != DType::String) continue;
      std::size_t bytes = 0;
      for (const std::string& s : value.constant.tensor().span<std::string>()) bytes += s.size();
      longest = std::max(longest, bytes);
    }
    return longest;
  };
  const std::string start = "(string[N] x) => (string[M] y) <string[1] v0 = {\"" + std::string(100, 'a') + "\"}> {";
  for (const std::string op : {"Concat<axis = 0>", "StringConcat"}) {
    std::string text = start;
    for (int i = 0; i < 40; ++i) text += cat("v", i + 1, " = ", op, "(v", i, ", v", i, ") ");
    const std::size_t longest = most(text + "y = Concat<axis = 0>(x, v40) }");
    CHECK(longest > 1000);
    CHECK(longest <= 200'000);
  }
  const std::string loop =
      "(string[N] x) => (string[M] y) <string[1] v0 = {\"" + std::string(100, 'a') +
      "\"}, int64 n = {40}, bool go = {1}> { v = Loop<body = b (int64 i, bool c, string[1] s) => (bool d, string[1] t) "
      "{ d = Identity(c) t = StringConcat(s, s) }>(n, go, v0) y = Concat<axis = 0>(x, v) }";
  CHECK(most(loop) == 100);
}

TEST_CASE("a Constant is what it holds, however large") {
  std::string values = "0";
  for (int i = 1; i < 300; ++i) values += ", 0";
  graph::Model model =
      parse("(float[300] x) => (y) { c = Constant<value = float[300] {" + values + "}>()  y = Add(x, c) }");
  passes::PassOptions options;
  options.registry = &registry();
  options.allocator = &tensor::host_allocator();
  options.max_folded_bytes = 1024;
  const void* held = model.graph->node(0).attributes.get_tensor("value")->raw();
  passes::run_basic(model, options);
  CHECK(nodes(*model.graph) == "y = Add (x, c)");
  // It is not copied: many may hold one tensor.
  CHECK(model.graph->value(model.graph->find_value("c")).constant.tensor().raw() == held);
}

TEST_CASE("what follows from static shapes is folded") {
  check_optimized(
      "(float[2,3] x, float[N] z) => (y) <int64 i = {1}, int64[1] a = {0}, int64[1] k = {-1}> { s = Shape(x)"
      "  g = Gather<axis = 0>(s, i)  u = Unsqueeze(g, a)  m = Concat<axis = 0>(u, k)  y = Reshape(x, m) }",
      1, "y = Reshape (x, m)");
  check_optimized(
      "(float[N,3] x) => (y) <int64 i = {1}> { s = Shape(x)  g = Gather<axis = 0>(s, i)  "
      "c = Cast<to = 1>(g)  y = Div(x, c) }",
      1, "y = Div (x, c)");
}

TEST_CASE("shape chains over symbolic dims stay until the run") {
  CHECK_FALSE(changes("(float[N,3] x) => (y) { s = Shape(x)  y = ConstantOfShape(s) }"));
}

TEST_CASE("equal nodes become one") {
  check_optimized("(float[2] x) => (y) { a = Exp(x)  b = Exp(x)  c = Neg(a)  d = Neg(b)  y = Mul(c, d) }", 1,
                  "a = Exp (x)\nc = Neg (a)\ny = Mul (c, c)");
  check_optimized("(float[2,3] x) => (y) { a = Softmax<axis = 0>(x)  b = Softmax<axis = 1>(x)  y = Mul(a, b) }", 1, "");
}

TEST_CASE("equal nodes stay two where both are outputs, or where they draw") {
  check_unchanged("(float[2] x) => (a, b) { a = Exp(x)  b = Exp(x) }", 1);
  check_optimized("(float[2] x) => (a, y) { a = Exp(x)  b = Exp(x)  y = Neg(b) }", 1, "a = Exp (x)\ny = Neg (a)");
  CHECK_FALSE(changes("(float[2] x) => (y) { a = RandomNormalLike(x)  b = RandomNormalLike(x)  y = Sub(a, b) }"));
}

TEST_CASE("nodes that change nothing go") {
  check_optimized(
      "(float[2,3] x) => (y) { a = Identity(x)  b = Cast<to = 1>(a)  c = Transpose<perm = [0,1]>(b)  "
      "d = Flatten(c)  e = Concat<axis = 0>(d)  y = Exp(e) }",
      1, "y = Exp (x)");
  check_optimized("(float[2,3] x) => (y) <int64[2] s = {2, -1}> { a = Reshape(x, s)  y = Exp(a) }", 1, "y = Exp (x)");
  check_optimized("(float[N,3] x) => (y) <int64[2] s = {0, 3}> { a = Reshape(x, s)  y = Exp(a) }", 1, "y = Exp (x)");
}

TEST_CASE("an Identity between an input and an output stays, one before an output hands over its name") {
  check_unchanged("(float[2] x) => (y) { y = Identity(x) }", 1);
  check_optimized("(float[2] x) => (y) { a = Exp(x)  y = Identity(a) }", 1, "y = Exp (x)");
  check_unchanged("(float[2] x) => (a, y) { a = Exp(x)  y = Identity(a) }", 1);
}

TEST_CASE("nodes that may change something stay") {
  CHECK_FALSE(changes("(float[N,3] x) => (y) <int64[2] s = {3, -1}> { a = Reshape(x, s)  y = Exp(a) }"));
  CHECK_FALSE(changes("(float[2,3] x) => (y) { a = Transpose(x)  y = Exp(a) }"));
  CHECK_FALSE(changes("(float[2] x) => (y) { a, m = Dropout(x)  b = Cast<to = 1>(m)  y = Add(a, b) }"));
  CHECK_FALSE(changes("(float[2] x, bool t) => (y) <float r = {0.5}> { a = Dropout(x, r, t)  y = Exp(a) }"));
}

TEST_CASE("an Expand goes where no feed can make it widen its input") {
  const auto expand = [](const std::string& x, const std::string& z) {
    return "(float[" + x + "] x, float[" + z + "] z) => (y) { s = Shape(z)  e = Expand(x, s)  y = Sub(e, z) }";
  };
  check_optimized(expand("2,3", "2,3"), 1, "y = Sub (x, z)");
  check_unchanged(expand("N", "N"), 1);  // where x is of [1] and z of [3], with a warning
  check_optimized("(float[N] x) => (y) { s = Shape(x)  e = Expand(x, s)  y = Neg(e) }", 1, "y = Neg (x)");
  CHECK_FALSE(
      changes("(bool c, float[N] x, float[N] z) => (y) { y = If<then_branch = p () => (u) { s = Shape(z)  "
              "e = Expand(x, s)  u = Neg(e) }, else_branch = q () => (v) { v = Neg(z) }>(c) }"));
}

TEST_CASE("two in a row become one") {
  check_optimized(
      "(float[2,3,4] x) => (y) { a = Transpose<perm = [1,0,2]>(x)  b = Transpose<perm = [0,2,1]>(a)  "
      "y = Exp(b) }",
      1, "b = Transpose <perm = [1, 2, 0]> (x)\ny = Exp (b)");
  check_optimized(
      "(float[2,3,4] x) => (y) <int64[1] s = {-1}, int64[2] t = {4, 6}> { a = Reshape(x, s)  "
      "b = Reshape(a, t)  y = Exp(b) }",
      1, "b = Reshape (x, t)\ny = Exp (b)");
  check_optimized("(float[2] x) => (y) { a = Cast<to = 11>(x)  b = Cast<to = 7>(a)  y = Neg(b) }", 1,
                  "b = Cast <to = 7> (x)\ny = Neg (b)");
}

TEST_CASE("Transposes in a row without perm become one") {
  std::string text = "(float[2,3,4] x) => (y) { ";
  for (int i = 0; i < 301; ++i) text += cat("t", i + 1, " = Transpose(", i == 0 ? "x" : cat("t", i), ")  ");
  check_optimized(text + "y = Exp(t301) }", 1, "t301 = Transpose <perm = [2, 1, 0]> (x)\ny = Exp (t301)");
}

TEST_CASE("equal nodes that all make outputs stay, and others become the first") {
  std::string head = "(float[2] x) => (y0", body = "y0 = Neg(x)  ";
  for (int i = 1; i < 200; ++i) {
    head += cat(", y", i);
    body += cat("y", i, " = Neg(x)  ");
  }
  graph::Model model = parse(cat(head, ", z) { ", body, "a = Neg(x)  z = Exp(a) }"));
  CHECK(optimize(model, 1) == std::vector<std::string>{"CommonSubexpressionElimination"});
  CHECK(model.graph->node_count() == 201);
  const graph::Node& exp = model.graph->node(model.graph->value(model.graph->find_value("z")).producer);
  CHECK(model.graph->value(exp.inputs[0]).name == "y0");
}

TEST_CASE("two in a row stay where the first loses something or the second looks at the first's dims") {
  CHECK_FALSE(changes("(float[2] x) => (y) { a = Cast<to = 7>(x)  b = Cast<to = 1>(a)  y = Neg(b) }"));
  CHECK_FALSE(
      changes("(float[M,N] x) => (y) <int64[1] s = {0}, int64[4] t = {0, 0, -1, 1}> { a = Unsqueeze(x, s)  "
              "b = Reshape(a, t)  y = Exp(b) }"));
  CHECK_FALSE(changes("(float[2,3] x) => (y, a) { a = Transpose(x)  y = Exp(a) }"));
}

TEST_CASE("nodes nobody reads go, with all that led to them") {
  check_optimized("(float[2] x) => (y) { a = Exp(x)  b = Neg(a)  c = Abs(b)  y = Sqrt(a) }", 1,
                  "a = Exp (x)\ny = Sqrt (a)");
}

TEST_CASE("a node read by a subgraph only stays") {
  check_unchanged(
      "(bool i, float[2] x) => (y) { a = Exp(x)  y = If<then_branch = p () => (u) { u = Neg(a) }, "
      "else_branch = q () => (v) { v = Abs(a) }>(i) }",
      1);
}

TEST_CASE("passes see subgraphs") {
  check_optimized(
      "(bool i, float[2] x) => (y) { y = If<then_branch = p () => (u) { k = Constant<value = float {1}>() "
      "l = Neg(k)  j = Identity(x)  u = Add(j, l) }, else_branch = q () => (v) { v = Abs(x) }>(i) }",
      1,
      "y = If <else_branch = q () => (float[2] v)\n{\nv = Abs (x)\n}, then_branch = p () => (float[2] u)\n"
      "<float l = {-1.0}>\n{\nu = Add (x, l)\n}> (i)");
}

TEST_CASE("passes can be switched off by name") {
  const char* text = "(float[2] x) => (y) { a = Identity(x)  y = Exp(a) }";
  graph::Model model = parse(text);
  CHECK(optimize(model, 1, {"EliminateNoops"}).empty());
  CHECK(optimize(model, 1) == std::vector<std::string>{"EliminateNoops"});
}
