#pragma once

#include <vector>

#include "microkernels/conv/conv.h"

// Shapes of convolutions and what their kernels see of an input, for the tests of all that compute them.
namespace infernode::microkernels::test {

struct Size {
  std::size_t d, h, w;
};

inline ConvShape make_shape(std::size_t in_channels, std::size_t out_channels, Size in, Size kernel, Size stride,
                            Size dilation, std::ptrdiff_t pad_begin, std::ptrdiff_t pad_end) {
  ConvShape s;
  s.in_channels = in_channels;
  s.out_channels = out_channels;
  s.in_d = in.d;
  s.in_h = in.h;
  s.in_w = in.w;
  s.kernel_d = kernel.d;
  s.kernel_h = kernel.h;
  s.kernel_w = kernel.w;
  s.stride_d = stride.d;
  s.stride_h = stride.h;
  s.stride_w = stride.w;
  s.dilation_d = dilation.d;
  s.dilation_h = dilation.h;
  s.dilation_w = dilation.w;
  const auto out = [&](std::size_t size, std::size_t k, std::size_t st, std::size_t dil, std::ptrdiff_t& pad) {
    const bool flat = size == 1 && k == 1;  // an absent dimension
    pad = flat ? 0 : pad_begin;
    const auto total = static_cast<std::ptrdiff_t>(size) + (flat ? 0 : pad_begin + pad_end);
    return static_cast<std::size_t>(
        (total - static_cast<std::ptrdiff_t>((k - 1) * dil) - 1) / static_cast<std::ptrdiff_t>(st) + 1);
  };
  s.out_d = out(in.d, kernel.d, stride.d, dilation.d, s.pad_front);
  s.out_h = out(in.h, kernel.h, stride.h, dilation.h, s.pad_top);
  s.out_w = out(in.w, kernel.w, stride.w, dilation.w, s.pad_left);
  return s;
}

// A window of 3 x 3 at stride 1. It lies by `top` and `left` beyond the input, and the output is as large as that
// leaves it.
inline ConvShape window(std::size_t in_channels, std::size_t out_channels, std::size_t height, std::size_t width,
                        std::ptrdiff_t top, std::ptrdiff_t bottom, std::ptrdiff_t left, std::ptrdiff_t right) {
  ConvShape s;
  s.in_channels = in_channels;
  s.out_channels = out_channels;
  s.in_h = height;
  s.in_w = width;
  s.kernel_h = s.kernel_w = 3;
  s.pad_top = top;
  s.pad_left = left;
  s.out_h = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(height) + top + bottom - 2);
  s.out_w = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(width) + left + right - 2);
  return s;
}

// Adds to `sums`, one a position, what a kernel makes of one plane of the input, by the definition.
inline void add_plane(const ConvShape& s, const float* kernel, const float* plane, double* sums) {
  const auto within = [](std::size_t out, std::size_t stride, std::size_t tap, std::ptrdiff_t pad, std::size_t size,
                         std::size_t& in) {
    in = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(out * stride + tap) - pad);  // huge where it is negative
    return in < size;
  };
  for (std::size_t point = 0; point < s.kernel_points(); ++point) {
    const std::size_t kd = point / s.kernel_w / s.kernel_h, kh = point / s.kernel_w % s.kernel_h,
                      kw = point % s.kernel_w;
    const double weight = kernel[point];
    double* sum = sums;
    for (std::size_t od = 0; od < s.out_d; ++od) {
      for (std::size_t oh = 0; oh < s.out_h; ++oh, sum += s.out_w) {
        std::size_t d = 0, h = 0, w = 0;
        if (!within(od, s.stride_d, kd * s.dilation_d, s.pad_front, s.in_d, d)) continue;
        if (!within(oh, s.stride_h, kh * s.dilation_h, s.pad_top, s.in_h, h)) continue;
        const float* row = plane + (d * s.in_h + h) * s.in_w;
        for (std::size_t ow = 0; ow < s.out_w; ++ow)
          if (within(ow, s.stride_w, kw * s.dilation_w, s.pad_left, s.in_w, w)) sum[ow] += weight * row[w];
      }
    }
  }
}

// What each output sums up, [out_channels, positions].
inline std::vector<double> sums_of(const ConvShape& s, const float* weight, const float* input) {
  std::vector<double> sums(s.out_channels * s.positions());
  const std::size_t plane = s.in_d * s.in_h * s.in_w;
  for (std::size_t m = 0; m < s.out_channels; ++m) {
    for (std::size_t c = 0; c < s.in_channels; ++c)
      add_plane(s, weight + (m * s.in_channels + c) * s.kernel_points(), input + c * plane, &sums[m * s.positions()]);
  }
  return sums;
}

inline std::vector<ConvShape> shapes(std::size_t in_channels, std::size_t out_channels) {
  const auto make = [&](Size in, Size kernel, Size stride, Size dilation, std::ptrdiff_t begin, std::ptrdiff_t end) {
    return make_shape(in_channels, out_channels, in, kernel, stride, dilation, begin, end);
  };
  return {
      make({1, 7, 7}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, 0),
      make({1, 7, 7}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1),
      make({1, 14, 15}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1),
      make({1, 33, 37}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, 1, 1),
      make({1, 40, 70}, {1, 5, 5}, {1, 2, 2}, {1, 1, 1}, 2, 1),
      make({1, 20, 90}, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}, 2, 2),
      make({1, 23, 29}, {1, 3, 3}, {1, 2, 3}, {1, 3, 2}, 3, 0),
      make({1, 14, 131}, {1, 3, 3}, {1, 3, 3}, {1, 1, 1}, 1, 1),
      make({1, 15, 150}, {1, 5, 3}, {1, 4, 4}, {1, 1, 2}, 2, 1),
      make({1, 11, 12}, {1, 1, 1}, {1, 2, 2}, {1, 1, 1}, 0, 0),
      make({1, 12, 50}, {1, 4, 2}, {1, 4, 2}, {1, 2, 1}, 0, 1),
      make({1, 1, 100}, {1, 1, 3}, {1, 1, 2}, {1, 1, 1}, 1, 1),
      make({1, 1, 9}, {1, 1, 9}, {1, 1, 1}, {1, 1, 1}, 8, 8),
      make({1, 9, 9}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, -1, -1),
      make({1, 2, 2}, {1, 7, 7}, {1, 1, 1}, {1, 1, 1}, 6, 6),
      make({5, 6, 7}, {3, 2, 3}, {2, 1, 2}, {1, 2, 1}, 1, 1),
  };
}

}  // namespace infernode::microkernels::test
