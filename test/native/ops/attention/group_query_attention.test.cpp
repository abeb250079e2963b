#include "ops/float_types.h"

namespace infernode::test {
namespace {

const std::string kHeader = "<ir_version: 8, opset_import: [\"\" : 23, \"com.microsoft\" : 1]> g ";

TEST_CASE("GroupQueryAttention of a prompt is causal attention with shared keys") {
  const Tensor q = noise({1, 6, 16}), k = noise({1, 6, 8}, 1, 2), v = noise({1, 6, 8}, 1, 3);
  const Value expected = run_op(
      "(Q, K, V) => (Y) { Y = Attention<q_num_heads=4, kv_num_heads=2, is_causal=1>(Q, K, V) }", 23, {q, k, v})[0];
  check_op(cat(kHeader,
               "(Q, K, V, L, T) => (Y) { Y = com.microsoft.GroupQueryAttention<num_heads=4, kv_num_heads=2>"
               "(Q, K, V, , , L, T) }"),
           23, {q, k, v, i32({1}, {5}), i32({}, {6})}, {expected});
}

TEST_CASE("GroupQueryAttention puts new keys behind those that count") {
  // Two sequences in a cache of three rows: one holds two keys, the other one.
  check_op(
      cat(kHeader,
          "(Q, K, V, A, B, L, T) => (Y, C, D) { Y, C, D = com.microsoft.GroupQueryAttention<num_heads=1, "
          "kv_num_heads=1>(Q, K, V, A, B, L, T) }"),
      23,
      {f32({2, 1, 1}, {0, 0}), f32({2, 1, 1}, {9, 9}), f32({2, 1, 1}, {30, 30}), f32({2, 1, 3, 1}, {1, 2, 0, 3, 0, 0}),
       f32({2, 1, 3, 1}, {6, 9, 0, 10, 0, 0}), i32({2}, {2, 1}), i32({}, {3})},
      {f32({2, 1, 1}, {15, 20}), f32({2, 1, 3, 1}, {1, 2, 9, 3, 9, 0}), f32({2, 1, 3, 1}, {6, 9, 30, 10, 30, 0})});
  check_op(cat(kHeader,
               "(Q, K, V, A, B, L, T) => (Y) { Y = com.microsoft.GroupQueryAttention<num_heads=1, kv_num_heads=1, "
               "local_window_size=2>(Q, K, V, A, B, L, T) }"),
           23,
           {f32({1, 1, 1}, {0}), f32({1, 1, 1}, {9}), f32({1, 1, 1}, {30}), f32({1, 1, 2, 1}, {1, 2}),
            f32({1, 1, 2, 1}, {6, 10}), i32({1}, {2}), i32({}, {3})},
           {f32({1, 1, 1}, {20})});
}

TEST_CASE("GroupQueryAttention turns queries and keys, packed or not") {
  // At position 1 a quarter turn: key (1, 0) becomes (0, 1).
  check_op(
      cat(kHeader,
          "(Q, A, B, L, T, C, S) => (Y, K) { Y, K, = com.microsoft.GroupQueryAttention<num_heads=1, kv_num_heads=1, "
          "do_rotary=1>(Q, , , A, B, L, T, C, S) }"),
      23,
      {f32({1, 1, 6}, {0, 0, 1, 0, 4, 8}), f32({1, 1, 1, 2}, {5, 5}), f32({1, 1, 1, 2}, {0, 0}), i32({1}, {1}),
       i32({}, {2}), f32({2, 1}, {1, 0}), f32({2, 1}, {0, 1})},
      {f32({1, 1, 2}, {2, 4}), f32({1, 1, 2, 2}, {5, 5, 0, 1})});
}

TEST_CASE("GroupQueryAttention's cache grows with the total, where that is known") {
  const auto rows = [](std::int32_t total) {
    return infer_op(cat(kHeader,
                        "(float[2,1,4] Q, float[2,1,4] K, float[2,1,4] V, float[2,1,5,4] A, float[2,1,5,4] B, int32[2] "
                        "L, int32 T) => (C) { Y, C, D = com.microsoft.GroupQueryAttention<num_heads=1, kv_num_heads=1>"
                        "(Q, K, V, A, B, L, T) }"),
                    23, {{}, {}, {}, {}, {}, {}, i32({}, {total})});
  };
  CHECK(rows(6) == "tensor(float)[2,1,6,4]");
  CHECK(rows(4) == "tensor(float)[2,1,5,4]");
}

TEST_CASE("GroupQueryAttention refuses lengths that do not fit its cache") {
  check_op_fails(cat(kHeader,
                     "(Q, K, V, A, B, L, T) => (Y) { Y = com.microsoft.GroupQueryAttention<num_heads=1, kv_num_heads=1>"
                     "(Q, K, V, A, B, L, T) }"),
                 23,
                 {f32({1, 1, 1}, {0}), f32({1, 1, 1}, {9}), f32({1, 1, 1}, {30}), f32({1, 1, 1, 1}, {1}),
                  f32({1, 1, 1, 1}, {6}), i32({1}, {4}), i32({}, {5})},
                 ErrorCode::InvalidArgument, "a total of 5");
}

}  // namespace
}  // namespace infernode::test
