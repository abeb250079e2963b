#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Where chooses by the condition, all three broadcast") {
  const char* text = "(C, X, Y) => (Z) { Z = Where(C, X, Y) }";
  check_op(text, 9, {b8({2, 2}, {true, false, true, true}), f32({2, 2}, {1, 2, 3, 4}), f32({2, 2}, {9, 8, 7, 6})},
           {f32({2, 2}, {1, 8, 3, 4})});
  check_op(text, 16, {b8({2, 1}, {true, false}), i64({1, 3}, {1, 2, 3}), i64({}, {0})},
           {i64({2, 3}, {1, 2, 3, 0, 0, 0})});
  check_op(text, 16, {b8({}, {false}), str({2}, {"a", "b"}), str({2}, {"c", "d"})}, {str({2}, {"c", "d"})});
  check_op(text, 16, {b8({2}, {true, false}), bf16({1}, {1}), bf16({1}, {2})}, {bf16({2}, {1, 2})});
  check_op(text, 9, {b8({0}, {}), f32({1}, {1}), f32({1}, {2})}, {f32({0}, {})});
  check_op_fails(text, 9, {b8({2}, {true, false}), f32({3}, {1, 2, 3}), f32({1}, {2})}, ErrorCode::ShapeMismatch,
                 "broadcast");
}

TEST_CASE("Every combination of repeated inputs is chosen from") {
  const char* text = "(C, X, Y) => (Z) { Z = Where(C, X, Y) }";
  const Tensor mask = b8({4}, {true, false, false, true});
  const Tensor x = f32({4}, {1, 2, 3, 4}), y = f32({4}, {5, 6, 7, 8}), one = f32({1}, {1}), nine = f32({}, {9});
  check_op(text, 16, {mask, x, y}, {f32({4}, {1, 6, 7, 4})});
  check_op(text, 16, {mask, one, y}, {f32({4}, {1, 6, 7, 1})});
  check_op(text, 16, {mask, x, nine}, {f32({4}, {1, 9, 9, 4})});
  check_op(text, 16, {mask, one, nine}, {f32({4}, {1, 9, 9, 1})});
  check_op(text, 16, {b8({1}, {true}), x, nine}, {x});
  check_op(text, 16, {b8({1}, {false}), x, nine}, {f32({4}, {9, 9, 9, 9})});
  const Tensor large = noise({3, 40001});
  check_op(text, 16, {b8({3, 1}, {true, false, true}), large, large}, {large});
}

/// What Where gives of float32 inputs of these shapes, element by element from its definition.
void check_broadcast(const Shape& c_shape, const Shape& x_shape, const Shape& y_shape, DType type) {
  const Shape shape = tensor::broadcast(c_shape, tensor::broadcast(x_shape, y_shape));
  CAPTURE(shape.to_string());
  const auto at = [&](const Shape& in, std::int64_t i) {
    const Shape strides = tensor::broadcast_strides(in, shape);
    std::int64_t offset = 0;
    for (std::size_t d = shape.rank(); d-- > 0; i /= shape[d]) offset += i % shape[d] * strides[d];
    return offset;
  };
  const auto numbers = [](const Shape& in, int first) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < in.numel(); ++i) values.push_back(static_cast<double>((first + i * 7) % 61));
    return values;
  };
  const std::vector<double> x = numbers(x_shape, 0), y = numbers(y_shape, 30);
  std::vector<double> chosen, expected;
  for (std::int64_t i = 0; i < c_shape.numel(); ++i) chosen.push_back(i * i % 3 == 1 ? 1 : 0);
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    const bool first = chosen[static_cast<std::size_t>(at(c_shape, i))] != 0;
    expected.push_back(first ? x[static_cast<std::size_t>(at(x_shape, i))]
                             : y[static_cast<std::size_t>(at(y_shape, i))]);
  }
  check_op("(C, X, Y) => (Z) { Z = Where(C, X, Y) }", 16,
           {tensor_as(DType::Bool, c_shape, chosen), tensor_as(type, x_shape, x), tensor_as(type, y_shape, y)},
           {tensor_as(type, shape, expected)});
}

TEST_CASE("Where over short rows that one input repeats, of elements of every size") {
  for (const DType type : {DType::Float32, DType::Float64, DType::Float16, DType::UInt8}) {
    for (const std::int64_t n : {1, 2, 3, 11, 12, 49, 64, 65, 100}) {
      check_broadcast({5, 7, n}, {5, 7, n}, {1, 1, n}, type);
      check_broadcast({5, 7, n}, {n}, {5, 7, n}, type);
      check_broadcast({n}, {5, 7, n}, {5, 7, n}, type);
      check_broadcast({5, 1, n}, {1, 7, 1}, {5, 7, 1}, type);
    }
  }
  check_broadcast({300, 129, 3}, {300, 129, 3}, {3}, DType::Float32);
}

TEST_CASE("Where passes on symbolic sizes") {
  const char* text =
      "(float[N,3] X, int64[1] minus, int64[1] one) => (Z) { S = Shape(X) E = Equal(S, minus) Z = Where(E, one, S) }";
  CHECK(infer_contents(text, 16, {Value{}, i64({1}, {-1}), i64({1}, {1})}) == "[N,3]");
}

}  // namespace
}  // namespace infernode::test
