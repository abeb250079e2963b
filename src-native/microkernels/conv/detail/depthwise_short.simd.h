#pragma once

#include "microkernels/common/activate.simd.h"
#include "microkernels/common/simd_file.h"
#include "microkernels/conv/conv.h"
#include "microkernels/conv/detail/depthwise_rows.simd.h"

#if INFERNODE_SIMD_ID == 3
#include <immintrin.h>
#endif

// Depthwise convolutions with strides of rows so short that one vector takes a row of the input and another two rows of
// outputs, side by side. What a column of the kernel sees is one permutation of two rows of the input.
namespace infernode::microkernels {
namespace {

using ShortPlanes = void (*)(const DepthwiseArgs& args) noexcept;

#if INFERNODE_SIMD_ID == 3

// Lane r * out_w + w is output w of the first row or the second, r.
template <std::size_t kColumns>
struct ShortOrder {
  __m512i lane[kColumns];  // of the two rows of the input, one after the other, what each column sees
  Mask seen[kColumns];     // where that is no padding
  Mask row;                // lanes of a row of the input

  explicit ShortOrder(const ConvShape& s) noexcept : row(lanes_between(0, static_cast<std::ptrdiff_t>(s.in_w))) {
    for (std::size_t k = 0; k < kColumns; ++k) {
      alignas(64) std::int32_t from[kLanes] = {};
      unsigned inside = 0;
      for (std::size_t i = 0; i < 2 * s.out_w; ++i) {
        const std::ptrdiff_t column =
            static_cast<std::ptrdiff_t>(i % s.out_w * s.stride_w + k * s.dilation_w) - s.pad_left;
        if (column < 0 || column >= static_cast<std::ptrdiff_t>(s.in_w)) continue;
        from[i] = static_cast<std::int32_t>(column + (i < s.out_w ? 0 : static_cast<std::ptrdiff_t>(kLanes)));
        inside |= 1u << i;
      }
      lane[k] = _mm512_load_si512(from);
      seen[k] = {static_cast<__mmask16>(inside)};
    }
  }
};

template <std::size_t kColumns>
void short_plane(const ShortOrder<kColumns>& order, const ConvShape& s, const float* input, const float* weight,
                 VecF bias, VecF low, VecF high, const float* residual, float* out) noexcept {
  const auto height = static_cast<std::ptrdiff_t>(s.in_h), stride = static_cast<std::ptrdiff_t>(s.stride_h),
             dilation = static_cast<std::ptrdiff_t>(s.dilation_h), width = static_cast<std::ptrdiff_t>(s.in_w);
  for (std::size_t h = 0; h < s.out_h; h += 2) {
    const std::size_t rows = smaller(s.out_h - h, std::size_t{2});
    VecF sum = bias;
    std::ptrdiff_t y = static_cast<std::ptrdiff_t>(h) * stride - s.pad_top;
    for (std::size_t i = 0; i < s.kernel_h; ++i, y += dilation) {
      const auto read = [&](std::ptrdiff_t at) {
        const bool inside = at >= 0 && at < height;
        return load_where(input + (inside ? at * width : 0), inside ? order.row : Mask{0});
      };
      const VecF first = read(y), second = read(rows == 2 ? y + stride : -1);
      INFERNODE_UNROLL
      for (std::size_t k = 0; k < kColumns; ++k) {
        const VecF x{_mm512_maskz_permutex2var_ps(order.seen[k].m, first.v, order.lane[k], second.v)};
        sum = fma(x, set(weight[i * kColumns + k]), sum);
      }
    }
    finish_outputs(sum, rows * s.out_w, low, high, residual ? residual + h * s.out_w : nullptr, out + h * s.out_w);
  }
}

template <std::size_t kColumns>
void short_planes(const DepthwiseArgs& args) noexcept {
  const ConvShape& s = args.shape;
  const ShortOrder<kColumns> order(s);
  const ClampBounds bounds = clamp_bounds(args.activation);
  const VecF low = set(bounds.low), high = set(bounds.high);
  for (std::size_t plane = 0; plane < args.planes; ++plane) {
    const std::size_t at = plane * s.positions();
    short_plane(order, s, args.input + args.input_plane(plane) * s.in_h * s.in_w,
                args.weight + plane * s.kernel_points(), set(args.biases ? args.biases[plane] : args.bias), low, high,
                args.residual ? args.residual + at : nullptr, args.output + at);
    if (!is_clamp(args.activation)) activate_row(args.activation, args.output + at, s.positions());
  }
}

// Null where the shape is of another kind.
ShortPlanes short_planes_of(const ConvShape& s) noexcept {
  if (!pairs_rows(s, kLanes)) return nullptr;
  switch (s.kernel_w) {
    case 2:
      return short_planes<2>;
    case 3:
      return short_planes<3>;
    case 4:
      return short_planes<4>;
    case 5:
      return short_planes<5>;
    default:
      return short_planes<7>;
  }
}

#else

ShortPlanes short_planes_of(const ConvShape&) noexcept { return nullptr; }

#endif

}  // namespace
}  // namespace infernode::microkernels
