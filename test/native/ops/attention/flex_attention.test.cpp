#include "ops/op_test.h"

namespace infernode::test {
namespace {

std::string flex(const char* attributes) {
  return cat(
      "<ir_version: 12, opset_import: [\"\" : 26, \"ai.onnx.preview\" : 1]> g (Q, K, V) => (Y) { Y = "
      "ai.onnx.preview.FlexAttention",
      attributes, "(Q, K, V) }");
}

}  // namespace

TEST_CASE("FlexAttention is attention where it has no subgraphs") {
  const Tensor q = noise({2, 4, 5, 8}), k = noise({2, 2, 6, 8}, 1, 2), v = noise({2, 2, 6, 3}, 1, 3);
  check_op(flex(""), 26, {q, k, v}, run_op("(Q, K, V) => (Y) { Y = Attention(Q, K, V) }", 23, {q, k, v}));
  check_op(flex("<scale=0.5>"), 26, {q, k, v},
           run_op("(Q, K, V) => (Y) { Y = Attention<scale=0.5>(Q, K, V) }", 23, {q, k, v}));
}

TEST_CASE("FlexAttention passes scores and probabilities through its subgraphs") {
  const Tensor q = noise({2, 4, 5, 8}), k = noise({2, 2, 6, 8}, 1, 2), v = noise({2, 2, 6, 3}, 1, 3);
  const std::vector<Value> plain = run_op(flex(""), 26, {q, k, v});
  check_op(flex("<score_mod = s (x) => (y) { y = Identity(x) }>"), 26, {q, k, v}, plain);
  check_op(flex("<score_mod = s (x) => (y) { y = Tanh(x) }>"), 26, {q, k, v},
           run_op("(Q, K, V) => (Y) { Y = Attention<softcap=1.0>(Q, K, V) }", 23, {q, k, v}));
  check_op(flex("<scale = 1.0, prob_mod = p (x) => (y) { y = Sub(x, x) }>"), 26, {q, k, v},
           {tensor_as(DType::Float32, {2, 4, 5, 3}, std::vector<double>(120, 0))});
  // The scores' type is the softmax's.
  check_op(flex("<softmax_precision=11, score_mod = s (x) => (y) { y = Identity(x) }>"), 26, {q, k, v}, plain);
  check_op_fails(flex("<score_mod = s (x) => (y) { y = Transpose<perm=[0, 1, 3, 2]>(x) }>"), 26, {q, k, v},
                 ErrorCode::ShapeMismatch, "score_mod must keep");
  check_op_fails(flex("<softmax_precision=7>"), 26, {q, k, v}, ErrorCode::InvalidModel, "softmax_precision");
}

TEST_CASE("FlexAttention takes every floating type") {
  const std::vector<double> values{0.5, -1, 0.25, 1};
  for (const DType type : {DType::Float16, DType::BFloat16, DType::Float64}) {
    const Tensor x = tensor_as(type, {1, 1, 2, 2}, values), y = tensor_as(DType::Float32, {1, 1, 2, 2}, values);
    const Tensor expected = run_op(flex(""), 26, {y, y, y}).at(0).tensor();
    const std::vector<float> elements = tensor::to_float_vector(expected);
    const Tensor typed = tensor_as(type, {1, 1, 2, 2}, {elements.begin(), elements.end()});
    check_op(flex(""), 26, {x, x, x}, {typed}, 1e-2);
    check_op(flex("<prob_mod = p (x) => (y) { y = Identity(x) }>"), 26, {x, x, x}, {typed}, 1e-2);
  }
}

TEST_CASE("FlexAttention refuses inputs that do not fit") {
  check_op_fails(flex(""), 26, {noise({1, 3, 2, 4}), noise({1, 2, 2, 4}), noise({1, 2, 2, 4})},
                 ErrorCode::ShapeMismatch, "do not fit");
  CHECK(infer_op("<ir_version: 12, opset_import: [\"\" : 26, \"ai.onnx.preview\" : 1]> g (float[N,8,L,16] Q, "
                 "float[N,2,S,16] K, float[N,2,S,M] V) => (Y) { Y = ai.onnx.preview.FlexAttention(Q, K, V) }",
                 26) == "tensor(float)[N,8,L,M]");
}

}  // namespace infernode::test
