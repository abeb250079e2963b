#include "ops/op_test.h"
#include "ops/written_cases.h"

namespace infernode::test {
namespace {

const std::string kHeader = "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g ";

const EdgeCases edges(R"(
BiasSoftmax | no elements | 17 | 1e-05
y0 = com.microsoft.BiasSoftmax<axis=2, is_inner_broadcast=0>(x, b)
float[2,0,3] x = {}, float[3] b = {1, 2, 3}
float[2,0,3] y0 = {}

BiasSoftmax | a bias of rank 0 | 17 | 1e-05
y0 = com.microsoft.BiasSoftmax<axis=0, is_inner_broadcast=0>(x, b)
float[2] x = {0, 1}, float b = {5}
float[2] y0 = {0.26894143, 0.73105857}

BiasAdd | no elements | 17 | 1e-05
y0 = com.microsoft.BiasAdd(x, b, s)
float[1,0,2] x = {}, float[2] b = {1, 2}, float[1,0,2] s = {}
float[1,0,2] y0 = {}

BiasAdd | rank 0 | 17 | 1e-05
y0 = com.microsoft.BiasAdd(x, b, s)
float x = {1}, float b = {2}, float s = {3}
float y0 = {6}

BiasSplitGelu | no elements | 17 | 1e-05
y0 = com.microsoft.BiasSplitGelu(x, b)
float[0,4] x = {}, float[4] b = {1, 2, 3, 4}
float[0,2] y0 = {}

BiasSplitGelu | a bias of rank 0 | 17 | 1e-05
y0 = com.microsoft.BiasSplitGelu(x, b)
float[1,2] x = {1, 0}, float b = {1}
float[1,1] y0 = {1.6826895}
)");

TEST_CASE("BiasSoftmax is the softmax of all axes from one on, of a sum") {
  const Tensor x = f32({1, 2, 2}, {0, 1, 2, 3}), bias = f32({1, 1, 2}, {1, -1});
  // Sums: 1 0, 3 2.
  check_op(cat(kHeader,
               "(float[A,B,C] X, float[D,E,F] S) => (Y) {"
               " Y = com.microsoft.BiasSoftmax<axis=2, is_inner_broadcast=0>(X, S) }"),
           17, {x, bias}, {f32({1, 2, 2}, {0.7310586f, 0.2689414f, 0.7310586f, 0.2689414f})});
  check_op(cat(kHeader, "(X, S) => (Y) { Y = com.microsoft.BiasSoftmax<is_inner_broadcast=1>(X, S) }"), 17, {x, bias},
           {f32({1, 2, 2}, {0.0871443f, 0.0320586f, 0.6439143f, 0.2368828f})});
}

TEST_CASE("BiasAdd adds three tensors") {
  check_op(cat(kHeader, "(float[A,B,C] X, float[C] S, float[A,B,C] K) => (Y) { Y = com.microsoft.BiasAdd(X, S, K) }"),
           17, {f32({1, 2, 2}, {1, 2, 3, 4}), f32({2}, {10, 20}), f32({1, 2, 2}, {100, 200, 300, 400})},
           {f32({1, 2, 2}, {111, 222, 313, 424})});
}

TEST_CASE("BiasSplitGelu multiplies half of a row by the Gelu of the other") {
  const std::string text =
      cat(kHeader, "(float[A,B,4] X, float[4] S) => (Y) { Y = com.microsoft.BiasSplitGelu(X, S) }");
  check_op(text, 17, {f32({1, 1, 4}, {1, 2, 0, 2}), f32({4}, {1, 1, 1, -3})},
           {f32({1, 1, 2}, {2 * 0.8413447f, 3 * -0.1586553f})});
  CHECK(infer_op(text, 17) == "tensor(float)[A,B,2]");
  check_op_fails(cat(kHeader, "(X, S) => (Y) { Y = com.microsoft.BiasSplitGelu(X, S) }"), 17,
                 {f32({1, 1, 3}, {1, 2, 3}), f32({3}, {0, 0, 0})}, ErrorCode::ShapeMismatch, "halves its last dim");
}

}  // namespace
}  // namespace infernode::test
