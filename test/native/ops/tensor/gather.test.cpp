#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Gather picks slices along any axis") {
  const Tensor x = iota(DType::Float32, {3, 2});
  check_op("(float[A,B] X, int64[C] i) => (float[D,E] Y) { Y = Gather(X, i) }", 1, {x, i64({2}, {2, 0})},
           {f32({2, 2}, {4, 5, 0, 1})});
  check_op("(float[A,B] X, int32[C,D] i) => (float[E,F,G] Y) { Y = Gather<axis=1>(X, i) }", 11,
           {x, i32({1, 3}, {1, -1, 0})}, {f32({3, 1, 3}, {1, 1, 0, 3, 3, 2, 5, 5, 4})});
  check_op("(float[A,B] X, int64 i) => (float[C] Y) { Y = Gather<axis=-1>(X, i) }", 13, {x, i64({}, {-2})},
           {f32({3}, {0, 2, 4})});
  check_op("(string[A] X, int64[B] i) => (string[C] Y) { Y = Gather(X, i) }", 13,
           {str({2}, {"a", "b"}), i64({3}, {1, 1, 0})}, {str({3}, {"b", "b", "a"})});
  check_op("(bool[A,B] X, int64[0] i) => (bool[C,D] Y) { Y = Gather(X, i) }", 13,
           {b8({1, 2}, {true, false}), i64({0}, {})}, {b8({0, 2}, {})});
}

TEST_CASE("Gather names the index that is out of range") {
  const Tensor x = iota(DType::Float32, {3, 2});
  check_op_fails("(float[A,B] X, int64[C] i) => (Y) { Y = Gather(X, i) }", 13, {x, i64({1}, {5})},
                 ErrorCode::InvalidArgument,
                 "indices element out of data bounds, idx=5 must be within the inclusive range [-3,2]");
  check_op_fails("(float[A,B] X, int64[C] i) => (Y) { Y = Gather<axis=1>(X, i) }", 13, {x, i64({1}, {INT64_MIN})},
                 ErrorCode::InvalidArgument, "of axis 1");
  check_op_fails("(float[A,B] X, int64[C] i) => (Y) { Y = Gather(X, i) }", 13, {f32({0, 2}, {}), i64({1}, {0})},
                 ErrorCode::InvalidArgument, "idx=0");
  check_op_fails("(float[A,B] X, int64[C] i) => (Y) { Y = Gather(X, i) }", 13, {f32({2, 0}, {}), i64({1}, {2})},
                 ErrorCode::InvalidArgument, "idx=2");
}

TEST_CASE("Gather follows shapes and contents") {
  CHECK(infer_op("(float[N,C,H] X, int64[K] i) => (Y) { Y = Gather<axis=1>(X, i) }", 13) == "tensor(float)[N,K,H]");
  CHECK(infer_contents("(int64[3] X, int64 i) => (Y) { Y = Gather(X, i) }", 13, {i64({3}, {4, 5, 6}), i64({}, {-1})}) ==
        "[6]");
  CHECK(infer_contents("(int64[3] X, int64[2] i) => (Y) { Y = Gather(X, i) }", 13,
                       {i64({3}, {4, 5, 6}), i64({2}, {0, 2})}) == "[4,6]");
}

TEST_CASE("GatherElements picks one element per index") {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  check_op("(float[A,B] X, int64[C,D] i) => (float[E,F] Y) { Y = GatherElements<axis=1>(X, i) }", 11,
           {x, i64({2, 2}, {0, -1, 2, 1})}, {f32({2, 2}, {1, 3, 6, 5})});
  check_op("(float[A,B] X, int32[C,D] i) => (float[E,F] Y) { Y = GatherElements<axis=0>(X, i) }", 13,
           {x, i32({3, 2}, {0, 1, 1, 0, -1, -2})}, {f32({3, 2}, {1, 5, 4, 2, 4, 2})});
  check_op("(double[A] X, int64[B] i) => (double[C] Y) { Y = GatherElements(X, i) }", 13,
           {f64({3}, {1, 2, 3}), i64({4}, {2, 2, 0, 1})}, {f64({4}, {3, 3, 1, 2})});
  check_op_fails("(float[A,B] X, int64[C,D] i) => (Y) { Y = GatherElements<axis=1>(X, i) }", 13,
                 {x, i64({2, 1}, {0, 3})}, ErrorCode::InvalidArgument, "idx=3");
  check_op_fails("(float[A,B] X, int64[C,D] i) => (Y) { Y = GatherElements<axis=1>(X, i) }", 13,
                 {x, i64({3, 1}, {0, 0, 0})}, ErrorCode::ShapeMismatch, "goes beyond");
}

TEST_CASE("GatherElements works on an inner axis of many dims") {
  const Tensor x = iota(DType::Int32, {2, 3, 4});
  Tensor indices = iota(DType::Int64, {2, 2, 4}), expected = Tensor::make(DType::Int32, {2, 2, 4});
  for (std::int64_t i = 0; i < 16; ++i) {
    indices.mutable_data<std::int64_t>()[i] = (i * 5 + 1) % 3;
    expected.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(i / 8 * 12 + (i * 5 + 1) % 3 * 4 + i % 4);
  }
  check_op("(int32[A,B,C] X, int64[D,E,F] i) => (int32[G,H,I] Y) { Y = GatherElements<axis=1>(X, i) }", 13,
           {x, indices}, {expected});
}

TEST_CASE("GatherND picks slices by tuples") {
  const Tensor x = iota(DType::Float32, {2, 2, 2});
  check_op("(float[A,B,C] X, int64[D,E] i) => (Y) { Y = GatherND(X, i) }", 11, {x, i64({2, 3}, {0, 0, 1, 1, -1, 0})},
           {f32({2}, {1, 6})});
  check_op("(float[A,B,C] X, int64[D,E] i) => (Y) { Y = GatherND(X, i) }", 12, {x, i64({1, 2}, {1, 0})},
           {f32({1, 2}, {4, 5})});
  check_op("(float[A,B,C] X, int64[D,E] i) => (Y) { Y = GatherND<batch_dims=1>(X, i) }", 13, {x, i64({2, 1}, {1, 0})},
           {f32({2, 2}, {2, 3, 4, 5})});
  check_op("(float[A,B,C] X, int64[D,0] i) => (Y) { Y = GatherND(X, i) }", 13, {x, i64({1, 0}, {})},
           {iota(DType::Float32, {1, 2, 2, 2})});
  check_op_fails("(float[A,B,C] X, int64[D,E] i) => (Y) { Y = GatherND(X, i) }", 13, {x, i64({1, 2}, {1, 2})},
                 ErrorCode::InvalidArgument, "idx=2 must be within the inclusive range [-2,1] of axis 1");
  check_op_fails("(float[A,B,C] X, int64[D,E] i) => (Y) { Y = GatherND(X, i) }", 13, {x, i64({1, 4}, {0, 0, 0, 0})},
                 ErrorCode::ShapeMismatch, "address more axes");
  check_op_fails("(float[A,B,C] X, int64[D,E] i) => (Y) { Y = GatherND<batch_dims=1>(X, i) }", 13,
                 {x, i64({3, 1}, {0, 0, 0})}, ErrorCode::ShapeMismatch, "batch dim 0");
  check_op_fails("(float[A,B,C] X, int64[2,2] i) => (Y) { Y = GatherND<batch_dims=9223372036854775807>(X, i) }", 13,
                 {x, i64({2, 2}, {0, 0, 0, 0})}, ErrorCode::ShapeMismatch, "address more axes");
}

}  // namespace
}  // namespace infernode::test
