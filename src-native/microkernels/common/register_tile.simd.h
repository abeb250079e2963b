#pragma once

#include "microkernels/common/simd_file.h"

// The register tile of float32 products inside *.simd.cpp files: accumulators, one row of B and one element of A fill
// the vector registers.
namespace infernode::microkernels {
namespace {

#if INFERNODE_SIMD_ID == 3
constexpr std::size_t kMr = 12, kNv = 2;
#elif INFERNODE_SIMD_ID == 2
constexpr std::size_t kMr = 6, kNv = 2;
#elif INFERNODE_SIMD_ID == 4
constexpr std::size_t kMr = 6, kNv = 4;
#else
constexpr std::size_t kMr = 4, kNv = 2;
#endif
constexpr std::size_t kNr = kNv * kLanes;

// tile[r * ld + c] = (start ? 0 : tile) + sum over p < k of a[r * lda + p] * row_of(p)[c]; meanwhile(p) is called
// before each.
template <std::size_t kRows, std::size_t kVectors, typename RowOf, typename Meanwhile>
INFERNODE_SIMD void sum_tile(std::size_t k, const float* a, std::size_t lda, RowOf row_of, bool start, float* tile,
                             std::size_t ld, Meanwhile meanwhile) {
  VecF sum[kRows][kVectors];
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = start ? zero() : load(tile + r * ld + v * kLanes);
  }
  for (std::size_t p = 0; p < k; ++p, ++a) {
    meanwhile(p);
    const float* from = row_of(p);
    VecF row[kVectors];
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) row[v] = load(from + v * kLanes);
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      const VecF x = set(a[r * lda]);
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = fma(x, row[v], sum[r][v]);
    }
  }
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) store(tile + r * ld + v * kLanes, sum[r][v]);
  }
}

template <std::size_t kRows, std::size_t kVectors, typename RowOf>
INFERNODE_SIMD void sum_tile(std::size_t k, const float* a, std::size_t lda, RowOf row_of, bool start, float* tile,
                             std::size_t ld = kNr) {
  sum_tile<kRows, kVectors>(k, a, lda, row_of, start, tile, ld, [](std::size_t) {});
}

// How many of `count` rows a tile takes, which are `most` at most: even parts, but neither they nor what is left over
// are seven, of which GCC 12 keeps the weights in memory, at half the rate of others.
[[maybe_unused]] std::size_t tile_rows(std::size_t count, std::size_t most = kMr) noexcept {
  if (count == 7) return 4;
  const std::size_t rows = divide_up(count, divide_up(count, most));
  return rows < most && (rows == 7 || count % rows == 7) ? rows + 1 : rows;
}

// table[rows - 1][vectors - 1] = of<rows, vectors>() for every size up to the register tile's.
template <std::size_t kRows = kMr, typename Function, std::size_t kTableRows, std::size_t kTableVectors, typename Of>
constexpr void fill_by_size(Function (&table)[kTableRows][kTableVectors], Of of) {
  if constexpr (kRows > 0) {
    table[kRows - 1][0] = of.template operator()<kRows, 1>();
    table[kRows - 1][1] = of.template operator()<kRows, 2>();
    if constexpr (kNv > 2) {
      table[kRows - 1][2] = of.template operator()<kRows, 3>();
      table[kRows - 1][3] = of.template operator()<kRows, 4>();
    }
    fill_by_size<kRows - 1>(table, of);
  }
}

}  // namespace
}  // namespace infernode::microkernels
