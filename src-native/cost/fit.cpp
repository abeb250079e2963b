#include "cost/fit.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace infernode::cost {

namespace {

constexpr std::size_t kTerms = std::tuple_size_v<Terms>;

double error_of(const Sample& s, const Terms& rates) { return nanoseconds(s.terms, rates) / s.nanoseconds - 1; }

/// The rates by which the sum over samples of weight * error^2 is least.
Terms least_squares(std::span<const Sample> samples, std::span<const double> weights) {
  // Normal equations, solved one rate after the other, each to its best value not below 0 while the others stay. That
  // converges, as the sum is convex.
  Terms square[kTerms]{}, once{}, scale{};
  for (const Sample& s : samples) {
    for (std::size_t i = 0; i < kTerms; ++i) scale[i] = std::max(scale[i], s.terms[i] / s.nanoseconds);
  }
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const Sample& s = samples[k];
    for (std::size_t i = 0; i < kTerms; ++i) {
      if (scale[i] == 0) continue;
      const double a = weights[k] * s.terms[i] / s.nanoseconds / scale[i];
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
  for (std::size_t i = 0; i < kTerms; ++i) rates[i] = scale[i] > 0 ? rates[i] / scale[i] : 0;
  return rates;
}

}  // namespace

Fit fit(std::span<const Sample> samples) {
  Fit out;
  if (samples.empty()) return out;
  // Squares of errors, then, as what was measured while others used the machine is far off, about their absolute
  // values: weights are the inverse of what each was off before. Those that took longer than expected weigh more, so
  // that about two in three take less: a method whose times vary, as on a matrix unit that others share, is chosen with
  // care.
  constexpr int kPasses = 12;
  constexpr double kNear = 0.05, kTakeLess = 0.67;
  std::vector<double> weights(samples.size(), 1.0);
  for (int pass = 0; pass < kPasses; ++pass) {
    out.rates = least_squares(samples, weights);
    for (std::size_t k = 0; k < samples.size(); ++k) {
      const double error = error_of(samples[k], out.rates);
      weights[k] = (error < 0 ? kTakeLess : 1 - kTakeLess) / std::max(kNear, std::abs(error));
    }
  }
  for (const Sample& s : samples) {
    const double error = error_of(s, out.rates);
    out.residual += error * error;
    out.worst = std::max(out.worst, std::abs(error));
  }
  out.residual = std::sqrt(out.residual / static_cast<double>(samples.size()));
  return out;
}

}  // namespace infernode::cost
