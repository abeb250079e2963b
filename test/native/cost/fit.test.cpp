#include "cost/fit.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace infernode::cost {

TEST_CASE("fit finds the rates that times were made of") {
  const Terms rates{100, 0.02, 0, 0.5};
  std::vector<Sample> samples;
  for (int i = 1; i <= 40; ++i) {
    const double n = i;
    const Terms terms{1, n * n * 1000, 7 * n, std::fmod(n * 37, 11) * 100 + 1};
    samples.push_back({terms, nanoseconds(terms, rates)});
  }
  const Fit found = fit(samples);
  CHECK(found.residual < 1e-3);
  CHECK(found.rates[1] == doctest::Approx(rates[1]).epsilon(0.01));
  CHECK(found.rates[3] == doctest::Approx(rates[3]).epsilon(0.01));
}

TEST_CASE("fit gives no rate below zero, and none to terms that never occur") {
  std::vector<Sample> samples;
  for (int i = 1; i <= 10; ++i) samples.push_back({{1, static_cast<double>(i)}, 1000.0 - 10 * i});
  const Fit found = fit(samples);
  for (const double rate : found.rates) CHECK(rate >= 0);
  CHECK(found.rates[2] == 0);
  CHECK(fit({}).residual == 0);
}

TEST_CASE("every table has rows, and each of them a name and rates that are no less than zero") {
  using microkernels::Float32Precision;
  for (const CpuRung rung :
       {CpuRung::Baseline, CpuRung::Avx2, CpuRung::Avx512, CpuRung::Vnni, CpuRung::Bf16, CpuRung::Amx, CpuRung::Neon}) {
    for (const auto precision : {Float32Precision::kHighest, Float32Precision::kHigh, Float32Precision::kMedium}) {
      const std::span<const Row> rows = table(rung, precision);
      REQUIRE(!rows.empty());
      for (const Row& row : rows) {
        CHECK(find(rows, row.method) == &row);
        for (const double rate : row.rates) CHECK(rate >= 0);
      }
    }
  }
  CHECK(find(table(CpuRung::Avx2, Float32Precision::kHighest), "no such method") == nullptr);
}

}  // namespace infernode::cost
