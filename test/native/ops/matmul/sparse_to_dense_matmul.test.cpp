#include "ops/written_cases.h"

namespace infernode::test {
namespace {

const EdgeCases edges(R"(
  SparseToDenseMatMul | no rows | 21 | 1e-05
  y0 = com.microsoft.SparseToDenseMatMul(x0, x1)
  float[0,2] x0 = {}, float[2,3] x1 = {1, 2, 3, 4, 5, 6}
  float[0,3] y0 = {}

  SparseToDenseMatMul | an empty sum | 21 | 1e-05
  y0 = com.microsoft.SparseToDenseMatMul(x0, x1)
  int64[2,0] x0 = {}, int64[0,2] x1 = {}
  int64[2,2] y0 = {0, 0, 0, 0}

  SparseToDenseMatMul | rank 0 | 21 | 1e-05
  y0 = com.microsoft.SparseToDenseMatMul(x0, x1)
  float[1,1] x0 = {2}, float x1 = {3}
  refused
)");

std::string model(const char* type, const char* attributes, const char* dims) {
  return cat("<ir_version: 8, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> g (", type, "[3,4] A, ", type, dims,
             " B) => (Y) { Y = com.microsoft.SparseToDenseMatMul<", attributes, ">(A, B) }");
}

TEST_CASE("SparseToDenseMatMul multiplies matrices whose zeros are written out") {
  const Tensor a = f32({3, 4}, {1, 0, 0, 0, 2, 0, 0, 3, 0, 0, 0, 4});
  check_op(model("float", "", "[4,2]"), 21, {a, f32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
           {f32({3, 2}, {1, 2, 23, 28, 28, 32})});
  check_op(model("float", "transA = 1, alpha = 2.0", "[3,1]"), 21, {a, f32({3, 1}, {1, 2, 3})},
           {f32({4, 1}, {10, 0, 0, 36})});
  check_op(model("float", "transB = 1", "[2,4]"), 21, {a, f32({2, 4}, {1, 3, 5, 7, 2, 4, 6, 8})},
           {f32({3, 2}, {1, 2, 23, 28, 28, 32})});
  check_op(model("float", "", "[2,4,1]"), 21, {a, f32({2, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8})},
           {f32({2, 3, 1}, {1, 14, 16, 5, 34, 32})});
  check_op(model("float", "", "[4]"), 21, {a, f32({4}, {1, 2, 3, 4})}, {f32({3}, {1, 14, 16})});
  check_op(model("int64", "alpha = 2.5", "[4,1]"), 21,
           {i64({3, 4}, {1, 0, 0, 0, 2, 0, 0, 3, 0, 0, 0, 4}), i64({4, 1}, {1, 2, 3, 4})}, {i64({3, 1}, {2, 28, 32})});
}

TEST_CASE("SparseToDenseMatMul multiplies sparse values by either form of index") {
  const std::string text =
      "<ir_version: 8, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> g (sparse_tensor(float[3,4]) A, float[4,2] B) "
      "=> "
      "(Y) "
      "{ Y = com.microsoft.SparseToDenseMatMul(A, B) }";
  const Tensor values = f32({3}, {4, 1, 2}), b = f32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor expected = f32({3, 2}, {1, 2, 2, 4, 28, 32});
  const auto product = [&](const Tensor& indices) {
    return run_op(text, 21, {tensor::Sparse{values, indices, Shape{3, 4}}, b});
  };
  CHECK(difference(product(i64({3}, {11, 0, 4}))[0], expected).empty());
  CHECK(difference(product(i64({3, 2}, {2, 3, 0, 0, 1, 0}))[0], expected).empty());
  CHECK_THROWS_WITH_AS(product(i64({3}, {12, 0, 4})), doctest::Contains("outside"), Error);
  CHECK_THROWS_WITH_AS(product(i64({3, 2}, {2, -1, 0, 0, 1, 0})), doctest::Contains("outside"), Error);
  CHECK_THROWS_WITH_AS(product(i64({2}, {1, 0})), doctest::Contains("2 indices of 3 values"), Error);
}

TEST_CASE("SparseToDenseMatMul refuses operands that do not fit") {
  refuses("SparseToDenseMatMul", "", {noise({3}), noise({3, 2})}, ErrorCode::ShapeMismatch, "A", "Y");
  refuses("SparseToDenseMatMul", "", {noise({3, 4}), noise({3, 2})}, ErrorCode::ShapeMismatch, "SparseToDenseMatMul",
          "Y");
  refuses("SparseToDenseMatMul", "", {noise({3, 4}), i64({4, 1}, {1, 2, 3, 4})}, ErrorCode::InvalidArgument, "B of",
          "Y");
}

}  // namespace
}  // namespace infernode::test
