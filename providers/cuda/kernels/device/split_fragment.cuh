#pragma once

#include "providers/cuda/kernels/device/pieces.cuh"

// Fragments of mma.sync and wgmma from float32 tiles in shared memory.
namespace infernode::cuda {

/// Two floats at column `column` of row `row` in tiles of 32 floats a row (TMA's swizzle).
__device__ __forceinline__ float2 shared_pair(std::uint32_t tile, int row, int column) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
               : "=f"(v.x), "=f"(v.y)
               : "r"(tile + swizzled(row, column >> 2) + (column & 2) * 4));
  return v;
}

/// The A fragments (m16n8k16) of a warp's 16 rows of a float32 tile for columns [column, column + 16).
template <int pieces>
__device__ __forceinline__ void split_fragment(std::uint32_t tile, int column, int lane,
                                               std::uint32_t (&fragment)[pieces][4]) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    std::uint32_t piece[pieces];
    split_pair<pieces>(shared_pair(tile, (lane >> 2) + (i & 1) * 8, column + (lane & 3) * 2 + (i >> 1) * 8), piece);
#pragma unroll
    for (int q = 0; q < pieces; q++) fragment[q][i] = piece[q];
  }
}

}  // namespace infernode::cuda
