#pragma once

#include <cstdint>

#include "providers/cuda/kernels/params/elementwise.h"

namespace infernode::cuda {

inline constexpr int kPlaceRank = 6;

/// Where slices of a tensor lie that indices name: slice i has its position in `dims`, whose steps add up, and `depth`
/// indices i * depth .. of axes with these bounds. Negative indices count from the end.
struct Places {
  std::uint64_t index;
  std::int32_t index_is_64;
  std::int32_t rank, depth;
  std::uint32_t dims[kPlaceRank];
  std::int64_t step[kPlaceRank];                       ///< slices
  std::int64_t bound[kPlaceRank], stride[kPlaceRank];  ///< of the axes that indices name; slices
};

/// gather: to[i] = from[place of i], zeros where that is outside. scatter: to[place of i] = from[i], where i owns the
/// place; those outside are left out. Grid: x blocks of 256 elements.
struct PlacedCopyParams {
  Places places;
  std::uint64_t from, to;
  std::uint64_t owner;      ///< of scatter: int32 for each slice; 0: no two name the same
  std::int64_t count;       ///< slices times their elements
  std::int64_t slice;       ///< elements
  std::int64_t from_slice;  ///< of scatter: elements from one update to the next
};

/// owner[place of i] = the largest such i. Grid: x blocks of 256 slices.
struct OwnerParams {
  Places places;
  std::uint64_t owner;
  std::int64_t count;
};

/// next[i] = another update of i's place, or -1; head[place] = one of its updates, or -1. Grid: x blocks of 256
/// updates.
struct LinkParams {
  Places places;
  std::uint64_t head, next;  ///< int32 [slices], [count]
  std::int64_t count;
};

inline constexpr std::int32_t kNoUpdate = 0x7fffffff;
/// after[i] = the update of i's place that follows i, or kNoUpdate; -1 - that where i is not the first of its place, or
/// has none. Grid: x blocks of 256 updates.
struct OrderParams {
  Places places;
  std::uint64_t head, next, after;  ///< int32
  std::int64_t count;
};

/// to[place of i] = op(to[place of i], from[i]), all updates of a place one after the other, by a thread for each of
/// its elements. Grid: x blocks of 256 threads.
struct PlacedSumParams {
  Places places;
  std::uint64_t from, to, after;
  std::int64_t count, slice;  ///< threads: slices times their elements
  BinaryOp op;
  Number type;
};

/// Triangles of [matrices][rows][columns]: elements above the diagonal, or below it, are kept, others are zeros. Grid:
/// x blocks of 256 elements of 1, 2, 4 or 8 bytes.
struct TriangleParams {
  std::uint64_t from, to;
  std::int64_t count, rows, columns, diagonal;
  std::int32_t upper;
};

/// to = past [batch][middle][length][inner], with the rows `fresh` [batch][middle][rows][inner] from start[b] on
/// instead of its own; round its end where `circular`, otherwise what is beyond is left out. Grid: x blocks of 256
/// elements.
struct RowsParams {
  std::uint64_t past, fresh, to, start;  ///< start: int64, or 0: from the first row on
  std::int64_t count, middle, length, rows, inner;
  std::int32_t circular;
};

/// The first lengths[b] steps of each sequence the other way round: elements [outer][b or step][step or b][inner].
/// Grid: x blocks of 256 elements.
struct ReverseParams {
  std::uint64_t from, to, lengths;  ///< int64
  std::int64_t count, batches, steps, inner;
  std::int32_t batch_first;
};

}  // namespace infernode::cuda
