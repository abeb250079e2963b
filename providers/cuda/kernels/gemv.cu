#include "providers/cuda/kernels/device/gemv.cuh"

extern "C" __global__ void __launch_bounds__(512) gemv_f16(const __grid_constant__ infernode::cuda::GemvParams p) {
  infernode::cuda::gemv<infernode::cuda::MmaKind::f16>(p);
}

extern "C" __global__ void __launch_bounds__(512) gemv_bf16(const __grid_constant__ infernode::cuda::GemvParams p) {
  infernode::cuda::gemv<infernode::cuda::MmaKind::bf16>(p);
}
