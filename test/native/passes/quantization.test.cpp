// Quantizing and dequantizing that move past what only moves elements.
#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
/// x, float[2,2,4,4], quantized; then the statements.
std::string quantized(const std::string& statements, const std::string& outputs = "y",
                      const std::string& type = "uint8", const std::string& zero = "7") {
  return cat(
      "(float[2,2,4,4] x) => (", outputs, ") <float s = {0.03125}, float r = {0.0625}, ", type, " z = {", zero,
      "}, int64[2] two = {4,16}, int64[1] b = {1}, int64[1] e = {3}, int64[1] a = {2}, int64[1] t = {2}, "
      "int64[4] wide = {2,2,4,4}, int64[2] i = {1,0}, float[2] each = {0.5,0.25}> { q = QuantizeLinear(x, s, z)  ",
      statements, " }");
}
/// Bit for bit the same.
void becomes(const std::string& text, const std::string& expected, std::int64_t opset = 21) {
  check_optimized(text, 1, expected, opset, 0);
}
/// The nodes, the order of which there may be several, after level basic.
std::string after(const std::string& text, std::int64_t opset = 21) {
  graph::Model model = parse(text, opset);
  optimize(model, 1);
  return nodes(*model.graph);
}
}  // namespace

TEST_CASE("elements are moved before they are dequantized") {
  for (const char* type : {"uint8", "int8", "uint16", "int16"}) {
    becomes(quantized("d = DequantizeLinear(q, s, z)  m = Transpose<perm = [0,2,3,1]>(d)  y = Softmax(m)", "y", type),
            "q = QuantizeLinear (x, s, z)\nm_codes = Transpose <perm = [0, 2, 3, 1]> (q)\n"
            "m = DequantizeLinear (m_codes, s, z)\ny = Softmax (m)");
  }
  becomes(quantized("d = DequantizeLinear(q, s, z)  m = Slice(d, b, e, a)  y = Softmax(m)"),
          "q = QuantizeLinear (x, s, z)\nm_codes = Slice (q, b, e, a)\nm = DequantizeLinear (m_codes, s, z)\n"
          "y = Softmax (m)");
  becomes(
      quantized("d = DequantizeLinear(q, s, z)  m = MaxPool<kernel_shape = [2,2], strides = [2,2]>(d)  y = Softmax(m)"),
      "q = QuantizeLinear (x, s, z)\nm_codes = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (q)\n"
      "m = DequantizeLinear (m_codes, s, z)\ny = Softmax (m)");
  becomes(quantized("d = DequantizeLinear(q, s, z)  m = Gather<axis = 1>(d, i)  y = Softmax(m)"),
          "q = QuantizeLinear (x, s, z)\nm_codes = Gather <axis = 1> (q, i)\nm = DequantizeLinear (m_codes, s, z)\n"
          "y = Softmax (m)");
}

TEST_CASE("what is quantized again as it was needs no floats") {
  for (const char* op : {"Reshape(d, two)", "Flatten(d)", "Unsqueeze(d, a)", "Transpose<perm = [3,2,1,0]>(d)",
                         "Slice(d, b, e, a)", "Gather<axis = 3>(d, i)", "Tile(d, wide)",
                         "MaxPool<kernel_shape = [3,3], pads = [1,1,1,1]>(d)", "DepthToSpace<blocksize = 1>(d)"}) {
    const std::string text = quantized(cat("d = DequantizeLinear(q, s, z)  m = ", op,
                                           "  p = QuantizeLinear(m, s, z)  f = DequantizeLinear(p, s, z)  y = Neg(f)"));
    CAPTURE(text);
    graph::Model before = parse(text, 21), model = parse(text, 21);
    optimize(model, 1);
    const std::string now = nodes(*model.graph);
    CHECK(now.find("DequantizeLinear") == now.rfind("DequantizeLinear"));
    CHECK(now.find(" QuantizeLinear") == now.rfind(" QuantizeLinear"));
    const std::vector<Value> inputs = feeds(*before.graph);
    check_same(evaluate(*model.graph, inputs), evaluate(*before.graph, inputs), 0);
  }
}

