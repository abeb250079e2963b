#include "ops/norm/float_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace infernode::ops {

using kernel::Watch;
using microkernels::BinaryOp;
using microkernels::ReduceOp;
using microkernels::UnaryOp;

namespace {

// Nanoseconds of an element where memory is slow, and pages are written for the first time.
constexpr double kReadNs = 1, kMoveNs = 2, kPowerNs = 2;

}  // namespace

/// NaN where any element is.
float FloatRows::greatest(Watch& watch, const float* x, std::size_t n) const {
  float most = -std::numeric_limits<float>::infinity();
  in_pieces(watch, n, kReadNs, [&](std::size_t begin, std::size_t end) {
    const float here = reduce(ReduceOp::kMax, x + begin, end - begin);
    if (here > most || std::isnan(here)) most = here;
  });
  return most;
}

void FloatRows::long_softmax(Watch& watch, const float* x, float* y, std::size_t n) const {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  // Each piece becomes powers below its own greatest element, which its factor then sets right.
  std::vector<float> peaks, sums;
  in_pieces(watch, n, kPowerNs, [&](std::size_t begin, std::size_t end) {
    peaks.push_back(reduce(ReduceOp::kMax, x + begin, end - begin));
    const bool empty = peaks.back() == kNone;
    if (empty) std::fill(y + begin, y + end, 0.0f);
    sums.push_back(empty ? 0.0f : reduce_.exponentials(x + begin, y + begin, end - begin, 1.0f));
  });
  const float most = reduce(ReduceOp::kMax, peaks.data(), peaks.size());
  const auto power = [&](float peak) { return std::exp(static_cast<double>(peak) - static_cast<double>(most)); };
  double sum = 0;
  for (std::size_t i = 0; i < peaks.size(); ++i) sum += static_cast<double>(sums[i]) * power(peaks[i]);
  std::size_t piece = 0;
  in_pieces(watch, n, kPowerNs, [&](std::size_t begin, std::size_t end) {
    const auto factor = static_cast<float>(power(peaks[piece++]) / sum);
    with_scalar(BinaryOp::kMul, y + begin, factor, y + begin, end - begin);
  });
}

float FloatRows::long_exponentials(Watch& watch, float* x, std::size_t n, float scale) const {
  const float most = greatest(watch, x, n);
  if (!(most > -std::numeric_limits<float>::infinity())) return reduce_.exponentials(x, x, n, scale);
  double sum = 0;
  in_pieces(watch, n, kPowerNs, [&](std::size_t begin, std::size_t end) {
    float* const piece = x + begin;
    with_scalar(BinaryOp::kSub, piece, most, piece, end - begin);
    with_scalar(BinaryOp::kMul, piece, scale, piece, end - begin);
    elementwise_[UnaryOp::kExp](piece, piece, end - begin, 0, 0);
    sum += static_cast<double>(reduce(ReduceOp::kSum, piece, end - begin));
  });
  return static_cast<float>(sum);
}

void FloatRows::long_log_softmax(Watch& watch, const float* x, float* y, std::size_t n) const {
  constexpr std::size_t kChunk = 1024;
  float powers[kChunk];
  const float most = greatest(watch, x, n);
  double sum = 0;
  in_pieces(watch, n, kPowerNs, [&](std::size_t begin, std::size_t end) {
    with_scalar(BinaryOp::kSub, x + begin, most, y + begin, end - begin);
    for (std::size_t i = begin; i < end; i += kChunk) {
      const std::size_t count = std::min(kChunk, end - i);
      elementwise_[UnaryOp::kExp](y + i, powers, count, 0, 0);
      sum += static_cast<double>(reduce(ReduceOp::kSum, powers, count));
    }
  });
  const auto log_sum = static_cast<float>(std::log(sum));
  in_pieces(watch, n, kMoveNs, [&](std::size_t begin, std::size_t end) {
    with_scalar(BinaryOp::kSub, y + begin, log_sum, y + begin, end - begin);
  });
}

void FloatRows::long_layer_norm(Watch& watch, const float* x, const float* gamma, const float* beta, float* y,
                                std::size_t n, float epsilon, float* mean, float* inv_std) const {
  double sum = 0, squares = 0;  // of the elements, of their differences from their mean
  in_pieces(watch, n, kReadNs, [&](std::size_t begin, std::size_t end) {
    float middle, variance;
    reduce_.mean_variance(x + begin, end - begin, &middle, &variance);
    const auto before = static_cast<double>(begin), here = static_cast<double>(end - begin);
    squares += static_cast<double>(variance) * here;
    if (begin > 0) {  // the two parts' means differ (Chan, Golub and LeVeque)
      const double apart = static_cast<double>(middle) - sum / before;
      squares += apart * apart * before * here / (before + here);
    }
    sum += static_cast<double>(middle) * here;
  });
  const auto count = static_cast<double>(n);
  const auto center = static_cast<float>(sum / count);
  const float scale = 1.0f / std::sqrt(static_cast<float>(squares / count) + epsilon);
  in_pieces(watch, n, kMoveNs, [&](std::size_t begin, std::size_t end) {
    float* const to = y + begin;
    const std::size_t length = end - begin;
    with_scalar(BinaryOp::kSub, x + begin, center, to, length);
    with_scalar(BinaryOp::kMul, to, scale, to, length);
    if (gamma != nullptr) binary(BinaryOp::kMul, to, gamma + begin, to, length);
    if (beta != nullptr) binary(BinaryOp::kAdd, to, beta + begin, to, length);
  });
  if (mean != nullptr) *mean = center;
  if (inv_std != nullptr) *inv_std = scale;
}

void FloatRows::long_rms_norm(Watch& watch, const float* x, const float* gamma, float* y, std::size_t n, float epsilon,
                              float* inv_rms) const {
  double squares = 0;
  in_pieces(watch, n, kReadNs, [&](std::size_t begin, std::size_t end) {
    squares += static_cast<double>(reduce(ReduceOp::kSumSquare, x + begin, end - begin));
  });
  const float scale = 1.0f / std::sqrt(static_cast<float>(squares / static_cast<double>(n)) + epsilon);
  in_pieces(watch, n, kMoveNs, [&](std::size_t begin, std::size_t end) {
    with_scalar(BinaryOp::kMul, x + begin, scale, y + begin, end - begin);
    if (gamma != nullptr) binary(BinaryOp::kMul, y + begin, gamma + begin, y + begin, end - begin);
  });
  if (inv_rms != nullptr) *inv_rms = scale;
}

}  // namespace infernode::ops
