#pragma once

#include "providers/cuda/kernels/device/ptx.cuh"

// float32 as a sum of bfloat16 pieces, each the rounded rest of those before: three hold all 24 bits.
namespace infernode::cuda {

/// The pieces of two floats, as pairs.
template <int pieces>
__device__ __forceinline__ void split_pair(float2 x, std::uint32_t (&piece)[pieces]) {
#pragma unroll
  for (int i = 0; i < pieces; i++) {
    piece[i] = pack_bf16(x.x, x.y);
    const float2 f = unpack_bf16(piece[i]);
    x.x -= f.x;
    x.y -= f.y;
  }
}

}  // namespace infernode::cuda
