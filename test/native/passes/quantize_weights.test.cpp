// Float weights and biases beside quantized inputs, rounded as codes would round them.
#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
/// A node between a DequantizeLinear and a QuantizeLinear; weights from -0.5 to 0.7749..., the step of which is 0.005.
std::string unit(const std::string& input, const std::string& node, const std::string& constants,
                 const std::string& after = "y = QuantizeLinear(t, r, z)", const std::string& outputs = "y") {
  return cat("(", input, ") => (", outputs, ") <float s = {0.5}, float r = {0.25}, uint8 z = {7}, ", constants,
             "> { q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  ", node, "  ", after, " }");
}
constexpr const char* kWeights = "float[2,2] w = {-0.5, 0.775, 0.0024, 0.0026}";
std::string gemm(const std::string& constants = cat(kWeights, ", float[2] b = {0.00126, -1.0}"),
                 const std::string& node = "t = Gemm(d, w, b)",
                 const std::string& after = "y = QuantizeLinear(t, r, z)", const std::string& outputs = "y") {
  return unit("float[3,2] x", node, constants, after, outputs);
}

/// Constants and nodes after level basic.
graph::Model basic(const std::string& text, bool keep = true, std::set<std::string, std::less<>> disabled = {},
                   std::int64_t opset = 21) {
  graph::Model model = parse(text, opset);
  passes::PassOptions options = pass_options(1, std::move(disabled));
  options.keep_dequantizers = keep;
  passes::run_basic(model, options);
  graph::verify(*model.graph);
  return model;
}
std::vector<float> constant(const graph::Graph& graph, const std::string& name) {
  for (const graph::ValueInfo& value : graph.values()) {
    if (value.name == name && value.is_constant()) return tensor::to_float_vector(value.constant.tensor());
  }
  FAIL("no constant ", name);
  return {};
}
std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}
bool fires(const std::string& text, std::set<std::string, std::less<>> disabled = {}) {
  CAPTURE(text);
  return nodes(*basic(text, true, std::move(disabled)).graph).find("w_rounded") != std::string::npos;
}
}  // namespace

TEST_CASE("weights become 8-bit codes, a bias 32-bit ones") {
  const graph::Model model = basic(gemm());
  const graph::Graph& graph = *model.graph;
  CHECK(constant(graph, "w_codes") == std::vector<float>{-128, 127, -28, -27});
  CHECK(constant(graph, "w_scale")[0] == doctest::Approx(0.005));
  CHECK(constant(graph, "w_zero") == std::vector<float>{-28});
  CHECK(constant(graph, "b_codes") == std::vector<float>{1, -400});
  CHECK(constant(graph, "b_scale")[0] == doctest::Approx(0.0025));
  const std::string text = nodes(graph);
  CHECK(text.find("w_rounded = DequantizeLinear (w_codes, w_scale, w_zero)") != std::string::npos);
  CHECK(text.find("b_rounded = DequantizeLinear (b_codes, b_scale)") != std::string::npos);
  CHECK(text.find("t = Gemm (d, w_rounded, b_rounded)") != std::string::npos);
}

TEST_CASE("what is rounded is folded") {
  const graph::Model model = basic(gemm(), false);
  const std::string text = nodes(*model.graph);
  CHECK(count(text, "DequantizeLinear") == 1);
  const std::vector<float> w = constant(*model.graph, "w_rounded"), b = constant(*model.graph, "b_rounded");
  const float expected_w[] = {-0.5f, 0.775f, 0, 0.005f}, expected_b[] = {0.0025f, -1};
  for (std::size_t i = 0; i < 4; ++i) CHECK(w[i] == doctest::Approx(expected_w[i]));
  for (std::size_t i = 0; i < 2; ++i) CHECK(b[i] == doctest::Approx(expected_b[i]));
  const std::vector<Value> inputs = feeds(*model.graph);
  const graph::Model kept = basic(gemm());
  check_same(evaluate(*model.graph, inputs), evaluate(*kept.graph, inputs), 0);
  graph::Model products = parse(gemm(), 21);
  passes::PassOptions options = pass_options(2, {"QDQSelectorActionTransformer"});
  options.keep_dequantizers = true;
  passes::run_basic(products, options);
  passes::run_extended(products, "", options);
  CHECK(nodes(*products.graph).find("t = infernode.FusedMatMul") != std::string::npos);
  check_same(evaluate(*products.graph, inputs), evaluate(*kept.graph, inputs), 0);
}

