#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

TEST_CASE("equal constants are one, and so are the nodes that read them") {
  check_optimized(
      "(float[2] x) => (y) <float[1] a = {2}, float[1] b = {2}> { p = Pow(x, a)  q = Pow(x, b)  y = Sub(p, q) }", 1,
      "p = Pow (x, a)\ny = Sub (p, p)");
}

TEST_CASE("constants of another type, shape, sign of zero, or that can be fed stay apart") {
  check_unchanged(
      "(float[2] x) => (y) <float a = {2}, float[1] b = {2}> { p = Pow(x, a)  q = Pow(x, b)  y = Sub(p, q) }", 1);
  check_unchanged("(float[2] x) => (y) <float a = {2}, int32 b = {2}> { p = Pow(x, a)  q = Pow(x, b)  y = Sub(p, q) }",
                  1);
  check_unchanged(
      "(float[2] x) => (y) <float a = {0}, float b = {-0.0}> { p = Div(x, a)  q = Div(x, b)  y = Equal(p, q) }", 1);
  check_unchanged(
      "(float[2] x, float[1] b = {2}) => (y) <float[1] a = {2}> { p = Pow(x, a)  q = Pow(x, b)  y = Sub(p, q) }", 1);
}
