#include "providers/cuda/kernels/device/gemm_mma.cuh"

GEMM_MMA(gemm, bf16, bf16, 1, 64, 64, 32, 32, 4, false)
GEMM_MMA(gemm, bf16, bf16, 1, 128, 128, 64, 32, 3, false)
GEMM_MMA(conv, bf16, bf16, 1, 64, 64, 32, 32, 4, true)
GEMM_MMA(conv, bf16, bf16, 1, 128, 64, 32, 32, 3, true)
