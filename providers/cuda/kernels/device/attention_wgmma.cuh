#pragma once

#include "providers/cuda/kernels/device/attention_common.cuh"
#include "providers/cuda/kernels/device/tma.cuh"
#include "providers/cuda/kernels/device/wgmma.cuh"

// Flash attention with wgmma. Each warpgroup has 64 queries of one head; a warpgroup behind them fetches their keys and
// values, `stages` blocks ahead. While a block's values are added, the next block's scores are weighed.
namespace infernode::cuda {

/// MASKED: something is added to the scores.
template <TensorKind kind, int D, int GROUPS, int KEYS, int STAGES, int BLOCKS, bool MASKED>
struct WgmmaAttention {
  static constexpr TensorKind kKind = kind;
  static constexpr bool kMasked = MASKED;
  static constexpr int kD = D, kGroups = GROUPS, kKeys = KEYS, kStages = STAGES, kBoxes = D / 64;
  static constexpr int kRows = 64 * GROUPS, kConsumers = 128 * GROUPS;
  static constexpr int kBytesQ = 64 * D * 2, kBytesKV = KEYS * D * 2;  ///< of a warpgroup; of a stage, K and V each
  static constexpr int kBytesMask = MASKED ? kRows * KEYS * 2 : 0;     ///< of a stage, behind all of those
  /// Of a thread: the fetching warpgroup leaves its own to the others.
  static constexpr int kFewRegisters = GROUPS == 2 ? 24 : 32;
  static constexpr int kManyRegisters = GROUPS == 1 ? 128 : GROUPS == 2 ? 240 : 160;
  static_assert(kBytesQ * GROUPS + STAGES * (2 * kBytesKV + kBytesMask) ==
                wgmma_attention_shared(D, kRows, KEYS, STAGES, MASKED) - 1024);
};

/// Barriers: of the queries, then of each stage those that say that keys and values are there, and that they are used.
template <class T>
struct StageBarriers {
  std::uint32_t first;

  __device__ __forceinline__ std::uint32_t queries() const { return first; }
  __device__ __forceinline__ std::uint32_t full(int stage, int value) const {
    return first + 8 + stage * 32 + value * 8;
  }
  __device__ __forceinline__ std::uint32_t empty(int stage, int value) const { return full(stage, value) + 16; }
  static constexpr int kCount = 1 + 4 * T::kStages;

  __device__ __forceinline__ void init() const {
    barrier_init(queries(), 1);
#pragma unroll
    for (int s = 0; s < T::kStages; s++) {
#pragma unroll
      for (int value = 0; value < 2; value++) {
        barrier_init(full(s, value), 1);
        // A warpgroup's products read the keys together; the masks are read by each of its warps.
        barrier_init(empty(s, value), T::kMasked && value == 0 ? 4 * T::kGroups : T::kGroups);
      }
    }
    barriers_initialised();
  }
};

/// Asks for the masks of a block of keys: of each warpgroup, boxes of 64 queries by 64 keys.
template <class T>
__device__ __forceinline__ void fetch_masks(const AttentionTmaParams& p, const AttentionPlace& at, std::uint32_t to,
                                            int block, std::uint32_t barrier) {
#pragma unroll
  for (int g = 0; g < T::kGroups; g++) {
#pragma unroll
    for (int box = 0; box < T::kKeys / 64; box++, to += 64 * 128) {
      copy_tile(to, &p.mask, at.first + block * T::kKeys + box * 64, at.tile + g * 64, at.head * p.mask_batch[0],
                at.batch * p.mask_batch[1], barrier);
    }
  }
}

/// Asks for the queries, and for each block of keys and values as soon as its stage is empty.
template <class T>
__device__ __forceinline__ void fetch(const AttentionTmaParams& p, const AttentionPlace& at, StageBarriers<T> barriers,
                                      std::uint32_t q, int blocks) {
  const std::uint32_t stages = q + T::kGroups * T::kBytesQ, masks = stages + T::kStages * 2 * T::kBytesKV;
  const auto copy = [&](const TensorMap& map, const std::int32_t(&apart)[2], std::uint32_t to, int rows, int first,
                        int head, std::uint32_t barrier) {
#pragma unroll
    for (int box = 0; box < T::kBoxes; box++) {
      copy_tile(to + box * rows * 128, &map, box * 64, first, head * apart[0], at.batch * apart[1], barrier);
    }
  };
  barrier_expect(barriers.queries(), T::kGroups * T::kBytesQ);
#pragma unroll
  for (int g = 0; g < T::kGroups; g++) {
    copy(p.q, p.q_batch, q + g * T::kBytesQ, 64, at.tile + g * 64, at.head, barriers.queries());
  }
#pragma unroll 1
  for (int b = 0; b < blocks; b++) {
    const int stage = b % T::kStages, phase = (b / T::kStages & 1) ^ 1;
#pragma unroll
    for (int value = 0; value < 2; value++) {
      if (b >= T::kStages) barrier_wait(barriers.empty(stage, value), phase);
      barrier_expect(barriers.full(stage, value), T::kBytesKV + (value ? 0 : T::kBytesMask));
      copy(value ? p.v : p.k, value ? p.v_batch : p.k_batch, stages + (2 * stage + value) * T::kBytesKV, T::kKeys,
           at.first + b * T::kKeys, at.kv_head, barriers.full(stage, value));
      if (T::kMasked && value == 0) fetch_masks<T>(p, at, masks + stage * T::kBytesMask, b, barriers.full(stage, 0));
    }
  }
}

/// A thread's part of a warpgroup's rows: those of lane / 4 of its warp, and eight below.
template <class T>
struct WgmmaRows {
  float out[T::kD / 2];
  float most[2], weight[2];
  std::uint32_t share[T::kKeys / 16][4];  ///< the weights of a block, as products read them

