#include "microkernels/elementwise/elementwise.h"

#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

using Reference = double (*)(double x, double a, double b);

struct UnaryCase {
  UnaryOp op;
  const char* name;
  Reference reference;
  double ulps;          // bound on the error ...
  double absolute = 0;  // ... or on the absolute one, where the definition cancels
  float low = -30, high = 30;
  float a = 0, b = 0;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

const UnaryCase kUnaryCases[] = {
    {UnaryOp::kAbs, "abs", [](double x, double, double) { return std::abs(x); }, 0},
    {UnaryOp::kNeg, "neg", [](double x, double, double) { return -x; }, 0},
    {UnaryOp::kReciprocal, "reciprocal", [](double x, double, double) { return 1 / x; }, 0.5},
    {UnaryOp::kSqrt, "sqrt", [](double x, double, double) { return std::sqrt(x); }, 0.5},
    {UnaryOp::kRsqrt, "rsqrt", [](double x, double, double) { return 1 / std::sqrt(x); }, 1.5},
    {UnaryOp::kFloor, "floor", [](double x, double, double) { return std::floor(x); }, 0},
    {UnaryOp::kCeil, "ceil", [](double x, double, double) { return std::ceil(x); }, 0},
    {UnaryOp::kRoundEven, "round", [](double x, double, double) { return std::nearbyint(x); }, 0},
    {UnaryOp::kExp, "exp", [](double x, double, double) { return std::exp(x); }, 2, 0, -90, 90},
    {UnaryOp::kLog, "log", [](double x, double, double) { return std::log(x); }, 2, 0, -1, 50},
    {UnaryOp::kLog, "log near one", [](double x, double, double) { return std::log(x); }, 2, 0, 0.5f, 1.5f},
    {UnaryOp::kSin, "sin", [](double x, double, double) { return std::sin(x); }, 3, 0, -100, 100},
    {UnaryOp::kCos, "cos", [](double x, double, double) { return std::cos(x); }, 3, 0, -100, 100},
    {UnaryOp::kSin, "sin of large arguments", [](double x, double, double) { return std::sin(x); }, 3, 0, -1e6f, 1e6f},
    {UnaryOp::kCos, "cos of large arguments", [](double x, double, double) { return std::cos(x); }, 3, 0, -1e4f, 1e4f},
    {UnaryOp::kTanh, "tanh", [](double x, double, double) { return std::tanh(x); }, 2, 0, -11, 11},
    {UnaryOp::kTanh, "tanh near zero", [](double x, double, double) { return std::tanh(x); }, 2, 0, -1, 1},
    {UnaryOp::kErf, "erf", [](double x, double, double) { return std::erf(x); }, 2, 0, -5, 5},
    {UnaryOp::kSigmoid, "sigmoid", [](double x, double, double) { return sigmoid(x); }, 3},
    {UnaryOp::kSilu, "silu", [](double x, double, double) { return x * sigmoid(x); }, 3},
    {UnaryOp::kQuickGelu, "quick gelu", [](double x, double a, double) { return x * sigmoid(a * x); }, 40, 0, -30, 30,
     1.702f},  // the product a * x, up to 80, is rounded before its exponential is taken
    {UnaryOp::kGelu, "gelu", [](double x, double, double) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, 3,
     1e-6},
    {UnaryOp::kGeluTanh, "gelu tanh",
     [](double x, double, double) {
       return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
     },
     4, 1e-6},
    {UnaryOp::kRelu, "relu", [](double x, double, double) { return x > 0    ? x
                                                                   : x != x ? x
                                                                            : 0; }, 0},
    {UnaryOp::kLeakyRelu, "leaky relu", [](double x, double a, double) { return x < 0 ? a * x : x; }, 0.5, 0, -30, 30,
     0.1f},
    {UnaryOp::kThresholdedRelu, "thresholded relu", [](double x, double a, double) { return x > a ? x : 0; }, 0, 0, -30,
     30, 2.5f},
    {UnaryOp::kElu, "elu", [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; }, 3, 0, -30, 30,
     1.5f},
    {UnaryOp::kSelu, "selu", [](double x, double a, double b) { return b * (x < 0 ? a * std::expm1(x) : x); }, 3, 0,
     -30, 30, 1.6732632f, 1.0507010f},
    {UnaryOp::kCelu, "celu", [](double x, double a, double) { return x < 0 ? a * std::expm1(x / a) : x; }, 4, 0, -30,
     30, 2.0f},
    {UnaryOp::kHardSigmoid, "hard sigmoid",
     [](double x, double a, double b) { return x != x ? x : clamp(a * x + b, 0, 1); }, 1, 1e-7, -30, 30, 0.2f, 0.5f},
    {UnaryOp::kHardSwish, "hard swish", [](double x, double, double) { return x * clamp(x / 6 + 0.5, 0, 1); }, 2, 1e-6},
    {UnaryOp::kSoftplus, "softplus", [](double x, double, double) { return softplus(x); }, 3},
    {UnaryOp::kSoftsign, "softsign",
     [](double x, double, double) { return std::isinf(x) ? (x > 0 ? 1.0 : -1.0) : x / (1 + std::abs(x)); }, 2},
    {UnaryOp::kMish, "mish",
     [](double x, double, double) { return std::isinf(x) && x < 0 ? 0.0 : x * std::tanh(softplus(x)); }, 5},
    {UnaryOp::kClip, "clip", [](double x, double a, double b) { return x != x ? x : clamp(x, a, b); }, 0, 0, -30, 30,
     -2, 3},
    {UnaryOp::kAffine, "affine", [](double x, double a, double b) { return a * x + b; }, 1, 1e-6, -30, 30, 2, 3},
    {UnaryOp::kSquare, "square", [](double x, double, double) { return x * x; }, 0.5},
    {UnaryOp::kSign, "sign", [](double x, double, double) { return x > 0   ? 1.0
                                                                   : x < 0 ? -1.0
                                                                           : x; }, 0},
};

void check_value(const UnaryCase& c, float x, float actual) {
  const double expected = c.reference(x, c.a, c.b);
  if (c.absolute > 0 && std::abs(expected - actual) <= c.absolute) return;
  const double error = ulp_error(actual, expected);
  if (!(error <= c.ulps + 1e-9)) {
    const std::string name = c.name;
    CAPTURE(name);
    CAPTURE(x);
    CAPTURE(actual);
    CAPTURE(expected);
    CHECK(error <= c.ulps);
  }
}

TEST_CASE("unary loops are accurate over their range") {
  for_each_target([](CpuRung rung) {
    const ElementwiseTable& table = kernel_set(rung).elementwise;
    std::vector<float> x(20000), y(x.size());
    for (const UnaryCase& c : kUnaryCases) {
      Random random(7);
      random.fill(x, c.low, c.high);
      table[c.op](x.data(), y.data(), x.size(), c.a, c.b);
      for (std::size_t i = 0; i < x.size(); ++i) check_value(c, x[i], y[i]);
    }
  });
}

TEST_CASE("unary loops accept every magnitude, NaN, infinities, zeros and denormals") {
  // Where the definition itself is NaN in float arithmetic (0 * infinity) the limit is not asked for.
  const auto undefined = [](UnaryOp op, float x) {
    const bool gated = op == UnaryOp::kSilu || op == UnaryOp::kQuickGelu || op == UnaryOp::kGelu ||
                       op == UnaryOp::kGeluTanh || op == UnaryOp::kHardSwish;
    return gated && x < -80.0f;
  };
  for_each_target([&](CpuRung rung) {
    const ElementwiseTable& table = kernel_set(rung).elementwise;
    std::vector<float> x = {0.0f,    -0.0f,           INFINITY, -INFINITY, std::nanf(""), 1e-40f,
                            -1e-40f, 1.17549435e-38f, 3.4e38f,  -3.4e38f,  1.0f,          -1.0f};
    for (float magnitude = 1e-37f; magnitude < 1e38f; magnitude *= 3.7f) {
      x.push_back(magnitude);
      x.push_back(-magnitude);
    }
    std::vector<float> y(x.size());
    for (const UnaryCase& c : kUnaryCases) {
      table[c.op](x.data(), y.data(), x.size(), c.a, c.b);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const bool trig = c.op == UnaryOp::kSin || c.op == UnaryOp::kCos;
        if (!undefined(c.op, x[i]) && !(trig && std::isinf(x[i]))) check_value(c, x[i], y[i]);
        if (trig && std::isinf(x[i])) CHECK(std::isnan(y[i]));
      }
    }
  });
}