TEST_CASE("weights of convolutions, with and without a bias") {
  for (const char* op : {"Conv", "ConvTranspose"}) {
    const std::string weights = "float[1,1,2,2] w = {-0.5, 0.775, 0.0024, 0.0026}";
    CHECK(fires(unit("float[1,1,4,4] x", cat("t = ", op, "(d, w)"), weights)));
    CHECK(fires(unit("float[1,1,4,4] x", cat("t = ", op, "(d, w, b)"), cat(weights, ", float[1] b = {1}"))));
    const graph::Model model = basic(unit("float[1,1,4,4] x", cat("t = ", op, "(d, w)"), weights), false);
    CHECK(nodes(*model.graph).find(cat("t = ", op, " (d, w_rounded)")) != std::string::npos);
    CHECK(constant(*model.graph, "w_rounded")[2] == 0);
  }
  CHECK(fires(gemm(kWeights, "t = Gemm(d, w)")));
  CHECK(fires(gemm(cat(kWeights, ", float[2] b = {1, 2}"), "m = MatMul(d, w)  t = Add(m, b)")));
}

TEST_CASE("Relus, Clips and MaxPools may stand before the QuantizeLinear") {
  const std::string constants = cat(kWeights, ", float[2] b = {1, 2}, float least = {0}, float most = {6}");
  CHECK(fires(gemm(constants, "t = Gemm(d, w, b)", "u = Relu(t)  y = QuantizeLinear(u, r, z)")));
  CHECK(fires(gemm(constants, "t = Gemm(d, w, b)", "u = Clip(t, least, most)  y = QuantizeLinear(u, r, z)")));
  CHECK(fires(unit("float[1,1,4,4] x", "t = Conv(d, w)", "float[1,1,2,2] w = {1, 2, 3, 4}",
                   "u = Relu(t)  p = MaxPool<kernel_shape = [2,2]>(u)  y = QuantizeLinear(p, r, z)")));
  CHECK_FALSE(
      fires("(float[1,1,4,4] x) => (i, v) <float s = {0.5}, uint8 z = {7}, float[1,1,2,2] w = {1, 2, 3, 4}> { "
            "q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  t = Conv(d, w)  "
            "\"\", i = MaxPool<kernel_shape = [2,2]>(t)  v = QuantizeLinear(x, s) }"));
  CHECK_FALSE(fires(gemm(constants, "t = Gemm(d, w, b)", "u = Sigmoid(t)  y = QuantizeLinear(u, r, z)")));
  CHECK_FALSE(
      fires(gemm(constants, "t = Gemm(d, w, b)", "u = Relu(t)  y = QuantizeLinear(u, r, z)  v = Exp(u)", "y, v")));
}

TEST_CASE("weights that others read, and outputs of the graph, are only this node's affair") {
  const graph::Model shared = basic(gemm(cat(kWeights, ", float[2] b = {1, 2}"), "t = Gemm(d, w, b)",
                                         "y = QuantizeLinear(t, r, z)  v = Gemm(x, w)", "y, v"));
  const std::string text = nodes(*shared.graph);
  CHECK(text.find("t = Gemm (d, w_rounded, b_rounded)") != std::string::npos);
  CHECK(text.find("v = Gemm (x, w)") != std::string::npos);
  CHECK(
      fires(gemm(cat(kWeights, ", float[2] b = {1, 2}"), "t = Gemm(d, w, b)", "y = QuantizeLinear(t, r, z)", "y, t")));
}

TEST_CASE("weights of zeros stay zeros") {
  const graph::Model model = basic(gemm("float[2,2] w = {0, 0, 0, 0}", "t = Gemm(d, w)"), false);
  CHECK(constant(*model.graph, "w_rounded") == std::vector<float>{0, 0, 0, 0});
}

