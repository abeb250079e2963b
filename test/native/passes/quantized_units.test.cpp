// Nodes between DequantizeLinears and QuantizeLinears that become operators on codes.
#include "fusions/graph_test.h"
#include "graph/captures.h"

using namespace infernode;
using namespace infernode::test;

namespace {
constexpr const char* kName = "QDQSelectorActionTransformer";

/// `x` and `k`, quantized; a node of their floats `d` and `e`; what comes after. Constants of all kinds.
struct Case {
  std::string node;
  std::string after = "y = QuantizeLinear(t, r, z)";
  std::string outputs = "y";
  std::string constants = "uint8 z = {7}";
  std::string inputs = "float[1,2,4,4] x, float[1,2,4,4] k";
  std::string text() const {
    return cat("(", inputs, ") => (", outputs, ") <float s = {0.0078125}, float r = {0.03125}, ", constants,
               "> { q = QuantizeLinear(x, s, z)  p = QuantizeLinear(k, s, z)  d = DequantizeLinear(q, s, z)  "
               "e = DequantizeLinear(p, s, z)  ",
               node, "  ", after, " }");
  }
};

/// A model at level extended; also checks that its answers are those of level disabled within a step of r.
graph::Model extended(const std::string& text, std::set<std::string, std::less<>> disabled = {},
                      std::int64_t opset = 21, const std::map<std::string, std::int64_t>& symbols = {}) {
  CAPTURE(text);
  const graph::Model before = parse(text, opset);
  graph::Model after = parse(text, opset);
  graph::adopt_constants(*after.graph);  // as loading does
  const passes::PassOptions options = pass_options(2, std::move(disabled));
  passes::run_basic(after, options);
  passes::run_extended(after, "cpu", options);
  graph::verify(*after.graph);
  const std::vector<Value> inputs = feeds(*before.graph, symbols);
  const std::vector<Value> is = evaluate(*after.graph, inputs), should = evaluate(*before.graph, inputs);
  REQUIRE(is.size() == should.size());
  for (std::size_t o = 0; o < is.size(); ++o) {
    const Tensor &a = is[o].tensor(), &b = should[o].tensor();
    REQUIRE(a.to_string() == b.to_string());
    const std::vector<float> x = tensor::to_float_vector(a), y = tensor::to_float_vector(b);
    const float most = a.dtype() == DType::Float32 ? 1e-5f : 1.0f;
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(std::abs(x[i] - y[i]) <= most);
  }
  return after;
}
bool has(const graph::Model& model, const std::string& what) {
  return nodes(*model.graph).find(what) != std::string::npos;
}
void becomes(const std::string& text, const std::string& wanted, std::int64_t opset = 21,
             const std::map<std::string, std::int64_t>& symbols = {}) {
  const std::string now = nodes(*extended(text, {}, opset, symbols).graph);
  CHECK_MESSAGE(now.find(wanted) != std::string::npos, now);
  CHECK_MESSAGE(now.find("DequantizeLinear") == std::string::npos, now);
}
/// No operator of codes comes of it, and no constant is dequantized on each run.
void stays(const std::string& text, std::int64_t opset = 21) {
  const graph::Model model = extended(text, {}, opset);
  const std::string now = nodes(*model.graph);
  for (const char* made : {"QLinear", "QGemm", "MatMulIntegerToFloat"})
    CHECK_MESSAGE(now.find(made) == std::string::npos, now);
  CHECK_MESSAGE(now.find("_codes") == std::string::npos, now);
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(model.graph->node_count()); ++id) {
    const graph::Node& node = model.graph->node(id);
    CHECK((node.op_type != "DequantizeLinear" || !model.graph->value(node.inputs[0]).has_constant()));
  }
}

