#include "providers/cuda/kernels/device/gemm_block.cuh"

// `medium`: TF32. `high` and `highest`: products of two and three bfloat16 pieces.
GEMM_BLOCK(f32, tf32, tf32, 1, 64, 32, 2)
GEMM_BLOCK(f32, tf32, tf32, 1, 64, 64, 2)
GEMM_BLOCK(f32, tf32, tf32, 1, 128, 64, 1)
GEMM_BLOCK(f32, bf16x3, bf16, 2, 64, 32, 2)
GEMM_BLOCK(f32, bf16x3, bf16, 2, 64, 64, 2)
GEMM_BLOCK(f32, bf16x6, bf16, 3, 64, 32, 2)
GEMM_BLOCK(f32, bf16x6, bf16, 3, 64, 64, 2)