TEST_CASE("weights that are codes already are not rounded again, their bias is") {
  const std::string bias = "float[2] b = {0.21, -0.00074}";
  const graph::Model one = basic(gemm(cat("int8[2,2] c = {1, 2, 3, 4}, float e = {0.25}, ", bias),
                                      "w = DequantizeLinear(c, e)  t = Gemm(d, w, b)"));
  CHECK(nodes(*one.graph).find("t = Gemm (d, w, b_rounded)") != std::string::npos);
  CHECK(nodes(*one.graph).find("b_rounded = DequantizeLinear (b_codes, b_scale)") != std::string::npos);
  CHECK(constant(*one.graph, "b_scale") == std::vector<float>{0.125});
  CHECK(constant(*one.graph, "b_codes") == std::vector<float>{2, 0});

  const std::string codes = cat("int8[2,2] c = {1, 2, 3, 4}, float[2] e = {0.25, 0.0009765625}, ", bias);
  const graph::Model each = basic(gemm(codes, "w = DequantizeLinear<axis = 1>(c, e)  t = Gemm(d, w, b)"));
  CHECK(nodes(*each.graph).find("b_rounded = DequantizeLinear <axis = 0> (b_codes, b_scale)") != std::string::npos);
  CHECK(constant(*each.graph, "b_scale") == std::vector<float>{0.125, 0.00048828125});
  CHECK(constant(*each.graph, "b_codes") == std::vector<float>{2, -2});
  const graph::Model folded = basic(gemm(codes, "w = DequantizeLinear<axis = -1>(c, e)  t = Gemm(d, w, b)"), false);
  CHECK(constant(*folded.graph, "b_rounded") == std::vector<float>{0.25, -0.0009765625});

  const auto rounds = [&](const std::string& node, const std::string& constants = "") {
    const std::string all = cat(codes, constants.empty() ? "" : ", ", constants);
    return nodes(*basic(gemm(all, node)).graph).find("b_rounded") != std::string::npos;
  };
  CHECK(rounds("w = DequantizeLinear<axis = 0>(c, e)  t = Gemm<transB = 1>(d, w, b)"));
  CHECK_FALSE(rounds("w = DequantizeLinear<axis = 0>(c, e)  t = Gemm(d, w, b)"));
  CHECK_FALSE(rounds("w = DequantizeLinear<axis = 1>(c, e)  t = Gemm<transB = 1>(d, w, b)"));
  CHECK_FALSE(rounds("w = DequantizeLinear<axis = 1>(c, e)  t = Gemm(d, w, o)", "float[1] o = {1}"));
  CHECK_FALSE(
      rounds("w = DequantizeLinear<axis = 0, block_size = 1>(c, f)  t = Gemm(d, w, b)", "float[2,2] f = {1, 2, 3, 4}"));
  CHECK_FALSE(rounds("w = DequantizeLinear<axis = 1>(c, e)  a = DequantizeLinear(g, e)  t = Gemm(d, w, a)",
                     "int32[2] g = {1, 2}"));
}

TEST_CASE("a bias beside coded weights of convolutions") {
  const std::string constants = "int8[2,2,1,1] w8 = {1, 2, 3, 4}, float[2] e = {0.25, 0.5}, float[2] b = {0.3, 0.3}";
  const auto codes = [&](const std::string& node) {
    const graph::Model model = basic(unit("float[1,2,4,4] x", node, constants));
    return nodes(*model.graph).find("b_rounded") == std::string::npos ? std::vector<float>{}
                                                                      : constant(*model.graph, "b_codes");
  };
  CHECK(codes("w = DequantizeLinear<axis = 0>(w8, e)  t = Conv(d, w, b)") == std::vector<float>{2, 1});
  CHECK(codes("w = DequantizeLinear<axis = 1>(w8, e)  t = ConvTranspose(d, w, b)") == std::vector<float>{2, 1});
  CHECK(codes("w = DequantizeLinear<axis = 1>(w8, e)  t = Conv(d, w, b)").empty());
  CHECK(codes("w = DequantizeLinear<axis = 0>(w8, e)  t = ConvTranspose(d, w, b)").empty());
}