  __device__ __forceinline__ void clear() {
    most[0] = most[1] = -INFINITY;
    weight[0] = weight[1] = 0;
#pragma unroll
    for (int j = 0; j < T::kD / 2; j++) out[j] = 0;
  }

  /// Begins the scores of a block.
  static __device__ __forceinline__ void score(float (&s)[T::kKeys / 2], std::uint32_t q, std::uint32_t k) {
    wgmma_fence();
#pragma unroll
    for (int c = 0; c < T::kD / 16; c++) {
      const int in_box = c % 4 * 2;
      Wgmma<T::kKind, T::kKeys>::product(s, wgmma_descriptor(q + c / 4 * (64 * 128 / 16) + in_box),
                                         wgmma_descriptor(k + c / 4 * (T::kKeys * 128 / 16) + in_box), c > 0);
    }
    wgmma_commit();
  }

  /// Begins to add the weighted values of a block.
  __device__ __forceinline__ void add_values(std::uint32_t v) {
    wgmma_fence();
#pragma unroll
    for (int c = 0; c < T::kKeys / 16; c++) {
      WgmmaValues<T::kKind, T::kD>::product(out, share[c], wgmma_descriptor(v + c * (16 * 128 / 16)), 1);
    }
    wgmma_commit();
  }

  /// Makes weights of the scores, which `scale` brings to log 2; returns what the sums so far are to be multiplied
  /// with.
  __device__ __forceinline__ float2 weigh(float (&s)[T::kKeys / 2], float scale) {
    float shrink[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float top[2] = {s[2 * half], s[2 * half + 1]}, sum[2] = {0, 0};
#pragma unroll
      for (int j = 1; j < T::kKeys / 8; j++) {
        top[0] = fmaxf(top[0], s[4 * j + 2 * half]);
        top[1] = fmaxf(top[1], s[4 * j + 2 * half + 1]);
      }
      float now = fmaxf(top[0], top[1]);
      now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
      now = fmaxf(most[half], scale * fmaxf(now, __shfl_xor_sync(~0u, now, 2)));
      const float base = now == -INFINITY ? 0.f : now;
      shrink[half] = fast_exp2(most[half] - base);
      most[half] = now;
#pragma unroll
      for (int j = 0; j < T::kKeys / 8; j++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
          float& x = s[4 * j + 2 * half + e];
          x = fast_exp2(fmaf(x, scale, -base));
          sum[e] += x;
        }
      }
      weight[half] = fmaf(weight[half], shrink[half], sum[0] + sum[1]);  // lanes of a row are added at the end
    }
    return make_float2(shrink[0], shrink[1]);
  }

  __device__ __forceinline__ void scale_sums(float2 shrink) {
#pragma unroll
    for (int j = 0; j < T::kD / 8; j++) {
      out[4 * j] *= shrink.x, out[4 * j + 1] *= shrink.x;
      out[4 * j + 2] *= shrink.y, out[4 * j + 3] *= shrink.y;
    }
  }

  __device__ __forceinline__ void pack(const float (&s)[T::kKeys / 2]) {
#pragma unroll
    for (int c = 0; c < T::kKeys / 16; c++) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float a = s[8 * c + 2 * i], b = s[8 * c + 2 * i + 1];
        share[c][i] = T::kKind == TensorKind::f16 ? pack_f16(a, b) : pack_bf16(a, b);
      }
    }
  }
};

