#include "microkernels/reduce/reduce.h"

#include "microkernels/elementwise/elementwise.h"

#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

double reference(ReduceOp op, const float* x, std::size_t n, std::size_t stride) {
  double sum = op == ReduceOp::kMax ? -INFINITY : op == ReduceOp::kMin ? INFINITY : op == ReduceOp::kProd ? 1.0 : 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const double v = x[i * stride];
    switch (op) {
      case ReduceOp::kSum:
        sum += v;
        break;
      case ReduceOp::kSumSquare:
        sum += v * v;
        break;
      case ReduceOp::kSumAbs:
        sum += std::abs(v);
        break;
      case ReduceOp::kMax:
        sum = std::max(sum, v);
        break;
      case ReduceOp::kMin:
        sum = std::min(sum, v);
        break;
      default:
        sum *= v;
    }
  }
  return sum;
}

const std::size_t kLengths[] = {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 130, 1000, 5000};

TEST_CASE("row reductions of every length") {
  for_each_target([](CpuRung rung) {
    const ReduceTable& table = kernel_set(rung).reduce;
    for (const std::size_t n : kLengths) {
      CAPTURE(n);
      Guarded<float> x(n);
      Random random(n + 1);
      random.fill(x, 0.9f, 1.1f);
      for (std::size_t i = 0; i < n; i += 3) x[i] = -x[i];
      for (std::size_t op = 0; op < static_cast<std::size_t>(ReduceOp::kCount); ++op) {
        CAPTURE(op);
        const double expected = reference(static_cast<ReduceOp>(op), x.data(), n, 1);
        const double actual = table.row[op](x.data(), n);
        if (std::isinf(expected)) {
          CHECK(actual == expected);
        } else {
          CHECK(std::abs(actual - expected) <= 1e-6 * (1 + static_cast<double>(n) * (op == 5 ? 0.01 : 1)) *
                                                   std::max(1.0, op == 5 ? std::abs(expected) : 1.0));
        }
      }
    }
  });
}

TEST_CASE("column reductions of every width") {
  for_each_target([](CpuRung rung) {
    const ReduceTable& table = kernel_set(rung).reduce;
    for (const std::size_t cols : {1u, 3u, 4u, 8u, 15u, 16u, 17u, 64u, 65u, 131u}) {
      for (const std::size_t rows : {0u, 1u, 2u, 9u}) {
        const std::size_t stride = cols + 2;
        Guarded<float> x(rows ? (rows - 1) * stride + cols : 0), out(cols);
        Random random(cols + rows);
        random.fill(x);
        for (std::size_t op = 0; op < static_cast<std::size_t>(ReduceOp::kCount); ++op) {
          table.columns[op](x.data(), rows, stride, cols, out.data());
          bool good = true;
          for (std::size_t c = 0; c < cols; ++c) {
            const double expected = reference(static_cast<ReduceOp>(op), x.data() + c, rows, stride);
            good = good && (out[c] == expected || std::abs(out[c] - expected) < 1e-5);
          }
          CHECK(good);
        }
      }
    }
  });
}

TEST_CASE("a long sum stays accurate") {
  for_each_target([](CpuRung rung) {
    std::vector<float> x(10'000'000, 0.1f);
    const double expected = static_cast<double>(0.1f) * static_cast<double>(x.size());
    CHECK(std::abs(kernel_set(rung).reduce.row[0](x.data(), x.size()) - expected) < 1e-5 * expected);
  });
}

TEST_CASE("long columns stay accurate") {
  for_each_target([](CpuRung rung) {
    constexpr std::size_t kRows = 25600;
    for (const std::size_t cols : {5, 16, 64}) {
      std::vector<float> x(kRows * cols), out(cols);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.0f + 0.001f * static_cast<float>(i % 37);
      kernel_set(rung).reduce.columns[static_cast<std::size_t>(ReduceOp::kSum)](x.data(), kRows, cols, cols,
                                                                                out.data());
      for (std::size_t c = 0; c < cols; ++c) {
        const double expected = reference(ReduceOp::kSum, x.data() + c, kRows, cols);
        CHECK(std::abs(out[c] - expected) < 2e-6 * expected);
      }
    }
  });
}