TEST_CASE("nodes that share weights share the codes") {
  const graph::Model model = basic(gemm(cat(kWeights, ", float[2] b = {1, 2}"), "t = Gemm(d, w, b)",
                                        "y = QuantizeLinear(t, r, z)  a = Gemm<alpha = 2.0>(d, w)  v = "
                                        "QuantizeLinear(a, s, z)",
                                        "y, v"));
  const std::string text = nodes(*model.graph);
  CHECK(count(text, "(w_codes, w_scale, w_zero)") == 1);
  CHECK(text.find("t = Gemm (d, w_rounded, b_rounded)") != std::string::npos);
  CHECK(text.find("a = Gemm <alpha = 2.0> (d, w_rounded)") != std::string::npos);
}

TEST_CASE("dims may be symbols; quantizers may be of com.microsoft") {
  CHECK(fires(unit("float[N,2] x", "t = Gemm(d, w)", kWeights)));
  CHECK(fires(unit("float[N,1,H,W] x", "t = Conv(d, w)", "float[1,1,2,2] w = {1, 2, 3, 4}")));
  const std::string own =
      "(float[1,1,4,4] x) => (y) <float s = {0.5}, uint8 z = {7}, float[1,1,2,2] w = {1, 2, 3, 4}> "
      "{ q = com.microsoft.QuantizeLinear(x, s, z)  d = com.microsoft.DequantizeLinear(q, s, z)  t = Conv(d, w)  "
      "y = com.microsoft.QuantizeLinear(t, s, z) }";
  const graph::Model model = basic(own, true, {}, 9);
  CHECK(nodes(*model.graph).find("w_rounded = com.microsoft.DequantizeLinear (w_codes, w_scale, w_zero)") !=
        std::string::npos);
}

TEST_CASE("what stays in floats") {
  const std::string constants = cat(kWeights, ", float[2] b = {1, 2}"), node = "t = Gemm(d, w, b)";
  CHECK(fires(gemm(constants, node)));
  CHECK_FALSE(fires(gemm(constants, node), {"WeightBiasQuantization"}));
  CHECK_FALSE(fires(gemm(constants, "t = Gemm(x, w, b)")));
  CHECK_FALSE(fires(gemm(constants, node, "y = Exp(t)")));
  CHECK_FALSE(fires(gemm(constants, node, "y = QuantizeLinear(t, r, z)  v = Exp(t)", "y, v")));
  CHECK_FALSE(fires(gemm(constants, "m = MatMul(d, w)  t = Tanh(m)")));
  CHECK_FALSE(fires(unit("float[3,2] x, float[2,2] w", "t = Gemm(d, w)", "float k = {1}")));
  CHECK_FALSE(fires(unit("float[3,2] x, float[2] b", node, kWeights)));
  CHECK_FALSE(fires(gemm(cat(kWeights, ", float[1,2] b = {1, 2}"), node)));
  CHECK_FALSE(fires(gemm("float[2,2] w = {nan, 0, 1, 2}, float[2] b = {1, 2}", node)));
  CHECK_FALSE(fires(gemm("float[2,2] w = {inf, 0, 1, 2}, float[2] b = {1, 2}", node)));
  CHECK_FALSE(fires(gemm("float[2,2] w = {3e38, -3e38, 1, 2}, float[2] b = {1, 2}", node)));
  CHECK_FALSE(fires(gemm(cat(kWeights, ", float[2] b = {1, 1e8}"), node)));
  CHECK_FALSE(fires(gemm(cat(kWeights, ", float[2] b = {1, nan}"), node)));
  CHECK_FALSE(fires(
      "(float[3,2] x) => (y) <float[2] s = {0.5,0.25}, float[2,2] w = {1,2,3,4}> { q = QuantizeLinear<axis = 1>(x, s)  "
      "d = DequantizeLinear<axis = 1>(q, s)  t = Gemm(d, w)  y = QuantizeLinear(t, w) }"));
  CHECK_FALSE(
      fires("(float[3,2] x, double[3,2] v) => (y) <double[2,2] w = {1,2,3,4}, float s = {1}> { "
            "a = Gemm(v, w)  f = Cast<to = 1>(a)  y = QuantizeLinear(f, s) }"));
}
