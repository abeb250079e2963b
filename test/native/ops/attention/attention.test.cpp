#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("Attention weighs values by the softmax of scores") {
  const float l = std::log(3.0f);
  check_op("(float[1,1,1,1] Q, float[1,1,2,1] K, float[1,1,2,2] V) => (float[1,1,1,2] Y) { Y = Attention(Q, K, V) }",
           23, {f32({1, 1, 1, 1}, {1}), f32({1, 1, 2, 1}, {0, l}), f32({1, 1, 2, 2}, {4, 8, 0, 4})},
           {f32({1, 1, 1, 2}, {1, 5})});
  check_op(
      "(float[1,1,1,1] Q, float[1,1,2,1] K, float[1,1,2,1] V) => (float[1,1,1,1] Y, float[1,1,1,2] S) { "
      "Y, , , S = Attention<scale=2.0, qk_matmul_output_mode=3>(Q, K, V) }",
      23, {f32({1, 1, 1, 1}, {0.5}), f32({1, 1, 2, 1}, {0, l}), f32({1, 1, 2, 1}, {4, 0})},
      {f32({1, 1, 1, 1}, {1}), f32({1, 1, 1, 2}, {0.25, 0.75})});
}

TEST_CASE("Attention masks by booleans, numbers and causality; rows without keys are zero") {
  const Tensor q = f32({1, 1, 2, 1}, {0, 0}), k = f32({1, 1, 2, 1}, {1, 2}), v = f32({1, 1, 2, 1}, {2, 6});
  check_op("(Q, K, V, M) => (Y) { Y = Attention(Q, K, V, M) }", 23, {q, k, v, b8({2, 2}, {false, true, false, false})},
           {f32({1, 1, 2, 1}, {6, 0})});
  check_op("(Q, K, V, M) => (Y) { Y = Attention(Q, K, V, M) }", 23, {q, k, v, f32({1, 2}, {std::log(3.0f), 0})},
           {f32({1, 1, 2, 1}, {3, 3})});
  check_op("(Q, K, V, M) => (Y) { Y = Attention(Q, K, V, M) }", 24, {q, k, v, f32({2, 1}, {0, 7})},
           {f32({1, 1, 2, 1}, {2, 2})});
  check_op("(Q, K, V) => (Y) { Y = Attention<is_causal=1>(Q, K, V) }", 23, {q, k, v}, {f32({1, 1, 2, 1}, {2, 4})});
  check_op("(Q, K, V) => (Y) { Y = Attention<left_window_size=0, right_window_size=0>(Q, K, V) }", 25, {q, k, v},
           {f32({1, 1, 2, 1}, {2, 6})});
  check_op("(Q, K, V, L) => (Y) { Y = Attention(Q, K, V, , , , L) }", 24, {q, k, v, i64({1}, {1})},
           {f32({1, 1, 2, 1}, {2, 2})});
}

TEST_CASE("Attention of values so large that their sum is not finite") {
  for (const std::int64_t rows : {1, 70}) {
    CAPTURE(rows);
    const Tensor q = iota(DType::Float32, {1, 1, rows, 1}, 0, 0), k = f32({1, 1, 3, 1}, {0, 0, 0});
    check_op("(Q, K, V) => (Y) { Y = Attention(Q, K, V) }", 23, {q, k, f32({1, 1, 3, 1}, {3e38, 3e38, 3e38})},
             {iota(DType::Float32, {1, 1, rows, 1}, 3e38, 0)});
    check_op("(Q, K, V) => (Y) { Y = Attention(Q, K, V) }", 23, {q, k, f32({1, 1, 3, 1}, {3e38, 1, INFINITY})},
             {iota(DType::Float32, {1, 1, rows, 1}, INFINITY, 0)});
  }
}

TEST_CASE("Attention of a row without keys over values that are not finite") {
  const Tensor q = f32({1, 1, 1, 1}, {0}), k = f32({1, 1, 2, 1}, {0, 0}), none = b8({1, 2}, {false, false});
  check_op("(Q, K, V, M) => (Y) { Y = Attention(Q, K, V, M) }", 23, {q, k, f32({1, 1, 2, 1}, {1, INFINITY}), none},
           {f32({1, 1, 1, 1}, {NAN})});
}

TEST_CASE("Attention joins the past and gives it back") {
  check_op(
      "(float[1,1,1,1] Q, float[1,1,1,1] K, float[1,1,1,1] V, float[1,1,P,1] A, float[1,1,P,1] B) => "
      "(float[1,1,1,1] Y, float[1,1,T,1] C, float[1,1,T,1] D) { Y, C, D = Attention<is_causal=1>(Q, K, V, , A, B) }",
      23,
      {f32({1, 1, 1, 1}, {0}), f32({1, 1, 1, 1}, {9}), f32({1, 1, 1, 1}, {3}), f32({1, 1, 2, 1}, {7, 8}),
       f32({1, 1, 2, 1}, {1, 2})},
      {f32({1, 1, 1, 1}, {2}), f32({1, 1, 3, 1}, {7, 8, 9}), f32({1, 1, 3, 1}, {1, 2, 3})});
}

TEST_CASE("Attention agrees in float64, float32 and 16 bits, for any number of threads") {
  const Tensor q = noise({2, 70, 4 * 24}), k = noise({2, 90, 2 * 24}, 1, 2), v = noise({2, 90, 2 * 20}, 1, 3);
  for (const char* attributes : {"", "is_causal=1,", "softcap=2.0,", "left_window_size=9, right_window_size=3,"}) {
    const std::string text =
        cat("(Q, K, V, M) => (Y) { Y = Attention<", attributes, " q_num_heads=4, kv_num_heads=2>(Q, K, V, M) }");
    CAPTURE(text);
    check_float_types(text, 25, {q, k, v, noise({4, 70, 90}, 2, 4)}, {DType::Float16});
    check_threads(text, 25, {q, k, v, noise({4, 70, 90}, 2, 4)});
  }
}

TEST_CASE("Attention refuses what does not fit") {
  check_op_fails("(Q, K, V) => (Y) { Y = Attention(Q, K, V) }", 23,
                 {noise({1, 3, 2, 4}), noise({1, 2, 2, 4}), noise({1, 2, 2, 4})}, ErrorCode::ShapeMismatch,
                 "do not fit each other");
  check_op_fails("(Q, K, V) => (Y) { Y = Attention<q_num_heads=3, kv_num_heads=1>(Q, K, V) }", 23,
                 {noise({1, 3, 4}), noise({1, 2, 4}), noise({1, 2, 4})}, ErrorCode::ShapeMismatch, "3 heads");
  check_op_fails("(Q, K, V, M) => (Y) { Y = Attention(Q, K, V, M) }", 23,
                 {noise({1, 1, 2, 4}), noise({1, 1, 2, 4}), noise({1, 1, 2, 4}), noise({3, 2})},
                 ErrorCode::ShapeMismatch, "");
}

TEST_CASE("Attention refuses lengths beyond its keys") {
  check_op_fails("(Q, K, V, L) => (Y) { Y = Attention(Q, K, V, , , , L) }", 24,
                 {noise({1, 1, 2, 4}), noise({1, 1, 2, 4}), noise({1, 1, 2, 4}), i64({1}, {3})},
                 ErrorCode::InvalidArgument, "nonpad_kv_seqlen[0] is 3");
}

}  // namespace
}  // namespace infernode::test
