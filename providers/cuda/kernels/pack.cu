#include "providers/cuda/kernels/device/epilogue.cuh"
#include "providers/cuda/kernels/params/pack.h"

namespace infernode::cuda {
namespace {

__device__ __forceinline__ void store_packed(const PackParams& p, std::int64_t at, float v) {
  if (p.pieces > 1) {
    // Infinities and NaN are whole in the first piece; numbers beyond the largest of bfloat16 are cut off there.
    const bool finite = fabsf(v) < INFINITY;
#pragma unroll
    for (int i = 0; i < 3; i++) {
      if (i >= p.pieces) break;
      std::uint32_t piece = pack_bf16(v, 0.f);
      if (finite && !(fabsf(unpack_bf16(piece).x) < INFINITY)) piece -= 1;
      reinterpret_cast<std::uint16_t*>(p.out)[at + i * p.out_plane] = static_cast<std::uint16_t>(piece);
      v = finite ? v - unpack_bf16(piece).x : 0.f;
    }
  } else {
    store_element(p.out, p.out_type, at, v);
  }
}

}  // namespace
}  // namespace infernode::cuda

/// 32 rows by 32 columns a block; reads along whichever of rows and channels lies together in memory.
extern "C" __global__ void __launch_bounds__(256) pack(const __grid_constant__ infernode::cuda::PackParams p) {
  using namespace infernode::cuda;
  __shared__ float tile[32][33];
  let_next_start();
  wait_for_previous();
  const int column_tiles = (p.columns + 31) / 32, x = threadIdx.x & 31, y = threadIdx.x >> 5;
  const int row0 = blockIdx.x / column_tiles * 32, column0 = blockIdx.x % column_tiles * 32;
  const bool along_rows = p.in_row == 1 && p.in_channel != 1;
#pragma unroll 1
  for (int batch = blockIdx.z; batch < p.batch; batch += p.batch_blocks) {
    const std::int64_t base = batch % p.batch_inner * p.in_batch[0] + batch / p.batch_inner * p.in_batch[1];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int r = along_rows ? x : y + i * 8, c = along_rows ? y + i * 8 : x, row = row0 + r, column = column0 + c;
      const int tap = column / p.channels_padded, channel = column - tap * p.channels_padded;
      float v = 0;
      if (row < p.rows && tap < p.taps && channel < p.channels) {
        v = load_element(p.in, p.in_type, base + row * p.in_row + tap * p.in_tap + channel * p.in_channel);
      }
      tile[r][c] = v;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int r = y + i * 8, row = row0 + r, column = column0 + x;
      if (row < p.rows && column < p.columns) {
        store_packed(p, batch * p.out_batch + row * p.out_row + column, tile[r][x]);
      }
    }
    __syncthreads();
  }
}