/// Hides the keys of a block from the queries that do not see them. `key`, `query`: the lane's first.
template <class T>
__device__ __forceinline__ void hide(float (&s)[T::kKeys / 2], const AttentionParams& p, const AttentionPlace& at,
                                     int query, int key) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int low = at.low(p, query + half * 8) - key, high = at.high(p, query + half * 8) - key;
#pragma unroll
    for (int j = 0; j < T::kKeys / 8; j++) {
#pragma unroll
      for (int e = 0; e < 2; e++) {
        if (j * 8 + e < low || j * 8 + e >= high) s[4 * j + 2 * half + e] = -INFINITY;
      }
    }
  }
}

/// Brings scores to log 2 and adds the masks of their rows and keys. `masks`: those of the warpgroup's rows for the
/// block, boxes of 64 keys.
template <class T>
__device__ __forceinline__ void add_masks(float (&s)[T::kKeys / 2], const AttentionParams& p, std::uint32_t masks) {
  const int lane = threadIdx.x & 31, row = (threadIdx.x >> 5 & 3) * 16 + (lane >> 2);
#pragma unroll
  for (int half = 0; half < 2; half++) {
#pragma unroll
    for (int j = 0; j < T::kKeys / 8; j++) {
      const std::uint32_t at = masks + j / 8 * (64 * 128) + swizzled(row + half * 8, j % 8) + (lane & 3) * 4;
      const std::uint32_t word = __float_as_uint(load_shared(at));
      const float2 v = p.bias_type == Element::f16 ? unpack_f16(word) : unpack_bf16(word);
      float* const x = s + 4 * j + 2 * half;
      x[0] = fmaf(x[0], p.scale_log2e, fmaxf(v.x * kLog2E, kMaskedScore));
      x[1] = fmaf(x[1], p.scale_log2e, fmaxf(v.y * kLog2E, kMaskedScore));
    }
  }
}

template <class T>
__device__ __forceinline__ void store_rows(WgmmaRows<T>& rows, const AttentionParams& p, const AttentionPlace& at,
                                           int query, int lane) {
  const int column = (lane & 3) * 2;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float w = rows.weight[half];
    w += __shfl_xor_sync(~0u, w, 1);
    w += __shfl_xor_sync(~0u, w, 2);
    const float share = w > 0 ? 1.f / w : 0.f;
    const int q = query + half * 8;
    if (q >= p.queries) continue;
    const std::int64_t to = at.batch * p.out_at.batch + at.head * p.out_at.head + q * p.out_at.row + column;
#pragma unroll
    for (int j = 0; j < T::kD / 8; j++) {
      const float a = rows.out[4 * j + 2 * half] * share, b = rows.out[4 * j + 2 * half + 1] * share;
      const int left = p.dv - column - j * 8;
      if (p.out_vector && left >= 2) {
        *reinterpret_cast<std::uint32_t*>(p.out + (to + j * 8) * 2) =
            T::kKind == TensorKind::f16 ? pack_f16(a, b) : pack_bf16(a, b);
      } else {
        if (left >= 1) store_element(p.out, p.type, to + j * 8, a);
        if (left >= 2) store_element(p.out, p.type, to + j * 8 + 1, b);
      }
    }
  }
}

