#include "ops/op_test.h"

namespace infernode::test {
namespace {

struct Case {
  const char* call;
  std::int64_t opset;
  double (*reference)(double);
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::log1p(std::exp(x)); }

const Case kCases[] = {
    {"Relu(X)", 6, [](double x) { return x > 0 ? x : 0; }},
    {"Sigmoid(X)", 6, sigmoid},
    {"LeakyRelu(X)", 6, [](double x) { return x < 0 ? 0.01 * x : x; }},
    {"LeakyRelu<alpha=0.25>(X)", 16, [](double x) { return x < 0 ? 0.25 * x : x; }},
    {"ThresholdedRelu(X)", 10, [](double x) { return x > 1 ? x : 0; }},
    {"ThresholdedRelu<alpha=2.5>(X)", 10, [](double x) { return x > 2.5 ? x : 0; }},
    {"Elu(X)", 6, [](double x) { return x < 0 ? std::expm1(x) : x; }},
    {"Elu<alpha=2.0>(X)", 6, [](double x) { return x < 0 ? 2 * std::expm1(x) : x; }},
    {"Celu<alpha=2.0>(X)", 12, [](double x) { return x < 0 ? 2 * std::expm1(x / 2) : x; }},
    {"Selu(X)", 6, [](double x) { return 1.0507010221481323 * (x > 0 ? x : 1.6732631921768188 * std::expm1(x)); }},
    {"Selu<alpha=2.0, gamma=3.0>(X)", 6, [](double x) { return 3 * (x > 0 ? x : 2 * std::expm1(x)); }},
    {"HardSigmoid(X)", 6, [](double x) { return std::fmax(0, std::fmin(1, 0.2 * x + 0.5)); }},
    {"HardSigmoid<alpha=0.5, beta=0.6>(X)", 6, [](double x) { return std::fmax(0, std::fmin(1, 0.5 * x + 0.6)); }},
    {"HardSwish(X)", 14, [](double x) { return x * std::fmax(0, std::fmin(1, x / 6 + 0.5)); }},
    {"Softplus(X)", 1, softplus},
    {"Softsign(X)", 1, [](double x) { return x / (1 + std::fabs(x)); }},
    {"Mish(X)", 18, [](double x) { return x * std::tanh(softplus(x)); }},
    {"Swish(X)", 24, [](double x) { return x * sigmoid(x); }},
    {"Swish<alpha=1.5>(X)", 24, [](double x) { return x * sigmoid(1.5 * x); }},
    {"Gelu(X)", 20, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
    {"Gelu<approximate=\"tanh\">(X)", 20,
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
    {"com.microsoft.Gelu(X)", 20, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
    {"com.microsoft.QuickGelu(X)", 20, [](double x) { return x * sigmoid(1.702 * x); }},
    {"com.microsoft.FastGelu(X)", 20,
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
    {"Shrink<bias=0.5, lambd=1.0>(X)", 9, [](double x) { return x < -1  ? x + 0.5
                                                                : x > 1 ? x - 0.5
                                                                        : 0; }},
};

TEST_CASE("Activations follow their formulas in float, double and half precision") {
  for (const Case& c : kCases) {
    CAPTURE(c.call);
    const std::string text = cat("(X) => (Y) { Y = ", c.call, " }");
    for (const DType type : {DType::Float32, DType::Float64, DType::Float16}) {
      if (std::string_view(c.call).starts_with("Celu") && type != DType::Float32)
        continue;  // float only before version 28
      std::vector<double> x, y;
      for (int i = -100; i <= 100; ++i) {
        x.push_back(i / 16.0);  // exact in all three
        y.push_back(c.reference(i / 16.0));
      }
      const double tolerance = type == DType::Float32 ? 2e-6 : type == DType::Float64 ? 1e-6 : 2e-3;
      check_op(text, c.opset, {tensor_as(type, {3, 67}, x)}, {tensor_as(type, {3, 67}, y)}, tolerance);
    }
  }
}

TEST_CASE("Activations at infinities") {
  const Tensor x = f32({2}, {-kInf, kInf});
  check_op("(X) => (Y) { Y = Sigmoid(X) }", 13, {x}, {f32({2}, {0, 1})});
  check_op("(X) => (Y) { Y = Elu(X) }", 6, {x}, {f32({2}, {-1, kInf})});
  check_op("(X) => (Y) { Y = Softplus(X) }", 1, {f32({2}, {-200, 200})}, {f32({2}, {0, 200})});
  check_op("(X) => (Y) { Y = Relu(X) }", 14, {f32({3}, {kNaN, -kInf, kInf})}, {f32({3}, {kNaN, 0, kInf})});
}

TEST_CASE("Relu and Shrink of integers") {
  check_op("(X) => (Y) { Y = Relu(X) }", 14, {i32({3}, {-5, 0, 5})}, {i32({3}, {0, 0, 5})});
  check_op("(X) => (Y) { Y = Relu(X) }", 14, {i8({3}, {-128, 0, 5})}, {i8({3}, {0, 0, 5})});
  check_op_fails("(X) => (Y) { Y = Relu(X) }", 13, {i32({1}, {1})}, ErrorCode::InvalidModel, "int32");
  check_op("(X) => (Y) { Y = Shrink<bias=1.0, lambd=1.5>(X) }", 9, {i32({5}, {-2, -1, 0, 1, 2})},
           {i32({5}, {-1, 0, 0, 0, 1})});
}

TEST_CASE("PRelu broadcasts its slope one way") {
  const char* text = "(X, S) => (Y) { Y = PRelu(X, S) }";
  check_op(text, 9, {f32({2, 2}, {-1, 2, -3, -4}), f32({2}, {0.5, 0.25})}, {f32({2, 2}, {-0.5, 2, -1.5, -1})});
  check_op(text, 16, {i32({3}, {-2, 3, -4}), i32({1}, {3})}, {i32({3}, {-6, 3, -12})});
  check_op(text, 7, {f16({2}, {-2, 2}), f16({1}, {0.5})}, {f16({2}, {-1, 2})});
  check_op_fails(text, 9, {f32({2}, {1, 2}), f32({2, 2}, {1, 1, 1, 1})}, ErrorCode::ShapeMismatch, "slope");
}

TEST_CASE("Up to version 6 PRelu's slope belongs to channels") {
  check_op("(X, S) => (Y) { Y = PRelu(X, S) }", 6, {f32({1, 2, 2}, {-1, -1, -1, 1}), f32({2}, {0.5, 0.25})},
           {f32({1, 2, 2}, {-0.5, -0.5, -0.25, 1})});
}

TEST_CASE("FastGelu and BiasGelu add a bias along the last axis") {
  const Tensor x = f32({2, 3}, {-1, 0, 1, 2, -2, 0.5}), bias = f32({3}, {0.5, -0.5, 0});
  const auto exact = [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); };
  const auto fast = [](double v) {
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  };
  std::vector<double> e, f;
  for (double v : {-0.5, -0.5, 1.0, 2.5, -2.5, 0.5}) {
    e.push_back(exact(v));
    f.push_back(fast(v));
  }
  for (const DType type : {DType::Float32, DType::Float16}) {
    const Tensor a = tensor_as(type, {2, 3}, {-1, 0, 1, 2, -2, 0.5}), b = tensor_as(type, {3}, {0.5, -0.5, 0});
    const double tolerance = type == DType::Float32 ? 1e-6 : 1e-3;
    check_op("(X, B) => (Y) { Y = com.microsoft.BiasGelu(X, B) }", 20, {a, b}, {tensor_as(type, {2, 3}, e)}, tolerance);
    check_op("(X, B) => (Y) { Y = com.microsoft.FastGelu(X, B) }", 20, {a, b}, {tensor_as(type, {2, 3}, f)}, tolerance);
  }
  check_op_fails("(X, B) => (Y) { Y = com.microsoft.BiasGelu(X, B) }", 20, {x, f32({2}, {1, 1})},
                 ErrorCode::ShapeMismatch, "does not fit");
  check_op_fails("(X) => (Y) { Y = Gelu<approximate=\"fast\">(X) }", 20, {bias}, ErrorCode::InvalidModel,
                 "none or tanh");
}

}  // namespace
}  // namespace infernode::test
