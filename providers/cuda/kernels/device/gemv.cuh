#pragma once

#include "providers/cuda/kernels/device/epilogue.cuh"
#include "providers/cuda/kernels/device/mma.cuh"
#include "providers/cuda/kernels/device/row_norm.cuh"
#include "providers/cuda/kernels/params/gemv.h"

// A few rows against many: B as the first operand of mma.sync, sixteen of its rows a block, A's rows as the second. A
// lane's 16 bytes of K are two fragments, because K is permuted alike in both. B's bytes wait in shared memory, each
// where the lane that asked for it will read it: registers would keep the blocks of the next kernels away.
namespace infernode::cuda {

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

  /// Adds what each warp has: kGemvRows rows of kGemvMost + 1 floats, kGemvWarpBytes apart.
  template <bool kNormalize>
  __device__ __forceinline__ void store(const GemvParams& p, const char* parts, int warps) const {
    if (!exists) return;
    const char* row = parts + (threadIdx.x & 15) * (kGemvMost + 1) * 4;
    float sum = 0;
    if constexpr (kNormalize) {
      sum = normalized_sum(p, row, parts + warps * kGemvWarpBytes, warps, m);
    } else {
#pragma unroll 8
      for (int i = 0; i < warps; i++) sum += *reinterpret_cast<const float*>(row + i * kGemvWarpBytes + m * 4);
    }
    finish1(sum, p.e, batch, bias, scale, residual, m, n);
  }
};

/// A warp's part of K, in rounds of kGemvAhead loads of 16 bytes a lane for each of two rows of B. Pairs of loads cover
/// lines of 128 bytes.
struct GemvSlice {
  const char *low, *high;    ///< the lane's rows of B
  char* own;                 ///< where its bytes of the first stage wait
  std::uint32_t to;          ///< the same
  int first, step, k, turn;  ///< K: of the lane, between pairs of loads, all, of a round
  int stage_bytes;

  __device__ __forceinline__ int at(int round, int i) const {
    return first + round * turn + (i >> 1) * step + (i & 1) * 32;
  }

  __device__ __forceinline__ void fetch(int round, int stage) const {
#pragma unroll
    for (int i = 0; i < kGemvAhead; i++) {
      const int from = at(round, i), bytes = from < k ? 16 : 0;
      const std::int64_t offset = bytes ? from * 2 : 0;
      copy16(to + stage * stage_bytes + i * 1024, low + offset, bytes);
      copy16(to + stage * stage_bytes + i * 1024 + 512, high + offset, bytes);
    }
  }

  template <MmaKind kind>
  __device__ __forceinline__ void multiply(float (&sums)[2][4], const uint4 (&x)[kGemvAhead], int stage) const {
#pragma unroll
    for (int i = 0; i < kGemvAhead; i++) {
      const char* from = own + stage * stage_bytes + i * 1024;
      const uint4 l = *reinterpret_cast<const uint4*>(from), h = *reinterpret_cast<const uint4*>(from + 512);
      const std::uint32_t one[4] = {l.x, h.x, l.y, h.y}, two[4] = {l.z, h.z, l.w, h.w};
      mma<kind>(sums[0], one, x[i].x, x[i].y);
      mma<kind>(sums[1], two, x[i].z, x[i].w);
    }
  }
};

/// What this lane reads of B, whose rows from n0 on are the block's; `raw` is the block's shared memory.
__device__ __forceinline__ GemvSlice gemv_slice(const GemvParams& p, const char* b, char* raw, int n0) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5, g = lane >> 2;
  char* const own = raw + warp * kGemvWarpBytes + lane * 16;
  return {b + min(n0 + g, p.n - 1) * p.b_row * 2,
          b + min(n0 + g + 8, p.n - 1) * p.b_row * 2,
          own,
          shared_address(own),
          warp * 64 + (lane & 3) * 8,
          warps * 64,
          p.k,
          warps * 64 * kGemvAhead / 2,
          warps * kGemvWarpBytes};
}

/// kNormalize: one round, in one stage.
template <MmaKind kind, bool kNormalize>
__device__ __forceinline__ void gemv(const GemvParams& p) {
  INFERNODE_DYNAMIC_SHARED(raw);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5, g = lane >> 2;
  const int batch0 = blockIdx.y % p.batch_inner, batch1 = blockIdx.y / p.batch_inner, n0 = blockIdx.x * kGemvRows;
  const char* a = reinterpret_cast<const char*>(p.a) +
                  (batch0 * p.a_batch[0] + batch1 * p.a_batch[1] + min(g, p.m - 1) * p.a_row) * 2;
  const char* b = reinterpret_cast<const char*>(p.b) + (batch0 * p.b_batch[0] + batch1 * p.b_batch[1]) * 2;
  const GemvSlice slice = gemv_slice(p, b, raw, n0);
  let_next_start();
  if (!p.b_constant) wait_for_previous();
#pragma unroll 1
  for (int i = 0; i < (kNormalize ? 1 : p.stages); i++) {
    slice.fetch(i, i);
    copies_commit();
  }
  GemvOutput output(p, n0, batch0, batch1);
  output.load_columns(p, batch0);
  uint4 x[kGemvAhead];
  [[maybe_unused]] const char* const constant = kNormalize ? norm_row(p, g) : nullptr;
  if constexpr (kNormalize) {
#pragma unroll
    for (int i = 0; i < kGemvAhead; i++) {
      const int k = slice.at(0, i);
      x[i] = make_uint4(0, 0, 0, 0);
      if (constant != nullptr && k < p.k) x[i] = load16(constant + k * 2);
    }
  }
  bring_near(p);
  wait_for_previous();
  output.load_residual(p);
  float sums[2][4] = {};
  int stage = 0;
  const auto load_x = [&](int round) {
#pragma unroll
    for (int i = 0; i < kGemvAhead; i++) {
      const int k = slice.at(round, i);
      if (!kNormalize) x[i] = make_uint4(0, 0, 0, 0);
      if (g < p.m && k < p.k) x[i] = load16(a + k * 2);
    }
  };
  load_x(0);
  if constexpr (kNormalize) {
    RowSums<kind> rows;
#pragma unroll
    for (int i = 0; i < kGemvAhead; i++) {
      rows.add(g < p.m ? x[i] : make_uint4(0, 0, 0, 0));
      x[i] = times_scale<kind>(p, x[i], g < p.m);
    }
    rows.store(reinterpret_cast<float*>(raw + warps * kGemvWarpBytes) + warp * kGemvNormFloats);
  }
#pragma unroll 1
  for (int round = 0; round * slice.turn < p.k; round++) {
    if (!kNormalize && p.stages > 1) {
      copies_wait<1>();
    } else {
      copies_wait<0>();
    }
    uint4 now[kGemvAhead];
#pragma unroll
    for (int i = 0; i < kGemvAhead; i++) now[i] = x[i];
    if (!kNormalize && (round + 1) * slice.turn < p.k) load_x(round + 1);
    slice.template multiply<kind>(sums, now, stage);
    if (!kNormalize && (round + p.stages) * slice.turn < p.k) slice.fetch(round + p.stages, stage);
    copies_commit();
    if (++stage == p.stages) stage = 0;
  }
  copies_wait<0>();
  __syncwarp();
  float* part = reinterpret_cast<float*>(raw + warp * kGemvWarpBytes);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    part[(g + (i >> 1) * 8) * (kGemvMost + 1) + (lane & 3) * 2 + (i & 1)] = sums[0][i] + sums[1][i];
  }
  __syncthreads();
  output.template store<kNormalize>(p, raw, warps);
}

}  // namespace infernode::cuda
