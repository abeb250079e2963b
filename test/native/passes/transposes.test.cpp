#include "base/error.h"
#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
/// A graph that begins with x in another order of axes, t, and ends with u turned back.
std::string between(const std::string& body, const char* constants = "float unused = {0}") {
  return "(float[N,3,4,5] x) => (y) <" + std::string(constants) + "> { t = Transpose<perm = [0,2,3,1]>(x)  " + body +
         "  y = Transpose<perm = [0,3,1,2]>(u) }";
}
}  // namespace

TEST_CASE("transposes on both sides of elementwise nodes go") {
  check_optimized(between("u = Relu(t)"), 1, "y = Relu (x)");
  check_optimized(between("a = Mul(t, c)  u = Sigmoid(a)", "float c = {3}"), 1,
                  "a_turned = Mul (x, c)\ny = Sigmoid (a_turned)");
  check_optimized(between("u = Add(t, c)", "float[3] c = {1, 2, 3}"), 1, "y = Add (x, c_turned)");
}

TEST_CASE("axes are said in the new order") {
  check_optimized(between("u = Softmax<axis = 3>(t)"), 1, "y = Softmax <axis = 1> (x)");
  check_optimized(between("a = Relu(t)  u = Concat<axis = -1>(t, a)"), 1,
                  "a_turned = Relu (x)\ny = Concat <axis = 1> (x, a_turned)");
  check_optimized(between("u = Pad(t, p)", "int64[8] p = {0, 1, 2, 0, 0, 3, 4, 0}"), 1, "y = Pad (x, p_turned)");
}

TEST_CASE("a sum of two transposed values is transposed once") {
  check_optimized(
      "(float[2,3,4] x, float[2,3,4] z) => (y) { a = Transpose<perm = [0,2,1]>(x)  b = Transpose<perm = [0,2,1]>(z)  "
      "y = Add(a, b) }",
      1, "y_turned = Add (x, z)\ny = Transpose <perm = [0, 2, 1]> (y_turned)");
}

TEST_CASE("transposes stay where as many would come as go, or a node minds the order") {
  check_unchanged("(float[2,3,4] x) => (y) { a = Transpose<perm = [0,2,1]>(x)  y = Relu(a) }", 1);
  check_unchanged(
      "(float[2,3,3] x) => (y) { a = Transpose<perm = [0,2,1]>(x)  b = MatMul(a, a)  "
      "y = Transpose<perm = [0,2,1]>(b) }",
      1);
}

TEST_CASE("a transpose that is its own inverse, within a region") {
  check_optimized("(float[3,3] x) => (y) { t = Transpose(x)  a = Relu(t)  b = Transpose(a)  y = Sub(a, b) }", 1,
                  "a_turned = Relu (x)\na = Transpose <perm = [1, 0]> (a_turned)\ny = Sub (a, a_turned)");
}

TEST_CASE("a constant takes any order when the model is loaded") {
  check_optimized(
      "(float[4,1,2] x) => (y) <float[2,4] c = {-1, 2, -2, 0, -1, 1, 1, -1}> { t = Transpose<perm = [2,1,0]>(x)  "
      "a = Add(t, c)  y = Transpose<perm = [2,1,0]>(a) }",
      1, "y = Add (x, c_turned)");
}

TEST_CASE("operands of lower rank get dims of 1 where theirs come to stand apart") {
  check_optimized(
      "(float[2,3,4] x, float[3] z) => (y) { a = Transpose<perm = [0,2,1]>(x)  b = Add(a, z)  "
      "y = Transpose<perm = [0,2,1]>(b) }",
      1, "z_turned = Unsqueeze (z, z_axes)\ny = Add (x, z_turned)");
  check_optimized(
      "(float[2,3,4] x, float[3] z) => (y) { a = Transpose<perm = [0,2,1]>(x)  b = Add(a, z)  "
      "y = Transpose<perm = [0,2,1]>(b) }",
      1, "z_turned = Unsqueeze <axes = [1]> (z)\ny = Add (x, z_turned)", 11);
  // The last two axes keep to themselves: an operand of that rank is transposed as it is.
  check_optimized(
      "(float[2,3,4] x, float[3,4] z) => (y) { a = Transpose<perm = [0,2,1]>(x)  w = Transpose(z)  b = Add(a, w)  "
      "y = Transpose<perm = [0,2,1]>(b) }",
      1, "y = Add (x, z)");
  check_optimized(between("m = Less(t, c)  u = Where(m, t, s)",
                          "float[5,3] c = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15},"
                          " float s = {0}"),
                  1, "m_turned = Less (x, c_turned)\ny = Where (m_turned, x, s)");
}

