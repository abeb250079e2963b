#include "providers/cuda/kernels/device/epilogue.cuh"
#include "providers/cuda/kernels/device/rows.cuh"
#include "providers/cuda/kernels/params/gemm.h"

// The product on the float32 units: any element types, any alignment, any convolution. 64 x 64 a block, 16 of K a step.
namespace infernode::cuda {
namespace {

constexpr int kTile = 64, kStep = 16, kPitch = kTile + 4;

struct Operands {
  float a[kStep][kPitch], b[kStep][kPitch];
};

__device__ __forceinline__ void load_step(Operands& to, const GemmMmaParams& p, int k0, int m0, int n0, int batch0,
                                          int batch1, const Pixel (&pixels)[4]) {
  const int k = k0 + (threadIdx.x & 15), row = threadIdx.x >> 4;
  const std::int64_t a = batch0 * p.a_batch[0] + batch1 * p.a_batch[1],
                     b = batch0 * p.b_batch[0] + batch1 * p.b_batch[1];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int r = row + i * 16;
    float va = 0, vb = 0;
    if (p.conv.taps) {
      const Tap tap(p.conv, k);
      const int at = tap.channel < p.conv.channels ? input_pixel(p.conv, pixels[i], tap) : -1;
      if (at >= 0) va = load_element(p.a, p.a_type, a + at * p.conv.pixel + tap.channel);
    } else if (m0 + r < p.m && k < p.k) {
      va = load_element(p.a, p.a_type, a + (m0 + r) * p.a_row + k);
    }
    if (n0 + r < p.n && k < p.k) vb = load_element(p.b, p.b_type, b + (n0 + r) * p.b_row + k);
    to.a[threadIdx.x & 15][r] = va;
    to.b[threadIdx.x & 15][r] = vb;
  }
}

}  // namespace
}  // namespace infernode::cuda

extern "C" __global__ void __launch_bounds__(256) gemm_simt(const __grid_constant__ infernode::cuda::GemmMmaParams p) {
  using namespace infernode::cuda;
  __shared__ union {
    Operands operands;
    float sums[kTile][kTile + 8];
  } shared;
  const int m0 = blockIdx.x / p.n_tiles * kTile, n0 = blockIdx.x % p.n_tiles * kTile;
  const int batch0 = blockIdx.y % p.batch_inner, batch1 = blockIdx.y / p.batch_inner;
  let_next_start();
  Pixel pixels[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (p.conv.taps) pixels[i].find(p.conv, m0 + (threadIdx.x >> 4) + i * 16, p.m);
  }
  wait_for_previous();
  const int x = threadIdx.x & 15, y = threadIdx.x >> 4;
  float sums[4][4] = {};
#pragma unroll 1
  for (int k = 0; k < p.k; k += kStep) {
    load_step(shared.operands, p, k, m0, n0, batch0, batch1, pixels);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kStep; j++) {
      const float4 a = *reinterpret_cast<const float4*>(&shared.operands.a[j][y * 4]);
      const float4 b = *reinterpret_cast<const float4*>(&shared.operands.b[j][x * 4]);
      const float u[4] = {a.x, a.y, a.z, a.w}, v[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int i = 0; i < 16; i++) sums[i >> 2][i & 3] = fmaf(u[i >> 2], v[i & 3], sums[i >> 2][i & 3]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 16; i++) shared.sums[y * 4 + (i >> 2)][x * 4 + (i & 3)] = sums[i >> 2][i & 3];
  __syncthreads();
  const int c = threadIdx.x % 8 * 8, column = n0 + c, count = min(8, p.n - column);
  if (count <= 0) return;
  const EpilogueBatch batch(p.e, batch0, batch1);
  Columns columns;
  columns.load(p.e, column, count, batch0);
#pragma unroll 1
  for (int r = threadIdx.x / 8; r < kTile && m0 + r < p.m; r += 32) {
    Raw8 residual;
    load_residual(residual, p.e, batch, m0 + r, column, count);
    float v[8];
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = shared.sums[r][c + i];
    finish8(v, p.e, batch, columns, residual, m0 + r, column, count);
  }
}

/// Adds the parts of K that gemm_mma stored.
extern "C" __global__ void __launch_bounds__(256)
    gemm_reduce(const __grid_constant__ infernode::cuda::GemmReduceParams p) {
  using namespace infernode::cuda;
  let_next_start();
  wait_for_previous();
  const int chunks = (p.n + 7) / 8;
  const std::int64_t i = std::int64_t{blockIdx.x} * 256 + threadIdx.x;
  if (i >= std::int64_t{p.m} * chunks) return;
  const int m = static_cast<int>(i / chunks), column = static_cast<int>(i % chunks) * 8, count = min(8, p.n - column);
  const int batch0 = blockIdx.y % p.batch_inner, batch1 = blockIdx.y / p.batch_inner;
  const EpilogueBatch batch(p.e, batch0, batch1);
  Columns columns;
  columns.load(p.e, column, count, batch0);
  Raw8 residual;
  load_residual(residual, p.e, batch, m, column, count);
  float v[8] = {};
  const std::int64_t part = std::int64_t{p.batch} * p.m * chunks * 8;
  const float* from =
      reinterpret_cast<const float*>(p.partial) + (std::int64_t{blockIdx.y} * p.m + m) * chunks * 8 + column;
#pragma unroll 4
  for (int q = 0; q < p.parts; q++, from += part) {
    const uint4 lo = load16(from), hi = load16(from + 4);
    v[0] += __uint_as_float(lo.x), v[1] += __uint_as_float(lo.y), v[2] += __uint_as_float(lo.z);
    v[3] += __uint_as_float(lo.w), v[4] += __uint_as_float(hi.x), v[5] += __uint_as_float(hi.y);
    v[6] += __uint_as_float(hi.z), v[7] += __uint_as_float(hi.w);
  }
  finish8(v, p.e, batch, columns, residual, m, column, count);
}
