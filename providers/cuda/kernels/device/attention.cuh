#pragma once

#include "providers/cuda/kernels/device/attention_mma.cuh"

namespace infernode::cuda {

/// Adds the lanes that share a row, and lays the warp's rows into shared memory.
template <class T>
__device__ __forceinline__ void stage_rows(AttentionRows<T>& rows, float* out, float* most, float* weight, int lane) {
#pragma unroll
  for (int i = 0; i < T::kMI; i++) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int r = i * 16 + (lane >> 2) + half * 8;
      float w = rows.weight[i][half];
      w += __shfl_xor_sync(~0u, w, 1);
      w += __shfl_xor_sync(~0u, w, 2);
      if ((lane & 3) == 0) most[r] = rows.most[i][half], weight[r] = w;
      float* to = out + r * T::kOutPitch + (lane & 3) * 2;
#pragma unroll
      for (int j = 0; j < T::kD / 8; j++) {
        *reinterpret_cast<float2*>(to + j * 8) = make_float2(rows.out[i][j][half * 2], rows.out[i][j][half * 2 + 1]);
      }
    }
  }
}

/// Stores the rows of a block. Those that WK warps shared are merged.
template <class T>
__device__ __forceinline__ void store_rows(AttentionRows<T>& rows, const AttentionParams& p, const AttentionPlace& at,
                                           float* staged, int warp, int lane) {
  constexpr int kWarps = T::kWarpsQ * T::kWarpsK, kWarpRows = T::kMI * 16, kPart = kWarpRows * T::kOutPitch;
  __shared__ float most[kWarps][kWarpRows], weight[kWarps][kWarpRows];
  __syncthreads();
  stage_rows(rows, staged + warp * kPart, most[warp], weight[warp], lane);
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < T::kRows * (T::kD / 8); i += T::kThreads) {
    const int r = i / (T::kD / 8), column = i % (T::kD / 8) * 8;
    const int first = r / kWarpRows * T::kWarpsK, in_warp = r % kWarpRows;
    float top = most[first][in_warp], total = 0, v[8] = {};
#pragma unroll
    for (int w = 1; w < T::kWarpsK; w++) top = fmaxf(top, most[first + w][in_warp]);
    const float base = top == -INFINITY ? 0.f : top;
#pragma unroll
    for (int w = 0; w < T::kWarpsK; w++) {
      const float share = T::kWarpsK == 1 ? 1.f : fast_exp2(most[first + w][in_warp] - base);
      const float4* from =
          reinterpret_cast<const float4*>(staged + (first + w) * kPart + in_warp * T::kOutPitch + column);
      const float4 a = from[0], b = from[1];
      total += weight[first + w][in_warp] * share;
      v[0] += a.x * share, v[1] += a.y * share, v[2] += a.z * share, v[3] += a.w * share;
      v[4] += b.x * share, v[5] += b.y * share, v[6] += b.z * share, v[7] += b.w * share;
    }
    store_row(v, p, at, at.tile + r, column, top, total);
  }
}

