#include "providers/cuda/kernels/device/gemm_mma.cuh"

// `medium`: TF32. `high` and `highest`: products of two and three bfloat16 pieces.
GEMM_MMA(gemm, tf32, tf32, 1, 64, 64, 32, 32, 4, false)
GEMM_MMA(conv, tf32, tf32, 1, 64, 64, 32, 32, 4, true)
GEMM_MMA(gemm, bf16x3, bf16, 2, 64, 64, 32, 32, 3, false)
GEMM_MMA(conv, bf16x3, bf16, 2, 64, 64, 32, 32, 3, true)
GEMM_MMA(gemm, bf16x6, bf16, 3, 64, 64, 32, 32, 2, false)
GEMM_MMA(conv, bf16x6, bf16, 3, 64, 64, 32, 32, 2, true)
