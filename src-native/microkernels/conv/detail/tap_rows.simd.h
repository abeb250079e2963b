#pragma once

#include "microkernels/common/activate.simd.h"
#include "microkernels/common/simd_file.h"
#include "microkernels/conv/conv.h"

// Sums of products by taps, all channels of a place after each other: for images whose rows are too short for vectors.
namespace infernode::microkernels {
namespace {

// Calls each(tap, place) for the taps that add to output `at`, in the order of their places backwards.
template <typename Each>
INFERNODE_SIMD void for_each_tap(std::size_t at, std::ptrdiff_t pad, std::size_t taps, std::size_t dilation,
                                 std::size_t stride, std::size_t places, Each each) {
  const std::ptrdiff_t from = static_cast<std::ptrdiff_t>(at) + pad;
  if (from < 0) return;
  const auto first = static_cast<std::size_t>(from);
  if (dilation == 1) {
    std::size_t place = first / stride;
    for (std::size_t tap = first % stride; tap < taps; tap += stride, --place) {
      if (place < places) each(tap, place);
      if (place == 0) return;
    }
    return;
  }
  for (std::size_t tap = 0; tap < taps && tap * dilation <= first; ++tap) {
    const std::size_t reach = first - tap * dilation;
    if (reach % stride == 0 && reach / stride < places) each(tap, reach / stride);
  }
}

constexpr std::size_t kTapsAtOnce = 4;

// row = start + the sum of `kCount` rows; a start that is null is zero.
template <std::size_t kCount>
INFERNODE_SIMD void sum_rows(const float* const* found, const float* start, std::size_t channels, float* row) {
  const auto sum = [&](auto read) {
    VecF value = start ? read(start) : zero();
    if constexpr (kCount > 0) {
      INFERNODE_UNROLL
      for (std::size_t i = 0; i < kCount; ++i) value = value + read(found[i]);
    }
    return value;
  };
  std::size_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) store(row + c, sum([=](const float* x) { return load(x + c); }));
  const std::size_t rest = channels - c;
  if (rest) store_partial(row + c, sum([=](const float* x) { return load_partial(x + c, rest); }), rest);
}
INFERNODE_SIMD void sum_rows(const float* const* found, std::size_t count, const float* start, std::size_t channels,
                             float* row) {
  static_assert(kTapsAtOnce == 4);
  if (count == 0) sum_rows<0>(found, start, channels, row);
  if (count == 1) sum_rows<1>(found, start, channels, row);
  if (count == 2) sum_rows<2>(found, start, channels, row);
  if (count == 3) sum_rows<3>(found, start, channels, row);
  if (count == 4) sum_rows<4>(found, start, channels, row);
}

void sum_tap_rows(const TapRowArgs& args, std::size_t begin, std::size_t end) noexcept {
  const ConvShape& s = args.shape;
  const ClampBounds bounds = clamp_bounds(args.activation);
  const VecF low = set(bounds.low), high = set(bounds.high);
  std::size_t w = begin % s.in_w, h = begin / s.in_w % s.in_h, d = begin / s.in_w / s.in_h;
  for (std::size_t at = begin; at < end; ++at) {
    float* const row = args.rows + at * args.channels;
    const float* found[kTapsAtOnce];
    const float* start = args.bias;
    std::size_t count = 0;
    for_each_tap(d, s.pad_front, s.kernel_d, s.dilation_d, s.stride_d, s.out_d, [&](std::size_t kd, std::size_t z) {
      for_each_tap(h, s.pad_top, s.kernel_h, s.dilation_h, s.stride_h, s.out_h, [&](std::size_t kh, std::size_t y) {
        for_each_tap(w, s.pad_left, s.kernel_w, s.dilation_w, s.stride_w, s.out_w, [&](std::size_t kw, std::size_t x) {
          if (count == kTapsAtOnce) {
            sum_rows<kTapsAtOnce>(found, start, args.channels, row);
            start = row;
            count = 0;
          }
          const std::size_t position = (z * s.out_h + y) * s.out_w + x,
                            point = (kd * s.kernel_h + kh) * s.kernel_w + kw;
          found[count++] = args.products + (position * s.kernel_points() + point) * args.channels;
        });
      });
    });
    sum_rows(found, count, start, args.channels, row);
    if (!is_clamp(args.activation)) {
      activate_row(args.activation, row, args.channels);
    } else if (args.activation.kind != Activation::kNone) {
      map_row(row, args.channels, [&](VecF v) { return clamp(v, low, high); });
    }
    if (++w == s.in_w) {
      w = 0;
      if (++h == s.in_h) {
        h = 0;
        ++d;
      }
    }
  }
}

}  // namespace
}  // namespace infernode::microkernels
