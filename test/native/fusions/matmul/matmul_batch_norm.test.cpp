#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
std::string norm(const std::string& x, const std::string& nodes, const std::string& outputs = "y") {
  return "(float[" + x + "] x) => (" + outputs +
         ") <float[2,3] w = {1, 2, 3, 4, 5, 6}, float[3] s = {1, -2, 3}, float[3] b = {1, 0, 2}, "
         "float[3] m = {0.5, 1, -1}, float[3] v = {1, 4, 0.25}> { " +
         nodes + " }";
}
}  // namespace

TEST_CASE("batch normalization of a product's columns") {
  check_optimized(norm("N,2", "t = MatMul(x, w)  y = BatchNormalization(t, s, b, m, v)"), 1,
                  "y = Gemm (x, w_fused, w_bias_fused)", 17, 1e-4);
  check_optimized(
      norm("N,5,2", "t = MatMul(x, w)  u = Transpose<perm = [0,2,1]>(t)  y = BatchNormalization(u, s, b, m, v)"), 1,
      "t = MatMul (x, w_fused)\nt_sum = Add (t, w_bias_fused)\ny = Transpose <perm = [0, 2, 1]> (t_sum)", 17, 1e-4);
}

TEST_CASE("batch normalization of a product that is reshaped") {
  const auto shaped = [](const std::string& dims, const std::string& x, const std::string& statements,
                         const std::string& outputs = "y") {
    std::string text = norm(x, statements, outputs);
    return text.insert(text.find("float[2,3] w"), cat("int64[", dims.substr(0, 1), "] d = {", dims.substr(2), "}, "));
  };
  const std::string last = "  y = BatchNormalization(r, s, b, m, v)";
  check_optimized(shaped("4:-1,3,1,1", "N,2", "t = MatMul(x, w)  r = Reshape(t, d)" + last), 1,
                  "t_sum = Gemm (x, w_fused, w_bias_fused)\ny = Reshape (t_sum, d)", 17, 1e-4);
  check_optimized(shaped("3:2,2,3", "4,2",
                         "t = MatMul(x, w)  r = Reshape(t, d)  u = Transpose<perm = [0,2,1]>(r)  "
                         "y = BatchNormalization(u, s, b, m, v)"),
                  1,
                  "t_sum = Gemm (x, w_fused, w_bias_fused)\nr = Reshape (t_sum, d)\n"
                  "y = Transpose <perm = [0, 2, 1]> (r)",
                  17, 1e-4);
  // Channels that are not columns, and a value that is read between.
  check_unchanged(shaped("3:2,3,2", "4,2", "t = MatMul(x, w)  r = Reshape(t, d)" + last), 1);
  check_unchanged(shaped("4:-1,3,1,1", "N,2", "t = MatMul(x, w)  r = Reshape(t, d)" + last, "y, r"), 1);
}

TEST_CASE("batch normalization of anything else stays") {
  check_unchanged(norm("N,3,2", "t = MatMul(x, w)  y = BatchNormalization(t, s, b, m, v)"), 1);
  check_unchanged(norm("N,2", "t = MatMul(x, w)  y = BatchNormalization(t, s, b, m, v)", "y, t"), 1);
  check_unchanged(
      norm("3,N,2", "t = MatMul(x, w)  u = Transpose<perm = [1,0,2]>(t)  y = BatchNormalization(u, s, b, m, v)"), 1);
}
