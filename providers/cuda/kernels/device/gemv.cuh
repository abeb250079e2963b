#pragma once

#include "providers/cuda/kernels/device/epilogue.cuh"
#include "providers/cuda/kernels/device/mma.cuh"
#include "providers/cuda/kernels/params/gemv.h"

// A few rows against many: B as the first operand of mma.sync, sixteen of its rows a block, A's rows as the second. A
// lane's 16 bytes of K are two fragments, because K is permuted alike in both.
namespace infernode::cuda {

/// kGemvAhead: loads of 16 bytes under way for each of two rows.
inline constexpr int kGemvRows = 16, kGemvMost = 8, kGemvWarps = 16, kGemvAhead = 6;

template <MmaKind kind>
__device__ __forceinline__ void gemv(const GemvParams& p) {
  __shared__ float parts[kGemvWarps][kGemvRows][kGemvMost + 1];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5, g = lane >> 2;
  const int batch0 = blockIdx.y % p.batch_inner, batch1 = blockIdx.y / p.batch_inner, n0 = blockIdx.x * kGemvRows;
  const char* a = reinterpret_cast<const char*>(p.a) +
                  (batch0 * p.a_batch[0] + batch1 * p.a_batch[1] + min(g, p.m - 1) * p.a_row) * 2;
  const char* b = reinterpret_cast<const char*>(p.b) + (batch0 * p.b_batch[0] + batch1 * p.b_batch[1]) * 2;
  const char* low = b + min(n0 + g, p.n - 1) * p.b_row * 2;
  const char* high = b + min(n0 + g + 8, p.n - 1) * p.b_row * 2;
  let_next_start();
  if (!p.b_constant) wait_for_previous();
  // Pairs of loads cover lines of 128 bytes.
  const int first = warp * 64 + (lane & 3) * 8, step = warps * 64;
  const auto at = [&](int k0, int i) { return k0 + (i >> 1) * step + (i & 1) * 32; };
  uint4 w[kGemvAhead][2];
  const auto load_b = [&](int k0) {
#pragma unroll
    for (int i = 0; i < kGemvAhead; i++) {
      const int k = at(k0, i);
      w[i][0] = w[i][1] = make_uint4(0, 0, 0, 0);
      if (k < p.k) {
        w[i][0] = load16_stream(low + k * 2);
        w[i][1] = load16_stream(high + k * 2);
      }
    }
  };
  load_b(first);
  const int m = threadIdx.x >> 4, n = n0 + (threadIdx.x & 15);
  const bool finishes = m < p.m && n < p.n;
  float bias = 0, scale = p.e.alpha, residual = 0;
  if (!(p.e.flags & kEpilogueColumnsConstant)) wait_for_previous();
  if (finishes) {
    const int column = n + batch0 * p.e.column_batch;
    if (p.e.bias) bias = load_element(p.e.bias, Element::f32, column);
    if (p.e.scale) scale *= load_element(p.e.scale, Element::f32, column);
  }
  wait_for_previous();
  const EpilogueBatch batch(p.e, batch0, batch1);
  if (finishes && p.e.residual) {
    residual = load_element(p.e.residual, p.e.residual_type, batch.residual + m * p.e.residual_row + n);
  }
  float sums[2][4] = {};
#pragma unroll 1
  for (int k0 = first; k0 - (lane & 3) * 8 < p.k; k0 += kGemvAhead / 2 * step) {
    uint4 x[kGemvAhead];
#pragma unroll
    for (int i = 0; i < kGemvAhead; i++) {
      x[i] = make_uint4(0, 0, 0, 0);
      if (g < p.m && at(k0, i) < p.k) x[i] = load16(a + at(k0, i) * 2);
    }
    if (k0 != first) load_b(k0);
#pragma unroll
    for (int i = 0; i < kGemvAhead; i++) {
      const std::uint32_t one[4] = {w[i][0].x, w[i][1].x, w[i][0].y, w[i][1].y};
      const std::uint32_t two[4] = {w[i][0].z, w[i][1].z, w[i][0].w, w[i][1].w};
      mma<kind>(sums[0], one, x[i].x, x[i].y);
      mma<kind>(sums[1], two, x[i].z, x[i].w);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; i++) parts[warp][g + (i >> 1) * 8][(lane & 3) * 2 + (i & 1)] = sums[0][i] + sums[1][i];
  __syncthreads();
  if (!finishes) return;
  float sum = 0;
#pragma unroll 8
  for (int i = 0; i < warps; i++) sum += parts[i][threadIdx.x & 15][m];
  finish1(sum, p.e, batch, bias, scale, residual, m, n);
}

}  // namespace infernode::cuda