TEST_CASE("Gelu far below zero is zero, and NaN of minus infinity") {
  for_each_target([](CpuRung rung) {
    const float x[] = {-10.5f, -60.0f, -3.4e38f, -INFINITY};
    float y[4];
    kernel_set(rung).elementwise[UnaryOp::kGelu](x, y, 4, 0, 0);
    for (int i = 0; i < 3; ++i) CHECK(y[i] == 0);
    CHECK(std::isnan(y[3]));
  });
}

TEST_CASE("unary loops stay inside arrays of every length and work in place") {
  for_each_target([](CpuRung rung) {
    const ElementwiseTable& table = kernel_set(rung).elementwise;
    for (std::size_t n = 0; n <= 67; n += n < 35 ? 1 : 8) {
      Guarded<float> x(n), y(n);
      Random random(n);
      random.fill(x, 0.5f, 2.0f);
      for (const UnaryCase& c : kUnaryCases) {
        table[c.op](x.data(), y.data(), n, c.a, c.b);
        for (std::size_t i = 0; i < n; ++i) check_value(c, x[i], y[i]);
      }
      table[UnaryOp::kSquare](x.data(), y.data(), n, 0, 0);
      table[UnaryOp::kSquare](x.data(), x.data(), n, 0, 0);
      bool same = true;
      for (std::size_t i = 0; i < n; ++i) same = same && x[i] == y[i];
      CHECK(same);
    }
  });
}

