// Convolutions over channels in blocks give what Conv gives.
#include <limits>

#include "ops/float_types.h"
#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("BlockChannels and UnblockChannels undo each other") {
  for (const std::int64_t channels : {1, 15, 16, 40}) {
    const Tensor x = noise({2, channels, 3, 5});
    check_op(
        cat("(X) => (Y) { B = infernode.BlockChannels(X)  Y = infernode.UnblockChannels<channels=", channels, ">(B) }"),
        17, {x}, {x});
  }
  const Tensor x = iota(DType::Float32, {1, 2, 1, 2}, 1);
  std::vector<double> blocks(32);
  blocks[0] = 1, blocks[1] = 3, blocks[16] = 2, blocks[17] = 4;
  check_op("(X) => (Y) { Y = infernode.BlockChannels(X) }", 17, {x},
           {tensor_as(DType::Float32, {1, 1, 1, 2, 16}, blocks)});
  CHECK(infer_op("(float[N,33,H,W] X) => (Y) { Y = infernode.BlockChannels(X) }", 17) == "tensor(float)[N,3,H,W,16]");
}

TEST_CASE("BlockChannels rounds to bfloat16 where asked, and UnblockChannels takes such blocks") {
  for (const std::int64_t channels : {1, 15, 16, 40}) {
    const Tensor x = noise({2, channels, 13, 11});
    const std::vector<Value> expected = run_op("(X) => (Y) { H = Cast<to=16>(X)  Y = Cast<to=1>(H) }", 17, {x});
    check_op(cat("(X) => (Y) { B = infernode.BlockChannels<to=16>(X)  Y = infernode.UnblockChannels<channels=",
                 channels, ">(B) }"),
             17, {x}, expected);
  }
  CHECK(infer_op("(float[N,33,H,W] X) => (Y) { Y = infernode.BlockChannels<to=16>(X) }", 17) ==
        "tensor(bfloat16)[N,3,H,W,16]");
}

TEST_CASE("BlockedConv agrees with Conv over strides, dilations, pads and groups") {
  const struct {
    Shape x, w;
    const char* attributes;
  } cases[] = {
      {{2, 3, 11, 12}, {20, 3, 3, 3}, "pads=[1,1,1,1], strides=[2,2]"},
      {{1, 8, 9, 23}, {24, 8, 3, 5}, "pads=[1,1,1,1]"},
      {{2, 4, 12, 12}, {24, 4, 1, 1}, "strides=[2,2]"},
      {{1, 40, 14, 14}, {24, 40, 1, 1}, ""},
      {{3, 16, 7, 7}, {160, 16, 1, 1}, ""},
      {{1, 33, 9, 8}, {17, 33, 3, 2}, "dilations=[2,1], pads=[1,0,2,1]"},
      {{2, 16, 8, 9}, {8, 16, 3, 3}, "auto_pad=\"SAME_UPPER\", strides=[2,1]"},
      {{1, 16, 8, 8}, {16, 16, 1, 1}, "strides=[2,2]"},
      {{2, 24, 14, 15}, {24, 1, 3, 3}, "group=24, pads=[1,1,1,1]"},
      {{1, 20, 9, 11}, {20, 1, 5, 5}, "group=20, pads=[2,2,2,2], strides=[2,2]"},
      {{1, 16, 30, 1}, {32, 16, 5, 1}, "pads=[2,0,2,0]"},
      {{1, 16, 12, 12}, {16, 16, 3, 3}, "pads=[-1,-1,0,0]"},
      {{2, 40, 13, 11}, {24, 40, 3, 3}, "pads=[1,1,1,1]"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.attributes);
    const Tensor x = noise(c.x), w = noise(c.w, 1, 2), b = noise({c.w[0]}, 1, 3);
    const std::vector<Value> expected =
        run_op(cat("(X, W, B) => (Y) { C = Conv<", c.attributes, ">(X, W, B)  Y = Relu(C) }"), 17, {x, w, b});
    const std::string separator = c.attributes[0] == '\0' ? "" : ", ";
    const auto text = [&](const char* input) {
      return cat("(X, W, B) => (Y) { P = infernode.BlockChannels(X)  C = infernode.BlockedConv<activation=\"Relu\"",
                 separator, c.attributes, ">(", input, ", W, B)  Y = infernode.UnblockChannels<channels=", c.w[0],
                 ">(C) }");
    };
    check_op(text("P"), 17, {x, w, b}, expected, kLongSumTolerance);
    if (c.w[1] > 1 && c.w[1] <= 8) check_op(text("X"), 17, {x, w, b}, expected, kLongSumTolerance);
  }
}

TEST_CASE("BlockedConv adds a residual before its activation") {
  const Tensor x = noise({2, 16, 6, 6}), w = noise({20, 16, 1, 1}, 1, 2), z = noise({2, 20, 6, 6}, 1, 3);
  const std::vector<Value> expected =
      run_op("(X, W, Z) => (Y) { C = Conv(X, W)  S = Add(C, Z)  H = Sigmoid(S)  Y = Mul(S, H) }", 17, {x, w, z});
  check_op(
      "(X, W, Z) => (Y) { P = infernode.BlockChannels(X)  Q = infernode.BlockChannels(Z) "
      "C = infernode.BlockedConv<activation=\"Silu\">(P, W, , Q)  Y = infernode.UnblockChannels<channels=20>(C) }",
      17, {x, w, z}, expected);
}

