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
__device__ __forceinline__ float2 unpack(std::uint32_t v) {
  return kind == MmaKind::f16 ? unpack_f16(v) : unpack_bf16(v);
}

/// Normalizes rows of A that a block holds whole: sums of eight positions of K a lane and load, four lanes and all
/// warps a row. Numbers are summed less the row's first one, so that a large mean costs no digits.
template <MmaKind kind>
struct NormalizedRows {
  uint4 scale[kGemvAhead], bias[kGemvAhead];

  __device__ __forceinline__ void load(const GemvParams& p, int i, int k) {
    scale[i] = bias[i] = make_uint4(0, 0, 0, 0);
    if (k >= p.k) return;
    scale[i] = load16(reinterpret_cast<const char*>(p.norm_scale) + k * 2);
    if (p.norm_bias) bias[i] = load16(reinterpret_cast<const char*>(p.norm_bias) + k * 2);
  }

  /// `first`: the row's first number; `count`: how many of the loads lie within K.
  __device__ __forceinline__ void apply(uint4 (&x)[kGemvAhead], const GemvParams& p, float first, int count) const {
    __shared__ float2 sums[kGemvWarps][kGemvMost];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5, row = lane >> 2;
    const float shift = p.norm_no_mean ? 0.f : first;
    float2 sum = make_float2(0, 0);
#pragma unroll
    for (int i = 0; i < kGemvAhead; i++) {
      if (i >= count) continue;
      each_pair(
          x[i],
          [&](float2 v, float2, float2) {
            v.x -= shift, v.y -= shift;
            sum.x += v.x + v.y;
            sum.y = fmaf(v.x, v.x, fmaf(v.y, v.y, sum.y));
            return v;
          },
          i);
    }
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
      sum.x += __shfl_xor_sync(~0u, sum.x, step);
      sum.y += __shfl_xor_sync(~0u, sum.y, step);
    }
    if ((lane & 3) == 0) sums[warp][row] = sum;
    __syncthreads();
    float2 all = make_float2(0, 0);
#pragma unroll 4
    for (int w = 0; w < warps; w++) all.x += sums[w][row].x, all.y += sums[w][row].y;
    const float part = 1.f / p.k, mean = p.norm_no_mean ? 0.f : all.x * part;
    const float factor = rsqrtf(fmaxf(fmaf(-mean, mean, all.y * part), 0.f) + p.norm_epsilon);
#pragma unroll
    for (int i = 0; i < kGemvAhead; i++) {
      x[i] = each_pair(
          x[i],
          [&](float2 v, float2 s, float2 b) {
            return make_float2(fmaf((v.x - shift - mean) * factor, s.x, b.x),
                               fmaf((v.y - shift - mean) * factor, s.y, b.y));
          },
          i);
    }
  }

 private:
  /// f(two numbers, their scale, their bias) for a load's four pairs.
  template <class F>
  __device__ __forceinline__ uint4 each_pair(uint4 v, const F& f, int i) const {
    const auto one = [&](std::uint32_t x, std::uint32_t s, std::uint32_t b) {
      const float2 y = f(unpack<kind>(x), unpack<kind>(s), unpack<kind>(b));
      return kind == MmaKind::f16 ? pack_f16(y.x, y.y) : pack_bf16(y.x, y.y);
    };
    return make_uint4(one(v.x, scale[i].x, bias[i].x), one(v.y, scale[i].y, bias[i].y), one(v.z, scale[i].z, bias[i].z),
                      one(v.w, scale[i].w, bias[i].w));
  }
};

/// The one output that a thread finishes: of row m and column n. Its parts of the epilogue are read ahead.
struct GemvOutput {
  const int m, n;
  const bool exists;
  const EpilogueBatch batch;
  float bias = 0, scale, residual = 0;

  __device__ __forceinline__ GemvOutput(const GemvParams& p, int n0, int batch0, int batch1)
      : m(threadIdx.x >> 4),
        n(n0 + (threadIdx.x & 15)),
        exists(m < p.m && n < p.n),
        batch(p.e, batch0, batch1),
        scale(p.e.alpha) {}

  __device__ __forceinline__ void load_columns(const GemvParams& p, int batch0) {
    if (!(p.e.flags & kEpilogueColumnsConstant)) wait_for_previous();
    if (!exists) return;
    const int column = n + batch0 * p.e.column_batch;
    if (p.e.bias) bias = load_element(p.e.bias, Element::f32, column);
    if (p.e.scale) scale *= load_element(p.e.scale, Element::f32, column);
  }

  __device__ __forceinline__ void load_residual(const GemvParams& p) {
    if (!exists || !p.e.residual) return;
    residual = load_element(p.e.residual, p.e.residual_type, batch.residual + m * p.e.residual_row + n);
  }

  /// Adds what each warp has.
  __device__ __forceinline__ void store(const GemvParams& p, const float (*parts)[kGemvRows][kGemvMost + 1],
                                        int warps) const {
    if (!exists) return;
    float sum = 0;
#pragma unroll 8
    for (int i = 0; i < warps; i++) sum += parts[i][threadIdx.x & 15][m];
    finish1(sum, p.e, batch, bias, scale, residual, m, n);
  }
};

/// kNormalize: K is no more than kGemvAhead / 2 steps of all warps.
template <MmaKind kind, bool kNormalize>
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
  [[maybe_unused]] NormalizedRows<kind> rows;
  if constexpr (kNormalize) {
#pragma unroll
    for (int i = 0; i < kGemvAhead; i++) rows.load(p, i, at(first, i));
  }
  GemvOutput output(p, n0, batch0, batch1);
  output.load_columns(p, batch0);
  wait_for_previous();
  output.load_residual(p);
  float sums[2][4] = {};
  uint4 x[kGemvAhead];
  const auto load_a = [&](int k0) {
#pragma unroll
    for (int i = 0; i < kGemvAhead; i++) {
      x[i] = make_uint4(0, 0, 0, 0);
      if (g < p.m && at(k0, i) < p.k) x[i] = load16(a + at(k0, i) * 2);
    }
  };
  const auto multiply = [&] {
#pragma unroll
    for (int i = 0; i < kGemvAhead; i++) {
      const std::uint32_t one[4] = {w[i][0].x, w[i][1].x, w[i][0].y, w[i][1].y};
      const std::uint32_t two[4] = {w[i][0].z, w[i][1].z, w[i][0].w, w[i][1].w};
      mma<kind>(sums[0], one, x[i].x, x[i].y);
      mma<kind>(sums[1], two, x[i].z, x[i].w);
    }
  };
  if constexpr (kNormalize) {
    load_a(first);
    const float front =
        load_element(reinterpret_cast<std::uint64_t>(a), kind == MmaKind::f16 ? Element::f16 : Element::bf16, 0);
    int count = 0;
#pragma unroll
    for (int i = 0; i < kGemvAhead; i++) count += at(first, i) < p.k;
    rows.apply(x, p, front, count);
    multiply();
  } else {
#pragma unroll 1
    for (int k0 = first; k0 - (lane & 3) * 8 < p.k; k0 += kGemvAhead / 2 * step) {
      load_a(k0);
      if (k0 != first) load_b(k0);
      multiply();
    }
  }
#pragma unroll
  for (int i = 0; i < 4; i++) parts[warp][g + (i >> 1) * 8][(lane & 3) * 2 + (i & 1)] = sums[0][i] + sums[1][i];
  __syncthreads();
  output.store(p, parts, warps);
}

}  // namespace infernode::cuda
