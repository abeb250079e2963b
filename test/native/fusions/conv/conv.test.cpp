#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
/// A convolution over 2 channels giving 2, with constants of its own, and what follows it.
std::string conv(const std::string& constants, const std::string& rest, const std::string& bias = "") {
  return "(float[N,2,5,5] x) => (y) <float[2,2,3,3] w = {"
         "1,2,3,4,5,6,7,8,9,1,0,1,0,1,0,1,0,1,-1,-2,-3,-4,-5,-6,-7,-8,-9,2,1,2,1,2,1,2,1,2}, float[2] b = {0.5, -1}" +
         constants + "> { t = Conv(x, w" + bias + ")  " + rest + " }";
}
constexpr const char* kNorm =
    ", float[2] scale = {2, 0.5}, float[2] shift = {1, -1}, float[2] mean = {0.1, 0.2}, float[2] var = {4, 0.25}";
}  // namespace

TEST_CASE("a batch normalization goes into the convolution before it") {
  check_optimized(conv(kNorm, "y = BatchNormalization(t, scale, shift, mean, var)"), 1,
                  "y = Conv (x, w_fused, w_bias_fused)");
  check_optimized(conv(kNorm, "y = BatchNormalization<epsilon = 0.01>(t, scale, shift, mean, var)", ", b"), 1,
                  "y = Conv (x, w_fused, w_bias_fused)");
}

TEST_CASE("a batch normalization stays where it cannot be folded") {
  SUBCASE("the convolution's result is read elsewhere too") {
    check_unchanged(conv(kNorm, "z = BatchNormalization(t, scale, shift, mean, var)  y = Mul(z, t)"), 1);
  }
  SUBCASE("it trains") {
    graph::Model model =
        parse(conv(kNorm, "y, m, v = BatchNormalization<training_mode = 1>(t, scale, shift, mean, var)"));
    CHECK(optimize(model, 1).empty());
  }
  SUBCASE("a parameter is fed") {
    check_unchanged(
        "(float[1,2,3,3] x, float[2] s) => (y) <float[2,2,1,1] w = {1,2,3,4}, float[2] p = {1,2}>"
        "{ t = Conv(x, w)  y = BatchNormalization(t, s, p, p, p) }",
        1);
  }
  SUBCASE("the weight can be overridden") {
    check_unchanged(
        "(float[1,2,3,3] x, float[2,2,1,1] w = {1,2,3,4}) => (y) <float[2] p = {1,2}>"
        "{ t = Conv(x, w)  y = BatchNormalization(t, p, p, p, p) }",
        1);
  }
  SUBCASE("float64") {
    check_unchanged(
        "(double[1,2,3,3] x) => (y) <double[2,2,1,1] w = {1,2,3,4}, double[2] p = {1,2}>"
        "{ t = Conv(x, w)  y = BatchNormalization(t, p, p, p, p) }",
        1);
  }
}

TEST_CASE("a constant per channel is added to or multiplied into a convolution") {
  check_optimized(conv(", float[2,1,1] k = {3, 4}", "y = Add(t, k)"), 1, "y = Conv (x, w_fused, w_bias_fused)");
  check_optimized(conv(", float[1,2,1,1] k = {3, 4}", "y = Add(k, t)", ", b"), 1,
                  "y = Conv (x, w_fused, w_bias_fused)");
  check_optimized(conv(", float k = {3}", "y = Mul(t, k)"), 1, "y = Conv (x, w_fused, w_bias_fused)");
  check_optimized(conv(", float[2,1,1] k = {3, 4}", "y = Mul(t, k)", ", b"), 1, "y = Conv (x, w_fused, w_bias_fused)");
}

