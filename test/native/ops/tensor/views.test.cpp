#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Reshape takes the shape from an attribute in version 1 and from an input later") {
  const Tensor x = iota(DType::Float32, {2, 6});
  check_op("(float[2,6] X) => (float[3,4] Y) { Y = Reshape<shape=[3,4]>(X) }", 1, {x}, {iota(DType::Float32, {3, 4})});
  for (const std::int64_t opset : {5, 13, 14, 19, 21, 23, 24, 25}) {
    check_op("(float[A,B] X, int64[3] s) => (float[C,D,E] Y) { Y = Reshape(X, s) }", opset, {x, i64({3}, {0, -1, 2})},
             {iota(DType::Float32, {2, 3, 2})});
  }
}

TEST_CASE("Reshape treats 0, -1 and empty tensors") {
  const Tensor empty = f32({0, 3}, {});
  check_op("(float[A,3] X, int64[2] s) => (float[B,C] Y) { Y = Reshape(X, s) }", 14, {empty, i64({2}, {0, -1})},
           {empty});
  check_op("(float[A,3] X, int64[2] s) => (float[B,C] Y) { Y = Reshape<allowzero=1>(X, s) }", 14,
           {empty, i64({2}, {7, 0})}, {f32({7, 0}, {})});
  check_op("(float[A] X, int64[0] s) => (float Y) { Y = Reshape(X, s) }", 14, {f32({1}, {5}), i64({0}, {})},
           {f32({}, {5})});
  check_op("(string[2] X, int64[2] s) => (string[A,B] Y) { Y = Reshape(X, s) }", 14,
           {str({2}, {"a", "b"}), i64({2}, {2, 1})}, {str({2, 1}, {"a", "b"})});
  const Tensor packed = tensor_as(DType::Int4, {3, 2}, {1, -2, 3, 4, -5, 6});
  check_op("(int4[3,2] X, int64[1] s) => (int4[A] Y) { Y = Reshape(X, s) }", 21, {packed, i64({1}, {-1})},
           {tensor_as(DType::Int4, {6}, {1, -2, 3, 4, -5, 6})});
}

TEST_CASE("Reshape refuses what does not fit") {
  const Tensor x = iota(DType::Float32, {2, 3});
  const char* text = "(float[A,B] X, int64[2] s) => (float[C,D] Y) { Y = Reshape(X, s) }";
  check_op_fails(text, 14, {x, i64({2}, {4, 2})}, ErrorCode::ShapeMismatch, "cannot be reshaped");
  check_op_fails(text, 14, {x, i64({2}, {4, -1})}, ErrorCode::ShapeMismatch, "cannot be reshaped");
  check_op_fails(text, 14, {x, i64({2}, {-1, -1})}, ErrorCode::InvalidArgument, "more than one -1");
  check_op_fails(text, 14, {x, i64({2}, {-2, 3})}, ErrorCode::InvalidArgument, "negative dim");
  check_op_fails("(float[A,B] X, int64[3] s) => (float[C,D,E] Y) { Y = Reshape(X, s) }", 14, {x, i64({3}, {6, 1, 0})},
                 ErrorCode::InvalidArgument, "copies dim 2");
  check_op_fails("(float[A,B] X, int64[2] s) => (float[C,D] Y) { Y = Reshape<allowzero=1>(X, s) }", 14,
                 {x, i64({2}, {0, -1})}, ErrorCode::InvalidArgument, "allowzero");
  check_op_fails(text, 14, {x, i64({2}, {INT64_MAX, INT64_MAX})}, ErrorCode::ShapeMismatch, "cannot be reshaped");
}

TEST_CASE("Reshape keeps symbols") {
  CHECK(infer_op("(float[N,12,S,64] X, int64[3] s) => (Y) { Y = Reshape(X, s) }", 14,
                 {Value{}, i64({3}, {0, 0, -1})}) == "tensor(float)[N,12,64*S]");
  CHECK(infer_op("(float[N,4,6] X, int64[2] s) => (Y) { Y = Reshape(X, s) }", 14, {Value{}, i64({2}, {0, -1})}) ==
        "tensor(float)[N,24]");
  CHECK(infer_op("(float[N,S,768] X, int64[4] s) => (Y) { Y = Reshape(X, s) }", 14,
                 {Value{}, i64({4}, {0, 0, 12, -1})}) == "tensor(float)[N,S,12,64]");
  CHECK(infer_op("(float[N,M] X, int64[1] s) => (Y) { Y = Reshape(X, s) }", 14, {Value{}, i64({1}, {-1})}) ==
        "tensor(float)[M*N]");
  CHECK(infer_op("(float[N,M] X, int64[2] s) => (Y) { Y = Reshape(X, s) }", 14) == "tensor(float)[?,?]");
}

