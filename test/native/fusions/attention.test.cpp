#include <cmath>
#include <limits>
#include <tuple>

#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
std::string attention(const std::string& inputs, const std::string& rest) {
  return "(float[B,S,8] q, float[B,T,8] k, float[B,T,8] v" + inputs +
         ") => (y) <int64[4] split = {0, -1, 2, 4}, "
         "int64[3] join = {0, -1, 8}, float scale = {0.5}, float[4] wide = {1, 2, 3, 4}> { "
         "q4 = Reshape(q, split)  k4 = Reshape(k, split)  v4 = Reshape(v, split)  " +
         rest + " }";
}
const std::string kHeads =
    "qt = Transpose<perm = [0, 2, 1, 3]>(q4)  kt = Transpose<perm = [0, 2, 3, 1]>(k4)  vt = Transpose<perm = [0, 2, 1, "
    "3]>(v4)  ";
const std::map<std::string, std::int64_t> kSizes = {{"B", 2}, {"S", 5}, {"T", 7}};
}  // namespace

TEST_CASE("attention with its transpositions becomes one node") {
  check_optimized(
      attention("", kHeads + "m = MatMul(qt, kt)  n = Mul(m, scale)  p = Softmax<axis = -1>(n)  o = MatMul(p, vt)  "
                             "t = Transpose<perm = [0, 2, 1, 3]>(o)  y = Reshape(t, join)"),
      2,
      "q4 = Reshape (q, split)\nk4 = Reshape (k, split)\nv4 = Reshape (v, split)\n"
      "t = infernode.FusedAttention <k_rows_first = 1, q_rows_first = 1, scale = 0.5, v_rows_first = 1, "
      "y_rows_first = 1> (q4, k4, v4)\ny = Reshape (t, join)",
      17, 1e-5, kSizes);
}

TEST_CASE("a mask goes along where it fits the scores") {
  for (const char* mask : {"float[B,2,S,T] m", "float[B,1,1,T] m", "float[S,T] m", "float[1,1,S,T] m"}) {
    graph::Model model =
        parse(attention(std::string(", ") + mask, kHeads + "s = MatMul(qt, kt)  n = Mul(s, scale)  a = Add(n, m)  "
                                                           "p = Softmax<axis = -1>(a)  y = MatMul(p, vt)"));
    const graph::Model before =
        parse(attention(std::string(", ") + mask, kHeads + "s = MatMul(qt, kt)  n = Mul(s, scale)  a = Add(n, m)  "
                                                           "p = Softmax<axis = -1>(a)  y = MatMul(p, vt)"));
    optimize(model, 2);
    CHECK(nodes(*model.graph).find("infernode.FusedAttention") != std::string::npos);
    CHECK(nodes(*model.graph).find("Softmax") == std::string::npos);
    const auto inputs = feeds(*before.graph, kSizes);
    check_same(evaluate(*model.graph, inputs), evaluate(*before.graph, inputs));
  }
}

TEST_CASE("rows that are zeroed where Softmax gives NaN") {
  const auto text = [](const char* zero) {
    return attention(cat(", float[S,T] m"),
                     kHeads + cat("s = MatMul(qt, kt)  n = Mul(s, scale)  a = Add(n, m)  p = "
                                  "Softmax<axis = -1>(a)  nan = IsNaN(p)  c = Constant<value = float "
                                  "{",
                                  zero, "}>()  w = Where(nan, c, p)  y = MatMul(w, vt)"));
  };
  const graph::Model before = parse(text("0"));
  graph::Model after = parse(text("0")), other = parse(text("1"));
  optimize(after, 2);
  optimize(other, 2);
  CHECK(nodes(*after.graph).find("zero_nan = 1") != std::string::npos);
  CHECK(nodes(*other.graph).find("FusedAttention") == std::string::npos);
  std::vector<Value> inputs = feeds(*before.graph, kSizes);
  float* mask = inputs[3].tensor().mutable_data<float>();
  std::fill_n(mask, 7, -INFINITY);  // the first query sees nothing
  inputs[0].tensor().mutable_data<float>()[9] = NAN;
  const std::vector<Value> expected = evaluate(*before.graph, inputs);
  check_same(evaluate(*after.graph, inputs), expected);
  CHECK(expected[0].tensor().data<float>()[0] == 0);
}

