#pragma once

#include "providers/cuda/kernels/device/number.cuh"
#include "providers/cuda/kernels/device/ptx.cuh"
#include "providers/cuda/kernels/params/rows.h"

// Kernels with a warp for each row.
namespace infernode::cuda {

constexpr int kWarps = 4;  ///< of a block

__device__ __forceinline__ std::int64_t row_of_warp() { return blockIdx.x * std::int64_t{kWarps} + threadIdx.x / 32; }

#define ROW_KERNEL(name, function, type, params)                                                     \
  extern "C" __global__ void __launch_bounds__(kWarps * 32) name(const __grid_constant__ params p) { \
    function<type>(p);                                                                               \
  }

}  // namespace infernode::cuda