struct Sizes {
  std::int64_t in, out, kernel, groups = 1;
};
/// Whether a convolution of codes of these sizes becomes a QLinearConv; checks the answers.
bool runs_on_codes(const Sizes& sizes) {
  const Shape shape{sizes.out, sizes.in / sizes.groups, sizes.kernel, sizes.kernel};
  graph::Model model = graph::parse_model(
      cat("(float[1,", sizes.in, ",9,9] x, int8", shape.to_string(),
          " w) => (y) <float s = {0.0078125}, uint8 z = {7}> {",
          " q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  wf = DequantizeLinear(w, s)  t = Conv<group = ",
          sizes.groups, ">(d, wf)  y = QuantizeLinear(t, s, z) }"),
      21);
  graph::Graph& g = *model.graph;
  const graph::ValueId id = g.find_value("w");
  const Tensor weights = Tensor::make(DType::Int8, shape), from = noise(DType::Float32, shape, 3);
  std::ranges::transform(from.span<float>(), weights.mutable_data<std::int8_t>(),
                         [](float v) { return static_cast<std::int8_t>(v * 120); });
  g.value(id).constant = Value(weights);
  g.value(id).is_input = false;
  std::erase(g.mutable_inputs(), id);
  kernel::infer_graph(g, registry());
  const std::vector<Value> inputs = feeds(g), should = evaluate(g, inputs);
  optimize(model, 2);
  const std::vector<Value> is = evaluate(*model.graph, inputs);
  const auto a = is[0].tensor().span<std::uint8_t>(), b = should[0].tensor().span<std::uint8_t>();
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) <= 1);
  return has(model, "QLinearConv");
}

constexpr const char* kConv =
    "uint8 z = {7}, int8[2,1,2,1] w = {10,-20,30,-128}, float[2] ws = {0.5,0.25}, int8[2] wz = {0,0}, "
    "int32[2] b = {100,-200}, float[2] bs = {0.00390625,0.001953125}";
constexpr const char* kConvNode =
    "wf = DequantizeLinear<axis = 0>(w, ws, wz)  bf = DequantizeLinear<axis = 0>(b, bs)  t = Conv<group = 2>(d, wf, "
    "bf)";
}  // namespace

TEST_CASE("a convolution of codes, with and without a bias") {
  becomes(Case{.node = kConvNode, .constants = kConv}.text(),
          "y = QLinearConv <group = 2> (q, s, z, w, ws, wz, r, z, b)");
  becomes(Case{.node = "wf = DequantizeLinear<axis = 0>(w, ws, wz)  t = Conv<group = 2, pads = [1,1,1,1]>(d, wf)",
               .constants = kConv}
              .text(),
          "y = QLinearConv <group = 2, pads = [1, 1, 1, 1]> (q, s, z, w, ws, wz, r, z)");
  // One scale, no zero point; dims that are not known.
  becomes(Case{.node = "wf = DequantizeLinear(w, s)  t = Conv<group = 2>(d, wf)",
               .constants = kConv,
               .inputs = "float[N,2,H,W] x, float[N,2,H,W] k"}
              .text(),
          "y = QLinearConv <group = 2> (q, s, z, w, s, w_zero, r, z)", 21, {{"N", 2}, {"H", 3}, {"W", 5}});
  // Floats beside quantized inputs are rounded first.
  becomes(Case{.node = "t = Conv<group = 2>(d, v, c)",
               .constants = "uint8 z = {7}, float[2,1,2,1] v = {-0.5, 0.775, 0.0024, 0.0026}, float[2] c = {0.5, -1}"}
              .text(),
          "y = QLinearConv <group = 2> (q, s, z, v_codes, v_scale, v_zero, r, z, c_codes)");
}

