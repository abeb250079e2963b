#include "ops/float_types.h"

namespace infernode::test {
namespace {

// Position 0 turns nothing, position 1 a quarter.
const Tensor kCos = f32({2, 1}, {1, 0}), kSin = f32({2, 1}, {0, 1});

TEST_CASE("RotaryEmbedding turns halves or neighbours of a head") {
  const Tensor x = f32({1, 1, 2, 4}, {1, 2, 3, 4, 1, 2, 3, 4}), at = i64({1, 2}, {0, 1});
  const Tensor cos = f32({2, 2}, {1, 1, 0, 0}), sin = f32({2, 2}, {0, 0, 1, 1});
  check_op("(float[1,1,S,4] X, C, D, P) => (float[1,1,S,4] Y) { Y = RotaryEmbedding(X, C, D, P) }", 23,
           {x, cos, sin, at}, {f32({1, 1, 2, 4}, {1, 2, 3, 4, -3, -4, 1, 2})});
  check_op("(X, C, D, P) => (Y) { Y = RotaryEmbedding<interleaved=1>(X, C, D, P) }", 23, {x, cos, sin, at},
           {f32({1, 1, 2, 4}, {1, 2, 3, 4, -2, 1, -4, 3})});
  check_op("(X, C, D, P) => (Y) { Y = RotaryEmbedding<rotary_embedding_dim=2>(X, C, D, P) }", 23, {x, kCos, kSin, at},
           {f32({1, 1, 2, 4}, {1, 2, 3, 4, -2, 1, 3, 4})});
}

TEST_CASE("RotaryEmbedding of rank 3 and with caches by token") {
  check_op("(X, C, D) => (Y) { Y = RotaryEmbedding<num_heads=2>(X, C, D) }", 23,
           {f32({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), f32({1, 2, 1}, {0, 1}), f32({1, 2, 1}, {1, 0})},
           {f32({1, 2, 4}, {-2, 1, -4, 3, 5, 6, 7, 8})});
  check_op("(X, C, D, P) => (Y) { Y = RotaryEmbedding<num_heads=1>(X, C, D, P) }", 23,
           {f16({1, 1, 2}, {1, 2}), f16({2, 1}, {1, 0}), f16({2, 1}, {0, 1}), i64({1, 1}, {1})},
           {f16({1, 1, 2}, {-2, 1})});
}

TEST_CASE("RotaryEmbedding of com.microsoft counts positions from an offset") {
  const char* header = "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g ";
  check_op(cat(header, "(X, P, C, D) => (Y) { Y = com.microsoft.RotaryEmbedding(X, P, C, D) }"), 17,
           {f32({1, 2, 2}, {1, 2, 3, 4}), i64({1}, {0}), kCos, kSin}, {f32({1, 2, 2}, {1, 2, -4, 3})});
}

TEST_CASE("RotaryEmbedding refuses positions outside its caches") {
  check_op_fails("(X, C, D, P) => (Y) { Y = RotaryEmbedding(X, C, D, P) }", 23,
                 {noise({1, 1, 1, 2}), kCos, kSin, i64({1, 1}, {2})}, ErrorCode::InvalidArgument, "position 2");
  check_op_fails("(X, C, D, P) => (Y) { Y = RotaryEmbedding(X, C, D, P) }", 23,
                 {noise({1, 1, 1, 4}), kCos, kSin, i64({1, 1}, {0})}, ErrorCode::ShapeMismatch, "does not turn");
}

}  // namespace
}  // namespace infernode::test
