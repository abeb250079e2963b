#include "microkernels/toom/toom.h"

#include <cmath>
#include <limits>
#include <vector>

#include "microkernels/common/evenness.h"
#include "microkernels/elementwise/elementwise.h"
#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

TEST_CASE("what pairs of positions are made of, for any count") {
  for_each_target([](CpuRung rung) {
    const ToomTable& table = kernel_set(rung).toom;
    const auto pair_loop = [&](BinaryOp op) {
      return kernel_set(rung).elementwise.vector_vector[static_cast<std::size_t>(op)];
    };
    for (const std::size_t n : {0u, 1u, 3u, 4u, 15u, 16u, 17u, 48u, 101u}) {
      CAPTURE(n);
      Guarded<float> a(n), b(n), c(n), sum(n), difference(n);
      Random random(n + 1);
      random.fill(a);
      random.fill(b);
      random.fill(c);
      pair_loop(BinaryOp::kAdd)(a.data(), b.data(), sum.data(), n);
      pair_loop(BinaryOp::kSub)(a.data(), b.data(), difference.data(), n);
      for (std::size_t i = 0; i < n; ++i) CHECK((sum[i] == a[i] + b[i] && difference[i] == a[i] - b[i]));
      table.middle(a.data(), b.data(), c.data(), n, sum.data(), difference.data());
      for (std::size_t i = 0; i < n; ++i) {
        CHECK(sum[i] == (a[i] + c[i] + b[i]) * 0.5f);
        CHECK(difference[i] == (a[i] + c[i] - b[i]) * 0.5f);
      }
      float magnitude = -1, square = -1;
      table.measure(a.data(), n, magnitude, square);
      double magnitudes = 0, squares = 0;
      for (const float v : a) {
        magnitudes += std::abs(static_cast<double>(v));
        squares += static_cast<double>(v) * v;
      }
      CHECK(std::abs(magnitude - magnitudes) <= 1e-5 * magnitudes);
      CHECK(std::abs(square - squares) <= 1e-5 * squares);
      const std::vector<float> p(a.begin(), a.end()), q(b.begin(), b.end());
      table.butterfly(a.data(), b.data(), n);
      for (std::size_t i = 0; i < n; ++i) CHECK((a[i] == p[i] + q[i] && b[i] == p[i] - q[i]));
    }
  });
}

TEST_CASE("pairs of positions take numbers of which enough matter") {
  CHECK(toom_even(0, 0));
  CHECK(toom_even(100, 100));
  CHECK_FALSE(toom_even(10, 2));
  CHECK_FALSE(toom_even(1e16f, 1e28f));
  CHECK_FALSE(toom_even(std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()));
  CHECK_FALSE(toom_even(std::numeric_limits<float>::quiet_NaN(), 1));
  std::vector<float> weight(2 * 300, 0.5f);
  CHECK(many_weights_matter(2, 300, weight.data()));
  weight[400] = 1e3f;
  CHECK_FALSE(many_weights_matter(2, 300, weight.data()));
  weight[400] = std::numeric_limits<float>::quiet_NaN();
  CHECK_FALSE(many_weights_matter(2, 300, weight.data()));
  CHECK_FALSE(many_weights_matter(2, 100, weight.data()));  // too few to be sure
}

TEST_CASE("positions see enough unless small taps are all that sees inputs") {
  const std::vector<float> weight{1, -2, 0.5f, 3, 2, -0.5f, 0, 0, 0, 0, 0, 0};  // two channels of two, three taps
  float shares[3];
  toom_shares(2, 2, 3, weight.data(), shares);
  CHECK(shares[0] == 1);
  CHECK(shares[1] == 1);
  CHECK(shares[2] == 0.25f);
  const float first[] = {1, 0, 0}, last[] = {0, 0, 1}, none[] = {0, 0, 0};
  CHECK(toom_sees_enough(3, shares, first, 1));
  CHECK(toom_sees_enough(3, shares, last, 1));
  CHECK_FALSE(toom_sees_enough(3, shares, last, 1.1f));
  CHECK(toom_sees_enough(3, shares, none, 1));  // zeros are exact
}

}  // namespace
}  // namespace infernode::microkernels::test