TEST_CASE("maximum and minimum carry NaN wherever it is") {
  for_each_target([](CpuRung rung) {
    const ReduceTable& table = kernel_set(rung).reduce;
    for (const std::size_t n : {1u, 5u, 16u, 40u, 129u}) {
      for (std::size_t at = 0; at < n; ++at) {
        std::vector<float> x(n, 1.0f), out(n);
        x[at] = std::nanf("");
        CHECK(std::isnan(table.row[static_cast<std::size_t>(ReduceOp::kMax)](x.data(), n)));
        CHECK(std::isnan(table.row[static_cast<std::size_t>(ReduceOp::kMin)](x.data(), n)));
        CHECK(std::isnan(table.row[static_cast<std::size_t>(ReduceOp::kSum)](x.data(), n)));
        CHECK(table.arg_max(x.data(), n, false) == at);
        CHECK(table.arg_min(x.data(), n, true) == at);
      }
    }
  });
}

TEST_CASE("softmax and log_softmax rows") {
  for_each_target([](CpuRung rung) {
    const ReduceTable& table = kernel_set(rung).reduce;
    for (const std::size_t n : kLengths) {
      if (n == 0) continue;
      Guarded<float> x(n), y(n), logs(n);
      Random random(n);
      random.fill(x, -20, 20);
      if (n > 3) x[n / 2] = -INFINITY;
      double top = -INFINITY, sum = 0;
      for (const float v : x) top = std::max<double>(top, v);
      for (const float v : x) sum += std::exp(v - top);
      table.softmax(x.data(), y.data(), n);
      table.log_softmax(x.data(), logs.data(), n);
      double worst = 0, worst_log = 0;
      for (std::size_t i = 0; i < n; ++i) {
        worst = std::max(worst, std::abs(y[i] - std::exp(x[i] - top) / sum));
        const double expected = x[i] - top - std::log(sum);
        worst_log = std::max(worst_log,
                             std::isinf(expected) ? (logs[i] == expected ? 0.0 : 1.0) : std::abs(logs[i] - expected));
      }
      CHECK(worst < 3e-7);
      CHECK(worst_log < 5e-6);
      table.softmax(x.data(), x.data(), n);
      CHECK(std::equal(x.begin(), x.end(), y.begin()));
    }
  });
}

TEST_CASE("exponentials of rows, and their sums") {
  for_each_target([](CpuRung rung) {
    const ReduceTable& table = kernel_set(rung).reduce;
    for (const float scale : {1.0f, 0.125f, 3.0f}) {
      for (const std::size_t n : kLengths) {
        if (n == 0) continue;
        Guarded<float> x(n), y(n);
        Random random(n);
        random.fill(x, -20, 20);
        if (n > 3) x[n / 2] = -INFINITY;
        double top = -INFINITY, sum = 0, worst = 0;
        for (const float v : x) top = std::max<double>(top, v);
        for (const float v : x) sum += std::exp(scale * (v - top));
        const float total = table.exponentials(x.data(), y.data(), n, scale);
        for (std::size_t i = 0; i < n; ++i) worst = std::max(worst, std::abs(y[i] - std::exp(scale * (x[i] - top))));
        CHECK(worst < 3e-7);
        CHECK(std::abs(total - sum) <= 3e-6 * sum);
      }
    }
    std::vector<float> x = {-INFINITY, -INFINITY, -INFINITY};
    CHECK(std::isnan(table.exponentials(x.data(), x.data(), 3, 0.5f)));
  });
}

