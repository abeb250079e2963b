#pragma once

#include <cstddef>

// How the output of a product, or of a convolution that is one, is cut for several threads.
namespace infernode::microkernels {

// Part of C. n_begin is a multiple of the table's nr.
struct GemmRange {
  std::size_t m_begin, m_end, n_begin, n_end;
};

// A grid of equal ranges over C for `workers` threads: ranges [i * tile_m, ...) x [j * tile_n, ...).
struct GemmSplit {
  std::size_t tile_m, tile_n;    // rows and columns of one range; tile_n is a multiple of nr
  std::size_t count_m, count_n;  // ranges along each side

  std::size_t count() const noexcept { return count_m * count_n; }
  GemmRange range(std::size_t index, std::size_t m, std::size_t n) const noexcept {
    const std::size_t i = index / count_n, j = index % count_n;
    const std::size_t m_end = (i + 1) * tile_m, n_end = (j + 1) * tile_n;
    return {i * tile_m, m_end < m ? m_end : m, j * tile_n, n_end < n ? n_end : n};
  }
};

// Weights of a row and a column of a range, in multiply-adds per element of K, beside its area.
struct SplitCost {
  double per_row, per_column;
};
GemmSplit split_grid(std::size_t mr, std::size_t nr, std::size_t m, std::size_t n, std::size_t k, std::size_t workers,
                     SplitCost cost) noexcept;

}  // namespace infernode::microkernels
