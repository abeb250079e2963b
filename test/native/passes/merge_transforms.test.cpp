#include <numbers>

#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

/// Cosines or sines of a transform of length 64, 10 bins, in text form.
std::string rows(const char* name, bool sine, double sign = 1) {
  std::string out = cat("float[10,1,64] ", name, " = {");
  for (int k = 0; k < 10; ++k) {
    for (int n = 0; n < 64; ++n) {
      const double angle = 2 * std::numbers::pi * k * n / 64;
      out += cat(k + n == 0 ? "" : ", ", static_cast<float>(sign * (sine ? std::sin(angle) : std::cos(angle))));
    }
  }
  return out + "}";
}

void check(const std::string& body, bool merges, std::int64_t opset = 17) {
  for (const double sign : {1.0, -1.0}) {
    const std::string text =
        cat("(float[N,1,400] x) => (y) <", rows("c", false), ", ", rows("s", true, sign), "> { ", body, " }");
    const graph::Model before = parse(text, opset);
    graph::Model after = parse(text, opset);
    const auto applied = optimize(after, 2, {"ConstantFolding"});
    CHECK((std::find(applied.begin(), applied.end(), "ConvDftMerge") != applied.end()) == merges);
    const std::vector<Value> inputs = feeds(*before.graph);
    check_same(evaluate(*after.graph, inputs), evaluate(*before.graph, inputs), 1e-4);
  }
}

}  // namespace

TEST_CASE("convolutions by cosines and sines become one") {
  check("a = Conv<strides = [16]>(x, c)  b = Conv<strides = [16]>(x, s)  y = Sub(a, b)", true);
  check("b = Conv<pads = [3, 3]>(x, s)  a = Conv<pads = [3, 3]>(x, c)  y = Sub(a, b)", true);
  check("b = Conv(x, s)  a = Conv(x, c)  y = Sub(a, b)", true, 11);
  check(
      "a = Conv<strides = [16]>(x, c)  b = Conv<strides = [8]>(x, s)  u = ReduceSum(a)  v = ReduceSum(b)  y = Sub(u, "
      "v)",
      false);
  check("z = Neg(x)  a = Conv(x, c)  b = Conv(z, s)  y = Sub(a, b)", false);
}
