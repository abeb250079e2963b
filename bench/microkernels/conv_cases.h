#pragma once

#include "microkernels/conv/conv.h"

// The convolutions that several families are timed by.
namespace infernode::bench {

// Of square windows on square images, padded on all sides by half a window.
inline microkernels::ConvShape square_conv(std::size_t in, std::size_t out, std::size_t size, std::size_t kernel,
                                           std::size_t stride) {
  microkernels::ConvShape s;
  s.in_channels = in;
  s.out_channels = out;
  s.in_h = s.in_w = size;
  s.kernel_h = s.kernel_w = kernel;
  s.stride_h = s.stride_w = stride;
  s.pad_top = s.pad_left = static_cast<std::ptrdiff_t>(kernel / 2);
  s.out_h = s.out_w = (size + kernel / 2 * 2 - kernel) / stride + 1;
  return s;
}

struct ConvCase {
  std::size_t in, out, size, kernel, stride;
};
inline constexpr ConvCase kConvs[] = {
    // channels in and out, size, kernel, stride
    {3, 64, 224, 7, 2},  {24, 24, 160, 3, 1},  {32, 32, 160, 3, 1},  {64, 64, 56, 3, 1},   {64, 64, 80, 3, 1},
    {64, 256, 56, 1, 1}, {128, 128, 28, 3, 1}, {128, 128, 40, 3, 1}, {256, 256, 14, 3, 1}, {256, 256, 20, 3, 1},
    {512, 512, 7, 3, 1}, {512, 2048, 7, 1, 1}, {256, 512, 56, 1, 2}, {32, 16, 112, 1, 1},  {16, 96, 112, 1, 1},
    {16, 96, 28, 1, 1},  {24, 144, 56, 1, 1},  {144, 24, 56, 1, 1},  {384, 64, 14, 1, 1},  {160, 960, 7, 1, 1},
};

struct DepthwiseCase {
  std::size_t channels, size, kernel, stride;
};
inline constexpr DepthwiseCase kDepthwise[] = {{32, 112, 3, 1}, {96, 112, 3, 2}, {576, 14, 3, 1}, {960, 7, 3, 1},
                                               {240, 28, 5, 1}, {576, 14, 3, 2}, {960, 7, 3, 2},  {144, 56, 7, 2},
                                               {144, 56, 9, 3}, {144, 56, 11, 4}};

// Images that windows of a transposed convolution fill side by side, leave gaps in, overlap in.
inline constexpr DepthwiseCase kTapSums[] = {{64, 56, 2, 2}, {64, 55, 1, 2}, {64, 57, 2, 3}, {64, 57, 3, 2}};

}  // namespace infernode::bench