TEST_CASE("a dequantizer with other readers stays for them") {
  becomes(quantized("d = DequantizeLinear(q, s, z)  m = Transpose<perm = [1,0,2,3]>(d)  y = Sub(m, d)"),
          "q = QuantizeLinear (x, s, z)\nd = DequantizeLinear (q, s, z)\nm = Transpose <perm = [1, 0, 2, 3]> (d)\n"
          "y = Sub (m, d)");
  // Where the branch ends in codes again it does without.
  becomes(quantized("d = DequantizeLinear(q, s, z)  m = MaxPool<kernel_shape = [2,2]>(d)  y = QuantizeLinear(m, s, z)  "
                    "u = Softmax(d)",
                    "y, u"),
          "q = QuantizeLinear (x, s, z)\nd = DequantizeLinear (q, s, z)\nu = Softmax (d)\n"
          "y = MaxPool <kernel_shape = [2, 2]> (q)");
}

TEST_CASE("elements are quantized before they are moved") {
  becomes(
      "(float[2,3,4] x) => (y) <float s = {0.125}, int8 z = {3}> { e = Exp(x)  m = Transpose<perm = [2,0,1]>(e)  "
      "y = QuantizeLinear(m, s, z) }",
      "e = Exp (x)\ne_codes = QuantizeLinear (e, s, z)\ny = Transpose <perm = [2, 0, 1]> (e_codes)");
  becomes(
      "(float[1,4] x) => (y) <float s = {0.125}, int64[2] n = {3,4}> { e = Exp(x)  m = Expand(e, n)  "
      "y = QuantizeLinear(m, s) }",
      "e = Exp (x)\ne_codes = QuantizeLinear (e, s)\ny = Expand (e_codes, n)");
}

TEST_CASE("scales of an axis follow it through a transpose") {
  const std::string text =
      "(float[2,3] x) => (y) <float[3] s = {0.5,0.25,1}, int8[3] z = {1,2,3}> { q = QuantizeLinear<axis = -1>(x, s, z) "
      " "
      "d = DequantizeLinear<axis = -1>(q, s, z)  m = Transpose<perm = [1,0]>(d)  y = Exp(m) }";
  becomes(text,
          "q = QuantizeLinear <axis = -1> (x, s, z)\nm_codes = Transpose <perm = [1, 0]> (q)\n"
          "m = DequantizeLinear <axis = 0> (m_codes, s, z)\ny = Exp (m)");
}

TEST_CASE("what is not exact, or would be more work, stays") {
  const auto stays = [](const std::string& text, std::int64_t opset = 21,
                        const std::map<std::string, std::int64_t>& symbols = {}) {
    CAPTURE(text);
    check_optimized(text, 1, "", opset, 0, symbols);
  };
  // Scales of an axis that a reshape takes apart.
  stays(
      "(float[2,6] x) => (y) <float[2] s = {0.5,0.25}, int64[3] n = {3,2,2}> { q = QuantizeLinear<axis = 0>(x, s)  "
      "d = DequantizeLinear<axis = 0>(q, s)  m = Reshape(d, n)  y = Exp(m) }");
  // A window's largest code is of its channel's scale, which codes alone do not know.
  stays(
      "(float[1,2,4,4] x) => (y) <float[2] s = {0.5,0.25}> { q = QuantizeLinear<axis = 1>(x, s)  "
      "d = DequantizeLinear<axis = 1>(q, s)  m = MaxPool<kernel_shape = [2,2]>(d)  y = Exp(m) }");
  // More elements than before.
  stays(quantized("d = DequantizeLinear(q, s, z)  m = Tile(d, wide)  y = Exp(m)"));
  // Quantized in another way.
  stays(quantized("d = DequantizeLinear(q, s, z)  m = Exp(d)  y = QuantizeLinear(m, r, z)"));
  // A pool's places, windows past the end, 16 bits, and codes before pools knew them.
  stays(quantized("d = DequantizeLinear(q, s, z)  y, k = MaxPool<kernel_shape = [2,2]>(d)", "y, k"));
  stays(
      quantized("d = DequantizeLinear(q, s, z)  m = MaxPool<ceil_mode = 1, kernel_shape = [3,3], strides = [2,2]>(d)  "
                "y = Exp(m)"));
  stays(quantized("d = DequantizeLinear(q, s, z)  m = MaxPool<kernel_shape = [2,2]>(d)  y = Exp(m)", "y", "int16"));
  stays(quantized("d = DequantizeLinear(q, s, z)  m = MaxPool<kernel_shape = [2,2]>(d)  y = Exp(m)"), 11);
  // Quantizing before a pool or a slice is more work, and of NaN not the same.
  stays(
      "(float[1,2,4,4] x) => (y) <float s = {0.125}> { e = Exp(x)  m = MaxPool<kernel_shape = [2,2]>(e)  "
      "y = QuantizeLinear(m, s) }");
  stays(
      "(float[4] x) => (y) <float s = {0.125}, int64[1] b = {1}, int64[1] n = {3}> { e = Exp(x)  "
      "m = Slice(e, b, n)  y = QuantizeLinear(m, s) }");
  // Floats that are read, or given out.
  stays("(float[2,4] x) => (y, m) <float s = {0.125}> { e = Exp(x)  m = Transpose(e)  y = QuantizeLinear(m, s) }");
  // Scales that are fed may be of any shape.
  stays(
      "(float[2,4] x, float[K] s) => (y) <int64[2] n = {4,2}> { q = QuantizeLinear<axis = 0>(x, s)  "
      "d = DequantizeLinear<axis = 0>(q, s)  m = Reshape(d, n)  y = Exp(m) }",
      21, {{"K", 2}});
}

