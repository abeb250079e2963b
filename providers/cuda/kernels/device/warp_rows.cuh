#pragma once

#include "providers/cuda/kernels/device/number.cuh"
#include "providers/cuda/kernels/device/ptx.cuh"
#include "providers/cuda/kernels/params/rows.h"

// Kernels with a warp for each row.
namespace infernode::cuda {

constexpr int kWarps = 4;  ///< of a block

__device__ __forceinline__ std::int64_t row_of_warp() { return blockIdx.x * std::int64_t{kWarps} + threadIdx.x / 32; }

/// Another lane's number of four or eight bytes.
template <class T>
__device__ __forceinline__ T lane_xor(T x, int mask) {
  if constexpr (sizeof(T) == 4) {
    return __shfl_xor_sync(~0u, x, mask);
  } else {
    const std::uint32_t low = __shfl_xor_sync(~0u, static_cast<std::uint32_t>(x), mask);
    const std::uint32_t high = __shfl_xor_sync(~0u, static_cast<std::uint32_t>(x >> 32), mask);
    return static_cast<T>(std::uint64_t{high} << 32 | low);
  }
}

#define ROW_KERNEL(name, function, type, params)                                                     \
  extern "C" __global__ void __launch_bounds__(kWarps * 32) name(const __grid_constant__ params p) { \
    function<type>(p);                                                                               \
  }

}  // namespace infernode::cuda