TEST_CASE("activations that only cut off what codes cannot say") {
  const std::string least =
      std::string(kConv) + ", uint8 o = {0}, float low = {0}, float high = {7.97}, float six = {6}";
  const auto after = [](const std::string& activation) { return activation + "  y = QuantizeLinear(a, r, o)"; };
  const std::string wanted = "y = QLinearConv <group = 2> (q, s, z, w, ws, wz, r, o, b)";
  becomes(Case{.node = kConvNode, .after = after("a = Relu(t)"), .constants = least}.text(), wanted);
  becomes(Case{.node = kConvNode, .after = after("a = Clip(t, low, high)"), .constants = least}.text(), wanted);
  becomes(Case{.node = kConvNode, .after = after("a = Clip(t, low)"), .constants = least}.text(), wanted);
  stays(Case{.node = kConvNode, .after = after("a = Clip(t, low, six)"), .constants = least}.text());
  stays(Case{.node = kConvNode, .after = after("a = Sigmoid(t)"), .constants = least}.text());
  stays(Case{.node = kConvNode, .after = "a = Relu(t)  y = QuantizeLinear(a, r, z)", .constants = kConv}.text());
}

TEST_CASE("products of codes, to codes and to floats") {
  const std::string inputs = "float[3,4] x, float[4,2] k";
  const std::string constants =
      "uint8 z = {7}, int8[4,2] w = {1,2,-3,4,50,-60,70,-128}, float[2] ws = {0.5,0.25}, int8[2] wz = {3,-4}, "
      "int8[2,4] v = {1,2,-3,4,50,-60,70,-128}, int32[2] b = {100,-200}, float[2] bs = {0.00390625,0.001953125}";
  const auto product = [&](const std::string& node, const std::string& after = "y = QuantizeLinear(t, r, z)",
                           const std::string& outputs = "y") {
    return Case{node, after, outputs, constants, inputs}.text();
  };
  const std::string columns = "wf = DequantizeLinear(w, ws, wz)  ", rows = "vf = DequantizeLinear<axis = 0>(v, ws)  ";
  becomes(product(columns + "t = MatMul(d, wf)"), "y = QLinearMatMul (q, s, z, w, ws, wz, r, z)");
  becomes(product(columns + "y = MatMul(d, wf)", ""), "y = com.microsoft.MatMulIntegerToFloat (q, w, s, ws, z, wz)");
  const std::string bias = "bf = DequantizeLinear<axis = 0>(b, bs)  ";
  becomes(product(columns + bias + "t = Gemm(d, wf, bf)"), "y = com.microsoft.QGemm (q, s, z, w, ws, wz, b, r, z)");
  becomes(product(rows + bias + "t = Gemm<transB = 1>(d, vf, bf)"),
          "y = com.microsoft.QGemm <transB = 1> (q, s, z, v, ws, v_zero, b, r, z)");
  becomes(product(rows + "t = Gemm<transB = 1>(d, vf)"),
          "y = com.microsoft.QGemm <transB = 1> (q, s, z, v, ws, v_zero, \"\", r, z)");
  becomes(product(columns + bias + "y = Gemm(d, wf, bf)", ""), "y = com.microsoft.QGemm (q, s, z, w, ws, wz, b)");
  // Who reads floats gets them.
  becomes(product(columns + "t = MatMul(d, wf)", "y = QuantizeLinear(t, r, z)  u = Neg(t)", "y, u"),
          "t = com.microsoft.MatMulIntegerToFloat (q, w, s, ws, z, wz)");
  // Scales of rows, a bias of another step, and factors that only floats know.
  stays(product("wf = DequantizeLinear<axis = 0>(v, ws)  t = MatMul(e, wf)"));
  stays(product("wf = DequantizeLinear(w, s)  bf = DequantizeLinear<axis = 0>(b, bs)  t = Gemm(d, wf, bf)"));
  stays(product("wf = DequantizeLinear(w, s)  t = Gemm<transA = 1>(e, wf)"));
}

