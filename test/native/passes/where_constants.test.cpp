// Constants that a Where takes in the place of dequantized elements.
#include "fusions/graph_test.h"
#include "graph/captures.h"

using namespace infernode;
using namespace infernode::test;

namespace {
constexpr const char* kName = "WhereDummyDq";
using Names = std::set<std::string, std::less<>>;

/// `x`, quantized to `q` and dequantized to `d`; a Where; a QuantizeLinear behind it.
struct Case {
  std::string node = "t = Where(m, d, c)";
  std::string after = "y = QuantizeLinear(t, r, z)";
  std::string outputs = "y";
  std::string constants = "uint8 z = {7}, float c = {-3.3}";
  std::string inputs = "float[2,3] x, bool[3] m";
  std::string dequantize = "d = DequantizeLinear(q, s, z)";
  std::string text() const {
    return cat("(", inputs, ") => (", outputs, ") <float s = {0.0078125}, float r = {0.03125}, ", constants,
               "> { q = QuantizeLinear(x, s, z)  ", dequantize, "  ", node, "  ", after, " }");
  }
};

/// At level basic as a file gets it.
graph::Model basic(const std::string& text, const Names& disabled = {}, std::int64_t opset = 21, bool keep = true) {
  graph::Model model = parse(text, opset);
  graph::adopt_constants(*model.graph);  // as loading does
  passes::PassOptions options = pass_options(1, disabled);
  options.keep_dequantizers = keep;
  passes::run_basic(model, options);
  graph::verify(*model.graph);
  return model;
}
/// A constant of one element, as a number and its type.
std::pair<float, DType> constant(const graph::Graph& graph, const std::string& name) {
  for (const graph::ValueInfo& value : graph.values()) {
    if (value.name != name || !value.is_constant()) continue;
    CHECK(value.constant.tensor().rank() == 0);
    return {tensor::to_float_scalar(value.constant.tensor()), value.constant.tensor().dtype()};
  }
  FAIL("no constant ", name);
  return {};
}
bool has(const graph::Model& model, const std::string& what) {
  return nodes(*model.graph).find(what) != std::string::npos;
}
bool fires(const std::string& text, const Names& disabled = {}, std::int64_t opset = 21) {
  const graph::Model model = basic(text, disabled, opset);
  CAPTURE(nodes(*model.graph));
  const graph::Model before = parse(text, opset);
  const std::vector<Value> inputs = feeds(*before.graph);
  check_same(evaluate(*model.graph, inputs), evaluate(*before.graph, inputs), 0);
  return has(model, "_dequantized = ");
}
}  // namespace

TEST_CASE("a Where of floats becomes a Where between quantizers, and one on codes") {
  const std::string text = Case{}.text();
  const graph::Model model = basic(text);
  CHECK(nodes(*model.graph) ==
        "q = QuantizeLinear (x, s, z)\nd = DequantizeLinear (q, s, z)\n"
        "c_dequantized = DequantizeLinear (c_codes, c_scale, c_zero)\nt = Where (m, d, c_dequantized)\n"
        "y = QuantizeLinear (t, r, z)");
  graph::Model codes = parse(text, 21);
  optimize(codes, 2);
  CHECK(nodes(*codes.graph) ==
        "q = QuantizeLinear (x, s, z)\n"
        "y = com.microsoft.QLinearWhere (m, q, s, z, c_codes, c_scale, c_zero, r, z)");
  const graph::Model before = parse(text, 21);
  const std::vector<Value> inputs = feeds(*before.graph);
  const std::vector<Value> should = evaluate(*before.graph, inputs);
  check_same(evaluate(*model.graph, inputs), should, 0);
  check_same(evaluate(*codes.graph, inputs), should, 0);
}

