#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
constexpr const char* kConstants =
    "float three = {3}, float lo = {0}, float six = {6}, float[1] sixth = {0.16666667}, "
    "float[1,1,1,1,1] wide = {6}";
std::string over(const std::string& body) { return cat("(float[N,5] x) => (y) <", kConstants, "> { ", body, " }"); }
std::string after_conv(const std::string& body) {
  return cat("(float[N,2,4,4] x) => (y) <float[2,2,1,1] w = {1, -2, 3, 0.5}, float[2] b = {0.5, -1}, ", kConstants,
             "> { t = Conv<kernel_shape = [1, 1]>(x, w, b)  ", body, " }");
}
const char* const kProducts[] = {"m = Mul(T, k)  y = Div(m, six)", "d = Div(k, six)  y = Mul(d, T)",
                                 "m = Mul(k, T)  y = Mul(sixth, m)", "d = Mul(k, sixth)  y = Mul(T, d)"};
std::string of(std::string text, char value) {
  std::replace(text.begin(), text.end(), 'T', value);
  return text;
}
}  // namespace

TEST_CASE("HardSwish in pieces is one operator where the standard has it") {
  for (const char* product : kProducts) {
    const std::string pieces = over("a = Add(three, x)  k = Clip(a, lo, six)  " + of(product, 'x'));
    check_optimized(pieces, 1, "y = HardSwish (x)", 14);
    check_unchanged(pieces, 2, 13);
  }
}

TEST_CASE("HardSwish in pieces goes into the convolution before it") {
  for (const std::int64_t opset : {11, 17}) {
    for (const char* product : kProducts) {
      check_optimized(after_conv("a = Add(t, three)  k = Clip(a, lo, six)  " + of(product, 't')), 2,
                      "y = infernode.FusedConv <activation = \"HardSwish\", kernel_shape = [1, 1]> (x, w, b)", opset);
    }
  }
}

TEST_CASE("what only looks like HardSwish stays") {
  check_unchanged(over("a = Add(x, six)  k = Clip(a, lo, six)  m = Mul(x, k)  y = Div(m, six)"), 2);
  check_unchanged(over("a = Add(x, three)  k = Clip(a, lo)  m = Mul(x, k)  y = Div(m, six)"), 2);
  check_unchanged(over("a = Add(x, three)  k = Clip(a, lo, six)  m = Mul(x, k)  y = Div(m, three)"), 2);
  check_unchanged(over("a = Add(x, three)  k = Clip(a, lo, six)  m = Mul(x, k)  y = Div(m, wide)"), 2);
  check_unchanged(over("a = Add(x, three)  k = Clip(a, lo, six)  m = Mul(a, k)  y = Div(m, six)"), 2);
}