TEST_CASE("sums, factors and what works element by element") {
  for (const char* op : {"Add", "Mul"}) {
    becomes(Case{.node = cat("t = ", op, "(d, e)")}.text(),
            cat("y = com.microsoft.QLinear", op, " (q, s, z, p, s, z, r, z)"));
  }
  becomes(Case{.node = "t = Sigmoid(d)"}.text(), "y = com.microsoft.QLinearSigmoid (q, s, z, r, z)");
  becomes(Case{.node = "t = GlobalAveragePool(d)"}.text(),
          "y = com.microsoft.QLinearGlobalAveragePool (q, s, z, r, z)");
  becomes(Case{.node = "t = Concat<axis = 1>(d, e)"}.text(),
          "y = com.microsoft.QLinearConcat <axis = 1> (r, z, q, s, z, p, s, z)");
  becomes(Case{.node = "t = Where(m, d, e)",
               .constants = "uint8 z = {7}, bool[2] m = {1,0}",
               .inputs = "float[1,2,4,2] x, float[1,2,4,2] k"}
              .text(),
          "y = com.microsoft.QLinearWhere (m, q, s, z, p, s, z, r, z)");
}

TEST_CASE("what is faster on floats") {
  for (const char* op : {"LeakyRelu(d)", "Softmax(d)", "AveragePool<kernel_shape = [2,2]>(d)", "MatMul(d, e)"})
    stays(Case{.node = cat("t = ", op)}.text());
}

TEST_CASE("convolutions of few channels stay floats") {
  CHECK(runs_on_codes({.in = 64, .out = 32, .kernel = 1}));
  CHECK(runs_on_codes({.in = 16, .out = 32, .kernel = 3}));
  CHECK(runs_on_codes({.in = 128, .out = 128, .kernel = 3, .groups = 4}));
  CHECK(runs_on_codes({.in = 5, .out = 10, .kernel = 3, .groups = 5}));
  CHECK_FALSE(runs_on_codes({.in = 3, .out = 64, .kernel = 7}));
  CHECK_FALSE(runs_on_codes({.in = 32, .out = 64, .kernel = 1}));
  CHECK_FALSE(runs_on_codes({.in = 64, .out = 16, .kernel = 1}));
  CHECK_FALSE(runs_on_codes({.in = 128, .out = 128, .kernel = 3, .groups = 8}));
}

TEST_CASE("signed codes") {
  const std::string constants = "int8 z = {-7}, int8[2,1,2,1] w = {10,-20,30,-128}, uint8[2,1,2,1] u = {1,2,3,4}";
  becomes(Case{.node = "wf = DequantizeLinear(w, s)  t = Conv<group = 2>(d, wf)", .constants = constants}.text(),
          "y = QLinearConv <group = 2> (q, s, z, w, s, w_zero, r, z)");
  becomes(Case{.node = "t = Add(d, e)", .constants = constants}.text(), "y = com.microsoft.QLinearAdd");
  stays(Case{.node = "wf = DequantizeLinear(u, s)  t = Conv<group = 2>(d, wf)", .constants = constants}.text());
}

TEST_CASE("who reads the floats in between keeps them") {
  stays(
      Case{.node = kConvNode, .after = "y = QuantizeLinear(t, r, z)  u = Neg(t)", .outputs = "y, u", .constants = kConv}
          .text());
  stays(Case{.node = kConvNode, .outputs = "y, t", .constants = kConv}.text());
  stays(Case{.node = "t = Add(d, e)", .outputs = "y, t"}.text());
  // Other readers of what is dequantized do not matter.
  const graph::Model model = extended(
      Case{.node = kConvNode, .after = "y = QuantizeLinear(t, r, z)  u = Neg(d)", .outputs = "y, u", .constants = kConv}
          .text());
  CHECK(has(model, "y = QLinearConv <group = 2>"));
  CHECK(has(model, "d = DequantizeLinear (q, s, z)"));
}