TEST_CASE("heads that are repeated for groups of queries are not") {
  const char* text =
      "(float[B,4,S,8] q, float[B,2,T,8] k, float[B,2,T,8] v) => (y) <int64[1] two = {2}, int64[5] wide = {1, 1, 2, 1, "
      "1}, "
      "int64[4] flat = {0, 4, -1, 8}, int64[1] axis = {2}> { ku = Unsqueeze(k, axis)  ke = Expand(ku, wide)  kr = "
      "Reshape(ke, flat)  "
      "vu = Unsqueeze(v, two)  ve = Expand(vu, wide)  vr = Reshape(ve, flat)  kt = Transpose<perm = [0, 1, 3, 2]>(kr)  "
      "m = MatMul(q, kt)  p = Softmax<axis = 3>(m)  y = MatMul(p, vr) }";
  const graph::Model before = parse(text);
  graph::Model model = parse(text);
  optimize(model, 2);
  CHECK(model.graph->node_count() <= 7);
  CHECK(nodes(*model.graph).find("FusedAttention") != std::string::npos);
  const auto inputs = feeds(*before.graph, kSizes);
  check_same(evaluate(*model.graph, inputs), evaluate(*before.graph, inputs));
}

TEST_CASE("what is no attention stays apart") {
  const auto fires = [](const std::string& text) {
    graph::Model model = parse(text);
    optimize(model, 2);
    return nodes(*model.graph).find("FusedAttention") != std::string::npos;
  };
  CHECK(fires(attention("", kHeads + "m = MatMul(qt, kt)  p = Softmax<axis = -1>(m)  y = MatMul(p, vt)")));
  CHECK_FALSE(fires(attention("", kHeads + "m = MatMul(qt, kt)  p = Softmax<axis = 2>(m)  y = MatMul(p, vt)")));
  CHECK_FALSE(
      fires(attention(", float[3,B,2,S,T] m", kHeads + "s = MatMul(qt, kt)  a = Add(s, m)  p = Softmax<axis = -1>(a)  "
                                                       "y = MatMul(p, vt)")));
  CHECK_FALSE(
      fires("(float[B,S,8] q, float[C,T,8] k, float[B,T,8] v) => (y) { kt = Transpose<perm = [0, 2, 1]>(k)  "
            "m = MatMul(q, kt)  p = Softmax<axis = -1>(m)  y = MatMul(p, v) }"));
  CHECK_FALSE(
      fires("(float[S,8] q, float[T,8] k, float[T,8] v) => (y) { kt = Transpose(k)  m = MatMul(q, kt)  "
            "p = Softmax<axis = -1>(m)  y = MatMul(p, v) }"));
}

TEST_CASE("heads that are batches of three dims are attention, too") {
  for (const char* mask : {"", "float[B,S,T] m", "float[1,1,T] m", "float[S,T] m"}) {
    CAPTURE(mask);
    const bool masked = *mask != 0;
    const std::string text =
        cat("(float[B,S,8] q, float[B,T,8] k, float[B,T,6] v", masked ? ", " : "", mask,
            ") => (y) { kt = Transpose<perm = [0, 2, 1]>(k)  m0 = MatMul(q, kt)  ",
            masked ? "a = Add(m0, m)  p = Softmax<axis = 2>(a)" : "p = Softmax<axis = 2>(m0)", "  y = MatMul(p, v) }");
    for (const std::int64_t opset : {11, 17}) {
      const graph::Model before = parse(text, opset);
      graph::Model model = parse(text, opset);
      optimize(model, 2);
      REQUIRE(nodes(*model.graph) == cat("y = infernode.FusedAttention <scale = 1.0> (q, k, v", masked ? ", m)" : ")"));
      for (const std::int64_t rows : {5, 1, 200}) {
        const auto inputs = feeds(*before.graph, {{"B", 3}, {"S", rows}, {"T", 70}});
        check_same(evaluate(*model.graph, inputs), evaluate(*before.graph, inputs));
      }
    }
  }
}

TEST_CASE("probabilities that others read are a second output") {
  for (const bool masked : {false, true}) {
    const std::string text = cat("(float[B,S,8] q, float[B,T,8] k, float[B,T,6] v, float[S,T] m) => (y, p, e) { ",
                                 "kt = Transpose<perm = [0, 2, 1]>(k)  a = MatMul(q, kt)  ",
                                 masked ? "s = Add(a, m)  p = Softmax<axis = -1>(s)" : "p = Softmax<axis = -1>(a)",
                                 "  y = MatMul(p, v)  e = Exp(p) }");
    const graph::Model before = parse(text);
    graph::Model model = parse(text);
    optimize(model, 2);
    REQUIRE(nodes(*model.graph) ==
            cat("y, p = infernode.FusedAttention <scale = 1.0> (q, k, v", masked ? ", m" : "", ")\ne = Exp (p)"));
    CHECK(graph::to_string(*model.graph->value(model.graph->find_value("p")).type.shape) == "[B,S,T]");
    for (const std::int64_t rows : {5, 1, 200}) {
      const auto inputs = feeds(*before.graph, {{"B", 3}, {"S", rows}, {"T", 70}});
      check_same(evaluate(*model.graph, inputs), evaluate(*before.graph, inputs));
    }
  }
}