TEST_CASE("Flatten splits the dims at any axis") {
  const Tensor x = iota(DType::Float32, {2, 3, 4});
  const auto flat = [&](std::int64_t a, std::int64_t b) { return iota(DType::Float32, {a, b}); };
  check_op("(float[A,B,C] X) => (float[D,E] Y) { Y = Flatten(X) }", 1, {x}, {flat(2, 12)});
  check_op("(float[A,B,C] X) => (float[D,E] Y) { Y = Flatten<axis=0>(X) }", 9, {x}, {flat(1, 24)});
  check_op("(float[A,B,C] X) => (float[D,E] Y) { Y = Flatten<axis=3>(X) }", 13, {x}, {flat(24, 1)});
  check_op("(float[A,B,C] X) => (float[D,E] Y) { Y = Flatten<axis=-1>(X) }", 25, {x}, {flat(6, 4)});
  check_op("(float X) => (float[D,E] Y) { Y = Flatten<axis=0>(X) }", 13, {f32({}, {1})}, {f32({1, 1}, {1})});
  check_op_fails("(float[A,B,C] X) => (Y) { Y = Flatten<axis=4>(X) }", 13, {x}, ErrorCode::InvalidArgument, "axis 4");
}

TEST_CASE("Squeeze drops the named dims, or all of one") {
  const Tensor x = iota(DType::Int64, {1, 3, 1, 2});
  check_op("(int64[1,3,1,2] X) => (int64[A,B] Y) { Y = Squeeze(X) }", 1, {x}, {iota(DType::Int64, {3, 2})});
  check_op("(int64[A,3,1,2] X) => (int64[B,C,D] Y) { Y = Squeeze<axes=[0]>(X) }", 11, {x},
           {iota(DType::Int64, {3, 1, 2})});
  check_op("(int64[A,3,1,2] X, int64[2] a) => (int64[B,C] Y) { Y = Squeeze(X, a) }", 13, {x, i64({2}, {-2, 0})},
           {iota(DType::Int64, {3, 2})});
  check_op_fails("(int64[A,B,1,2] X, int64[1] a) => (Y) { Y = Squeeze(X, a) }", 13, {x, i64({1}, {1})},
                 ErrorCode::ShapeMismatch, "dim 1 must be 1 instead of 3");
  check_op_fails("(int64[A,3,1,2] X, int64[1] a) => (Y) { Y = Squeeze(X, a) }", 13, {x, i64({1}, {4})},
                 ErrorCode::InvalidArgument, "axis");
}

TEST_CASE("Unsqueeze counts its axes in the output") {
  const Tensor x = iota(DType::Float32, {2, 3});
  check_op("(float[A,B] X) => (float[C,D,E,F] Y) { Y = Unsqueeze<axes=[0,3]>(X) }", 1, {x},
           {iota(DType::Float32, {1, 2, 3, 1})});
  check_op("(float[A,B] X, int64[2] a) => (float[C,D,E,F] Y) { Y = Unsqueeze(X, a) }", 13, {x, i64({2}, {-1, 1})},
           {iota(DType::Float32, {2, 1, 3, 1})});
  check_op("(float X, int64[1] a) => (float[A] Y) { Y = Unsqueeze(X, a) }", 21, {f32({}, {4}), i64({1}, {0})},
           {f32({1}, {4})});
  check_op_fails("(float[A,B] X, int64[2] a) => (Y) { Y = Unsqueeze(X, a) }", 13, {x, i64({2}, {1, -3})},
                 ErrorCode::InvalidArgument, "twice");
  CHECK(infer_op("(float[N,M] X, int64[1] a) => (Y) { Y = Unsqueeze(X, a) }", 13) == "tensor(float)[?,?,?]");
}

TEST_CASE("views pass on the contents of shape tensors") {
  CHECK(infer_contents("(int64 N, int64[1] a) => (Y) { Y = Unsqueeze(N, a) }", 13, {i64({}, {7}), i64({1}, {0})}) ==
        "[7]");
  CHECK(infer_contents("(int64[1] N, int64[1] a) => (Y) { Y = Squeeze(N, a) }", 13, {i64({1}, {7}), i64({1}, {0})}) ==
        "[7]");
  CHECK(infer_contents("(int64[2,1] N, int64[1] a) => (Y) { Y = Squeeze(N, a) }", 13, {Value{}, i64({1}, {1})}) == "?");
}

}  // namespace
}  // namespace infernode::test
