#pragma once

#include "providers/cuda/kernels/device/ptx.cuh"

// mma.sync: 16 by 8 by 32 bytes of K, sums in float32. Fragments are those of ldmatrix.
namespace infernode::cuda {

enum class MmaKind { f16, bf16, tf32 };

template <MmaKind kind>
__device__ __forceinline__ void mma(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
#define INFERNODE_MMA(SHAPE)                                                                      \
  asm volatile("mma.sync.aligned." SHAPE " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                   \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
#if __CUDA_ARCH__ >= 800
  if constexpr (kind == MmaKind::f16) {
    INFERNODE_MMA("m16n8k16.row.col.f32.f16.f16.f32");
  } else if constexpr (kind == MmaKind::bf16) {
    INFERNODE_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
  } else {
    INFERNODE_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
  }
#else
  static_assert(kind == MmaKind::f16 || sizeof(c) > 0);
  if constexpr (kind == MmaKind::f16) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                   : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                   : "r"(a[half * 2]), "r"(a[half * 2 + 1]), "r"(half ? b1 : b0));
    }
  } else {
    __trap();  // Turing has no such product: planners choose gemm_simt
  }
#endif
#undef INFERNODE_MMA
}

}  // namespace infernode::cuda
