#pragma once

#include "microkernels/common/activate.simd.h"
#include "microkernels/common/phase_rows.simd.h"
#include "microkernels/common/simd_file.h"
#include "microkernels/conv/conv.h"
#include "microkernels/conv/detail/depthwise_rows.simd.h"

// Depthwise convolutions of strides of 2 to 4 columns. Rows of the input are read where they lie, as many vectors at a
// time as the stride is long, and parted in registers: each part is what a column of the kernel sees.
namespace infernode::microkernels {
namespace {

constexpr std::size_t kMostApart = 7;  // columns of the kernel
constexpr std::size_t kApartBand = 8;  // rows of outputs that are made before the next columns of them

// kLanes output columns of a plane.
struct ApartBlock {
  const ConvShape& s;
  const float *input, *weight;
  float* out;
  const float* residual;
  std::size_t columns;    // how many are wanted
  std::ptrdiff_t column;  // of the input: what the first output sees by the first column of the kernel
  VecF bias, low, high;
  Mask inside[kMostApart];  // of what is loaded one after the other, which lanes lie in the row

  void finish(VecF sum, std::size_t h) const {
    finish_outputs(sum, columns, low, high, residual ? residual + h * s.out_w : nullptr, out + h * s.out_w);
  }
};

template <std::size_t kSums>
INFERNODE_SIMD void add_tap(VecF x, const float* const (&weight)[kSums], std::size_t tap, VecF (&sum)[kSums]) {
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kSums; ++r) sum[r] = fma(x, set(weight[r][tap]), sum[r]);
}

// Adds what a row of kColumns columns of the kernel sees, to each sum by its own weights.
template <std::size_t kStride, std::size_t kColumns, bool kInside, std::size_t kSums>
INFERNODE_SIMD void add_row(const ApartBlock& b, const float* x, const float* const (&weight)[kSums],
                            VecF (&sum)[kSums]) {
  constexpr std::size_t kAtOnce = smaller(kColumns, kStride);
  VecF v[kStride];
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < kStride; ++i) v[i] = load_part<kInside>(x + i * kLanes, b.inside[i]);
  part(v);
  INFERNODE_UNROLL
  for (std::size_t tap = 0; tap < kAtOnce; ++tap) add_tap(v[tap], weight, tap, sum);
  // Later columns see what the column a stride before saw, but for the first place, and one more.
  x += kStride * kLanes - kStride;
  INFERNODE_UNROLL
  for (std::size_t tap = kStride; tap < kColumns; ++tap) {
    VecF& seen = v[tap % kStride];
    seen = next_lanes(seen, kInside ? set(x[tap]) : load_where(x + tap, b.inside[tap]));
    add_tap(seen, weight, tap, sum);
  }
}

// Two rows of outputs from h on, or one. Row i of the kernel sees input row y + i * dilation; rows of the input that
// both see are read once.
template <std::size_t kStride, std::size_t kColumns, bool kInside, bool kTwo>
INFERNODE_SIMD void apart_rows(const ApartBlock& b, std::size_t h) {
  const ConvShape& s = b.s;
  const auto height = static_cast<std::ptrdiff_t>(s.in_h), width = static_cast<std::ptrdiff_t>(s.in_w),
             stride = static_cast<std::ptrdiff_t>(s.stride_h), dilation = static_cast<std::ptrdiff_t>(s.dilation_h),
             rows = static_cast<std::ptrdiff_t>(s.kernel_h), row = static_cast<std::ptrdiff_t>(s.kernel_w);
  const std::ptrdiff_t y = static_cast<std::ptrdiff_t>(h) * stride - s.pad_top;
  // Rows [begin, end) of the kernel, the first of which sees input row y.
  const auto add = [&](std::ptrdiff_t begin, std::ptrdiff_t end, std::ptrdiff_t from, VecF bias) {
    VecF sum[] = {bias};
    if (from < 0) {
      const std::ptrdiff_t above = (-from + dilation - 1) / dilation;
      begin += above;
      from += above * dilation;
    }
    const float* x = b.input + from * width + b.column;
    const float* weight = b.weight + begin * row;
    for (; begin < end && from < height; ++begin, from += dilation, x += dilation * width, weight += row)
      add_row<kStride, kColumns, kInside, 1>(b, x, {weight}, sum);
    return sum[0];
  };
  if constexpr (!kTwo) {
    b.finish(add(0, rows, y, b.bias), h);
  } else if (dilation > 1 || rows <= stride) {
    b.finish(add(0, rows, y, b.bias), h);
    b.finish(add(0, rows, y + stride, b.bias), h + 1);
  } else {
    const std::ptrdiff_t shared = rows - stride;
    VecF sum[] = {add(0, stride, y, b.bias), b.bias};
    const std::ptrdiff_t first = larger(y + stride, std::ptrdiff_t{0}), end = smaller(y + rows, height);
    const float* x = b.input + first * width + b.column;
    const float* weight = b.weight + (first - y) * row;
    for (std::ptrdiff_t i = first; i < end; ++i, x += width, weight += row)
      add_row<kStride, kColumns, kInside, 2>(b, x, {weight, weight - stride * row}, sum);
    b.finish(sum[0], h);
    b.finish(add(shared, rows, y + rows, sum[1]), h + 1);
  }
}