/// A warpgroup's 64 queries.
template <class T>
__device__ __forceinline__ void attend_rows(const AttentionParams& p, const AttentionPlace& at,
                                            StageBarriers<T> barriers, std::uint32_t q, int blocks) {
  const int lane = threadIdx.x & 31, query = at.tile + (threadIdx.x >> 5) * 16 + (lane >> 2);
  const int seen = at.tile + at.offset + 1;  // keys that all rows see
  const std::uint32_t mine = wgmma_operand(q + (threadIdx.x >> 7) * T::kBytesQ);
  const std::uint32_t stages = q + T::kGroups * T::kBytesQ;
  const auto keys_of = [&](int b) { return wgmma_operand(stages + b % T::kStages * 2 * T::kBytesKV); };
  const auto values_of = [&](int b) {
    return wgmma_values(stages + (b % T::kStages * 2 + 1) * T::kBytesKV, T::kKeys * 128);
  };
  const auto wait = [&](int b, int value) { barrier_wait(barriers.full(b % T::kStages, value), b / T::kStages & 1); };
  const auto release = [&](int b, int value) {
    if ((threadIdx.x & 127) == 0) barrier_arrive(barriers.empty(b % T::kStages, value));
  };
  const auto release_masked = [&](int b) {
    __syncwarp();
    if (lane == 0) barrier_arrive(barriers.empty(b % T::kStages, 0));
  };
  const std::uint32_t masks = stages + T::kStages * 2 * T::kBytesKV + (threadIdx.x >> 7) * (T::kBytesMask / T::kGroups);
  WgmmaRows<T> rows;
  rows.clear();
  float s[T::kKeys / 2];
  const auto weigh = [&](int b) {
    const int first = at.first + b * T::kKeys;
    if constexpr (T::kMasked) {
      add_masks<T>(s, p, masks + b % T::kStages * T::kBytesMask);
      release_masked(b);
    } else {
      release(b, 0);
    }
    const bool whole = first + T::kKeys <= at.last && !p.window && (!p.causal || first + T::kKeys <= seen);
    if (!whole) hide<T>(s, p, at, query, first + (lane & 3) * 2);
    return rows.weigh(s, T::kMasked ? 1.f : p.scale_log2e);
  };
  if (blocks > 0) {
    barrier_wait(barriers.queries(), 0);
    wait(0, 0);
    rows.score(s, mine, keys_of(0));
    wgmma_wait<0>();
    wgmma_settle(s);
    weigh(0);
    rows.pack(s);
#pragma unroll 1
    for (int b = 0; b + 1 < blocks; b++) {
      wait(b + 1, 0);
      rows.score(s, mine, keys_of(b + 1));
      wait(b, 1);
      rows.add_values(values_of(b));
      wgmma_wait<1>();
      wgmma_settle(s);
      const float2 shrink = weigh(b + 1);
      wgmma_wait<0>();
      wgmma_settle(rows.out);
      release(b, 1);
      rows.scale_sums(shrink);
      rows.pack(s);
    }
    wait(blocks - 1, 1);
    rows.add_values(values_of(blocks - 1));
    wgmma_wait<0>();
    wgmma_settle(rows.out);
  }
  store_rows<T>(rows, p, at, query, lane);
}

template <class T>
__device__ __forceinline__ void attend(const AttentionTmaParams& p) {
  INFERNODE_DYNAMIC_SHARED(raw);
  __shared__ __align__(8) std::uint64_t words[StageBarriers<T>::kCount];
  const std::uint32_t q = (shared_address(raw) + 1023) & ~1023u;
  const StageBarriers<T> barriers{shared_address(words)};
  let_next_start();
  if (threadIdx.x == T::kConsumers) {
    prefetch_map(&p.q), prefetch_map(&p.k), prefetch_map(&p.v);
    if (T::kMasked) prefetch_map(&p.mask);
    barriers.init();
  }
  __syncthreads();
  bring_near(p.a);
  const AttentionPlace at(p.a, T::kRows, T::kKeys);
  const int blocks = max(0, (at.last - at.first + T::kKeys - 1) / T::kKeys);
  wait_for_previous();
  if (threadIdx.x >= T::kConsumers) {
    give_registers<T::kFewRegisters>();
    if (threadIdx.x == T::kConsumers) fetch<T>(p, at, barriers, q, blocks);
  } else {
    take_registers<T::kManyRegisters>();
    attend_rows<T>(p.a, at, barriers, q, blocks);
  }
}

}  // namespace infernode::cuda

/// attention_wgmma_<kind>_<largest head>_<queries of a block>x<keys of a block>, with `_masked` behind it those that
/// add masks; `BLOCKS` of them are to fit an SM.
#define ATTENTION_WGMMA_OF(SUFFIX, MASKED, KIND, D, GROUPS, KEYS, STAGES, ROWS, BLOCKS)  \
  extern "C" __global__ void __launch_bounds__(GROUPS * 128 + 128, BLOCKS)               \
      attention_wgmma_##KIND##_##D##_##ROWS##x##KEYS##SUFFIX(                            \
          const __grid_constant__ infernode::cuda::AttentionTmaParams p) {               \
    using namespace infernode::cuda;                                                     \
    using T = WgmmaAttention<TensorKind::KIND, D, GROUPS, KEYS, STAGES, BLOCKS, MASKED>; \
    static_assert(T::kRows == ROWS);                                                     \
    attend<T>(p);                                                                        \
  }
#define ATTENTION_WGMMA(KIND, D, GROUPS, KEYS, STAGES, ROWS, BLOCKS)       \
  ATTENTION_WGMMA_OF(, false, KIND, D, GROUPS, KEYS, STAGES, ROWS, BLOCKS) \
  ATTENTION_WGMMA_OF(_masked, true, KIND, D, GROUPS, KEYS, STAGES, ROWS, BLOCKS)

#define ATTENTION_WGMMA_KERNELS(KIND)                      \
  ATTENTION_WGMMA(KIND, 64, 1, 64, 3, 64, 3)               \
  ATTENTION_WGMMA_OF(, false, KIND, 64, 3, 128, 3, 192, 1) \
  ATTENTION_WGMMA(KIND, 128, 2, 128, 2, 128, 1)
