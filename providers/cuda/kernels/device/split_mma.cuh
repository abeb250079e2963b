#pragma once

#include "providers/cuda/kernels/device/mma.cuh"
#include "providers/cuda/kernels/device/split_fragment.cuh"

namespace infernode::cuda {

/// A stage of 64 of K, split: A in two tiles of 32 floats a row, B in pieces of 64 bfloat16 a row. Each stage is summed
/// apart, so that the tensor cores' rounding does not grow with K.
template <class T>
__device__ __forceinline__ void split_mma_stage(float (&sums)[T::kWarpM / 16][T::kWarpN / 8][4], std::uint32_t a,
                                                std::uint32_t b, int row, int column, int lane) {
  constexpr int MI = T::kWarpM / 16, NI = T::kWarpN / 16, pieces = T::kPieces;
  float part[MI][NI * 2][4] = {};
#pragma unroll 1
  for (int k = 0; k < 4; k++) {
    std::uint32_t fa[MI][pieces][4];
#pragma unroll
    for (int i = 0; i < MI; i++) {
      split_fragment<pieces>(a + (k >> 1) * T::kM * 128 + (row + i * 16) * 128, (k & 1) * 16, lane, fa[i]);
    }
#pragma unroll
    for (int j = 0; j < NI; j++) {
#pragma unroll
      for (int q = pieces - 1; q >= 0; q--) {
        std::uint32_t fb[4];
        load_matrix4(fb, b + q * T::kN * 128 +
                             swizzled(column + j * 16 + (lane & 7) + (lane >> 4) * 8, k * 2 + (lane >> 3 & 1)));
#pragma unroll
        for (int i = 0; i < MI; i++) {
#pragma unroll
          for (int r = pieces - 1 - q; r >= 0; r--) {
            mma<MmaKind::bf16>(part[i][2 * j], fa[i][r], fb[0], fb[1]);
            mma<MmaKind::bf16>(part[i][2 * j + 1], fa[i][r], fb[2], fb[3]);
          }
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < MI; i++) {
#pragma unroll
    for (int j = 0; j < NI * 2; j++) {
#pragma unroll
      for (int e = 0; e < 4; e++) sums[i][j][e] += part[i][j][e];
    }
  }
}

}  // namespace infernode::cuda