TEST_CASE("reductions name their axes anew and may leave no transpose at all") {
  check_optimized(
      "(float[N,3,4,5] x) => (y) { t = Transpose<perm = [0,2,3,1]>(x)  "
      "y = ReduceMean<axes = [1, 2], keepdims = 0>(t) }",
      1, "y = ReduceMean <axes = [2, 3], keepdims = 0> (x)");
  check_optimized(between("a = ReduceMax<axes = [-1], keepdims = 1>(t)  u = Sub(t, a)"), 1,
                  "a_turned = ReduceMax <axes = [1], keepdims = 1> (x)\ny = Sub (x, a_turned)");
  check_optimized(
      "(float[N,3,4,5] x) => (y) <int64[2] axes = {1, 2}> { t = Transpose<perm = [0,2,3,1]>(x)  "
      "y = ReduceSum<keepdims = 0>(t, axes) }",
      1, "y = ReduceSum <keepdims = 0> (x, axes_turned)");
  check_optimized("(float[N,3,4,5] x) => (y) { t = Transpose<perm = [0,2,3,1]>(x)  y = ReduceSum<keepdims = 0>(t) }", 1,
                  "y = ReduceSum <keepdims = 0> (x)");
  check_optimized(between("u = ReduceSum<noop_with_empty_axes = 1>(t)"), 1,
                  "y = ReduceSum <noop_with_empty_axes = 1> (x)");
  check_optimized(
      "(float[2,3,4] x) => (y) { t = Transpose<perm = [0,2,1]>(x)  y = ArgMax<axis = -1, keepdims = 0>(t) }", 1,
      "y = ArgMax <axis = 1, keepdims = 0> (x)");
  // The rest keeps another order: what is left to transpose is smaller.
  check_optimized("(float[2,3,4,5] x) => (y) { t = Transpose<perm = [3,2,1,0]>(x)  y = ReduceMin<axes = [0]>(t) }", 1,
                  "y_turned = ReduceMin <axes = [3]> (x)\ny = Transpose <perm = [3, 2, 1, 0]> (y_turned)");
  check_unchanged("(float[2,3,4] x, int64[1] axes) => (y) { t = Transpose<perm = [0,2,1]>(x)  y = ReduceSum(t, axes) }",
                  1);
}

TEST_CASE("slices, gathers, tiles and pads of turned axes") {
  const char* bounds = "int64[1] b = {1}, int64[1] e = {3}, int64[1] a = {-1}";
  check_optimized(between("u = Slice(t, b, e, a)", bounds), 1, "y = Slice (x, b, e, b)");
  check_optimized(between("u = Slice(t, b, e)", "int64[2] b = {0, 1}, int64[2] e = {9, 3}"), 1,
                  "y = Slice (x, b, e, u_axes)");
  check_optimized(between("u = Gather<axis = -1>(t, i)", "int64[2] i = {2, 0}"), 1, "y = Gather <axis = 1> (x, i)");
  check_optimized(
      "(float[N,3,4,5] x) => (y) <int64 i = {2}> { t = Transpose<perm = [0,2,3,1]>(x)  "
      "y = Gather<axis = 3>(t, i) }",
      1, "y = Gather <axis = 1> (x, i)");
  check_optimized(between("u = Tile(t, r)", "int64[4] r = {1, 2, 1, 3}"), 1, "y = Tile (x, r_turned)");
  check_optimized(
      "(float[N,1,4] x) => (y) <int64[2] s = {4, 3}> { t = Transpose<perm = [0,2,1]>(x)  u = Expand(t, s)  "
      "y = Transpose<perm = [0,2,1]>(u) }",
      1, "y = Expand (x, s_turned)");
  check_optimized(between("u = CumSum(t, a)", "int64 a = {3}"), 1, "y = CumSum (x, a_turned)");
  check_optimized(
      "(float[2,3,4] x) => (y) { t = Transpose<perm = [0,2,1]>(x)  u = Slice<starts = [1], ends = [2]>(t)  "
      "y = Transpose<perm = [0,2,1]>(u) }",
      1, "y = Slice <axes = [0], ends = [2], starts = [1]> (x)", 9);
  check_optimized(
      "(float[2,3,4] x) => (y) { t = Transpose<perm = [0,2,1]>(x)  u = Pad<pads = [0,1,2,0,0,3]>(t)  "
      "y = Transpose<perm = [0,2,1]>(u) }",
      1, "y = Pad <pads = [0, 2, 1, 0, 3, 0]> (x)", 10);
  check_unchanged(
      "(float[2,3,4] x, int64[6] p) => (y) { t = Transpose<perm = [0,2,1]>(x)  u = Pad(t, p)  "
      "y = Transpose<perm = [0,2,1]>(u) }",
      1);
  // Less is read of a part, and less is moved before it is made wider.
  check_optimized(
      "(float[8,3,4] x) => (y) <int64[1] b = {1}, int64[1] e = {3}> { t = Transpose<perm = [0,2,1]>(x)  "
      "y = Slice(t, b, e) }",
      1, "y_turned = Slice (x, b, e, y_axes)\ny = Transpose <perm = [0, 2, 1]> (y_turned)");
  check_optimized(
      "(float[8,3,4] x) => (y) <int64[3] r = {2, 1, 1}> { t = Tile(x, r)  y = Transpose<perm = [0,2,1]>(t) }", 1,
      "x_turned = Transpose <perm = [0, 2, 1]> (x)\ny = Tile (x_turned, r_turned)");
}

