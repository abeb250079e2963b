#pragma once

#include <cstddef>

// What convolutions along one axis are made of that compute two positions at a time (Toom and Cook's way of multiplying
// polynomials): with three weights a position, four products instead of six, with five, which are three and two more,
// seven instead of ten.
//
// Positions 2t and 2t + 1 of y[i] = sum of w[j] x[i + j], with x counted from 2t on:
//   y0 = x02 w0 + p + q, y1 = -x13 w2 + p - q for x02 = x0 - x2, x13 = x1 - x3,
//   p = (x1 + x2) (w0 + w1 + w2) / 2, q = (x2 - x1) (w0 - w1 + w2) / 2;
// and w3, w4 add (x3 - x4) w3 to y0, (x5 - x4) w4 to y1 and x4 (w3 + w4) to p.
namespace infernode::microkernels {

inline constexpr std::size_t kToomChannels = 32;  // so many at least are worth it

struct ToomTable {
  const char* name;
  // sum = (w0 + w2 + w1) / 2, difference = (w0 + w2 - w1) / 2.
  void (*middle)(const float* w0, const float* w1, const float* w2, std::size_t n, float* sum,
                 float* difference) noexcept;
  // p, q = p + q, p - q.
  void (*butterfly)(float* p, float* q, std::size_t n) noexcept;
  // The sum of magnitudes and that of squares.
  void (*measure)(const float* x, std::size_t n, float& sum, float& square) noexcept;
};

// Whether sums of inputs of which `measure` says this keep the accuracy of direct ones: as for Winograd's tiles, enough
// of them have to matter, by (sum |x|)^2 / sum x^2 (and of weights: evenness.h).
bool toom_even(float sum, float square) noexcept;
// Taps that are small, or inputs, must not be all that a position sees where its pair adds up large ones: shares of the
// largest tap that each has at least, by magnitudes, whatever the output channel; and whether a position whose taps see
// inputs with these sums of magnitudes, the largest of its pair being `most`, sees enough.
void toom_shares(std::size_t out_channels, std::size_t channels, std::size_t taps, const float* weight,
                 float* shares) noexcept;
bool toom_sees_enough(std::size_t taps, const float* shares, const float* sums, float most) noexcept;

}  // namespace infernode::microkernels