template <class T>
__device__ __forceinline__ void attention(const AttentionParams& p) {
  INFERNODE_DYNAMIC_SHARED(raw);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int row = warp / T::kWarpsK * T::kMI * 16, key = warp % T::kWarpsK * T::kKeysWarp;
  const std::uint32_t q = shared_address(raw), stages = q + T::kBytesQ;
  const auto stage = [&](int block) { return stages + block % T::kStages * 2 * T::kBytesKV; };
  let_next_start();
  if (p.lengths) wait_for_previous();
  const AttentionPlace at(p, T::kRows, T::kKeys);
  const KeyCopies<T> k(p.k, p.k_at, at.batch, at.kv_head, at.first, p.d);
  const KeyCopies<T> v(p.v, p.v_at, at.batch, at.kv_head, at.first, p.dv);
  const int blocks = max(0, (at.last - at.first + T::kKeys - 1) / T::kKeys);
  AttentionRows<T> rows;
  rows.clear();
  const Bias<T> bias(p, at);
  const auto masks_of = [&](int block) {
    return stages + p.stages * 2 * T::kBytesKV + block % T::kStages * Bias<T>::kBytes;
  };
  const QueryCopies<T> queries(p, at);
  bring_near(p);
  wait_for_previous();
  queries.copy(q);
  // Warps that share queries begin with the keys while the values are on their way.
  constexpr bool kApart = T::kWarpsK > 1;
  // The first turns only fill stages.
#pragma unroll 1
  for (int block = 1 - T::kStages; block < blocks; block++) {
    const int first = at.first + block * T::kKeys;
    if (block >= 0) {
      copies_wait<kApart ? 2 * T::kStages - 3 : T::kStages - 2>();
      __syncthreads();
    }
    const int ahead = block + T::kStages - 1;
    if (ahead < blocks) {
      k.copy(stage(ahead), ahead, at.last - at.first - ahead * T::kKeys);
      if (p.bias_words) bias.copy(masks_of(ahead), p, at.first + ahead * T::kKeys, at.last);
    }
    if (kApart) copies_commit();
    if (ahead < blocks) v.copy(stage(ahead) + T::kBytesKV, ahead, at.last - at.first - ahead * T::kKeys);
    copies_commit();
    if (block < 0) continue;
    const std::uint32_t from = stage(block);
    // Whole: every row of the tile sees every key of the block.
    const bool whole = first + T::kKeys <= at.last && !p.window &&
                       (!p.causal || first + T::kKeys <= query_of(p, at.tile) + at.offset + 1);
    float s[T::kMI][T::kKeysWarp / 8][4];
    score<T>(s, q, from, row, key, lane);
    if (p.bias) Bias<T>::add(s, p, at, masks_of(block), row, first, key, lane);
    if (!whole) mask<T>(s, p, at, row, first + key, lane);
    weigh<T>(s, rows, p.bias ? 1.f : p.scale_log2e);
    if constexpr (kApart) {
      copies_wait<2 * T::kStages - 2>();
      __syncthreads();
    }
    add_values<T>(s, rows, from + T::kBytesKV, key, lane);
  }
  copies_wait<0>();
  store_rows<T>(rows, p, at, reinterpret_cast<float*>(raw), warp, lane);
}

}  // namespace infernode::cuda

/// attention_<kind>_<largest head>_<queries of a block>x<keys of a block>
#define ATTENTION(KIND, D, WQ, WK, MI, KW, ST, ROWS, KEYS)                                                   \
  extern "C" __global__ void __launch_bounds__(WQ* WK * 32)                                                  \
      attention_##KIND##_##D##_##ROWS##x##KEYS(const __grid_constant__ infernode::cuda::AttentionParams p) { \
    using namespace infernode::cuda;                                                                         \
    using T = AttentionTile<MmaKind::KIND, D, WQ, WK, MI, KW, ST>;                                           \
    static_assert(T::kRows == ROWS && T::kKeys == KEYS);                                                     \
    attention<T>(p);                                                                                         \
  }

#define ATTENTION_KERNELS(KIND)                \
  ATTENTION(KIND, 64, 1, 4, 1, 32, 3, 16, 128) \
  ATTENTION(KIND, 64, 1, 4, 1, 64, 2, 16, 256) \
  ATTENTION(KIND, 64, 4, 1, 1, 64, 3, 64, 64)  \
  ATTENTION(KIND, 64, 4, 1, 2, 64, 2, 128, 64) \
  ATTENTION(KIND, 128, 1, 4, 1, 16, 2, 16, 64) \
  ATTENTION(KIND, 128, 4, 1, 1, 64, 2, 64, 64) \
  ATTENTION(KIND, 256, 1, 4, 1, 16, 2, 16, 64) \
  ATTENTION(KIND, 256, 4, 1, 1, 32, 2, 64, 32)
