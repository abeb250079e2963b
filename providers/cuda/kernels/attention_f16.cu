#include "providers/cuda/kernels/device/attention.cuh"
#include "providers/cuda/kernels/device/attention_few.cuh"

ATTENTION_KERNELS(f16)
ATTENTION_FEW(f16, f16, 64, 1)
ATTENTION_FEW(f16, f16, 128, 1)
