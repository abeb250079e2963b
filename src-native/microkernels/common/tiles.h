#pragma once

#include <cstddef>

#include "microkernels/common/activation.h"

// The register tile of float32 products, which the drivers of several families call through GemmTable::tiles.
namespace infernode::microkernels {

// Where a tile of sums goes:  v = alpha * sum (+ C when load_c); and when `last`, the epilogue of GemmEpilogue.
// Pointers point at the tile's first row and column.
struct TileOutput {
  float* c;
  std::size_t ldc;
  std::size_t rows, cols;
  float alpha;
  bool load_c, last;
  const float* bias_m;
  const float* bias_n;
  const float* residual;
  std::size_t ld_residual;
  float residual_scale;
  ActivationArgs activation;
};

// tile[r * nr + c] = sum over p < k of a[r * lda + p] * b[p * ldb + c].
using AccumulateTile = void (*)(std::size_t k, const float* a, std::size_t lda, const float* b, std::size_t ldb,
                                float* tile) noexcept;

struct GemmTiles {
  static constexpr std::size_t kMaxRows = 12, kMaxVectors = 4, kMaxFloats = 12 * 32;

  std::size_t mr, nr, lanes;
  // By rows - 1 and vectors - 1: computes `rows` rows and `vectors * lanes` columns.
  AccumulateTile accumulate[kMaxRows][kMaxVectors];
  // `tile` has rows of nr floats; what it holds afterwards is undefined.
  void (*finish)(const TileOutput& output, float* tile) noexcept;
};

// K is summed in blocks of this many: rows of A that are packed at a time fit a second-level cache, which a panel of B
// passes through, and C is read and written seldom.
inline constexpr std::size_t kGemmBlockK = 768;

// Equal blocks of at most `most`; the same for every cut of C, so that sums do not depend on it.
constexpr std::size_t gemm_block_k(std::size_t k, std::size_t most = kGemmBlockK) noexcept {
  if (k <= most) return k;
  const std::size_t blocks = (k + most - 1) / most;
  return ((k + blocks - 1) / blocks + 7) / 8 * 8;
}

}  // namespace infernode::microkernels
