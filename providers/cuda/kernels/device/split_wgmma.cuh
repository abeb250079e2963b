#pragma once

#include "providers/cuda/kernels/device/split_fragment.cuh"
#include "providers/cuda/kernels/device/wgmma.cuh"

namespace infernode::cuda {

/// A warpgroup's share of 64 of K: float32 A as pieces in registers, B in pieces in shared memory.
template <int pieces, int BM, int BN, int KW>
struct SplitStep {
  static constexpr int kSteps = 4 / KW;
  std::uint32_t fragment[kSteps][pieces][4];

  /// A lies in two tiles of 32 floats a row; `a` is the warp's rows of the first.
  __device__ __forceinline__ void load(std::uint32_t a, int part, int lane) {
#pragma unroll
    for (int k = 0; k < kSteps; k++) {
      const int at = part * kSteps + k;
      split_fragment<pieces>(a + (at >> 1) * BM * 128, (at & 1) * 16, lane, fragment[k]);
    }
  }

  /// Begins the products of pieces whose ranks add to less than `pieces`; b is the operand word of the first piece.
  __device__ __forceinline__ void begin(float (&sums)[BN / 2], std::uint32_t b, int part) const {
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < kSteps; k++) {
#pragma unroll
      for (int rank = pieces - 1; rank >= 0; rank--) {
#pragma unroll
        for (int i = 0; i <= rank; i++) {
          WgmmaFromRegisters<BN>::product(sums, fragment[k][i],
                                          wgmma_descriptor(b + (rank - i) * (BN * 8) + (part * kSteps + k) * 2),
                                          k > 0 || rank < pieces - 1 || i > 0);
        }
      }
    }
    wgmma_commit();
  }

  /// To be called when the products have ended: until then the fragments keep their registers.
  __device__ __forceinline__ void release() {
#pragma unroll
    for (int k = 0; k < kSteps; k++) {
#pragma unroll
      for (int q = 0; q < pieces; q++) {
#pragma unroll
        for (int i = 0; i < 4; i++) asm volatile("" : "+r"(fragment[k][q][i])::"memory");
      }
    }
  }
};

}  // namespace infernode::cuda