TEST_CASE("a convolution's name and provenance survive") {
  graph::Model model = parse(
      "(float[1,1,3,3] x) => (y) <float[1,1,1,1] w = {2}, float k = {3}>"
      "{ [\"conv\"] t = Conv(x, w)  [\"times\"] y = Mul(t, k) }");
  CHECK(optimize(model, 1) == std::vector<std::string>{"ConvMulFusion"});
  const graph::Node& node = model.graph->node(model.graph->value(model.graph->outputs()[0]).producer);
  CHECK(node.name == "conv");
  CHECK(node.provenance == std::vector<std::string>{"conv", "times"});
}

TEST_CASE("constants that are not one per channel stay") {
  check_unchanged(conv(", float[3] k = {1, 2, 3}", "y = Add(t, k)"), 1);          // along the width
  check_unchanged(conv(", float[2,3,1] k = {1,2,3,4,5,6}", "y = Mul(t, k)"), 1);  // along the height too
  check_unchanged(conv(", float[1,1,2,1,1] k = {1,2}", "y = Mul(t, k)"), 1);      // raises the rank
}

TEST_CASE("a constant that an attribute aligns with other dims stays") {
  graph::Model model = parse(
      "(float[2,1,2,2] x) => (y) <float[2,1,1,1] w = {1, 2}, float[2,1,1] k = {3, 4}> { t = Conv(x, w)  "
      "y = Add<axis = 0, broadcast = 1>(t, k) }",
      6);
  CHECK(optimize(model, 1).empty());
}

TEST_CASE("padding with zeros goes into the convolution after it") {
  const std::string head = "(float[1,1,3,3] x) => (y) <float[1,1,3,3] w = {1,2,3,4,5,6,7,8,9}, float[1] b = {1}, ";
  check_optimized(head + "int64[8] p = {0,0,1,2,0,0,3,0}> { t = Pad(x, p)  y = Conv<pads = [1,0,0,1]>(t, w) }", 1,
                  "y = Conv <pads = [2, 2, 3, 1]> (x, w)");
  check_optimized(head + "int64[8] p = {0,0,1,1,0,0,1,1}, float z = {0}> { t = Pad(x, p, z)  y = Conv(t, w, b) }", 1,
                  "y = Conv <pads = [1, 1, 1, 1]> (x, w, b)");
}

TEST_CASE("padding of some axes") {
  const std::string head = "(float[1,1,3,3] x) => (y) <float[1,1,3,3] w = {1,2,3,4,5,6,7,8,9}, int64[2] p = {1,2}, ";
  check_optimized(head + "int64[1] a = {-1}> { t = Pad(x, p, , a)  y = Conv(t, w) }", 1,
                  "y = Conv <pads = [0, 1, 0, 2]> (x, w)", 18);
  check_optimized(head + "int64[1] a = {2}> { t = Pad(x, p, , a)  y = MaxPool<kernel_shape = [3,3]>(t) }", 1,
                  "t = Pad (x, p, \"\", a)\ny = MaxPool <kernel_shape = [3, 3]> (t)", 18);  // zeros may be the largest
  check_unchanged(head + "int64[1] a = {1}> { t = Pad(x, p, , a)  y = AveragePool<kernel_shape = [3,3]>(t) }", 1, 18);
}

TEST_CASE("other padding stays") {
  const std::string head = "(float[1,2,3,3] x) => (y) <float[1,2,3,3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}, ";
  check_unchanged(head + "int64[8] p = {0,0,1,1,0,0,1,1}, float z = {1}> { t = Pad(x, p, z)  y = Conv(t, w) }", 1);
  check_unchanged(head + "int64[8] p = {0,0,1,1,0,0,1,1}> { t = Pad<mode = \"edge\">(x, p)  y = Conv(t, w) }", 1);
  check_unchanged(head + "int64[8] p = {1,0,0,0,0,0,0,0}> { t = Pad(x, p)  y = Conv(t, w) }", 1);
  check_unchanged(head + "int64[8] p = {0,0,0,0,0,0,1,1}> { t = Pad(x, p)  y = Conv<auto_pad = \"SAME_UPPER\">(t, w) }",
                  1);
}