TEST_CASE("probabilities are there where there are no rows, keys' columns or values") {
  const char* text =
      "(float[B,S,D] q, float[B,T,D] k, float[B,T,V] v) => (y, p) { kt = Transpose<perm = [0, 2, 1]>(k) "
      "a = MatMul(q, kt)  p = Softmax<axis = -1>(a)  y = MatMul(p, v) }";
  const graph::Model before = parse(text);
  graph::Model model = parse(text);
  optimize(model, 2);
  REQUIRE(nodes(*model.graph) == "y, p = infernode.FusedAttention <scale = 1.0> (q, k, v)");
  for (const auto& [batch, rows, columns] : {std::tuple{0, 2, 3}, {2, 0, 3}, {2, 40, 0}, {1, 1, 0}}) {
    const auto inputs = feeds(*before.graph, {{"B", batch}, {"S", rows}, {"T", 7}, {"D", 4}, {"V", columns}});
    check_same(evaluate(*model.graph, inputs), evaluate(*before.graph, inputs));
  }
}

TEST_CASE("a score that is no number reaches its row, shut out or not") {
  const char* text =
      "(float[1,1,2,4] q, float[1,1,3,4] k, float[1,1,3,4] v) => (y) <float[2,3] m = {0, 0, -inf, 0, 0, 1}> "
      "{ kt = Transpose<perm = [0, 1, 3, 2]>(k)  s = MatMul(q, kt)  a = Add(s, m)  p = Softmax<axis = -1>(a)  "
      "y = MatMul(p, v) }";
  const graph::Model before = parse(text);
  graph::Model model = parse(text);
  optimize(model, 2);
  REQUIRE(nodes(*model.graph).find("FusedAttention") != std::string::npos);
  auto inputs = feeds(*before.graph, {});
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    inputs[1].tensor().mutable_data<float>()[9] = odd;
    const auto fused = evaluate(*model.graph, inputs);
    check_same(fused, evaluate(*before.graph, inputs));
  }
}

TEST_CASE("dims that may be 1 broadcast as they did") {
  const char* text =
      "(float[1,2,S,4] q, float[1,2,T,4] k, float[1,2,U,4] v, float[1,1,R,U] m) => (y) { kt = Transpose<perm = [0, 1, "
      "3, "
      "2]>(k)  s = MatMul(q, kt)  a = Add(s, m)  p = Softmax<axis = -1>(a)  y = MatMul(p, v) }";
  const graph::Model before = parse(text);
  graph::Model model = parse(text);
  optimize(model, 2);
  REQUIRE(nodes(*model.graph) == "y = infernode.FusedAttention <scale = 1.0> (q, k, v, m)");
  for (const auto& [s, t, r] : {std::tuple{5, 7, 5}, {5, 7, 1}, {1, 7, 5}, {5, 1, 5}, {1, 1, 5}, {1, 7, 1}}) {
    const auto inputs = feeds(*before.graph, {{"S", s}, {"T", t}, {"U", 7}, {"R", r}});
    check_same(evaluate(*model.graph, inputs), evaluate(*before.graph, inputs));
  }
}

TEST_CASE("a row whose keys are all shut out gives what the separate operators give") {
  const char* text =
      "(float[1,1,2,4] q, float[1,1,3,4] k, float[1,1,3,4] v) => (y) <float[2,3] m = {-inf, -inf, -inf, 0, -inf, 1}> "
      "{ kt = Transpose<perm = [0, 1, 3, 2]>(k)  s = MatMul(q, kt)  a = Add(s, m)  p = Softmax<axis = -1>(a)  "
      "y = MatMul(p, v) }";
  const graph::Model before = parse(text);
  graph::Model model = parse(text);
  optimize(model, 2);
  REQUIRE(nodes(*model.graph).find("FusedAttention") != std::string::npos);
  const auto inputs = feeds(*before.graph, {});
  const auto fused = evaluate(*model.graph, inputs);
  CHECK(std::isnan(fused[0].tensor().data<float>()[0]));
  CHECK_FALSE(std::isnan(fused[0].tensor().data<float>()[4]));
  check_same(fused, evaluate(*before.graph, inputs));
}
