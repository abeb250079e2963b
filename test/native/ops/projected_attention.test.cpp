#include "ops/op_test.h"

namespace infernode::test {
namespace {

const std::string kHeader = "<ir_version: 8, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> g ";

TEST_CASE("Attention refuses heads, masks and caches that do not fit") {
  const auto call = [](const char* attributes, const char* inputs) {
    return cat(kHeader, "(X, W, B, M, P, L) => (Y, C) { Y, C = com.microsoft.Attention<", attributes, ">(", inputs,
               ") }");
  };
  const auto fails = [&](const char* attributes, const char* inputs, const Tensor& mask, const Tensor& past,
                         std::int32_t length, ErrorCode code, const char* what) {
    check_op_fails(call(attributes, inputs), 21,
                   {noise({1, 2, 4}), noise({4, 12}), noise({12}), mask, past, i32({1}, {length})}, code, what);
  };
  const Tensor mask = i32({1}, {2}), past = noise({2, 1, 2, 3, 2});
  fails("num_heads=0", "X, W, B", mask, past, 0, ErrorCode::InvalidModel, "num_heads is 0");
  fails("num_heads=3", "X, W, B", mask, past, 0, ErrorCode::ShapeMismatch, "3 heads");
  fails("num_heads=2", "X, W, B, M", i32({3}, {1, 2, 3}), past, 0, ErrorCode::ShapeMismatch, "attention mask");
  fails("num_heads=2", "X, W, B, , P", mask, noise({2, 1, 2, 3, 5}), 0, ErrorCode::ShapeMismatch, "the past is");
  fails("num_heads=2, past_present_share_buffer=1", "X, W, B, , P, , L", mask, past, 2, ErrorCode::InvalidArgument,
        "past_sequence_length 2");
  fails("num_heads=2, past_present_share_buffer=1", "X, W, B, , P, , L", mask, past, -1, ErrorCode::InvalidArgument,
        "past_sequence_length -1");
  fails("num_heads=2, do_rotary=1", "X, W, B", mask, past, 0, ErrorCode::UnsupportedOperator, "do_rotary");
}

TEST_CASE("Attention's shared cache keeps its length and answers as a joined one does") {
  const Tensor x = noise({1, 1, 4}), w = noise({4, 12}, 1, 2), cache = noise({2, 1, 2, 3, 2}, 1, 3);
  const std::vector<Value> shared =
      run_op(cat(kHeader,
                 "(X, W, P, L) => (Y, C) { Y, C = com.microsoft.Attention<num_heads=2, past_present_share_buffer=1>(X, "
                 "W, , , P, , L) }"),
             21, {x, w, cache, i32({1}, {2})});
  CHECK(shared[1].tensor().shape() == cache.shape());
  Tensor past = Tensor::make(DType::Float32, {2, 1, 2, 2, 2});
  for (std::int64_t i = 0; i < past.numel(); ++i)
    past.mutable_data<float>()[i] = cache.data<float>()[i / 4 * 6 + i % 4];
  const std::vector<Value> joined =
      run_op(cat(kHeader, "(X, W, P) => (Y, C) { Y, C = com.microsoft.Attention<num_heads=2>(X, W, , , P) }"), 21,
             {x, w, past});
  CHECK(difference(shared[0], joined[0]) == "");
}

}  // namespace
}  // namespace infernode::test
