#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
std::string pairs(const char* t, const char* v, const char* outputs = "y") {
  return cat("(float[N] x) => (", outputs, ") <float s = {0.1}, uint8 z = {128}, float t = {", t, "}, uint8 v = {", v,
             "}> { q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  p = QuantizeLinear(d, t, v)  "
             "y = DequantizeLinear(p, t, v) }");
}
}  // namespace

TEST_CASE("quantizing twice in the same way") {
  check_optimized(pairs("0.1", "128"), 1, "q = QuantizeLinear (x, s, z)\ny = DequantizeLinear (q, s, z)");
}

TEST_CASE("quantizing twice in two ways, or with a reader between") {
  check_unchanged(pairs("0.2", "127"), 1);
  check_optimized(pairs("0.1", "127"), 1,
                  "q = QuantizeLinear (x, s, z)\nd = DequantizeLinear (q, s, z)\np = QuantizeLinear (d, s, v)\n"
                  "y = DequantizeLinear (p, s, v)");
}

TEST_CASE("what others read between stays for them") {
  check_optimized(pairs("0.1", "128", "y, d"), 1,
                  "q = QuantizeLinear (x, s, z)\nd = DequantizeLinear (q, s, z)\ny = DequantizeLinear (q, s, z)");
}

TEST_CASE("every code of 8 and 16 bits comes back, by any scale") {
  for (const char* type : {"uint8", "int8", "uint16", "int16"}) {
    for (const char* scale : {"0.1", "3.7e-5", "123.4567", "1e-20"}) {
      const std::string text = cat("(float[N] x) => (y) <float s = {", scale, "}, ", type,
                                   " z = {37}> { q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  "
                                   "p = QuantizeLinear(d, s, z)  y = DequantizeLinear(p, s, z) }");
      CAPTURE(text);
      const graph::Model before = parse(text, 21);
      graph::Model after = parse(text, 21);
      CHECK(optimize(after, 1) == std::vector<std::string>{"DoubleQDQPairsRemover"});
      const Tensor x = Tensor::make(DType::Float32, Shape{1 << 17});
      for (int i = 0; i < 1 << 17; ++i)
        x.mutable_data<float>()[i] = static_cast<float>(i - (1 << 16)) * std::strtof(scale, nullptr);
      check_same(evaluate(*after.graph, {Value(x)}), evaluate(*before.graph, {Value(x)}), 0);
    }
  }
}

TEST_CASE("scales near the ends of float's range, and codes of other types, stay") {
  check_unchanged(
      "(float[N] x) => (y) <float s = {1e-38}> { q = QuantizeLinear(x, s)  d = DequantizeLinear(q, s)  "
      "y = QuantizeLinear(d, s) }",
      1);
  graph::Model model = parse(
      "(float[4] x) => (y) <float s = {0.5}, int4 z = {1}> { q = QuantizeLinear(x, s, z)  "
      "d = DequantizeLinear(q, s, z)  p = QuantizeLinear(d, s, z)  y = DequantizeLinear(p, s, z) }",
      21);
  CHECK(optimize(model, 1).empty());
}
