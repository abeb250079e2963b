#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
std::string conv(const std::string& inputs, const std::string& rest) {
  return "(float[N,2,4,4] x" + inputs +
         ") => (y) <float[2,2,1,1] w = {1, -2, 3, 0.5}, float[2] b = {0.5, -1}, "
         "float lo = {0}, float hi = {6}, float root = {1.4142135}, float one = {1}, float half = {0.5}> { "
         "t = Conv<kernel_shape = [1, 1]>(x, w, b)  " +
         rest + " }";
}
std::string fused(const std::string& activation, const char* domain = "com.microsoft") {
  return std::string("y = ") + domain + ".FusedConv <activation = \"" + activation + "\", ";
}
}  // namespace

TEST_CASE("an activation goes into the convolution before it") {
  const std::string rest = "kernel_shape = [1, 1]> (x, w, b)";
  check_optimized(conv("", "y = Relu(t)"), 2, fused("Relu") + rest);
  check_optimized(conv("", "y = Sigmoid(t)"), 2, fused("Sigmoid") + rest);
  check_optimized(conv("", "y = Tanh(t)"), 2, fused("Tanh") + rest);
  check_optimized(conv("", "y = LeakyRelu<alpha = 0.25>(t)"), 2,
                  fused("LeakyRelu") + "activation_params = [0.25], " + rest);
  check_optimized(conv("", "y = HardSigmoid<alpha = 0.25>(t)"), 2,
                  fused("HardSigmoid") + "activation_params = [0.25, 0.5], " + rest);
  check_optimized(conv("", "y = Clip(t, lo, hi)"), 2, fused("Clip") + "activation_params = [0.0, 6.0], " + rest);
  check_optimized(conv("", "y = Clip(t, , hi)"), 2,
                  fused("Clip") + "activation_params = [-3.4028235e+38, 6.0], " + rest);
  check_optimized(conv("", "y = HardSwish(t)"), 2, fused("HardSwish", "infernode") + rest);
  check_optimized(conv("", "s = Sigmoid(t)  y = Mul(t, s)"), 2, fused("Silu", "infernode") + rest);
  check_optimized(conv("", "d = Div(t, root)  e = Erf(d)  s = Add(e, one)  u = Mul(t, s)  y = Mul(u, half)"), 2,
                  fused("Gelu", "infernode") + rest);
}

TEST_CASE("a sum, and the activation after it, go into the convolution") {
  check_optimized(conv(", float[N,2,4,4] z", "y = Add(z, t)"), 2,
                  "y = com.microsoft.FusedConv <kernel_shape = [1, 1]> (x, w, b, z)");
  check_optimized(conv(", float[N,2,4,4] z", "s = Add(t, z)  y = Relu(s)"), 2,
                  "y = com.microsoft.FusedConv <activation = \"Relu\", kernel_shape = [1, 1]> (x, w, b, z)");
  check_optimized(conv("", "s = Add(t, x)  y = Clip(s, lo, hi)"), 2,
                  "y = com.microsoft.FusedConv <activation = \"Clip\", activation_params = [0.0, 6.0], "
                  "kernel_shape = [1, 1]> (x, w, b, x)");
}

TEST_CASE("a convolution without a bias") {
  check_optimized(
      "(float[N,1,4,4] x) => (y) <float[2,1,3,3] w = {1,2,3,4,5,6,7,8,9,1,1,1,1,1,1,1,1,1}> "
      "{ t = Conv(x, w)  y = Relu(t) }",
      2, "y = com.microsoft.FusedConv <activation = \"Relu\"> (x, w)");
}

TEST_CASE("two convolutions that meet in a sum: one takes the other") {
  check_optimized(
      "(float[1,1,2,2] x) => (y) <float[1,1,1,1] w = {2}, float[1,1,1,1] v = {3}> { a = Conv(x, w)  "
      "b = Conv(x, v)  s = Add(a, b)  y = Relu(s) }",
      2, "b = Conv (x, v)\ny = com.microsoft.FusedConv <activation = \"Relu\"> (x, w, \"\", b)");
}

TEST_CASE("what cannot go into a convolution stays") {
  SUBCASE("the result has another reader") { check_unchanged(conv("", "r = Relu(t)  y = Mul(r, t)"), 2); }
  SUBCASE("a sum that broadcasts") { check_unchanged(conv(", float[N,1,4,4] z", "y = Add(t, z)"), 2); }
  SUBCASE("a sum with a batch that may differ") { check_unchanged(conv(", float[M,2,4,4] z", "y = Add(t, z)"), 2); }
  SUBCASE("a sum with itself") { check_unchanged(conv("", "y = Add(t, t)"), 2); }
  SUBCASE("limits that are fed") { check_unchanged(conv(", float z", "y = Clip(t, z, hi)"), 2); }
  SUBCASE("another activation") { check_unchanged(conv("", "y = Elu(t)"), 2); }
  SUBCASE("float64") {
    check_unchanged("(double[1,1,2,2] x, double[1,1,1,1] w) => (y) { t = Conv(x, w)  y = Relu(t) }", 2);
  }
  SUBCASE("a sum after an activation") {
    check_optimized(
        conv("", "r = Relu(t)  y = Add(r, x)"), 2,
        "r = com.microsoft.FusedConv <activation = \"Relu\", kernel_shape = [1, 1]> (x, w, b)\ny = Add (r, x)");
  }
  SUBCASE("a second activation") {
    check_optimized(
        conv("", "r = Relu(t)  y = Tanh(r)"), 2,
        "r = com.microsoft.FusedConv <activation = \"Relu\", kernel_shape = [1, 1]> (x, w, b)\ny = Tanh (r)");
  }
}
