#include "cost/fit.h"

#include <algorithm>
#include <cmath>

namespace infernode::cost {

Fit fit(std::span<const Sample> samples) {
  constexpr std::size_t kTerms = std::tuple_size_v<Terms>;
  Fit out;
  if (samples.empty()) return out;
  // Minimise sum over samples of (sum over i of rate[i] * terms[i] / ns - 1)^2: normal equations, solved one rate after
  // the other, each to its best value not below 0 while the others stay. That converges, as the sum is convex.
  Terms square[kTerms]{}, once{}, scale{};
  for (const Sample& s : samples) {
    for (std::size_t i = 0; i < kTerms; ++i) scale[i] = std::max(scale[i], s.terms[i] / s.nanoseconds);
  }
  for (const Sample& s : samples) {
    for (std::size_t i = 0; i < kTerms; ++i) {
      if (scale[i] == 0) continue;
      const double a = s.terms[i] / s.nanoseconds / scale[i];
      once[i] += a;
      for (std::size_t j = 0; j < kTerms; ++j)
        if (scale[j] > 0) square[i][j] += a * s.terms[j] / s.nanoseconds / scale[j];
    }
  }
  Terms rates{};
  constexpr int kRounds = 20'000;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < kTerms; ++i) {
      if (square[i][i] <= 0) continue;
      double rest = once[i];
      for (std::size_t j = 0; j < kTerms; ++j)
        if (j != i) rest -= square[i][j] * rates[j];
      rates[i] = std::max(0.0, rest / square[i][i]);
    }
  }
  for (std::size_t i = 0; i < kTerms; ++i) out.rates[i] = scale[i] > 0 ? rates[i] / scale[i] : 0;
  for (const Sample& s : samples) {
    const double error = nanoseconds(s.terms, out.rates) / s.nanoseconds - 1;
    out.residual += error * error;
    out.worst = std::max(out.worst, std::abs(error));
  }
  out.residual = std::sqrt(out.residual / static_cast<double>(samples.size()));
  return out;
}

}  // namespace infernode::cost