TEST_CASE("axes that go and come") {
  check_optimized("(float[N,3,1,1] x) => (y) { t = Transpose<perm = [0,2,3,1]>(x)  y = Squeeze<axes = [1, 2]>(t) }", 1,
                  "y = Squeeze <axes = [2, 3]> (x)", 11);
  check_optimized(
      "(float[2,3,4] x) => (y) <int64[1] a = {0}> { t = Transpose<perm = [0,2,1]>(x)  u = Unsqueeze(t, a)  "
      "y = Transpose<perm = [0,1,3,2]>(u) }",
      1, "y = Unsqueeze (x, a)");
  check_optimized(
      "(float[N,3,1,1] x) => (y) <int64[2] s = {-1, 3}> { t = Transpose<perm = [0,2,3,1]>(x)  y = Reshape(t, s) }", 1,
      "y = Reshape (x, s_turned)");
  check_optimized(
      "(float[2,3,4,4] x) => (y) <int64[3] s = {2, 16, 3}> { t = Transpose<perm = [0,2,3,1]>(x)  "
      "u = Reshape(t, s)  y = Transpose<perm = [0,2,1]>(u) }",
      1, "y = Reshape (x, s_turned)");
  check_unchanged(
      "(float[2,3,4,4] x) => (y) <int64[2] s = {2, 48}> { t = Transpose<perm = [0,2,3,1]>(x)  y = Reshape(t, s) }", 1);
}

TEST_CASE("parts, ranks and normalizations along one axis") {
  check_optimized(
      "(float[2,4,3] x) => (y, z) { t = Transpose<perm = [0,2,1]>(x)  a, b = Split<axis = -1>(t)  "
      "y = Transpose<perm = [0,2,1]>(a)  z = Transpose<perm = [0,2,1]>(b) }",
      1, "y, z = Split <axis = 1> (x)", 13);
  check_optimized(between("u = Softmax<axis = 1>(t)"), 1, "y = Softmax <axis = 1> (x)", 11);
  check_unchanged(between("u = Softmax<axis = 2>(t)").c_str(), 1, 11);
  check_optimized(
      "(float[4,3,5] x) => (y) { t = Transpose<perm = [0,2,1]>(x)  u = Softmax<axis = 1>(t)  "
      "y = Transpose<perm = [0,2,1]>(u) }",
      1, "y = Softmax <axis = 1> (x)", 11);
}

TEST_CASE("quantized values") {
  const char* row = "float[3] s = {1, 2, 3}, uint8[3] z = {1, 2, 3}";
  check_optimized(between("q = QuantizeLinear<axis = 3>(t, s, z)  u = DequantizeLinear<axis = -1>(q, s, z)", row), 1,
                  "q_turned = QuantizeLinear <axis = 1> (x, s, z)\ny = DequantizeLinear <axis = 1> (q_turned, s, z)");
  // A constant behind a DequantizeLinear is transposed when the model is loaded.
  check_optimized(
      "(float[2,3] x) => (y) <uint8[2,3] q = {1,2,3,4,5,6}, float s = {0.5}, uint8 z = {3}> { "
      "d = DequantizeLinear(q, s, z)  w = Transpose(d)  y = MatMul(x, w) }",
      1, "y = MatMul (x, w)");
}

TEST_CASE("channels and places") {
  check_optimized(
      "(float[2,3,4,5] x) => (y) <float[3] g = {1,2,3}, float[3] b = {0,1,2}> { "
      "t = Transpose<perm = [0,1,3,2]>(x)  u = InstanceNormalization(t, g, b)  y = Transpose<perm = [0,1,3,2]>(u) }",
      1, "y = InstanceNormalization (x, g, b)");
  check_unchanged(
      "(float[2,3,4,3] x) => (y) <float[3] g = {1,2,3}, float[3] b = {0,1,2}> { "
      "t = Transpose<perm = [0,3,2,1]>(x)  u = InstanceNormalization(t, g, b)  y = Transpose<perm = [0,3,2,1]>(u) }",
      1);
  check_unchanged(
      "(float[2,3,4,4] x) => (y) { t = Transpose<perm = [0,2,3,1]>(x)  u = MaxPool<kernel_shape = [2,2]>(t)  "
      "y = Transpose<perm = [0,3,1,2]>(u) }",
      1);
}

