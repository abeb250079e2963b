#pragma once

#include "providers/cuda/kernels/params/epilogue.h"

namespace infernode::cuda {

/// A convolution of every channel with its own kernel, channels last. Threads: eight channels of an output pixel,
/// channels fastest.
struct DepthwiseParams {
  std::uint64_t in, weights;  ///< weights float32 [tap][weights_row]
  EpilogueParams e;
  std::int64_t pixel;  ///< elements between pixels of the input
  std::int32_t weights_row;
  std::int32_t images, channels, in_h, in_w, out_h, out_w;
  std::int32_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  std::int32_t chunks;  ///< of eight channels
  Element type;
  std::int32_t vector;  ///< pixels allow 16-byte loads
};

inline constexpr int kTileChunks = 2;  ///< of eight channels, in a block
inline constexpr int kTileChannels = kTileChunks * 8;
inline constexpr int kMostTileThreads = 256;

/// The same of 16-bit pixels that allow 16-byte loads, for square kernels without dilation. A block has kTileChannels
/// channels of a tile of an image: it brings the weights and the tile's window of the input to shared memory, where
/// [taps][kTileChannels] floats and [window_h][pitch][kTileChannels] elements lie behind each other. A thread has eight
/// channels of a strip of output pixels of a row, as many as the kernel's width says. Grid: x tiles, y groups of
/// channels, z images.
struct DepthwiseTileParams {
  std::uint64_t in, weights;  ///< weights float32 [tap][weights_row]
  EpilogueParams e;
  std::uint64_t sums;  ///< of the output over a tile's pixels: float32 [image][tile][sums_row], or 0
  std::int64_t pixel;  ///< elements between pixels of the input
  std::int32_t weights_row, sums_row;
  std::int32_t channels, in_h, in_w, out_h, out_w, pad_h, pad_w;
  std::int32_t tiles, tiles_w;             ///< of an image, of a row of them
  std::int32_t tile_h, strips;             ///< rows of a tile, strips of a row
  std::int32_t window_h, window_w, pitch;  ///< pixels; an odd pitch, for the banks
  std::int32_t step_h, step_w;             ///< rows and columns of the window from a thread's pixel to its next one
};

}  // namespace infernode::cuda
