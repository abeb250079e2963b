#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("ScatterElements and Scatter replace elements") {
  const Tensor x = f32({1, 5}, {1, 2, 3, 4, 5}), i = i64({1, 2}, {1, -2}), u = f32({1, 2}, {9, 8});
  const Tensor y = f32({1, 5}, {1, 9, 3, 8, 5});
  check_op("(float[A,B] X, int64[C,D] i, float[E,F] u) => (float[G,H] Y) { Y = Scatter<axis=1>(X, i, u) }", 9,
           {x, i, u}, {y});
  for (const std::int64_t opset : {11, 13, 16, 18}) {
    check_op("(float[A,B] X, int64[C,D] i, float[E,F] u) => (float[G,H] Y) { Y = ScatterElements<axis=1>(X, i, u) }",
             opset, {x, i, u}, {y});
  }
  check_op("(float[A,B] X, int32[C,D] i, float[E,F] u) => (float[G,H] Y) { Y = ScatterElements(X, i, u) }", 18,
           {f32({3, 2}, {0, 0, 0, 0, 0, 0}), i32({2, 2}, {1, 0, 2, 2}), f32({2, 2}, {1, 2, 3, 4})},
           {f32({3, 2}, {0, 2, 1, 0, 3, 4})});
  check_op("(string[A] X, int64[B] i, string[C] u) => (string[D] Y) { Y = ScatterElements(X, i, u) }", 18,
           {str({2}, {"a", "b"}), i64({1}, {0}), str({1}, {"z"})}, {str({2}, {"z", "b"})});
  check_op_fails("(float[A,B] X, int64[C,D] i, float[E,F] u) => (Y) { Y = Scatter<axis=1>(X, i, u) }", 11, {x, i, u},
                 ErrorCode::UnsupportedOperator, "deprecated");
}

TEST_CASE("ScatterElements combines duplicates in order") {
  const Tensor x = f32({4}, {1, 2, 3, 4}), i = i64({3}, {1, 1, 3}), u = f32({3}, {5, -7, 2});
  const auto run = [&](const char* how, const Tensor& y) {
    check_op(cat("(float[A] X, int64[B] i, float[C] u) => (float[D] Y) { Y = ScatterElements<reduction=\"", how,
                 "\">(X, i, u) }"),
             18, {x, i, u}, {y});
  };
  run("none", f32({4}, {1, -7, 3, 2}));
  run("add", f32({4}, {1, 0, 3, 6}));
  run("mul", f32({4}, {1, -70, 3, 8}));
  run("min", f32({4}, {1, -7, 3, 2}));
  run("max", f32({4}, {1, 5, 3, 4}));
  check_op("(int8[A] X, int64[B] i, int8[C] u) => (int8[D] Y) { Y = ScatterElements<reduction=\"add\">(X, i, u) }", 18,
           {i8({1}, {127}), i64({1}, {0}), i8({1}, {1})}, {i8({1}, {-128})});
  check_op(
      "(float16[A] X, int64[B] i, float16[C] u) => (float16[D] Y) { Y = ScatterElements<reduction=\"add\">(X, i, u) }",
      18, {f16({1}, {1.5}), i64({2}, {0, 0}), f16({2}, {2, 3})}, {f16({1}, {6.5})});
  check_op_fails("(float[A] X, int64[B] i, float[C] u) => (Y) { Y = ScatterElements<reduction=\"sum\">(X, i, u) }", 18,
                 {x, i, u}, ErrorCode::InvalidModel, "unknown reduction 'sum'");
  check_op_fails("(string[A] X, int64[B] i, string[C] u) => (Y) { Y = ScatterElements<reduction=\"add\">(X, i, u) }",
                 18, {str({1}, {"a"}), i64({1}, {0}), str({1}, {"b"})}, ErrorCode::UnsupportedOperator, "");
}

TEST_CASE("ScatterElements covers long rows and outer groups") {
  const std::int64_t rows = 6, columns = 1000;
  Tensor indices = Tensor::make(DType::Int64, {rows, columns}),
         expected = Tensor::make(DType::Float32, {rows, columns});
  const Tensor x = noise({rows, columns}), u = noise({rows, columns}, 1, 2);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t at = (c * 7 + r) % columns;
      indices.mutable_data<std::int64_t>()[r * columns + c] = at;
      expected.mutable_data<float>()[r * columns + at] = u.data<float>()[r * columns + c];
    }
  }
  check_op("(float[A,B] X, int64[C,D] i, float[E,F] u) => (float[G,H] Y) { Y = ScatterElements<axis=1>(X, i, u) }", 18,
           {x, indices, u}, {expected});
}