TEST_CASE("codes that the operators do not know") {
  // Two bytes, more than one scale, scales that are fed, outputs of another type.
  stays(Case{.node = "t = Add(d, e)", .constants = "uint16 z = {7}"}.text());
  stays(Case{
      .node = "g = QuantizeLinear<axis = 3>(k, each, zs)  f = DequantizeLinear<axis = 3>(g, each, zs)  t = Add(d, f)",
      .constants = "uint8 z = {7}, float[4] each = {0.5,0.25,1,2}, uint8[4] zs = {1,2,3,4}"}
            .text());
  stays(
      "(float[2,3] x, float s) => (y) <uint8 z = {7}> { q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  "
      "t = Sigmoid(d)  y = QuantizeLinear(t, s, z) }");
  stays(
      Case{.node = "t = Add(d, e)", .after = "y = QuantizeLinear(t, r, o)", .constants = "uint8 z = {7}, int8 o = {7}"}
          .text());
  // A channel of the weights' inputs instead of their outputs, zero points that differ.
  stays(Case{.node = "wf = DequantizeLinear<axis = 2>(w, ws, wz)  t = Conv<group = 2>(d, wf)", .constants = kConv}
            .text());
  stays(Case{.node = "wf = DequantizeLinear<axis = 0>(w, ws, o)  t = Conv<group = 2>(d, wf)",
             .constants = std::string(kConv) + ", int8[2] o = {1,2}"}
            .text());
}

TEST_CASE("units in a branch") {
  const graph::Model model = extended(
      "(float[1,2,4,4] x, bool m) => (y) <float s = {0.0078125}, float r = {0.03125}, uint8 z = {7}, int8[2,1,2,1] w = "
      "{10,-20,30,-128}, int64[1] o = {0}, int64[1] h = {3}, int64[1] k = {2}> { q = QuantizeLinear(x, s, z)  y = "
      "If(m) <then_branch = a () => (u) { d = DequantizeLinear(q, s, z)  "
      "wf = DequantizeLinear(w, s)  t = Conv<group = 2>(d, wf)  u = QuantizeLinear(t, r, z) }, else_branch = b () => "
      "(v) { "
      "v = Slice(q, o, h, k) }> }");
  CHECK(has(model, "u = QLinearConv <group = 2>"));
  CHECK_FALSE(has(model, "DequantizeLinear"));
}

TEST_CASE("it can be switched off, and waits for level extended") {
  const std::string text = Case{.node = kConvNode, .constants = kConv}.text();
  const graph::Model off = extended(text, {kName});
  CHECK_FALSE(has(off, "QLinear"));
  CHECK(has(off, "t = Conv <group = 2> (d, wf, bf)"));
  graph::Model basic = parse(text, 21);
  optimize(basic, 1);
  CHECK(has(basic, "t = Conv <group = 2> (d, wf, bf)"));
  CHECK_FALSE(has(basic, "wf = "));
  // Other providers may take the nodes: they get floats.
  graph::Model shared = parse(text, 21);
  passes::PassOptions options = pass_options(2);
  options.cpu_only = false;
  passes::run_basic(shared, options);
  CHECK_FALSE(has(shared, "wf = "));
}

TEST_CASE("large weights are not dequantized on each run") {
  const auto after = [](const char* type, int level) {
    graph::Model model = graph::parse_model(cat("(float[1,1024] x, ", type,
                                                "[600,1024] c) => (y) <float s = {0.5}> { w = DequantizeLinear(c, s)  "
                                                "t = Add(x, w)  y = ReduceSum<keepdims = 0>(t) }"),
                                            21);
    graph::Graph& g = *model.graph;
    const graph::ValueId id = g.find_value("c");
    const DType elem = g.value(id).type.elem;
    g.value(id).constant =
        Value(Tensor(elem, Shape{600, 1024}, tensor::zeroed_host_buffer(tensor::byte_size(elem, 600 * 1024))));
    g.value(id).is_input = false;
    std::erase(g.mutable_inputs(), id);
    kernel::infer_graph(g, registry());
    optimize(model, level);
    return nodes(g);
  };
  for (const int level : {1, 2}) {
    CHECK(after("int8", level).find("DequantizeLinear") == std::string::npos);
    CHECK(after("uint16", level).find("DequantizeLinear") == std::string::npos);
    // Models of less than a byte for each weight may need the memory.
    CHECK(after("uint4", level).find("DequantizeLinear") != std::string::npos);
  }
}
