#include "providers/cuda/kernels/device/attention.cuh"

ATTENTION_KERNELS(bf16)
