#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Col2Im adds overlapping blocks") {
  check_op("(float[N,K,L] X, int64[2] i, int64[2] b) => (float Y) { Y = Col2Im(X, i, b) }", 18,
           {f32({1, 2, 2}, {1, 2, 3, 4}), i64({2}, {1, 3}), i64({2}, {1, 2})}, {f32({1, 1, 1, 3}, {1, 5, 4})});
  check_op(
      "(float[N,K,L] X, int64[1] i, int64[1] b) => (float Y) { Y = Col2Im<pads=[1,0], strides=[2], dilations=[2]>(X, "
      "i, b) }",
      18, {f32({1, 2, 2}, {1, 2, 3, 4}), i64({1}, {4}), i64({1}, {2})}, {f32({1, 1, 4}, {0, 5, 0, 4})});
  check_op("(int64[N,K,L] X, int64[1] i, int64[1] b) => (int64 Y) { Y = Col2Im(X, i, b) }", 18,
           {i64({1, 4, 1}, {1, 2, 3, 4}), i64({1}, {2}), i64({1}, {2})}, {i64({1, 2, 2}, {1, 2, 3, 4})});
}

TEST_CASE("Col2Im adds what is no number as numpy does") {
  const auto fold = [](const char* type) {
    return cat("(", type, "[N,K,L] X, int64[2] i, int64[2] b) => (", type, " Y) { Y = Col2Im(X, i, b) }");
  };
  const Tensor image = i64({2}, {1, 3}), block = i64({2}, {1, 2});
  check_op(fold("bool"), 18, {b8({1, 2, 2}, {true, false, true, false}), image, block},
           {b8({1, 1, 1, 3}, {true, true, false})});
  check_op(fold("string"), 18, {str({1, 2, 2}, {"a", "b", "c", "d"}), image, block},
           {str({1, 1, 1, 3}, {"a", "bc", "d"})});
  const auto complex = [](DType type, const Shape& shape, std::initializer_list<double> parts) {
    Tensor t = Tensor::make(type, shape);
    std::size_t i = 0;
    for (double v : parts) {
      if (type == DType::Complex64)
        static_cast<float*>(t.mutable_raw())[i++] = static_cast<float>(v);
      else
        static_cast<double*>(t.mutable_raw())[i++] = v;
    }
    return t;
  };
  for (const DType type : {DType::Complex64, DType::Complex128}) {
    check_op(fold(type == DType::Complex64 ? "complex64" : "complex128"), 18,
             {complex(type, {1, 2, 2}, {1, 2, 3, 0, 0, 1, 4, 0}), image, block},
             {complex(type, {1, 1, 1, 3}, {1, 2, 3, 1, 4, 0})});
  }
  check_op(fold("string"), 18, {str({1, 4, 0}, {}), i64({2}, {0, 1}), i64({2}, {2, 2})}, {str({1, 1, 0, 1}, {})});
}

TEST_CASE("Col2Im refuses blocks that do not fit the image") {
  check_op_fails("(float[N,K,L] X, int64[1] i, int64[1] b) => (Y) { Y = Col2Im(X, i, b) }", 18,
                 {f32({1, 2, 1}, {1, 2}), i64({1}, {4}), i64({1}, {2})}, ErrorCode::ShapeMismatch,
                 "does not hold 3 blocks");
  check_op_fails("(float[N,K,L] X, int64[1] i, int64[1] b) => (Y) { Y = Col2Im<strides=[0]>(X, i, b) }", 18,
                 {f32({1, 2, 1}, {1, 2}), i64({1}, {2}), i64({1}, {2})}, ErrorCode::InvalidArgument, "");
  CHECK(infer_op("(float[N,K,L] X, int64[2] i, int64[2] b) => (Y) { Y = Col2Im(X, i, b) }", 18,
                 {Value{}, i64({2}, {5, 6}), i64({2}, {1, 1})}) == "tensor(float)[N,K,5,6]");
}

}  // namespace
}  // namespace infernode::test
