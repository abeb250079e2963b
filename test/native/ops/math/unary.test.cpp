#include "ops/op_test.h"

namespace infernode::test {
namespace {

std::string unary(const char* op) { return cat("(X) => (Y) { Y = ", op, "(X) }"); }

struct FloatCase {
  const char* op;
  std::int64_t opset;
  double (*reference)(double);
  double low, high;  ///< of the arguments
};

const FloatCase kFloatCases[] = {
    {"Ceil", 6, [](double x) { return std::ceil(x); }, -4, 4},
    {"Floor", 6, [](double x) { return std::floor(x); }, -4, 4},
    {"Round", 11, [](double x) { return std::nearbyint(x); }, -4, 4},
    {"Sqrt", 6, [](double x) { return std::sqrt(x); }, 0, 9},
    {"Reciprocal", 6, [](double x) { return 1 / x; }, 0.5, 4},
    {"Exp", 6, [](double x) { return std::exp(x); }, -5, 5},
    {"Log", 6, [](double x) { return std::log(x); }, 0.1, 20},
    {"Erf", 9, [](double x) { return std::erf(x); }, -3, 3},
    {"Sin", 7, [](double x) { return std::sin(x); }, -6, 6},
    {"Cos", 7, [](double x) { return std::cos(x); }, -6, 6},
    {"Tan", 7, [](double x) { return std::tan(x); }, -1.2, 1.2},
    {"Asin", 7, [](double x) { return std::asin(x); }, -1, 1},
    {"Acos", 7, [](double x) { return std::acos(x); }, -1, 1},
    {"Atan", 7, [](double x) { return std::atan(x); }, -6, 6},
    {"Sinh", 9, [](double x) { return std::sinh(x); }, -3, 3},
    {"Cosh", 9, [](double x) { return std::cosh(x); }, -3, 3},
    {"Tanh", 6, [](double x) { return std::tanh(x); }, -4, 4},
    {"Asinh", 9, [](double x) { return std::asinh(x); }, -4, 4},
    {"Acosh", 9, [](double x) { return std::acosh(x); }, 1, 9},
    {"Atanh", 9, [](double x) { return std::atanh(x); }, -0.9, 0.9},
    {"Abs", 6, [](double x) { return std::fabs(x); }, -4, 4},
    {"Neg", 6, [](double x) { return -x; }, -4, 4},
    {"Sign", 9, [](double x) { return static_cast<double>((x > 0) - (x < 0)); }, -4, 4},
};

/// Arguments over the case's range and, computed from them as stored in `type`, the expected values.
std::pair<Tensor, Tensor> sample(const FloatCase& c, DType type, std::int64_t count) {
  std::vector<double> arguments, results;
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = c.low + (c.high - c.low) * static_cast<double>(i) / static_cast<double>(count - 1);
    const double stored = type == DType::Float32    ? static_cast<float>(x)
                          : type == DType::Float16  ? static_cast<float>(Float16(x))
                          : type == DType::BFloat16 ? static_cast<float>(BFloat16(x))
                                                    : x;
    arguments.push_back(stored);
    results.push_back(c.reference(stored));
  }
  return {tensor_as(type, {count}, arguments), tensor_as(type, {count}, results)};
}

TEST_CASE("Unary functions agree with the C library in all float types") {
  for (const FloatCase& c : kFloatCases) {
    CAPTURE(c.op);
    const auto [x, y] = sample(c, DType::Float32, 4099);
    check_op(unary(c.op), c.opset, {x}, {y}, 2e-6);
    const auto [x64, y64] = sample(c, DType::Float64, 67);
    check_op(unary(c.op), c.opset, {x64}, {y64}, 1e-14);
    const auto [x16, y16] = sample(c, DType::Float16, 1033);
    check_op(unary(c.op), c.opset, {x16}, {y16}, 1e-3);
    const auto [b16, d16] = sample(c, DType::BFloat16, 67);
    check_op(unary(c.op), 22, {b16}, {d16}, 8e-3);
  }
}

TEST_CASE("Abs, Neg and Sign of integers") {
  for (const DType type : {DType::Int8, DType::Int16, DType::Int32, DType::Int64}) {
    const Tensor x = tensor_as(type, {3}, {-5, 0, 7});
    check_op(unary("Abs"), 13, {x}, {tensor_as(type, {3}, {5, 0, 7})});
    check_op(unary("Neg"), 13, {x}, {tensor_as(type, {3}, {5, 0, -7})});
    check_op(unary("Sign"), 13, {x}, {tensor_as(type, {3}, {-1, 0, 1})});
  }
  for (const DType type : {DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64}) {
    check_op(unary("Abs"), 6, {tensor_as(type, {2}, {0, 7})}, {tensor_as(type, {2}, {0, 7})});
    check_op(unary("Sign"), 9, {tensor_as(type, {2}, {0, 7})}, {tensor_as(type, {2}, {0, 1})});
  }
  check_op(unary("Abs"), 13, {i32({1}, {INT32_MIN})}, {i32({1}, {INT32_MIN})});
  check_op(unary("Neg"), 13, {i64({1}, {INT64_MIN})}, {i64({1}, {INT64_MIN})});
  check_op(unary("Erf"), 9, {i32({3}, {-2, 0, 3})}, {i32({3}, {0, 0, 0})});
}

TEST_CASE("Functions at the edges of their range") {
  check_op(unary("Sqrt"), 13, {f32({3}, {-1, 0, kInf})}, {f32({3}, {kNaN, 0, kInf})});
  check_op(unary("Log"), 13, {f32({3}, {-1, 0, kInf})}, {f32({3}, {kNaN, -kInf, kInf})});
  check_op(unary("Exp"), 13, {f32({4}, {-kInf, 200, -200, kNaN})}, {f32({4}, {0, kInf, 0, kNaN})});
  check_op(unary("Round"), 11, {f32({6}, {0.5, 1.5, 2.5, -0.5, -2.5, 2.6f})}, {f32({6}, {0, 2, 2, 0, -2, 3})});
  check_op(unary("Tanh"), 13, {f32({3}, {-100, 100, kNaN})}, {f32({3}, {-1, 1, kNaN})});
  check_op(unary("Reciprocal"), 13, {f32({2}, {0, kInf})}, {f32({2}, {kInf, 0})});
  check_op(unary("Sign"), 13, {f32({2}, {kNaN, -kInf})}, {f32({2}, {kNaN, -1})});
  check_op(unary("Exp"), 13, {f32({0, 2}, {})}, {f32({0, 2}, {})});
}

TEST_CASE("Neg of a size is known as far as the size is") {
  CHECK(infer_contents("(float[N,3] X) => (Y) { S = Shape(X) Y = Neg(S) }", 13) == "[-N,-3]");
  CHECK(infer_contents("(float[2,3] X) => (Y) { S = Shape(X) Y = Neg(S) }", 13) == "[-2,-3]");
}

TEST_CASE("IsNaN and IsInf") {
  const Tensor x = f32({5}, {1, kNaN, kInf, -kInf, 0});
  check_op(unary("IsNaN"), 9, {x}, {b8({5}, {false, true, false, false, false})});
  check_op(unary("IsInf"), 10, {x}, {b8({5}, {false, false, true, true, false})});
  check_op("(X) => (Y) { Y = IsInf<detect_negative=0>(X) }", 10, {x}, {b8({5}, {false, false, true, false, false})});
  check_op("(X) => (Y) { Y = IsInf<detect_positive=0>(X) }", 10, {x}, {b8({5}, {false, false, false, true, false})});
  check_op(unary("IsNaN"), 13, {f16({2}, {1, kNaN})}, {b8({2}, {false, true})});
  check_op(unary("IsInf"), 20, {tensor_as(DType::Float8E5M2, {2}, {1, 2})}, {b8({2}, {false, false})});
  CHECK(infer_op("(float[N,3] X) => (Y) { Y = IsNaN(X) }", 13) == "tensor(bool)[N,3]");
}

TEST_CASE("Old versions take their attributes and keep to their types") {
  check_op("(X) => (Y) { Y = Exp<consumed_inputs=[0]>(X) }", 1, {f32({1}, {0})}, {f32({1}, {1})});
  check_op_fails(unary("Abs"), 1, {i32({1}, {1})}, ErrorCode::InvalidModel, "int32");
  check_op_fails(unary("Neg"), 13, {u8({1}, {1})}, ErrorCode::InvalidModel, "uint8");
}

}  // namespace
}  // namespace infernode::test