TEST_CASE("the number stays what it is, on either side, in any code") {
  for (const char* value : {"-3.3", "0.1", "0", "-3.4028234e38", "3.4028234e38", "1e-30"}) {
    for (const char* type : {"uint8", "int8", "uint16", "int16"}) {
      for (const char* node : {"t = Where(m, d, c)", "t = Where(m, c, d)"}) {
        const std::string text = Case{.node = node, .constants = cat(type, " z = {7}, float c = {", value, "}")}.text();
        CAPTURE(text);
        CHECK(fires(text));
        const graph::Model model = basic(text);
        const auto [code, code_type] = constant(*model.graph, "c_codes");
        const auto [zero, zero_type] = constant(*model.graph, "c_zero");
        CHECK(code_type == model.graph->value(model.graph->find_value("q")).type.elem);
        CHECK(zero_type == code_type);
        CHECK((code - zero) * constant(*model.graph, "c_scale").first == std::stof(value));
        CHECK(constant(*model.graph, "c_scale").first > 0);
        graph::Model codes = parse(text, 21);
        optimize(codes, 2);
        CHECK(has(codes, "QLinearWhere") == (code_type == DType::UInt8 || code_type == DType::Int8));
        CHECK((!has(codes, "QLinearWhere") || !has(codes, "DequantizeLinear")));
        CHECK_FALSE(has(codes, "c_dequantized = "));
        const graph::Model before = parse(text, 21);
        const std::vector<Value> inputs = feeds(*before.graph);
        check_same(evaluate(*codes.graph, inputs), evaluate(*before.graph, inputs), 0);
      }
    }
  }
}

TEST_CASE("dims, scales and quantizers of other kinds") {
  CHECK(fires(Case{.inputs = "float[N,M] x, bool[M] m"}.text()));  // all dims are symbols
  CHECK(fires(Case{.constants = "uint8 z = {7}, float c = {2}, float[3] each = {0.5,0.25,1}, uint8[3] zs = {1,2,3}",
                   .dequantize = "d = DequantizeLinear<axis = 1>(q, each, zs)"}
                  .text()));
  CHECK(fires(
      Case{.after = "y = QuantizeLinear(t, r, o)", .constants = "uint8 z = {7}, uint8 o = {0}, float c = {2}"}.text()));
  const std::string contrib =
      "(float[2,3] x, bool[3] m) => (y) <float s = {0.5}, uint8 z = {7}, float c = {2}> { q = "
      "com.microsoft.QuantizeLinear(x, s, z)  d = com.microsoft.DequantizeLinear(q, s, z)  t = Where(m, d, c)  y = "
      "com.microsoft.QuantizeLinear(t, s, z) }";
  CHECK(has(basic(contrib), "c_dequantized = com.microsoft.DequantizeLinear (c_codes, c_scale, c_zero)"));
  CHECK(fires(Case{}.text(), {}, 10));  // the first version that quantizes
}

TEST_CASE("two Wheres of one number, and one in a branch") {
  const graph::Model both = basic(Case{.node = "t = Where(m, d, c)  u = Where(m, c, d)",
                                       .after = "y = QuantizeLinear(t, r, z)  w = QuantizeLinear(u, r, z)",
                                       .outputs = "y, w"}
                                      .text());
  CHECK(has(both, "t = Where (m, d, c_dequantized)"));
  CHECK(has(both, "u = Where (m, c_dequantized_19, d)"));
  const std::string branch =
      "(float[2,3] x, bool[3] m, bool on) => (y) <float s = {0.5}, uint8 z = {7}, float c = {2}> { q = "
      "QuantizeLinear(x, s, z)  y = If(on) <then_branch = a () => (u) { d = DequantizeLinear(q, s, z)  t = Where(m, d, "
      "c)  u = QuantizeLinear(t, s, z) }, else_branch = b () => (v) { v = Identity(q) }> }";
  CHECK(has(basic(branch), "t = Where (m, d, c_dequantized)"));
  graph::Model codes = parse(branch, 21);
  graph::adopt_constants(*codes.graph);
  optimize(codes, 2);
  CHECK(has(codes, "u = com.microsoft.QLinearWhere (m, q, s_1, z_1, c_codes, c_scale, c_zero, s_1, z_1)"));
}

