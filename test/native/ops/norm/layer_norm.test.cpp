#include "ops/float_types.h"

namespace infernode::test {
namespace {

constexpr const char* kMicrosoft = "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g ";

TEST_CASE("LayerNormalization gives the statistics of its rows") {
  check_op(
      "(float[N,2] X, float[2] S, float[2] B) => (float[N,2] Y, float[N,1] M, float[N,1] D) { "
      "Y, M, D = LayerNormalization<epsilon=0.0>(X, S, B) }",
      17, {f32({2, 2}, {1, 3, 0, 8}), f32({2}, {2, 3}), f32({2}, {10, 20})},
      {f32({2, 2}, {8, 23, 8, 23}), f32({2, 1}, {2, 4}), f32({2, 1}, {1, 0.25})});
  check_op(
      "(float[1,2,2] X, float[2,2] S) => (float[1,2,2] Y, float[1,1,1] M) { "
      "Y, M = LayerNormalization<axis=1, epsilon=0.0>(X, S) }",
      17, {f32({1, 2, 2}, {1, 1, 3, 3}), f32({2, 2}, {1, 2, 3, 4})},
      {f32({1, 2, 2}, {-1, -2, 3, 4}), f32({1, 1, 1}, {2})});
}

TEST_CASE("LayerNormalization broadcasts scale and bias") {
  const char* text = "(X, S, B) => (Y) { Y = LayerNormalization<axis=-2>(X, S, B) }";
  const Tensor x = noise({2, 3, 5});
  for (const Shape& shape :
       {Shape{3, 5}, Shape{5}, Shape{3, 1}, Shape{}, Shape{1, 1, 5}, Shape{2, 3, 5}, Shape{2, 1, 1}}) {
    CAPTURE(shape.to_string());
    check_float_types(text, 17, {x, noise(shape, 1, 2), noise({5}, 1, 3)});
  }
}

TEST_CASE("LayerNormalization agrees in all floating types and for any number of threads") {
  check_float_types("(X, S, B) => (Y) { Y = LayerNormalization(X, S, B) }", 17,
                    {noise({4, 67}, 2), noise({67}, 1, 2), noise({67}, 1, 3)});
  check_float_types("(X, S) => (Y) { Y = RMSNormalization(X, S) }", 23, {noise({4, 67}, 2), noise({67}, 1, 2)});
  check_threads("(X, S, B) => (Y) { Y = LayerNormalization(X, S, B) }", 17,
                {noise({400, 300}), noise({300}, 1, 2), noise({300}, 1, 3)});
}

TEST_CASE("Statistics of 16-bit rows are float32, or bfloat16 by stash_type") {
  check_op(
      "(float16[1,2] X, float16[2] S) => (float16[1,2] Y, float[1,1] M) { Y, M = LayerNormalization<epsilon=0.0>(X, S) "
      "}",
      17, {f16({1, 2}, {1, 3}), f16({2}, {1, 1})}, {f16({1, 2}, {-1, 1}), f32({1, 1}, {2})});
  check_op(
      "(float16[1,2] X, float16[2] S) => (float16[1,2] Y, bfloat16[1,1] M) { "
      "Y, M = LayerNormalization<epsilon=0.0, stash_type=16>(X, S) }",
      17, {f16({1, 2}, {1, 3}), f16({2}, {1, 1})}, {f16({1, 2}, {-1, 1}), bf16({1, 1}, {2})});
}

TEST_CASE("RMSNormalization leaves the mean in, and answers in the scale's type") {
  check_op("(float[1,2] X, float[2] S) => (float[1,2] Y) { Y = RMSNormalization<epsilon=0.0>(X, S) }", 23,
           {f32({1, 2}, {1, 7}), f32({2}, {1, 2})}, {f32({1, 2}, {0.2, 2.8})});
  check_op("(float16[1,2] X, float[2] S) => (float[1,2] Y) { Y = RMSNormalization<epsilon=0.0>(X, S) }", 23,
           {f16({1, 2}, {1, 7}), f32({2}, {1, 2})}, {f32({1, 2}, {0.2, 2.8})});
  check_op("(float[1,2] X, float[2] S) => (float[1,2] Y) { Y = SimplifiedLayerNormalization<epsilon=0.0>(X, S) }", 17,
           {f32({1, 2}, {1, 7}), f32({2}, {1, 2})}, {f32({1, 2}, {0.2, 2.8})});
}

TEST_CASE("SkipLayerNormalization adds before it normalizes") {
  check_op(cat(kMicrosoft,
               "(float[1,2,2] X, float[1,2,2] K, float[2] G, float[2] B, float[2] A) => (float[1,2,2] Y, "
               "float[1,2,1] M, float[1,2,1] D, float[1,2,2] T) { Y, M, D, T = "
               "com.microsoft.SkipLayerNormalization<epsilon=0.0>(X, K, G, B, A) }"),
           17,
           {f32({1, 2, 2}, {1, 2, 0, 0}), f32({1, 2, 2}, {0, 1, 0, 8}), f32({2}, {1, 1}), f32({2}, {0, 5}),
            f32({2}, {1, 1})},
           {f32({1, 2, 2}, {-1, 6, -1, 6}), f32({1, 2, 1}, {3, 5}), f32({1, 2, 1}, {1, 0.25}),
            f32({1, 2, 2}, {2, 4, 1, 9})});
  check_op(cat(kMicrosoft,
               "(float[2,1,2] X, float[1,2] K, float[2] G) => (float[2,1,2] Y) { Y = "
               "com.microsoft.SkipSimplifiedLayerNormalization<epsilon=0.0>(X, K, G) }"),
           17, {f32({2, 1, 2}, {0, 6, 6, 0}), f32({1, 2}, {1, 1}), f32({2}, {1, 1})},
           {f32({2, 1, 2}, {0.2, 1.4, 1.4, 0.2})});
  check_op_fails(cat(kMicrosoft,
                     "(float[2,2] X, float[2,3] K, float[2] G) => (float[2,2] Y) { Y = "
                     "com.microsoft.SkipLayerNormalization(X, K, G) }"),
                 17, {noise({2, 2}), noise({2, 3}), noise({2})}, ErrorCode::ShapeMismatch, "adds");
}

TEST_CASE("LayerNormalization of nothing") {
  check_op("(float[2,0] X, float[0] S) => (float[2,0] Y, float[2,1] M) { Y, M = LayerNormalization(X, S) }", 17,
           {f32({2, 0}, {}), f32({0}, {})}, {f32({2, 0}, {}), f32({2, 1}, {0, 0})});
}

TEST_CASE("LayerNormalization refuses a scale that does not fit") {
  check_op_fails("(X, S) => (Y) { Y = LayerNormalization(X, S) }", 17, {noise({2, 3}), noise({2})},
                 ErrorCode::ShapeMismatch, "");
}

}  // namespace
}  // namespace infernode::test
