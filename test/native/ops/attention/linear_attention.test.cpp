#include <cmath>

#include "ops/op_test.h"

namespace infernode::test {

TEST_CASE("LinearAttention sums keys and values and reads them with the query") {
  // One head, d_k = 2, d_v = 1: S after step 1 is (1, 0) * 3; after step 2 (3, 0) + (0, 1) * 5.
  const Tensor q = f32({1, 2, 2}, {1, 1, 2, 1}), k = f32({1, 2, 2}, {1, 0, 0, 1}), v = f32({1, 2, 1}, {3, 5});
  const char* text =
      "(Q, K, V) => (Y, S) { Y, S = LinearAttention<q_num_heads=1, kv_num_heads=1, update_rule=\"linear\", "
      "scale=1.0>(Q, K, V) }";
  check_op(text, 27, {q, k, v}, {f32({1, 2, 1}, {3, 11}), f32({1, 1, 2, 1}, {3, 5})});
  check_op(
      "(Q, K, V, P) => (Y, S) { Y, S = LinearAttention<q_num_heads=1, kv_num_heads=1, update_rule=\"linear\", "
      "scale=1.0>(Q, K, V, P) }",
      27, {q, k, v, f32({1, 1, 2, 1}, {1, 2})}, {f32({1, 2, 1}, {6, 15}), f32({1, 1, 2, 1}, {4, 7})});
  for (const DType type : {DType::Float16, DType::BFloat16}) {
    check_op(text, 27,
             {tensor_as(type, {1, 2, 2}, {1, 1, 2, 1}), tensor_as(type, {1, 2, 2}, {1, 0, 0, 1}),
              tensor_as(type, {1, 2, 1}, {3, 5})},
             {tensor_as(type, {1, 2, 1}, {3, 11}), tensor_as(type, {1, 1, 2, 1}, {3, 5})});
  }
}

TEST_CASE("LinearAttention decays and corrects its state") {
  const Tensor q = f32({1, 1, 1}, {1}), k = f32({1, 1, 1}, {2}), v = f32({1, 1, 1}, {3}), past = f32({1, 1, 1, 1}, {4}),
               decay = f32({1, 1, 1}, {std::log(0.5f)}), beta = f32({1, 1, 1}, {0.25f});
  // S = 0.5 * 4 + 0.25 * 2 * (3 - 2 * 2)
  check_op("(Q, K, V, P, D, B) => (Y, S) { Y, S = LinearAttention<q_num_heads=1, kv_num_heads=1>(Q, K, V, P, D, B) }",
           27, {q, k, v, past, decay, beta}, {f32({1, 1, 1}, {1.5f}), f32({1, 1, 1, 1}, {1.5f})});
  check_op_fails("(Q, K, V) => (Y, S) { Y, S = LinearAttention<q_num_heads=1, kv_num_heads=1>(Q, K, V) }", 27,
                 {q, k, v}, ErrorCode::InvalidModel, "needs decay");
  check_op_fails("(Q, K, V) => (Y, S) { Y, S = LinearAttention<q_num_heads=3, kv_num_heads=2>(Q, K, V) }", 27,
                 {q, k, v}, ErrorCode::InvalidModel, "multiple");
  CHECK(infer_op("(float[N,T,8] Q, float[N,T,4] K, float[N,T,6] V) => (Y, S) { Y, S = LinearAttention<q_num_heads=4, "
                 "kv_num_heads=2, update_rule=\"linear\">(Q, K, V) }",
                 27) == "tensor(float)[N,T,12]");
}

}  // namespace infernode::test