double binary_reference(BinaryOp op, double x, double y) {
  switch (op) {
    case BinaryOp::kAdd:
      return x + y;
    case BinaryOp::kSub:
      return x - y;
    case BinaryOp::kMul:
      return x * y;
    case BinaryOp::kDiv:
      return x / y;
    case BinaryOp::kMin:
      return x != x || y != y ? std::nan("") : std::min(x, y);
    case BinaryOp::kMax:
      return x != x || y != y ? std::nan("") : std::max(x, y);
    case BinaryOp::kPow:
      return std::pow(x, y);
    default:
      return x < 0 ? x * y : x;
  }
}

TEST_CASE("binary loops match scalar arithmetic in all three forms") {
  for_each_target([](CpuRung rung) {
    const ElementwiseTable& table = kernel_set(rung).elementwise;
    const float specials[] = {0.0f, -0.0f,    1.0f,      -1.0f,         0.5f,  2.0f, 3.0f,
                              2.7f, INFINITY, -INFINITY, std::nanf(""), -4.0f, 1e30f};
    const std::size_t count = std::size(specials);
    for (std::size_t op = 0; op < static_cast<std::size_t>(BinaryOp::kCount); ++op) {
      CAPTURE(op);
      Guarded<float> x(count * count), y(count * count), out(count * count);
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = specials[i / count];
        y[i] = specials[i % count];
      }
      double worst = 0;
      const auto take = [&](std::size_t at, float actual) {
        worst = std::max(worst, ulp_error(actual, binary_reference(static_cast<BinaryOp>(op), x[at], y[at])));
      };
      table.vector_vector[op](x.data(), y.data(), out.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) take(i, out[i]);
      for (std::size_t s = 0; s < count; ++s) {
        Guarded<float> row(count);
        table.scalar_vector[op](&specials[s], &y[s * count], row.data(), count);
        for (std::size_t i = 0; i < count; ++i) take(s * count + i, row[i]);
        // A column: the same y for every x.
        std::vector<float> column(specials, specials + count);
        table.vector_scalar[op](column.data(), &specials[s], row.data(), count);
        for (std::size_t i = 0; i < count; ++i) take(i * count + s, row[i]);
      }
      CHECK(worst <= 1.5);
    }
  });
}

TEST_CASE("binary loops and multiply_add stay inside arrays of every length") {
  for_each_target([](CpuRung rung) {
    const ElementwiseTable& table = kernel_set(rung).elementwise;
    for (std::size_t n = 0; n < 40; ++n) {
      Guarded<float> x(n), y(n), z(n), out(n);
      Random random(n + 1);
      random.fill(x, 0.1f, 2.0f);
      random.fill(y, 0.1f, 2.0f);
      random.fill(z);
      for (std::size_t op = 0; op < static_cast<std::size_t>(BinaryOp::kCount); ++op) {
        table.vector_vector[op](x.data(), y.data(), out.data(), n);
        double worst = 0;
        for (std::size_t i = 0; i < n; ++i)
          worst = std::max(worst, ulp_error(out[i], binary_reference(static_cast<BinaryOp>(op), x[i], y[i])));
        CHECK(worst <= 1.0);
      }
      table.multiply_add(x.data(), y.data(), z.data(), out.data(), n);
      double worst = 0;
      for (std::size_t i = 0; i < n; ++i)
        worst = std::max(worst, std::abs(out[i] - (static_cast<double>(x[i]) * y[i] + z[i])));
      CHECK(worst < 1e-6);
    }
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
