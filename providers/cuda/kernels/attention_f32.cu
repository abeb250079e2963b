#include "providers/cuda/kernels/device/attention_few.cuh"

ATTENTION_FEW(f32, bf16, 64, 3)
ATTENTION_FEW(f32, bf16, 128, 3)
