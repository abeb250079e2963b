#pragma once

#include <cstddef>
#include <cstdint>

// Float32 2-D pooling of one plane (1-D: heights of 1).
namespace infernode::microkernels {

struct PoolShape {
  std::size_t in_h = 1, in_w = 1, out_h = 1, out_w = 1;
  std::size_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  // Of a band of outputs that begins within the plane's, pads less what lies before it: they may be negative.
  std::ptrdiff_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
};

inline constexpr std::size_t kPlace = 16;

struct PoolTable {
  const char* name;
  // Greatest element under the window; pads never win; NaN wins; a window with no element gives -infinity.
  void (*max)(const PoolShape& shape, const float* x, float* y) noexcept;
  // Mean under the window; with include_pad pads count as zeros (those that the last ceil-mode window reaches beyond
  // pad_bottom and pad_right do not count).
  void (*average)(const PoolShape& shape, bool include_pad, const float* x, float* y) noexcept;
  // `max` of kPlace planes, whose elements at one place follow each other: [in_h][in_w][kPlace].
  void (*max_places)(const PoolShape& shape, const float* x, float* y) noexcept;
  void (*max_places_bf16)(const PoolShape& shape, const std::uint16_t* x, std::uint16_t* y) noexcept;
};

}  // namespace infernode::microkernels
