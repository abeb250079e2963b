#include "ops/op_test.h"

namespace infernode::test {
namespace {

const std::string kHeader = "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g ";

TEST_CASE("EmbedLayerNormalization sums embeddings and counts tokens") {
  const std::vector<Value> inputs{i32({1, 2}, {1, 0}),       i32({1, 2}, {0, 1}),       f32({2, 2}, {0, 0, 1, 2}),
                                  f32({2, 2}, {0, 1, 4, 0}), f32({2, 2}, {0, 1, 0, 8}), f32({2}, {1, 1}),
                                  f32({2}, {0, 10}),         i32({1, 2}, {1, 0})};
  check_op(cat(kHeader,
               "(I, S, W, P, E, G, B, M) => (Y, C, T) { Y, C, T = com.microsoft.EmbedLayerNormalization<epsilon=0.0>"
               "(I, S, W, P, E, G, B, M) }"),
           17, inputs, {f32({1, 2, 2}, {-1, 11, -1, 11}), i32({1}, {1}), f32({1, 2, 2}, {1, 4, 4, 8})});
  std::vector<Value> bad = inputs;
  bad[0] = i32({1, 2}, {2, 0});
  check_op_fails(
      cat(kHeader,
          "(I, S, W, P, E, G, B, M) => (Y) { Y = com.microsoft.EmbedLayerNormalization(I, S, W, P, E, G, B, M) }"),
      17, bad, ErrorCode::InvalidArgument, "word 2");
}

}  // namespace
}  // namespace infernode::test
