// Mixtures of experts: answers of onnxruntime and of the definition (test/fixtures/contrib-experts.txt, written by
// test/generators/contrib/experts.py).

#include "ops/limits.h"
#include "ops/written_cases.h"

namespace infernode::test {
namespace {

const EdgeCases edges(R"(
  MoE | no tokens | 21 | 1e-05
  y0 = com.microsoft.MoE<k = 1>(x0, x1, x2, , x4)
  float[0,2] x0 = {}, float[0,2] x1 = {}, float[2,1,2] x2 = {1, 2, 3, 4}, float[2,2,1] x4 = {1, 2, 3, 4}
  float[0,2] y0 = {}

  MoE | rank 0 | 21 | 1e-05
  y0 = com.microsoft.MoE<k = 1>(x0, x1, x2, , x4)
  float x0 = {1}, float[1,2] x1 = {1, 2}, float[2,1,2] x2 = {1, 2, 3, 4}, float[2,2,1] x4 = {1, 2, 3, 4}
  refused

  QMoE | no tokens | 21 | 1e-05
  y0 = com.microsoft.QMoE<k = 1, expert_weight_bits = 8>(x0, x1, x2, x3, , x5, x6)
  float[0,1] x0 = {}, float[0,1] x1 = {}, uint8[1,1,1] x2 = {1}, float[1,1] x3 = {1}, uint8[1,1,1] x5 = {1}, float[1,1] x6 = {1}
  float[0,1] y0 = {}

  QMoE | rank 0 | 21 | 1e-05
  y0 = com.microsoft.QMoE<k = 1, expert_weight_bits = 8>(x0, x1, x2, x3, , x5, x6)
  float[1,1] x0 = {1}, float x1 = {1}, uint8[1,1,1] x2 = {1}, float[1,1] x3 = {1}, uint8[1,1,1] x5 = {1}, float[1,1] x6 = {1}
  refused
)");

const Value kNone;

TEST_CASE("MoE and QMoE answer as onnxruntime and their definition do") { check_cases("contrib-experts.txt", 25); }

TEST_CASE("MoE refuses experts that do not fit") {
  const Tensor x = noise({3, 4}), scores = noise({3, 2}), fc1 = noise({2, 5, 4}), fc2 = noise({2, 4, 5});
  const auto call = [&](const char* attributes, std::vector<Value> inputs, ErrorCode code, const char* what) {
    refuses("MoE", attributes, inputs, code, what, "Y");
  };
  const auto shape = ErrorCode::ShapeMismatch, model = ErrorCode::InvalidModel;
  call("k = 3", {x, scores, fc1, kNone, fc2}, model, "there are 2 experts");
  call("k = 0", {x, scores, fc1, kNone, fc2}, model, "k is 0");
  call("k = 1, use_sparse_mixer = 1", {x, scores, fc1, kNone, fc2}, model, "sparse mixer");
  call("k = 1, activation_type = \"odd\"", {x, scores, fc1, kNone, fc2}, model, "odd");
  call("k = 1, activation_type = \"swiglu\"", {x, scores, fc1, kNone, fc2}, model, "swiglu_fusion 0 and no");
  call("k = 1, activation_type = \"swiglu\", swiglu_fusion = 1", {x, scores, fc1, kNone, fc2}, shape, "input 2");
  call("k = 1, activation_type = \"swiglu\", swiglu_fusion = 1", {x, scores, fc1, kNone, fc2, kNone, fc1}, model,
       "fc3");
  call("k = 1, activation_type = \"geglu\"", {x, scores, fc1, kNone, fc2, kNone, fc1}, model, "geglu");
  call("k = 1", {x, noise({2, 2}), fc1, kNone, fc2}, shape, "router_probs");
  call("k = 1", {noise({1, 1, 3, 4}), scores, fc1, kNone, fc2}, shape, "input");
  call("k = 1", {x, scores, noise({2, 5, 3}), kNone, fc2}, shape, "input 2");
  call("k = 1", {x, scores, fc1, noise({2, 4}), fc2}, shape, "input 3");
  call("k = 1", {x, scores, fc1, kNone, noise({2, 20})}, shape, "fc2_experts_weights");
  call("k = 1", {x, scores, fc1, kNone, noise({3, 4, 5})}, shape, "input");
}

TEST_CASE("QMoE refuses codes that do not fit") {
  const Tensor x = noise({3, 16}), scores = noise({3, 2});
  const auto codes = [](std::int64_t n, std::int64_t bytes) { return Tensor::make(DType::UInt8, Shape{2, n, bytes}); };
  const auto call = [&](const char* attributes, std::vector<Value> inputs, ErrorCode code, const char* what) {
    refuses("QMoE", attributes, inputs, code, what, "Y");
  };
  const auto shape = ErrorCode::ShapeMismatch, model = ErrorCode::InvalidModel;
  const std::vector<Value> whole{x, scores, codes(16, 8), noise({2, 16}), kNone, codes(16, 8), noise({2, 16})};
  call("k = 1, block_size = 24", whole, model, "block_size is 24");
  call("k = 1, block_size = 32", whole, shape, "blocks of 32");
  call("k = 1, block_size = 16", whole, shape, "input 3");
  call("k = 1, expert_weight_bits = 8", whole, shape, "input 2");
  call("k = 1, expert_weight_bits = 3", whole, ErrorCode::UnsupportedOperator, "3 bits");
  call("k = 1, quant_type = \"nvfp4\"", whole, ErrorCode::UnsupportedOperator, "nvfp4");
  std::vector<Value> none = whole;
  none[3] = kNone;
  call("k = 1", none, ErrorCode::InvalidArgument, "scales");
  std::vector<Value> more = whole;
  more.resize(16);
  more[15] = noise({2});
  call("k = 1", more, model, "input 15");
  std::vector<Value> zeros = whole;
  zeros.resize(12);
  zeros[11] = Tensor::make(DType::UInt8, Shape{2, 16});
  call("k = 1", zeros, shape, "input 11");
}

TEST_CASE("Experts count what they hold against memoryLimit") {
  check_beyond_budget(
      "(float[n,1] X, float[n,2] R, float[2,1,1] A, float[2,1,1] B) => (float[n,1] Y) "
      "{ Y = com.microsoft.MoE<k = 1>(X, R, A, , B) }",
      21, {noise({1000000, 1}), noise({1000000, 2}), noise({2, 1, 1}), noise({2, 1, 1})}, std::size_t{4} << 20);
}

}  // namespace
}  // namespace infernode::test