TEST_CASE("BlockedConv keeps NaN and infinities of one group from the others of its block") {
  for (const std::int64_t width : {2, 8}) {
    const std::int64_t channels = 32, groups = channels / width;
    const Tensor w = noise({channels, width, 3, 3}, 1, 2), z = noise({3, channels, 7, 5}, 1, 3);
    Tensor x = noise({3, channels, 7, 5});
    float* const at = x.mutable_data<float>();
    at[35 * 3 + 17] = std::numeric_limits<float>::infinity();
    at[35 * 20 + 2] = std::numeric_limits<float>::quiet_NaN();
    at[35 * (2 * channels + 9) + 30] = -std::numeric_limits<float>::infinity();
    const std::string attributes = cat("group=", groups, ", pads=[1,1,1,1]");
    const std::vector<Value> expected =
        run_op(cat("(X, W, Z) => (Y) { C = Conv<", attributes, ">(X, W)  S = Add(C, Z)  Y = Relu(S) }"), 17, {x, w, z});
    check_op(cat("(X, W, Z) => (Y) { P = infernode.BlockChannels(X)  Q = infernode.BlockChannels(Z) "
                 "C = infernode.BlockedConv<activation=\"Relu\", ",
                 attributes, ">(P, W, , Q)  Y = infernode.UnblockChannels<channels=", channels, ">(C) }"),
             17, {x, w, z}, expected, kLongSumTolerance);
  }
}

TEST_CASE("BlockedConv does not depend on the number of threads") {
  check_threads("(X, W) => (Y) { B = infernode.BlockChannels(X)  Y = infernode.BlockedConv<pads=[1,1,1,1]>(B, W) }", 17,
                {noise({2, 32, 30, 30}), noise({48, 32, 3, 3}, 1, 2)});
  check_threads("(X, W) => (Y) { B = infernode.BlockChannels(X)  Y = infernode.BlockedConv<pads=[1,1,1,1]>(B, W) }", 17,
                {noise({1, 64, 8, 8}), noise({300, 64, 3, 3}, 1, 2)});
  check_threads("(X, W) => (Y) { B = infernode.BlockChannels(X)  Y = infernode.BlockedConv(B, W) }", 17,
                {noise({1, 900, 7, 7}), noise({320, 900, 1, 1}, 1, 2)});
  check_threads(
      "(X, W) => (Y) { B = infernode.BlockChannels(X)  Y = infernode.BlockedConv<group=64, pads=[1,1,1,1]>(B, W) }", 17,
      {noise({2, 64, 28, 28}), noise({64, 1, 3, 3}, 1, 2)});
}

TEST_CASE("BlockedConv refuses what does not fit") {
  const Tensor b = noise({1, 2, 3, 3, 16}), w = noise({4, 16, 1, 1});
  check_op_fails("(X, W) => (Y) { Y = infernode.BlockedConv(X, W) }", 17, {b, w}, ErrorCode::ShapeMismatch,
                 "does not hold 16 channels");
  check_op_fails("(X, W, B) => (Y) { Y = infernode.BlockedConv(X, W, B) }", 17,
                 {noise({1, 1, 3, 3, 16}), w, noise({3})}, ErrorCode::ShapeMismatch, "bias has 3 elements");
  check_op_fails("(X, W, Z) => (Y) { Y = infernode.BlockedConv(X, W, , Z) }", 17,
                 {noise({1, 1, 3, 3, 16}), w, noise({1, 1, 3, 2, 16})}, ErrorCode::ShapeMismatch, "adds Z");
  check_op_fails("(X, W) => (Y) { Y = infernode.BlockedConv<group=2>(X, W) }", 17, {b, noise({4, 16, 1, 1})},
                 ErrorCode::UnsupportedOperator, "one channel a group");
  check_op_fails("(X, W) => (Y) { Y = infernode.BlockedConv(X, W) }", 17, {noise({1, 16, 3, 3}), w},
                 ErrorCode::UnsupportedOperator, "takes 16 channels in blocks only");
  for (const Shape& rank : {Shape{}, Shape{16}, Shape{1, 16, 3}, Shape{1, 1, 3, 3, 3, 16}})
    check_op_fails("(X, W) => (Y) { Y = infernode.BlockedConv(X, W) }", 17, {noise(rank), w}, ErrorCode::ShapeMismatch,
                   "does not hold 16 channels");
  // The loops of the highest precision take float32 only.
  check_op_fails("(X, W) => (Y) { B = infernode.BlockChannels<to=16>(X)  Y = infernode.BlockedConv(B, W) }", 17,
                 {noise({1, 16, 3, 3}), w}, ErrorCode::UnsupportedOperator, "does not take these blocks of bfloat16");
  check_op_fails("(X) => (Y) { Y = infernode.UnblockChannels<channels=40>(X) }", 17, {b}, ErrorCode::ShapeMismatch,
                 "does not hold 40 channels");
}

}  // namespace
}  // namespace infernode::test
