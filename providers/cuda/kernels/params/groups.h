#pragma once

#include <cstdint>

namespace infernode::cuda {

/// Images whose channels are normalized in groups: (x - mean) / deviation * scale + bias. x is the sum of up to three.
/// Element (image, channel, pixel) lies at the sum of their strides. Grid: x groups of all images; block: whole warps.
struct GroupNormParams {
  std::uint64_t in, out;
  std::uint64_t skip, skip_bias, sum;  ///< added; where the sum goes; 0: none. skip_bias: one for each channel
  std::uint64_t scale, bias;           ///< float32, for each channel (or group); 0: none
  std::int64_t image_stride, channel_stride, pixel_stride;
  std::int64_t pixels;
  std::int32_t groups, members;  ///< of an image, of a group
  std::int32_t by_group;         ///< scale and bias
  std::int32_t skip_is_pixel;    ///< skip has one pixel, which is added to all
  std::int32_t silu;
  std::int32_t plain_deviation;  ///< the deviation is sqrt(variance) + epsilon, not sqrt(variance + epsilon)
  float epsilon;
};

/// x / norm over the middle of [outer][columns][inner]; zeros where the norm is 0. Grid: x blocks of 4 warps.
struct LpNormParams {
  std::uint64_t in, out;
  std::int64_t rows, columns, inner;
  std::int32_t p;  ///< 1 or 2
};

/// x / (bias + alpha * sum of squares of channels around)^beta, [images][channels][pixels]. Grid: x blocks of 128
/// elements.
struct LrnParams {
  std::uint64_t in, out;
  std::int64_t count, channels, pixels;
  std::int64_t before, behind;  ///< channels
  float alpha, beta, bias;
};

}  // namespace infernode::cuda
