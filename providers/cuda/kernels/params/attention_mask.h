#pragma once

#include "providers/cuda/kernels/params/attention.h"
#include "providers/cuda/kernels/params/elementwise.h"

namespace infernode::cuda {

/// Numbers [batch][heads][queries][keys] with strides of their own, in elements; `at` 0: none.
struct MaskSource {
  std::uint64_t at;
  Number type;
  std::int64_t stride[4];
};

/// out = added, and `shut` more for keys that a query is not to see: where `open` is 0, at the ends of sequences, out
/// of the window around the query's own place. Keys from `columns` on have neither `added` nor `open` and are out of
/// sight. Grid: x blocks of 256 elements.
struct AttentionMaskParams {
  std::uint64_t out;  ///< float32 [batch][heads][queries][keys]
  std::int64_t count;
  std::int32_t heads, queries, keys, columns;
  MaskSource added, open;
  std::uint64_t ends, starts;  ///< int32 [batch]: keys from ends + more_end on, or before starts; 0: none
  std::int32_t more_end;
  std::int32_t left, right;  ///< keys that a query sees on both sides of its place; -1: all
  std::int32_t place;        ///< of the first query; -1: the queries are the sequence's last ones, or the first of it
  float shut;
};

/// Zeros where a query sees no key: all that its causal window leaves have a mask of -infinity. Grid: x blocks of 4
/// warps, a query of a head each.
struct ClearShutParams {
  std::uint64_t out;
  Element type;
  HeadStrides out_at;
  MaskSource mask;        ///< its keys lie side by side
  std::uint64_t lengths;  ///< int32 [batch], or 0
  std::int64_t rows;      ///< batch * heads * queries
  std::int32_t heads, queries, keys, dv;
  std::int32_t causal, causal_offset, window;  ///< as attention's
};

/// A cache [batch][heads][capacity] of rows: those of the past that count, new ones behind them, zeros. Where the past
/// lies at the cache's place, its rows and what is behind the new ones stay. Grid: x blocks of 256 words.
struct CacheParams {
  std::uint64_t past, fresh, to;  ///< past: [batch][heads][held] rows
  std::uint64_t last;             ///< int32 [batch]: the place of the last token of a sequence
  std::uint64_t tokens;           ///< int32 [batch], written: how many there are; 0: not asked for
  std::int64_t count;             ///< words of the cache
  HeadStrides fresh_at;           ///< words
  std::int32_t batch, heads, held, capacity, rows, words;  ///< rows: new ones; words: of a row
};

}  // namespace infernode::cuda
