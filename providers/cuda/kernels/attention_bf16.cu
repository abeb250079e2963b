#include "providers/cuda/kernels/device/attention.cuh"
#include "providers/cuda/kernels/device/attention_few.cuh"

ATTENTION_KERNELS(bf16)
ATTENTION_FEW(bf16, bf16, 64, 1)
ATTENTION_FEW(bf16, bf16, 128, 1)
