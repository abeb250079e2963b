#pragma once
// What methods count alike.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "cost/model.h"
#include "microkernels/conv/conv.h"
#include "ops/conv/methods/method.h"

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

/// The input, the output and, where there is one, the residual, that rows of products are turned from and to.
inline double turned_floats(const ConvSite& site) {
  return input_floats(site.shape) + output_floats(site.shape) * (site.residual ? 2 : 1);
}

/// How many of `floats` do not fit in the cache of one core, about, and come from far away.
inline double far_floats(double floats) {
  constexpr double kNear = 1 << 19;
  return std::max(0.0, floats - kNear);
}
/// Of the input and output of all groups of an image.
inline double far_floats(const ConvSite& site) {
  const double groups = number(site.groups);
  return far_floats(groups * input_floats(site.shape)) + far_floats(groups * output_floats(site.shape));
}

/// Floats of a vector of the loops that are compiled for the rung.
inline std::size_t vector_lanes(const ConvSite& site) {
  if (site.rung == CpuRung::Baseline || site.rung >= CpuRung::Neon) return 4;
  return site.rung == CpuRung::Avx2 ? 8 : 16;
}
/// Lanes that the counts below take: rates of SSE and NEON are those of AVX2, with its vectors.
inline std::size_t counted_lanes(const ConvSite& site) { return std::max<std::size_t>(8, vector_lanes(site)); }
/// Whether the rung has 32 vector registers and not 16.
inline bool has_many_registers(const ConvSite& site) { return site.rung >= CpuRung::Avx512; }

/// Multiply-adds of a product whose columns are output channels: in whole vectors of them, unless they are so few that
/// each is summed up alone.
inline double product_adds(const ConvSite& site, double positions_and_depth) {
  constexpr std::size_t kFew = 4;
  const std::size_t made = site.shape.out_channels;
  return (made <= kFew ? number(made) : whole(made, counted_lanes(site))) * positions_and_depth;
}

/// Of the pairs of a band of outputs, of one if not said, and a kernel point along one axis, the share that sees input
/// and not padding alone.
inline double seen_share(std::size_t out, std::size_t in, std::size_t kernel, std::size_t stride, std::size_t dilation,
                         std::ptrdiff_t pad, std::size_t band = 1) {
  std::size_t seen = 0;
  for (std::size_t k = 0; k < kernel; ++k) {
    const std::ptrdiff_t from = static_cast<std::ptrdiff_t>(k * dilation) - pad,
                         step = static_cast<std::ptrdiff_t>(stride), length = static_cast<std::ptrdiff_t>(in);
    const std::ptrdiff_t first = from >= 0 ? 0 : (-from + step - 1) / step,
                         end = from >= length ? 0 : (length - 1 - from) / step + 1;
    const auto seen_end = static_cast<std::size_t>(std::min(end, static_cast<std::ptrdiff_t>(out))),
               seen_first = static_cast<std::size_t>(first);
    if (seen_first < seen_end) seen += (seen_end + band - 1) / band - seen_first / band;
  }
  return number(seen) / number((out + band - 1) / band * kernel);
}
inline double seen_rows_share(const microkernels::ConvShape& s, std::size_t band = 1) {
  return seen_share(s.out_h, s.in_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top, band);
}
inline double seen_columns_share(const microkernels::ConvShape& s) {
  return seen_share(s.out_w, s.in_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left);
}

/// Of the phases that a stride parts an axis of the input into, how many the kernel sees.
inline std::size_t phases_seen(std::size_t kernel, std::size_t stride, std::size_t dilation) {
  return std::min(kernel, stride / std::gcd(stride, dilation));
}

/// Of a plane that is laid out by phases, its rows and the places of each.
inline std::size_t phase_rows(const microkernels::ConvShape& s) {
  return (s.out_h + (s.kernel_h - 1) * s.dilation_h / s.stride_h) * phases_seen(s.kernel_h, s.stride_h, s.dilation_h) *
         phases_seen(s.kernel_w, s.stride_w, s.dilation_w);
}
inline std::size_t phase_pitch(const microkernels::ConvShape& s) {
  return s.out_w + (s.kernel_w - 1) * s.dilation_w / s.stride_w;
}

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
