#include "microkernels/toom/toom.h"

#include <algorithm>
#include <cmath>

namespace infernode::microkernels {

bool toom_even(float sum, float square) noexcept {
  constexpr float kEven = 96;
  return sum == 0 || (sum * sum >= kEven * square && square > 1e-30f && sum < 1e15f);
}

void toom_shares(std::size_t out_channels, std::size_t channels, std::size_t taps, const float* weight,
                 float* shares) noexcept {
  for (std::size_t t = 0; t < taps; ++t) shares[t] = 1;
  for (std::size_t m = 0; m < out_channels; ++m, weight += channels * taps) {
    double sums[5] = {}, most = 0;
    for (std::size_t i = 0; i < channels * taps; ++i) sums[i % taps] += std::abs(static_cast<double>(weight[i]));
    for (std::size_t t = 0; t < taps; ++t) most = std::max(most, sums[t]);
    for (std::size_t t = 0; t < taps && most > 0; ++t)
      shares[t] = std::min(shares[t], static_cast<float>(sums[t] / most));
  }
}

bool toom_sees_enough(std::size_t taps, const float* shares, const float* sums, float most) noexcept {
  constexpr float kEnough = 0.25f;
  float seen = 0, all = 0;
  for (std::size_t t = 0; t < taps; ++t) {
    seen += shares[t] * sums[t];
    all += sums[t];
  }
  return all == 0 || seen >= kEnough * most;
}

}  // namespace infernode::microkernels
