#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("SpaceToDepth and DepthToSpace undo each other") {
  const Tensor image = f32({1, 1, 2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}), depth = f32({1, 4, 1, 2}, {0, 2, 1, 3, 4, 6, 5, 7});
  check_op("(float[N,C,H,W] X) => (float[A,B,D,E] Y) { Y = SpaceToDepth<blocksize=2>(X) }", 1, {image}, {depth});
  check_op("(float[N,C,H,W] X) => (float[A,B,D,E] Y) { Y = SpaceToDepth<blocksize=2, mode=\"CRD\">(X) }", 28, {image},
           {depth});
  check_op("(float[N,C,H,W] X) => (float[A,B,D,E] Y) { Y = DepthToSpace<blocksize=2>(X) }", 13, {depth}, {image});
  for (const char* mode : {"DCR", "CRD"}) {
    const Tensor x = noise({2, 3, 6, 4});
    check_op(cat("(float[N,C,H,W] X) => (float[A,B,D,E] Y) { T = SpaceToDepth<blocksize=2, mode=\"", mode,
                 "\">(X) Y = DepthToSpace<blocksize=2, mode=\"", mode, "\">(T) }"),
             28, {x}, {x});
  }
}

TEST_CASE("DepthToSpace orders channels by its mode") {
  const Tensor x = iota(DType::Int64, {1, 8, 1, 1});
  check_op("(int64[N,C,H,W] X) => (int64[A,B,D,E] Y) { Y = DepthToSpace<blocksize=2>(X) }", 11, {x},
           {i64({1, 2, 2, 2}, {0, 2, 4, 6, 1, 3, 5, 7})});
  check_op("(int64[N,C,H,W] X) => (int64[A,B,D,E] Y) { Y = DepthToSpace<blocksize=2, mode=\"CRD\">(X) }", 11, {x},
           {i64({1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})});
}

TEST_CASE("DepthToSpace refuses what its block does not divide") {
  check_op_fails("(float[N,C,H,W] X) => (Y) { Y = DepthToSpace<blocksize=2>(X) }", 13,
                 {iota(DType::Float32, {1, 3, 1, 1})}, ErrorCode::ShapeMismatch, "multiple of 4");
  check_op_fails("(float[N,C,H,W] X) => (Y) { Y = SpaceToDepth<blocksize=2>(X) }", 13,
                 {iota(DType::Float32, {1, 1, 2, 3})}, ErrorCode::ShapeMismatch, "width");
  check_op_fails("(float[N,C,H,W] X) => (Y) { Y = SpaceToDepth<blocksize=0>(X) }", 13,
                 {iota(DType::Float32, {1, 1, 2, 3})}, ErrorCode::InvalidModel, "blocksize 0");
  CHECK(infer_op("(float[N,C,H,W] X) => (Y) { Y = DepthToSpace<blocksize=2>(X) }", 13) ==
        "tensor(float)[N,floor(C/4),2*H,2*W]");
}

}  // namespace
}  // namespace infernode::test
