#pragma once

#include <cstdint>

#include "providers/cuda/kernels/params/elementwise.h"

namespace infernode::cuda {

inline constexpr int kSampledAxes = 3;

enum class SamplePadding : std::uint32_t { zeros, border, reflection };

/// An image [batch][channels][axes] read at places that a grid [batch][places][axes] of coordinates names, the
/// innermost axis first. Grid: x blocks of 256 elements of the output [batch][channels][places].
struct GridSampleParams {
  std::uint64_t in, grid, out;
  Number grid_type;
  std::int64_t count, places, plane;  ///< plane: elements of a channel
  std::int32_t channels, axes;
  std::int32_t taps;  ///< elements along an axis that a sample is made of: 1, 2 or 4
  SamplePadding padding;
  std::int32_t align_corners;
  std::int64_t length[kSampledAxes], stride[kSampledAxes];
};

/// Samples of rectangles of images [batch][channels][height][width], pooled to one size: their mean, or the greatest
/// weighted pixel. Grid: x blocks of 256 elements of the output [regions][channels][out_height][out_width].
struct RoiAlignParams {
  std::uint64_t in, regions, batches, out;  ///< regions: [count][4] of in's type; batches: int64
  std::int64_t count, images;
  std::int32_t channels, height, width, out_height, out_width;
  std::int32_t samples;  ///< along a side of a bin; 0: as many as it has pixels
  std::int32_t greatest, half_pixel;
  float scale;
};

inline constexpr int kMostSamples = 4096;  ///< along a side of a bin

/// Sums of a row of each of three tables, of `width` elements. Rows out of range count as zeros. Grid: x blocks of 256
/// elements.
struct EmbedParams {
  std::uint64_t table[3], ids[3];  ///< table 0: none; ids: int32, 0: the token's place in its sequence
  std::int64_t rows[3];
  std::int64_t period[3];  ///< ids repeat after so many tokens
  std::uint64_t out;
  std::int64_t count;
  std::int32_t width;
};

}  // namespace infernode::cuda
