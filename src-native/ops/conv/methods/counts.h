#pragma once
// What methods count alike.

#include <cmath>
#include <cstddef>

#include "cost/model.h"
#include "microkernels/conv/conv.h"

namespace infernode::ops {

inline double number(std::size_t v) { return static_cast<double>(v); }
/// v filled up to whole steps.
inline double whole(std::size_t v, std::size_t step) { return number((v + step - 1) / step * step); }

/// Multiply-adds of one group by the definition.
inline double multiply_adds(const microkernels::ConvShape& s) {
  return number(s.out_channels) * number(s.depth()) * number(s.positions());
}
inline double input_floats(const microkernels::ConvShape& s) {
  return number(s.in_channels) * number(s.in_d) * number(s.in_h) * number(s.in_w);
}
inline double output_floats(const microkernels::ConvShape& s) { return number(s.out_channels) * number(s.positions()); }

/// A product that makes a channel of `made` for each tap at `places` of `channels`, and their sums by rows of `width`:
/// calls, multiply-adds, inputs, products, rows of them.
inline cost::Terms tap_terms(std::size_t groups, std::size_t channels, std::size_t made, std::size_t places,
                             std::size_t width) {
  const double inputs = number(groups * channels) * number(places), products = number(groups * made) * number(places);
  return {number(groups), products * number(channels), inputs, products, products / number(width)};
}

/// A 3x3 window of stride 1 in a plane.
inline bool is_winograd_window(const microkernels::ConvShape& s) {
  return s.in_d == 1 && s.kernel_d == 1 && s.out_d == 1 && s.kernel_h == 3 && s.kernel_w == 3 && s.stride_h == 1 &&
         s.stride_w == 1 && s.dilation_h == 1 && s.dilation_w == 1;
}

}  // namespace infernode::ops
