#include "providers/cuda/kernels/device/gemv.cuh"

#define GEMV(KIND)                                                              \
  extern "C" __global__ void __launch_bounds__(512)                             \
      gemv_##KIND(const __grid_constant__ infernode::cuda::GemvParams p) {      \
    infernode::cuda::gemv<infernode::cuda::MmaKind::KIND, false>(p);            \
  }                                                                             \
  extern "C" __global__ void __launch_bounds__(256)                             \
      gemv_norm_##KIND(const __grid_constant__ infernode::cuda::GemvParams p) { \
    infernode::cuda::gemv<infernode::cuda::MmaKind::KIND, true>(p);             \
  }
GEMV(f16)
GEMV(bf16)