TEST_CASE("where no unit comes of it") {
  const auto stays = [](const Case& c, std::int64_t opset = 21) { CHECK_FALSE(fires(c.text(), {}, opset)); };
  // The result has another reader, none that quantizes, or is an output.
  stays({.after = "y = QuantizeLinear(t, r, z)  w = Neg(t)", .outputs = "y, w"});
  stays({.after = "y = QuantizeLinear(t, r, z)  w = QuantizeLinear(t, s, z)", .outputs = "y, w"});
  stays({.after = "y = Neg(t)"});
  stays({.outputs = "y, t"});
  stays({.node = "t = Where(m, r, d)", .after = "u = Relu(t)  y = QuantizeLinear(u, r, z)"});
  // It is the scale of a QuantizeLinear.
  stays({.node = "w = Where(m, d, c)  t = ReduceMax<keepdims = 0>(w)", .after = "y = QuantizeLinear(x, t, z)"});
  // Codes behind it are of another type.
  stays({.after = "y = QuantizeLinear(t, r, o)", .constants = "uint8 z = {7}, int8 o = {7}, float c = {2}"});
  // The other value is no scalar, not constant, not dequantized, not of floats, or could be fed.
  stays({.constants = "uint8 z = {7}, float[1] c = {2}"});
  stays({.constants = "uint8 z = {7}, float[3] c = {1,2,3}"});
  stays({.constants = "uint8 z = {7}", .inputs = "float[2,3] x, bool[3] m, float c"});
  stays({.constants = "uint8 z = {7}", .inputs = "float[2,3] x, bool[3] m, float c = {2}"});
  stays({.node = "t = Where(m, x, c)"});
  stays({.node = "e = Neg(d)  t = Where(m, e, c)"});
  stays({.node = "t = Where(m, d, d)"});
  stays({.after = "y = QuantizeLinear(t, h, z)",
         .constants = "uint8 z = {7}, float16 h = {0.5}, float16 c = {2}",
         .dequantize = "d = DequantizeLinear(q, h, z)"});
  // A scale or a zero point is fed; codes are of a type that has no such Where.
  stays({.inputs = "float[2,3] x, bool[3] m, float f", .dequantize = "d = DequantizeLinear(q, f, z)"});
  stays({.inputs = "float[2,3] x, bool[3] m, float g",
         .dequantize = "f = Cast<to = 2>(g)  d = DequantizeLinear(q, s, f)"});
  stays({.constants = "float8e4m3fn z = {0}, float c = {2}"});
}

TEST_CASE("numbers that no code stands for") {
  for (const float value : {NAN, INFINITY, -INFINITY, 1e-40f}) {
    graph::Model model = parse(Case{}.text(), 21);
    graph::Graph& g = *model.graph;
    g.value(g.find_value("c")).constant = Value(Tensor::scalar(value));
    passes::PassOptions options = pass_options(1);
    options.keep_dequantizers = true;
    passes::run_basic(model, options);
    CHECK(has(model, "t = Where (m, d, c)"));
  }
}

TEST_CASE("it can be switched off, and is for files and level extended") {
  const std::string text = Case{}.text();
  CHECK_FALSE(fires(text, {kName}));
  // A run at level basic would only compute the constant again.
  CHECK(has(basic(text, {}, 21, false), "t = Where (m, d, c)"));
  graph::Model off = parse(text, 21);
  optimize(off, 2, {kName});
  CHECK(has(off, "t = Where (m, d, c)"));
  graph::Model units_off = parse(text, 21);
  optimize(units_off, 2, {"QDQSelectorActionTransformer"});
  CHECK(has(units_off, "t = Where (m, d, c)"));
}
