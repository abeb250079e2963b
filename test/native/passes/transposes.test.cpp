#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
/// A graph that begins with x in another order of axes, t, and ends with u turned back.
std::string between(const std::string& body, const char* constants = "float unused = {0}") {
  return "(float[N,3,4,5] x) => (y) <" + std::string(constants) + "> { t = Transpose<perm = [0,2,3,1]>(x)  " + body +
         "  y = Transpose<perm = [0,3,1,2]>(u) }";
}
}  // namespace

TEST_CASE("transposes on both sides of elementwise nodes go") {
  check_optimized(between("u = Relu(t)"), 1, "y = Relu (x)");
  check_optimized(between("a = Mul(t, c)  u = Sigmoid(a)", "float c = {3}"), 1,
                  "a_turned = Mul (x, c)\ny = Sigmoid (a_turned)");
  check_optimized(between("u = Add(t, c)", "float[3] c = {1, 2, 3}"), 1, "y = Add (x, c_turned)");
}

TEST_CASE("axes are said in the new order") {
  check_optimized(between("u = Softmax<axis = 3>(t)"), 1, "y = Softmax <axis = 1> (x)");
  check_optimized(between("a = Relu(t)  u = Concat<axis = -1>(t, a)"), 1,
                  "a_turned = Relu (x)\ny = Concat <axis = 1> (x, a_turned)");
  check_optimized(between("u = Pad(t, p)", "int64[8] p = {0, 1, 2, 0, 0, 3, 4, 0}"), 1, "y = Pad (x, p_turned)");
}

TEST_CASE("a sum of two transposed values is transposed once") {
  check_optimized(
      "(float[2,3,4] x, float[2,3,4] z) => (y) { a = Transpose<perm = [0,2,1]>(x)  b = Transpose<perm = [0,2,1]>(z)  "
      "y = Add(a, b) }",
      1, "y_turned = Add (x, z)\ny = Transpose <perm = [0, 2, 1]> (y_turned)");
}

TEST_CASE("transposes stay where as many would come as go, or a node minds the order") {
  check_unchanged("(float[2,3,4] x) => (y) { a = Transpose<perm = [0,2,1]>(x)  y = Relu(a) }", 1);
  check_unchanged(
      "(float[2,3,3] x) => (y) { a = Transpose<perm = [0,2,1]>(x)  b = MatMul(a, a)  "
      "y = Transpose<perm = [0,2,1]>(b) }",
      1);
}

TEST_CASE("a transpose that is its own inverse, within a region") {
  check_optimized("(float[3,3] x) => (y) { t = Transpose(x)  a = Relu(t)  b = Transpose(a)  y = Sub(a, b) }", 1,
                  "a_turned = Relu (x)\na = Transpose <perm = [1, 0]> (a_turned)\ny = Sub (a, a_turned)");
}

TEST_CASE("a constant takes any order when the model is loaded") {
  check_optimized(
      "(float[4,1,2] x) => (y) <float[2,4] c = {-1, 2, -2, 0, -1, 1, 1, -1}> { t = Transpose<perm = [2,1,0]>(x)  "
      "a = Add(t, c)  y = Transpose<perm = [2,1,0]>(a) }",
      1, "y = Add (x, c_turned)");
}