template <std::size_t kStride, std::size_t kColumns, bool kInside>
[[gnu::noinline]] void apart_band(const ApartBlock& b, std::size_t h, std::size_t end) noexcept {
  for (; h + 1 < end; h += 2) apart_rows<kStride, kColumns, kInside, true>(b, h);
  if (h < end) apart_rows<kStride, kColumns, kInside, false>(b, h);
}

// Whether all that add_row reads lies in the row; if not, sets `inside`.
template <std::size_t kStride, std::size_t kColumns>
INFERNODE_SIMD bool see_row(ApartBlock& b) {
  constexpr std::size_t kMore = larger(kColumns, kStride) - kStride;
  const auto left = static_cast<std::ptrdiff_t>(b.s.in_w) - b.column;
  if (b.column >= 0 && left >= static_cast<std::ptrdiff_t>(kStride * kLanes + kMore)) return true;
  const auto lanes = [&](std::size_t at) {
    const auto from = static_cast<std::ptrdiff_t>(at);
    return lanes_between(-b.column - from, left - from);
  };
  for (std::size_t i = 0; i < kStride; ++i) b.inside[i] = lanes(i * kLanes);
  for (std::size_t i = 0; i < kMore; ++i) b.inside[kStride + i] = lanes(kStride * kLanes + i) & lanes_between(0, 1);
  return false;
}

template <std::size_t kStride, std::size_t kColumns>
void apart_plane(const DepthwiseArgs& args, std::size_t plane) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t offset = plane * s.positions();
  const ClampBounds bounds = clamp_bounds(args.activation);
  ApartBlock b{s,
               args.input + args.input_plane(plane) * s.in_h * s.in_w,
               args.weight + plane * s.kernel_points(),
               args.output + offset,
               args.residual ? args.residual + offset : nullptr,
               0,
               0,
               set(args.biases ? args.biases[plane] : args.bias),
               set(bounds.low),
               set(bounds.high),
               {}};
  float* const out = b.out;
  const float* const residual = b.residual;
  for (std::size_t h = 0; h < s.out_h; h += kApartBand) {
    const std::size_t end = smaller(s.out_h, h + kApartBand);
    for (std::size_t at = 0; at < s.out_w; at += kLanes) {
      b.out = out + at;
      b.residual = residual ? residual + at : nullptr;
      b.columns = smaller(kLanes, s.out_w - at);
      b.column = static_cast<std::ptrdiff_t>(at * kStride) - s.pad_left;
      if (see_row<kStride, kColumns>(b)) {
        apart_band<kStride, kColumns, true>(b, h, end);
      } else {
        apart_band<kStride, kColumns, false>(b, h, end);
      }
    }
  }
  if (!is_clamp(args.activation)) activate_row(args.activation, out, s.positions());
}

using ApartPlane = void (*)(const DepthwiseArgs& args, std::size_t plane) noexcept;
template <std::size_t kStride, std::size_t kColumns>
constexpr ApartPlane apart_plane_or_null() noexcept {
  if constexpr (parts_in_registers(kStride, kColumns, kLanes)) return apart_plane<kStride, kColumns>;
  return nullptr;
}
template <std::size_t kStride>
ApartPlane apart_plane_of(std::size_t columns) noexcept {
  switch (columns) {
    case 2:
      return apart_plane_or_null<kStride, 2>();
    case 3:
      return apart_plane_or_null<kStride, 3>();
    case 4:
      return apart_plane_or_null<kStride, 4>();
    case 5:
      return apart_plane_or_null<kStride, 5>();
    case 7:
      return apart_plane_or_null<kStride, 7>();
    default:
      return nullptr;
  }
}
// Null where the shape is of another kind.
ApartPlane apart_plane_of(const ConvShape& s) noexcept {
  if (!parts_in_registers(s, kLanes)) return nullptr;
  return s.stride_w == 2   ? apart_plane_of<2>(s.kernel_w)
         : s.stride_w == 3 ? apart_plane_of<3>(s.kernel_w)
                           : apart_plane_of<4>(s.kernel_w);
}

}  // namespace
}  // namespace infernode::microkernels
