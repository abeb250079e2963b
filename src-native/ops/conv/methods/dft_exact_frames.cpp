#include "ops/conv/methods/dft_exact_frames.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked.h"

namespace infernode::ops {

namespace {

using microkernels::DftArgs;

constexpr std::size_t kSparse = 16;  // where one element of so many is not zero, the weights are read
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

const float* signal_of(const DftArgs& args, std::size_t frame) { return args.signal + frame * args.step; }

/// A power of two that brings the largest of the numbers below 1, so that frames that are transformed together are
/// alike.
double scale_of(const float* x, std::span<const double> window) {
  double most = 0;
  for (std::size_t n = 0; n < window.size(); ++n)
    most = std::max(most, std::abs(static_cast<double>(x[n]) * window[n]));
  return most == 0 ? 1.0 : std::ldexp(1.0, -std::ilogb(most) - 1);
}

}  // namespace

DftExactFrames::DftExactFrames(std::vector<double> window, std::span<const float> weight)
    : window_(std::move(window)), weight_(weight.begin(), weight.end()) {}

void DftExactFrames::transform(const DftArgs& args, std::size_t first, std::size_t count,
                               tensor::Allocator& allocator) const {
  std::vector<std::size_t> many, places;
  for (std::size_t frame = first; frame < first + count; ++frame) {
    const float* x = signal_of(args, frame);
    if (!std::all_of(x, x + args.length, [](float v) { return std::isfinite(v); })) {
      take_limits(args, frame);
      continue;
    }
    places.clear();
    for (std::size_t n = 0; n < args.length; ++n) {
      if (x[n] != 0) places.push_back(n);
    }
    if (places.size() * kSparse > args.length) {
      many.push_back(frame);
    } else {
      sum_few(args, frame, places);
    }
  }
  if (!many.empty()) sum(args, many, allocator);
}

/// By the weights themselves: where they are all but zero, one large element makes their rounding the whole answer.
void DftExactFrames::sum_few(const DftArgs& args, std::size_t frame, std::span<const std::size_t> places) const {
  const float* x = signal_of(args, frame);
  const float* row = weight_.data();
  for (float* out : {args.real, args.imag}) {
    if (out == nullptr) continue;
    for (std::size_t k = 0; k < args.bins; ++k, row += args.length) {
      double total = 0;
      for (const std::size_t n : places) total += static_cast<double>(x[n]) * static_cast<double>(row[n]);
      out[k * args.frames + frame] = static_cast<float>(total);
    }
  }
}

/// Two real frames are one complex one: the real part and the imaginary part.
void DftExactFrames::sum(const DftArgs& args, std::span<const std::size_t> frames, tensor::Allocator& allocator) const {
  const std::size_t length = args.length, lanes = ceil_div(frames.size(), std::size_t{2}), part = length * lanes;
  const tensor::Buffer hold = allocator.allocate(checked_mul(4 * part, sizeof(double)));
  auto* const data = reinterpret_cast<double*>(hold.data());
  std::fill_n(data, 2 * part, 0.0);
  std::vector<double> scales;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const float* x = signal_of(args, frames[i]);
    scales.push_back(scale_of(x, window_));
    double* to = data + i % 2 * part + i / 2;
    for (std::size_t n = 0; n < length; ++n) to[n * lanes] = static_cast<double>(x[n]) * scales[i] * window_[n];
  }
  const auto look = [] {};  // frames are short
  const auto plan = plans_.get(length, look);
  const signal::Split<double> z = plan->forward({data, data + part}, {data + 2 * part, data + 3 * part}, lanes, look);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const double half = 0.5 / scales[i], sign = static_cast<double>(args.imag_sign);
    for (std::size_t k = 0; k < args.bins; ++k) {
      const std::size_t at = k * lanes + i / 2, mirrored = (k == 0 ? 0 : length - k) * lanes + i / 2;
      const bool second = i % 2 != 0;
      const double re = second ? z.im[at] + z.im[mirrored] : z.re[at] + z.re[mirrored];
      const double im = second ? z.re[mirrored] - z.re[at] : z.im[at] - z.im[mirrored];
      if (args.real != nullptr) args.real[k * args.frames + frames[i]] = static_cast<float>(re * half);
      if (args.imag != nullptr) args.imag[k * args.frames + frames[i]] = static_cast<float>(im * half * sign);
    }
  }
}

/// Beside NaN or infinities finite products count for nothing.
void DftExactFrames::take_limits(const DftArgs& args, std::size_t frame) const {
  const float* x = signal_of(args, frame);
  std::vector<std::size_t> places;
  bool any_nan = false;
  for (std::size_t n = 0; n < args.length; ++n) {
    if (std::isinf(x[n])) places.push_back(n);
    any_nan = any_nan || std::isnan(x[n]);
  }
  std::size_t row = 0;
  for (float* out : {args.real, args.imag}) {
    if (out == nullptr) continue;
    for (std::size_t k = 0; k < args.bins; ++k, ++row)
      out[k * args.frames + frame] = any_nan ? kNaN : limit(row, places, x);
  }
}

float DftExactFrames::limit(std::size_t row, std::span<const std::size_t> places, const float* signal) const {
  bool above = false, below = false;
  for (const std::size_t n : places) {
    const float weight = weight_[row * window_.size() + n];
    if (weight == 0) return kNaN;
    ((weight < 0) == (signal[n] > 0) ? below : above) = true;
    if (above && below) return kNaN;
  }
  return above ? kInfinity : -kInfinity;
}

}  // namespace infernode::ops