TEST_CASE("softmax of extreme rows") {
  for_each_target([](CpuRung rung) {
    const ReduceTable& table = kernel_set(rung).reduce;
    std::vector<float> x = {1e38f, -1e38f, 1e38f, 0}, y(4);
    table.softmax(x.data(), y.data(), 4);
    CHECK(y == std::vector<float>{0.5f, 0, 0.5f, 0});
    x = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    table.softmax(x.data(), y.data(), 4);
    CHECK(std::isnan(y[0]));
    x = {0, std::nanf(""), 1, 2};
    table.softmax(x.data(), y.data(), 4);
    CHECK(std::isnan(y[3]));
  });
}

TEST_CASE("layer_norm and rms_norm rows, also far from zero") {
  for_each_target([](CpuRung rung) {
    const ReduceTable& table = kernel_set(rung).reduce;
    for (const float offset : {0.0f, 1000.0f}) {
      for (const std::size_t n : kLengths) {
        if (n == 0) continue;
        Guarded<float> x(n), gamma(n), beta(n), y(n), plain(n), rms(n);
        Random random(n);
        random.fill(x, offset - 1, offset + 1);
        random.fill(gamma);
        random.fill(beta);
        double mean = 0, variance = 0, square = 0;
        for (const float v : x) mean += v;
        mean /= static_cast<double>(n);
        for (const float v : x) {
          variance += (v - mean) * (v - mean) / static_cast<double>(n);
          square += static_cast<double>(v) * v / static_cast<double>(n);
        }
        float m = 0, scale = 0, inv_rms = 0;
        table.layer_norm(x.data(), gamma.data(), beta.data(), y.data(), n, 1e-5f, &m, &scale);
        table.layer_norm(x.data(), nullptr, nullptr, plain.data(), n, 1e-5f, nullptr, nullptr);
        table.rms_norm(x.data(), gamma.data(), rms.data(), n, 1e-5f, &inv_rms);
        CHECK(std::abs(m - mean) <= 1e-6 * (1 + std::abs(mean)));
        CHECK(std::abs(scale * std::sqrt(variance + 1e-5) - 1) < 1e-3);
        CHECK(std::abs(inv_rms * std::sqrt(square + 1e-5) - 1) < 1e-5);
        double worst = 0, worst_rms = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const double normal = (x[i] - mean) / std::sqrt(variance + 1e-5);
          worst = std::max({worst, std::abs(plain[i] - normal), std::abs(y[i] - (normal * gamma[i] + beta[i]))});
          worst_rms = std::max(worst_rms, std::abs(rms[i] - x[i] * gamma[i] / std::sqrt(square + 1e-5)));
        }
        CHECK(worst < (offset == 0 ? 1e-5 : 1e-3) * (n == 1 ? 1e3 : 1));
        CHECK(worst_rms < 1e-5);
      }
    }
  });
}