TEST_CASE("dims that are asked for are picked from those of the other order") {
  check_optimized(
      "(float[N,3,H,5] x) => (y, n) { t = Transpose<perm = [0,2,3,1]>(x)  n = Shape(t)  u = Relu(t)  "
      "y = Transpose<perm = [0,3,1,2]>(u) }",
      1, "n_turned = Shape (x)\nn = Gather (n_turned, n_places)\ny = Relu (x)");
}

TEST_CASE("a cheap part of a region turns without the rest") {
  // The sum with z would need z transposed, which is larger.
  check_optimized(
      "(float[2,3,4] x, float[2,4,3] z) => (y, w) { t = Transpose<perm = [0,2,1]>(x)  a = Relu(t)  "
      "w = Transpose<perm = [0,2,1]>(a)  b = Exp(z)  y = Add(a, b) }",
      1, "b = Exp (z)\nw = Relu (x)\na = Transpose <perm = [0, 2, 1]> (w)\ny = Add (a, b)");
}

TEST_CASE("transposes stay where a value is read in both orders, is a graph output or of unknown rank") {
  check_unchanged("(float[2,3,4] x) => (y, t) { t = Transpose<perm = [0,2,1]>(x)  y = Relu(t) }", 1);
  check_unchanged("(float[2,3,4] x) => (y, t) { t = Transpose<perm = [0,2,1]>(x)  y = Exp(t) }", 1);
  check_unchanged("(float[2,3,3] x) => (y) { t = Transpose<perm = [0,2,1]>(x)  r = Relu(t)  y = MatMul(r, x) }", 1);
  graph::Model model =
      graph::parse_model("(float[2,3,4] x) => (y) { t = Transpose(x)  a = Relu(t)  y = Transpose(a) }", 17);
  model.graph->value(model.graph->inputs()[0]).type.shape.reset();
  kernel::infer_graph(*model.graph, registry());
  optimize(model, 1);
  CHECK(nodes(*model.graph) == "t = Transpose (x)\na = Relu (t)\ny = Transpose (a)");
}

TEST_CASE("transposes that only move dims of 1 become reshapes at the end") {
  check_optimized("(float[N,3,1,1] x) => (y) { a = Relu(x)  y = Transpose<perm = [0,2,3,1]>(a) }", 1,
                  "a = Relu (x)\ny = Reshape (a, y_shape)");
  check_optimized("(float[N,1,M] x) => (y) { a = Relu(x)  y = Transpose<perm = [0,2,1]>(a) }", 2,
                  "a = Relu (x)\ny = Reshape (a, y_shape)");
  check_unchanged("(float[N,K,M] x) => (y) { a = Relu(x)  y = Transpose<perm = [0,2,1]>(a) }", 1);
}

namespace {

int transposes_of(const graph::Graph& graph) {
  int count = 0;
  for (const graph::NodeId id : graph.topological_order()) count += graph.node(id).op_type == "Transpose" ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("time to load grows with a chain of Transposes and other nodes, not with its square") {
  // As many as are looked at in a graph of any length: none is left for want of time.
  constexpr int kPairs = 4000;
  std::string text = "(float[3,3] v0) => (v" + std::to_string(2 * kPairs) + ") <float unused = {0}> {\n";
  for (int i = 0; i < 2 * kPairs; ++i) {
    text += cat("v", i + 1, " = ", i % 2 == 0 ? "Transpose" : "Relu", "(v", i, ")\n");
  }
  graph::Model model = parse(text + "}");
  optimize(model, 1);
  CHECK(transposes_of(*model.graph) == 0);
}

TEST_CASE("a graph whose cuts would take long keeps most of its transposes") {
  // Every sum hangs on every other by x: one region, whose cuts get longer with the square of the graph.
  constexpr int kPairs = 3000;
  std::string text = "(float[3,3] v0) => (v" + std::to_string(2 * kPairs) + ") <float unused = {0}> {\n";
  for (int i = 0; i < 2 * kPairs; ++i) {
    text += i % 2 == 0 ? cat("v", i + 1, " = Transpose(v", i, ")\n") : cat("v", i + 1, " = Add(v", i, ", v0)\n");
  }
  graph::Model model = parse(text + "}");
  optimize(model, 1);
  CHECK(transposes_of(*model.graph) > kPairs * 9 / 10);
}
