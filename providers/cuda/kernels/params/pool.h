#pragma once

#include <cstdint>

namespace infernode::cuda {

/// Windows over images with channels last, up to two dimensions. Grid: x blocks of 256 threads, each for 8 channels (or
/// one, where pitches are no multiples of 8) of one output pixel.
struct PoolParams {
  std::uint64_t in, out;
  std::int64_t threads;
  std::int64_t in_pitch, out_pitch;  ///< elements between pixels
  std::int32_t packs;                ///< of channels, for each pixel
  std::int32_t in_h, in_w, out_h, out_w;
  std::int32_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  std::int32_t average;        ///< 0: the largest
  std::int32_t count_padding;  ///< averages divide by the window's size
  std::int32_t pad_end_h, pad_end_w;
};

/// The mean (or the largest) of each image's pixels. Grid: x packs of 8 channels, y images, z parts of the pixels,
/// which are a cluster; block 256.
struct GlobalPoolParams {
  std::uint64_t in, out;
  std::int64_t in_pitch, out_pitch;
  std::int32_t pixels, channels;
  std::int32_t average;
  std::int32_t parts;
};

}  // namespace infernode::cuda
