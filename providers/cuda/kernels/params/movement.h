#pragma once

#include <cstdint>

// Plain structs that planners fill and kernels read.
namespace infernode::cuda {

inline constexpr int kCopyRank = 6;

/// to[i . to_stride] = from[i . from_stride] for every index i below dims; elements of 1, 2, 4, 8 or 16 bytes.
struct CopyPart {
  std::uint64_t from, to;  ///< from 0: every element is `fill`
  std::int64_t count;
  std::int32_t rank;
  std::uint32_t dims[kCopyRank];
  std::int64_t from_stride[kCopyRank], to_stride[kCopyRank];  ///< elements
  std::uint64_t fill;
};

/// Copies of one element size that do not read what another one writes. Grid: x blocks of 256 elements of the largest,
/// y parts.
inline constexpr int kCopyParts = 8;
struct CopyParams {
  CopyPart part[kCopyParts];
};

/// to[b][c][r] = from[b][r][c]; elements of 1, 2, 4 or 8 bytes. Grid: x tiles of 32 by 32, z batch; block 32 by 8.
struct TransposeParams {
  std::uint64_t from, to;
  std::int32_t rows, columns;
  std::int64_t from_row, to_row;      ///< elements between rows
  std::int64_t from_batch, to_batch;  ///< elements
};

inline constexpr int kPixelChannels = 8;

/// Images of up to kPixelChannels channels in planes, with channels last: kPixelChannels a pixel, zeros behind those
/// that there are. Elements of 2 or 4 bytes. Grid: x blocks of 256 pixels.
struct PixelsParams {
  std::uint64_t from, to;
  std::uint32_t pixels, plane;  ///< of all images, of one
  std::int32_t channels;
};

/// to[o][k][i] = from[o][index[k]][i], rows of `inner` elements of 1, 2, 4, 8 or 16 bytes. Negative indices count from
/// the end; those outside give zeros. Grid: x blocks of 256 elements.
struct GatherParams {
  std::uint64_t from, index, to;
  std::int64_t count;  ///< elements of `to`
  std::uint32_t inner, indices;
  std::int64_t axis;  ///< size of the gathered axis
  std::int32_t index_is_64;
};

}  // namespace infernode::cuda
