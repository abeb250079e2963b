#pragma once

#include <cstdint>

namespace infernode::cuda {

/// Pairs of elements of each head, turned by the angle of the head's row: y0 = cos x0 - sin x1, y1 = sin x0 + cos x1.
/// Rows lie as [batch][heads][length] or, `flat`, [batch][length][heads], of `head` elements each; those of heads from
/// `turned_heads` on stay. Grid: x blocks of 256 elements.
struct RotaryParams {
  std::uint64_t x, y, cos, sin;  ///< cos, sin: [rows][rotated / 2] of x's type
  std::uint64_t positions;       ///< int64 [batch][length], or the first one; 0: the caches' own [batch][length]
  std::uint64_t last;  ///< int32 [batch]: where a sequence's last token stands, for all of them; 0: positions count
  std::int64_t count;
  std::int64_t limit;  ///< rows of the caches; elements of rows beyond stay
  std::int32_t heads, turned_heads, length, head, rotated;
  std::int32_t flat, interleaved, first_alone;
  float scale;
};

}  // namespace infernode::cuda
