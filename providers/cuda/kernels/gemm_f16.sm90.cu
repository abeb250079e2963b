#include "providers/cuda/kernels/device/gemm_block.cuh"

GEMM_BLOCK_KERNELS(f16)
