#include <cmath>

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
  fails("num_heads=2, do_rotary=1, rotary_embedding_dim=4", "X, W, B", mask, past, 0, ErrorCode::ShapeMismatch,
        "4 elements of heads of 2");
  fails("num_heads=2, do_rotary=1, rotary_embedding_dim=3", "X, W, B", mask, past, 0, ErrorCode::InvalidModel,
        "rotary_embedding_dim is 3");
  fails("num_heads=2, do_rotary=1, rotary_embedding_dim=-2", "X, W, B", mask, past, 0, ErrorCode::InvalidModel,
        "rotary_embedding_dim is -2");
  fails("num_heads=4, do_rotary=1", "X, W, B", mask, past, 0, ErrorCode::ShapeMismatch, "1 elements");
}

/// The caches [rows, half] that RotaryEmbedding takes for angles position / 10000^(i / half).
std::vector<Tensor> rotary_caches(std::int64_t rows, std::int64_t half) {
  std::vector<Tensor> out{Tensor::make(DType::Float32, {rows, half}), Tensor::make(DType::Float32, {rows, half})};
  for (std::int64_t i = 0; i < rows * half; ++i) {
    const double angle =
        static_cast<double>(i / half) / std::pow(10000.0, static_cast<double>(i % half) / static_cast<double>(half));
    out[0].mutable_data<float>()[i] = static_cast<float>(std::cos(angle));
    out[1].mutable_data<float>()[i] = static_cast<float>(std::sin(angle));
  }
  return out;
}

TEST_CASE("Attention with do_rotary is RotaryEmbedding between the projection and the attention") {
  for (const std::int64_t rotated : {0, 4}) {
    CAPTURE(rotated);
    const std::int64_t turned = rotated == 0 ? 6 : rotated;
    const Tensor x = noise({2, 3, 5}), w = noise({5, 36}, 1, 2), b = noise({36}, 1, 3),
                 past = noise({2, 2, 2, 4, 6}, 1, 4);
    const std::vector<Tensor> tables = rotary_caches(8, turned / 2);
    const auto expected = [&](const char* attend) {
      return run_op(
          cat(kHeader,
              "(X, W, B, P, C, S, N) => (Y) { Z = MatMul(X, W) A = Add(Z, B) Q, K, V = "
              "Split<axis=-1, num_outputs=3>(A) "
              "R = com.microsoft.RotaryEmbedding<num_heads=2, rotary_embedding_dim=",
              rotated, ">(Q, N, C, S) T = com.microsoft.RotaryEmbedding<num_heads=2, rotary_embedding_dim=", rotated,
              ">(K, N, C, S) H, I = Split<axis=0, num_outputs=2>(P) E = Constant<value_ints=[0]>() "
              "F = Squeeze(H, E) G = Squeeze(I, E) ",
              attend, " }"),
          21, {x, w, b, past, tables[0], tables[1], i64({1}, {4})});
    };
    const Value y =
        expected("Y = com.microsoft.MultiHeadAttention<num_heads=2, unidirectional=1>(R, T, V, , , , F, G)")[0];
    check_op(cat(kHeader,
                 "(X, W, B, P) => (Y) { Y, C = com.microsoft.Attention<num_heads=2, unidirectional=1, do_rotary=1, "
                 "rotary_embedding_dim=",
                 rotated, ">(X, W, B, , P) }"),
             21, {x, w, b, past}, {y});
    const Value turned_keys =
        expected("M, K1, Y = com.microsoft.MultiHeadAttention<num_heads=2>(R, T, V, , , , F, G)")[0];
    const std::vector<Value> both =
        run_op(cat(kHeader,
                   "(X, W, B, P) => (Y, C) { Y, C = com.microsoft.Attention<num_heads=2, do_rotary=1, "
                   "rotary_embedding_dim=",
                   rotated, ">(X, W, B, , P) }"),
               21, {x, w, b, past});
    CHECK(both[1].tensor().shape() == Shape{2, 2, 2, 7, 6});
    const Tensor& values = turned_keys.tensor();  // the second half of the present
    for (std::int64_t i = 0; i < values.numel(); ++i)
      CHECK(both[1].tensor().data<float>()[values.numel() + i] ==
            doctest::Approx(values.data<float>()[i]).epsilon(1e-5));
  }
}

TEST_CASE("QAttention with do_rotary turns queries and keys of its product") {
  const Tensor x = u8({1, 2, 2}, {3, 130, 7, 255}), b = noise({12}, 1, 3), scale = f32({}, {0.02f});
  const Tensor w = i8({2, 12}, {1, -2, 3, 4, 50, 6, 7, -8, 9, 1, 2, 3, 4, 5, -6, 70, 8, 9, 1, 2, 30, 4, 5, 6});
  const std::vector<Tensor> tables = rotary_caches(2, 2);
  const Value expected =
      run_op(cat(kHeader,
                 "(X, W, B, D, C, S, N) => (Y) { Z = com.microsoft.MatMulIntegerToFloat(X, W, D, D, , , B) "
                 "Q, K, V = Split<axis=-1, num_outputs=3>(Z) "
                 "R = com.microsoft.RotaryEmbedding<num_heads=1>(Q, N, C, S) T = "
                 "com.microsoft.RotaryEmbedding<num_heads=1>(K, "
                 "N, C, S) Y = com.microsoft.MultiHeadAttention<num_heads=1>(R, T, V) }"),
             21, {x, w, b, scale, tables[0], tables[1], i64({1}, {0})})[0];
  check_op(
      cat(kHeader, "(X, W, B, D) => (Y) { Y = com.microsoft.QAttention<num_heads=1, do_rotary=1>(X, W, B, D, D) }"), 21,
      {x, w, b, scale}, {expected}, 1e-4);
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
