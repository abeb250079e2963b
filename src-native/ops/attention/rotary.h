#pragma once

#include <cstddef>

namespace infernode::ops {

/// Turns `half` pairs of elements of a head by the angles whose cosines and sines are given: pairs of neighbours where
/// `interleaved`, of elements `half` apart otherwise. Elements of `head` behind them stay. y may be x.
inline void turn_pairs(const float* x, const float* cos, const float* sin, float* y, std::size_t half, std::size_t head,
                       bool interleaved) {
  const std::size_t step = interleaved ? 2 : 1, second = interleaved ? 1 : half;
  for (std::size_t i = 0; i < half; ++i) {
    const float a = x[i * step], b = x[i * step + second];
    y[i * step] = cos[i] * a - sin[i] * b;
    y[i * step + second] = sin[i] * a + cos[i] * b;
  }
  for (std::size_t i = 2 * half; i < head; ++i) y[i] = x[i];
}

}  // namespace infernode::ops
