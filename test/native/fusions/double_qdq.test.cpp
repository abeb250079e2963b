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
  check_optimized(pairs("0.1", "128", "y, d"), 1,
                  "q = QuantizeLinear (x, s, z)\nd = DequantizeLinear (q, s, z)\np = QuantizeLinear (d, s, z)\n"
                  "y = DequantizeLinear (p, s, z)");
}
