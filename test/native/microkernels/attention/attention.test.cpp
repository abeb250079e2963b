#include "microkernels/attention/attention.h"

#include <cstring>

#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> powers(const PowerTable& table, const std::vector<float>& x, float& sum, float scale = 1) {
  Guarded<float> in(x.size());
  Guarded<std::uint16_t> out(x.size());
  std::copy(x.begin(), x.end(), in.data());
  sum = table.powers(in.data(), out.data(), x.size(), scale);
  // In place, too.
  const float again = table.powers(in.data(), reinterpret_cast<std::uint16_t*>(in.data()), x.size(), scale);
  CHECK((again == sum || (std::isnan(again) && std::isnan(sum))));
  CHECK(std::memcmp(in.data(), out.data(), x.size() * sizeof(std::uint16_t)) == 0);
  std::vector<float> made;
  for (const std::uint16_t bits : out) made.push_back(static_cast<float>(BFloat16::from_bits(bits)));
  return made;
}

TEST_CASE("powers for products of bfloat16 agree with exp") {
  for_each_bfloat16_target([](CpuRung rung) {
    CHECK(kernel_set(rung, Float32Precision::kHighest).powers == nullptr);
    CHECK(kernel_set(rung, Float32Precision::kHigh).powers == nullptr);
    const PowerTable* const table = kernel_set(rung, Float32Precision::kMedium).powers;
    REQUIRE(table != nullptr);
    for (const std::size_t n : {1u, 2u, 15u, 16u, 17u, 63u, 64u, 65u, 200u, 1500u}) {
      CAPTURE(n);
      std::vector<float> x(n);
      Random(n).fill(x);
      for (float& v : x) v *= 12;
      if (n > 20) x[3] = -kInfinity, x[19] = -1e30f, x[n - 1] = -150;
      float sum = 0;
      const float scale = n % 2 == 0 ? 0.125f : 1.0f;
      const std::vector<float> made = powers(*table, x, sum, scale);
      const double most = *std::max_element(x.begin(), x.end());
      double total = 0, worst = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double power = std::exp(scale * (static_cast<double>(x[i]) - most));
        total += power;
        worst = std::max(worst, std::abs(made[i] - power) / (power + 1e-37));
      }
      CHECK(worst < 0x1p-8 + 2e-4);
      CHECK(std::abs(sum / total - 1) < 2e-4);
    }
  });
}

TEST_CASE("powers of rows with infinities and NaN") {
  for_each_bfloat16_target([](CpuRung rung) {
    const PowerTable& table = *kernel_set(rung, Float32Precision::kMedium).powers;
    float sum = 0;
    std::vector<float> x(70, 1.0f);
    x[40] = -kInfinity;
    CHECK(powers(table, x, sum)[40] == 0);
    CHECK(sum == doctest::Approx(69).epsilon(2e-4));
    x[40] = std::nanf("");
    CHECK(std::isnan(powers(table, x, sum)[40]));
    CHECK(std::isnan(sum));
    x[40] = kInfinity;
    powers(table, x, sum);
    CHECK(std::isnan(sum));
    powers(table, std::vector<float>(33, -kInfinity), sum);
    CHECK(std::isnan(sum));
    x.assign(20, 3e38f);
    CHECK(powers(table, x, sum)[7] == doctest::Approx(1).epsilon(0.004));
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