TEST_CASE("a scale that is fed to all elements moves too") {
  CHECK(after("(float[2,4] x, float s) => (y) { q = QuantizeLinear(x, s)  d = DequantizeLinear(q, s)  "
              "m = Transpose<perm = [1,0]>(d)  y = Exp(m) }") ==
        "q = QuantizeLinear (x, s)\nm_codes = Transpose <perm = [1, 0]> (q)\nm = DequantizeLinear (m_codes, s)\n"
        "y = Exp (m)");
}

namespace {
/// The nodes after level extended, which drops what is quantized and dequantized.
std::string cleaned(const std::string& statements, const std::string& outputs = "y") {
  const std::string text = cat(
      "(float[2,3] x, uint8[2,3] c, float v) => (", outputs,
      ") <float s = {0.5}, float t = {0.5}, float r = {0.25}, uint8 z = {3}, uint8 u = {4}, float[3] e = {1,2,3}> { ",
      statements, " }");
  CAPTURE(text);
  graph::Model model = parse(text, 21), kept = parse(text, 21);
  passes::PassOptions options = pass_options(2);
  passes::run_basic(kept, options);
  passes::run_extended(kept, "", options);
  options.enabled.emplace("QDQFinalCleanupTransformer");
  passes::run_basic(model, options);
  passes::run_extended(model, "", options);
  graph::verify(*model.graph);
  const std::string before = nodes(*kept.graph), after = nodes(*model.graph);
  return before == after ? "" : after;
}
}  // namespace

TEST_CASE("what is quantized and dequantized goes where it is asked for") {
  const std::string pair = "a = Exp(x)  q = QuantizeLinear(a, s, z)  d = DequantizeLinear(q, s, z)  ";
  CHECK(cleaned(cat(pair, "y = Log(d)")) == "a = Exp (x)\ny = Log (a)");
  CHECK(cleaned(cat(pair, "y = Log(d)  w = Cos(d)"), "y, w") == "a = Exp (x)\ny = Log (a)\nw = Cos (a)");
  CHECK(cleaned("q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, t, z)  y = Log(d)") == "y = Log (x)");
  CHECK(cleaned("a = Exp(x)  q = QuantizeLinear(a, s, z)  y = DequantizeLinear(q, s, z)") == "y = Exp (x)");
  CHECK(cleaned("q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z)") == "y = Identity (x)");

  CHECK(cleaned(cat(pair, "y = Log(d)"), "y, q").empty());
  CHECK(cleaned(cat(pair, "y = Log(d)  w = Cast<to = 6>(q)"), "y, w").empty());
  for (const char* other : {"r, z", "s, u", "e", "v, z"}) {
    CHECK(cleaned(cat("a = Exp(x)  q = QuantizeLinear(a, s, z)  d = DequantizeLinear(q, ", other, ")  y = Log(d)"))
              .empty());
  }
  CHECK(cleaned("a = Exp(x)  q = QuantizeLinear(a, v, z)  d = DequantizeLinear(q, v, z)  y = Log(d)").empty());
}

TEST_CASE("what stands between codes on both sides keeps them") {
  const std::string pair = "a = Exp(x)  q = QuantizeLinear(a, s, z)  d = DequantizeLinear(q, s, z)  ";
  CHECK(cleaned(cat(pair, "g = Sigmoid(d)  y = QuantizeLinear(g, r, z)")).empty());
  CHECK(cleaned(cat(pair, "g = Sigmoid(d)  p = QuantizeLinear(g, r, z)  y = DequantizeLinear(p, r, z)")).empty());
  CHECK(cleaned("f = DequantizeLinear(c, r, z)  g = Sigmoid(f)  q = QuantizeLinear(g, s, z)  "
                "d = DequantizeLinear(q, s, z)  y = Log(d)")
            .empty());
  CHECK(cleaned(cat(pair, "h = Transpose(d)  y = MatMul(d, h)")).empty());
}