TEST_CASE("softmax, normalisations and gelu are no worse than plain float32 code") {
  // Largest error over the largest number expected.
  const auto error = [](const std::vector<float>& actual, const std::vector<double>& expected) {
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      worst = std::max(worst, std::abs(actual[i] - expected[i]));
      largest = std::max(largest, std::abs(expected[i]));
    }
    return worst / largest;
  };
  // As the definitions read, in the arithmetic of `T`, one number after another.
  const auto softmax = [](const std::vector<float>& x, auto one) {
    using T = decltype(one);
    std::vector<T> y(x.size());
    T sum = 0;
    const T most = *std::max_element(x.begin(), x.end());
    for (std::size_t i = 0; i < x.size(); ++i) sum += y[i] = std::exp(static_cast<T>(x[i]) - most);
    for (T& value : y) value /= sum;
    return y;
  };
  const auto normal = [](const std::vector<float>& x, auto one) {
    using T = decltype(one);
    T mean = 0, variance = 0;
    for (const float value : x) mean += value;
    mean /= static_cast<T>(x.size());
    for (const float value : x) variance += (value - mean) * (value - mean);
    const T scale = one / std::sqrt(variance / static_cast<T>(x.size()) + static_cast<T>(1e-5f));
    std::vector<T> y;
    for (const float value : x) y.push_back((value - mean) * scale);
    return y;
  };
  const auto gelu = [](const std::vector<float>& x, auto one) {
    using T = decltype(one);
    std::vector<T> y;
    for (const T value : x)
      y.push_back(static_cast<T>(0.5) * value * (one + std::erf(value / std::sqrt(static_cast<T>(2)))));
    return y;
  };
  for_each_target([&](CpuRung rung) {
    const ReduceTable& table = kernel_set(rung).reduce;
    for (const std::size_t n : {100u, 768u, 4096u}) {
      for (const float offset : {0.0f, 30.0f}) {
        CAPTURE(n);
        CAPTURE(offset);
        double ours[3] = {}, plain[3] = {};  // the worst of many draws
        for (std::uint32_t draw = 0; draw < 20; ++draw) {
          Random random(draw + 1);
          std::vector<float> x(n), y(n);
          random.fill(x, offset - 8, offset + 8);
          const auto compare = [&](std::size_t what, const auto& definition) {
            ours[what] = std::max(ours[what], error(y, definition(x, 1.0)));
            plain[what] = std::max(plain[what], error(definition(x, 1.0f), definition(x, 1.0)));
          };
          table.softmax(x.data(), y.data(), n);
          compare(0, softmax);
          table.layer_norm(x.data(), nullptr, nullptr, y.data(), n, 1e-5f, nullptr, nullptr);
          compare(1, normal);
          kernel_set(rung).elementwise[UnaryOp::kGelu](x.data(), y.data(), n, 0, 0);
          compare(2, gelu);
        }
        CHECK(ours[0] <= plain[0]);
        CHECK(ours[1] <= plain[1]);
        CHECK(ours[2] <= plain[2]);
      }
    }
  });
}

TEST_CASE("arg_max and arg_min find the first or the last") {
  for_each_target([](CpuRung rung) {
    const ReduceTable& table = kernel_set(rung).reduce;
    for (const std::size_t n : kLengths) {
      if (n == 0) continue;
      Guarded<float> x(n);
      Random random(n);
      for (auto& v : x) v = static_cast<float>(random.bits() % 5);
      const auto first_max = static_cast<std::size_t>(std::max_element(x.begin(), x.end()) - x.begin());
      const auto first_min = static_cast<std::size_t>(std::min_element(x.begin(), x.end()) - x.begin());
      std::size_t last_max = first_max, last_min = first_min;
      for (std::size_t i = 0; i < n; ++i) {
        if (x[i] == x[first_max]) last_max = i;
        if (x[i] == x[first_min]) last_min = i;
      }
      CHECK(table.arg_max(x.data(), n, false) == first_max);
      CHECK(table.arg_max(x.data(), n, true) == last_max);
      CHECK(table.arg_min(x.data(), n, false) == first_min);
      CHECK(table.arg_min(x.data(), n, true) == last_min);
    }
  });
}

TEST_CASE("dot products and mean_variance of every length") {
  for_each_target([](CpuRung rung) {
    const ReduceTable& table = kernel_set(rung).reduce;
    for (const std::size_t n : kLengths) {
      Guarded<float> x(n), y(n);
      Random random(n);
      random.fill(x);
      random.fill(y);
      double expected = 0;
      for (std::size_t i = 0; i < n; ++i) expected += static_cast<double>(x[i]) * y[i];
      CHECK(std::abs(table.dot(x.data(), y.data(), n) - expected) < 1e-5);
      if (n == 0) continue;
      float mean = 0, variance = 0;
      table.mean_variance(x.data(), n, &mean, &variance);
      double m = 0, v = 0;
      for (const float e : x) m += e / static_cast<double>(n);
      for (const float e : x) v += (e - m) * (e - m) / static_cast<double>(n);
      CHECK(std::abs(mean - m) < 1e-6);
      CHECK(std::abs(variance - v) < 1e-6);
    }
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
