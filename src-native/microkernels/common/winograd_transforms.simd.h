#pragma once

#include "microkernels/common/simd_file.h"

// The one-dimensional transforms of F(2x2, 3x3), and what inputs it takes, inside *.simd.cpp files.
namespace infernode::microkernels {
namespace {

constexpr std::size_t kPoints = 16;      // of a transformed tile
constexpr std::size_t kEvenInputs = 96;  // numbers that must matter in each tile, over all channels
constexpr std::size_t kLine = 16;        // floats of a cache line

// Rows of an odd number of cache lines do not compete for the same places of the cache.
constexpr std::size_t spread(std::size_t floats) noexcept { return divide_up(floats, kLine) * kLine | kLine; }

// y = G x for G = [1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1].
INFERNODE_SIMD void transform3(VecF x0, VecF x1, VecF x2, VecF* y) {
  const VecF half = set(0.5f), outer = (x0 + x2) * half, inner = x1 * half;
  y[0] = x0;
  y[1] = outer + inner;
  y[2] = outer - inner;
  y[3] = x2;
}

// y = B^T x for B^T = [1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1].
INFERNODE_SIMD void transform4(VecF x0, VecF x1, VecF x2, VecF x3, VecF* y) {
  y[0] = x0 - x2;
  y[1] = x1 + x2;
  y[2] = x2 - x1;
  y[3] = x1 - x3;
}

}  // namespace
}  // namespace infernode::microkernels
