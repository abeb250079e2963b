#include "providers/cuda/kernels/device/attention_wgmma.cuh"

ATTENTION_WGMMA_KERNELS(f16)
ATTENTION_WGMMA_KERNELS(bf16)
