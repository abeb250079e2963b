#pragma once

#include "microkernels/common/simd_file.h"
#include "microkernels/common/tiles.h"
#include "microkernels/gemm/gemm.h"

namespace infernode::microkernels {
namespace {

// Where a tile of C goes whose first row and column are m and n; `first`, `last`: of the blocks of K.
INFERNODE_SIMD TileOutput output_at(const GemmArgs& g, std::size_t m, std::size_t rows, std::size_t n, std::size_t cols,
                                    bool first, bool last) noexcept {
  const GemmEpilogue& e = g.epilogue;
  return {g.c + m * g.ldc + n,
          g.ldc,
          rows,
          cols,
          g.alpha,
          !first || g.accumulate,
          last,
          e.bias_m ? e.bias_m + m : nullptr,
          e.bias_n ? e.bias_n + n : nullptr,
          e.residual ? e.residual + m * e.ld_residual + n : nullptr,
          e.ld_residual,
          e.residual_scale,
          e.activation};
}

}  // namespace
}  // namespace infernode::microkernels