TEST_CASE("ScatterElements refuses indices and shapes that do not fit") {
  const Tensor x = f32({2}, {1, 2});
  check_op_fails("(float[A] X, int64[B] i, float[C] u) => (Y) { Y = ScatterElements(X, i, u) }", 18,
                 {x, i64({1}, {2}), f32({1}, {0})}, ErrorCode::InvalidArgument,
                 "idx=2 must be within the inclusive range [-2,1]");
  check_op_fails("(float[A] X, int64[B] i, float[C] u) => (Y) { Y = ScatterElements(X, i, u) }", 18,
                 {x, i64({1}, {0}), f32({2}, {0, 0})}, ErrorCode::ShapeMismatch, "must be alike");
}

TEST_CASE("ScatterND writes slices") {
  const Tensor x = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  check_op("(float[A,B] X, int64[C,D] i, float[E,F] u) => (float[G,H] Y) { Y = ScatterND(X, i, u) }", 11,
           {x, i64({2, 1}, {2, 0}), f32({2, 2}, {9, 8, 7, 6})}, {f32({3, 2}, {7, 6, 3, 4, 9, 8})});
  check_op("(float[A,B] X, int64[C,D] i, float[E] u) => (float[G,H] Y) { Y = ScatterND<reduction=\"add\">(X, i, u) }",
           16, {x, i64({3, 2}, {0, 1, 0, 1, -1, 0}), f32({3}, {1, 10, 100})}, {f32({3, 2}, {1, 13, 3, 4, 105, 6})});
  check_op("(float[A,B] X, int64[C,D] i, float[E] u) => (float[G,H] Y) { Y = ScatterND<reduction=\"max\">(X, i, u) }",
           18, {x, i64({2, 2}, {0, 1, 1, 1}), f32({2}, {kNaN, 0})}, {f32({3, 2}, {1, kNaN, 3, 4, 5, 6})});
  check_op_fails("(float[A,B] X, int64[C,D] i, float[E,F] u) => (Y) { Y = ScatterND(X, i, u) }", 18,
                 {x, i64({1, 1}, {3}), f32({1, 2}, {1, 2})}, ErrorCode::InvalidArgument, "idx=3");
  check_op_fails("(float[A,B] X, int64[C,D] i, float[E,F] u) => (Y) { Y = ScatterND(X, i, u) }", 18,
                 {x, i64({1, 1}, {0}), f32({1, 1}, {1})}, ErrorCode::ShapeMismatch, "ask for [1,2]");
}

TEST_CASE("TensorScatter writes into a cache, past its end in circular mode") {
  const Tensor cache = iota(DType::Float32, {2, 4, 1});
  check_op("(float[A,B,C] X, float[D,E,F] u, int64[G] w) => (float[H,I,J] Y) { Y = TensorScatter(X, u, w) }", 24,
           {cache, f32({2, 2, 1}, {10, 11, 12, 13}), i64({2}, {1, 2})}, {f32({2, 4, 1}, {0, 10, 11, 3, 4, 5, 12, 13})});
  check_op("(float[A,B,C] X, float[D,E,F] u) => (float[H,I,J] Y) { Y = TensorScatter(X, u) }", 24,
           {cache, f32({2, 1, 1}, {10, 12})}, {f32({2, 4, 1}, {10, 1, 2, 3, 12, 5, 6, 7})});
  check_op(
      "(float[A,B,C] X, float[D,E,F] u, int64[G] w) => (float[H,I,J] Y) { Y = TensorScatter<mode=\"circular\">(X, u, "
      "w) }",
      24, {cache, f32({2, 2, 1}, {10, 11, 12, 13}), i64({2}, {3, 0})}, {f32({2, 4, 1}, {11, 1, 2, 10, 12, 13, 6, 7})});
  check_op_fails("(float[A,B,C] X, float[D,E,F] u, int64[G] w) => (Y) { Y = TensorScatter(X, u, w) }", 24,
                 {cache, f32({2, 2, 1}, {10, 11, 12, 13}), i64({2}, {3, 0})}, ErrorCode::InvalidArgument,
                 "goes beyond");
}

}  // namespace
}  // namespace infernode::test
