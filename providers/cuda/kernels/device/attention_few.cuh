#pragma once

#include "providers/cuda/kernels/device/attention_few_products.cuh"

// Short sequences and a decoder's step: sixteen rows (queries times the query heads of a key head) against all keys, by
// mma.sync. Eight warps share the keys of a stage, blocks all of the keys; those are a cluster where the GPU has them.
// As many stages as fit are under way at once, those that the caller gave before the wait for the kernel before.
namespace infernode::cuda {

inline constexpr int kNoKey = 1 << 30;  ///< no row sees it

/// What a warp knows of its two rows, lane / 4 and eight more.
template <class T>
struct FewState {
  float out[T::kD / 8][4] = {}, most[2] = {-INFINITY, -INFINITY}, weight[2] = {};
  int low[2], high[2];  ///< keys that the rows see
  const char* bias[2];  ///< where their masks begin

  __device__ __forceinline__ void begin(const AttentionParams& p, const AttentionPlace& at, int lane) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = at.tile + (lane >> 2) + half * 8, query = query_of(p, row);
      low[half] = at.low(p, query);
      high[half] = query < p.queries ? max(low[half], at.high(p, query)) : low[half];
      const int head = at.head + row - query * p.group;
      bias[half] =
          reinterpret_cast<const char*>(p.bias) +
          (at.batch * p.bias_at.batch + head * p.bias_at.head + query * p.bias_at.row) * element_size(p.bias_type);
    }
  }

  /// The masks of the warp's keys from `key` on as they lie in memory, in the order of the scores.
  template <class Load>
  __device__ __forceinline__ void load_bias(std::uint32_t (&add)[2][4], int size, int key, const Load& load) const {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const char* from = bias[half] + std::int64_t{key} * size;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int at = (i >> 1) * 8 + (i & 1);
        add[half][i] = load(from + at * size, key + at < high[half]);
      }
    }
  }

  static __device__ __forceinline__ void to_floats(std::uint32_t (&add)[2][4], Element type) {
    if (type == Element::f32) return;
#pragma unroll
    for (int i = 0; i < 8; i++) {
      std::uint32_t& x = add[i >> 2][i & 3];
      x = __float_as_uint(type == Element::f16 ? unpack_f16(x).x : unpack_bf16(x).x);
    }
  }

  /// The scores of sixteen keys as exponents of two; those that a row does not see are -infinity. `key` is the lane's
  /// first one. `halves`: how many of the lane's rows there may be.
  __device__ __forceinline__ void mask(float (&s)[2][4], int key, const std::uint32_t (&add)[2][4], float scale,
                                       int halves) const {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      if (half >= halves) break;
      const int below = key - low[half], seen = high[half] - low[half];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float& x = s[i >> 1][half * 2 + (i & 1)];
        x = fmaf(x, scale, fmaxf(__uint_as_float(add[half][i]) * kLog2E, kMaskedScore));
        if (static_cast<unsigned>(below + (i >> 1) * 8 + (i & 1)) >= static_cast<unsigned>(seen)) x = -INFINITY;
      }
    }
  }

  /// Makes weights of the scores, and brings what there is to the same largest score.
  template <int N>
  __device__ __forceinline__ void weigh(float (&s)[N][2][4], int halves) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      if (half >= halves) break;
      float top = most[half];
      const auto each_score = [&](const auto& f) {
#pragma unroll
        for (int i = 0; i < N * 4; i++) f(s[i >> 2][i >> 1 & 1][half * 2 + (i & 1)]);
      };
      each_score([&](float& x) { top = fmaxf(top, x); });
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
      const float base = top == -INFINITY ? 0.f : top, shrink = fast_exp2(most[half] - base);
      most[half] = top;
      weight[half] *= shrink;
      each_score([&](float& x) { x = fast_exp2(x - base), weight[half] += x; });
#pragma unroll
      for (int j = 0; j < T::kD / 8; j++) out[j][half * 2] *= shrink, out[j][half * 2 + 1] *= shrink;
    }
  }

  /// Lays the rows that there are into shared memory: of a warp kRows rows, then its rows' states.
  __device__ __forceinline__ void stage(float* rows, float2* states, int count, int lane) const {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = (lane >> 2) + half * 8;
      float w = weight[half];
      w += __shfl_xor_sync(~0u, w, 1);
      w += __shfl_xor_sync(~0u, w, 2);
      if (row >= count) continue;
      if ((lane & 3) == 0) states[row] = make_float2(most[half], w);
#pragma unroll
      for (int j = 0; j < T::kD / 8; j++) {
        *reinterpret_cast<float2*>(rows + row * T::kPitch + j * 8 + (lane & 3) * 2) =
            make_float2(out[j][half * 2], out[j][half * 2 + 1]);
      }
    }
  }
};

/// Eight columns of a row, of which a part is at columns(i), its state at state(i) in shared memory: of this block, or
/// `far` of others of the cluster. Gives the whole row's state.
template <int kMost, class C, class S>
__device__ __forceinline__ float2 merge_parts(float (&v)[8], int parts, bool far, const C& columns, const S& state) {
  float share[kMost], top = -INFINITY, total = 0;
  float2 states[kMost];
#pragma unroll
  for (int i = 0; i < kMost; i++) {
    states[i] = make_float2(-INFINITY, 0);
    if (i < parts) states[i] = load_shared2(state(i), far);
    top = fmaxf(top, states[i].x);
  }
  const float base = top == -INFINITY ? 0.f : top;
#pragma unroll
  for (int i = 0; i < kMost; i++) share[i] = fast_exp2(states[i].x - base), total += states[i].y * share[i];
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = 0;
#pragma unroll
  for (int i = 0; i < kMost; i++) {
    if (i >= parts) break;
    const float4 a = load_shared4(columns(i), far), b = load_shared4(columns(i) + 16, far);
    v[0] += a.x * share[i], v[1] += a.y * share[i], v[2] += a.z * share[i], v[3] += a.w * share[i];
    v[4] += b.x * share[i], v[5] += b.y * share[i], v[6] += b.z * share[i], v[7] += b.w * share[i];
  }
  return make_float2(top, total);
}

/// Adds what the warps have of the rows, and the blocks of a cluster, and stores them.
template <class T>
__device__ __forceinline__ void finish_few(const FewState<T>& state, const AttentionParams& p, const AttentionPlace& at,
                                           float* rows, int count) {
  __shared__ float2 states[T::kWarps][T::kRows];
  const int thread = threadIdx.x, warp = thread >> 5;
  copies_wait<0>();
  __syncthreads();
  state.stage(rows + warp * count * T::kPitch, states[warp], count, thread & 31);
  __syncthreads();
  const int row = thread / (T::kD / 8), column = thread % (T::kD / 8) * 8;
  const bool mine = row < count && column < p.dv;
  const std::uint32_t from = shared_address(rows + row * T::kPitch + column), its = shared_address(&states[0][row]);
  float v[8];
  float2 merged;
  if (mine) {
    merged = merge_parts<T::kWarps>(
        v, T::kWarps, false, [=](int i) { return from + i * count * T::kPitch * 4; },
        [=](int i) { return its + i * T::kRows * 8; });
  }
  if (p.cluster) {
    __syncthreads();
    if (mine) {
      float4* to = reinterpret_cast<float4*>(rows + row * T::kPitch + column);
      to[0] = make_float4(v[0], v[1], v[2], v[3]), to[1] = make_float4(v[4], v[5], v[6], v[7]);
      if (column == 0) states[0][row] = merged;
    }
    clusters_meet();
    if (mine && at.split == 0) {
      merged = merge_parts<8>(
          v, p.splits, true, [=](int i) { return in_cluster(from, i); }, [=](int i) { return in_cluster(its, i); });
    }
    clusters_meet();
    if (at.split != 0) return;
  }
  if (mine) store_row(v, p, at, at.tile + row, column, merged.x, merged.y);
}

/// The masks of a warp's keys, which are on their way while the step before is computed. Steps whose keys are all in
/// shared memory are taken two at a time: one alone waits for its own results.
template <class T>
struct FewMasks {
  static constexpr int kGroup = T::kPieces > 1 ? 1 : 2;
  const int key, steps, turn;  ///< the lane's first key of step 0; all steps; those taken at a time
  std::uint32_t add[kGroup][2][4] = {};

  __device__ __forceinline__ FewMasks(int first, int all)
      : key(first), steps(all), turn(all <= T::kStages ? kGroup : 1) {}

  __device__ __forceinline__ bool exists(int step, int g) const { return g < turn && step + g < steps; }

  __device__ __forceinline__ void load(const AttentionParams& p, const FewState<T>& state, int step) {
    if (!p.bias) return;
#pragma unroll
    for (int g = 0; g < kGroup; g++) {
      if (!exists(step, g)) break;
      const int at = key + (step + g) * T::kKeys;
      if (p.bias_type == Element::f32) {
        state.load_bias(add[g], 4, at, load4_if);
      } else {
        state.load_bias(add[g], 2, at, load2_if);
      }
    }
  }
};

/// The keys of a step, or of two.
template <class T>
__device__ __forceinline__ void take_step(FewState<T>& state, const FewProducts<T>& products, FewMasks<T>& masks,
                                          const AttentionParams& p, std::uint32_t q, std::uint32_t stages, int step,
                                          int halves) {
  constexpr int kGroup = FewMasks<T>::kGroup;
  const int lane = threadIdx.x & 31, row = (threadIdx.x >> 5) * T::kKeysWarp;
  const auto kv = [&](int g) { return stages + (step + g) % T::kStages * (2 * T::kBytesKV); };
  float s[kGroup][2][4] = {};
#pragma unroll
  for (int g = 0; g < kGroup; g++) {
    if (masks.exists(step, g)) products.score(s[g], q, kv(g), row, lane);
  }
#pragma unroll
  for (int g = 0; g < kGroup; g++) {
    if (p.bias) state.to_floats(masks.add[g], p.bias_type);
    const int key = masks.exists(step, g) ? masks.key + (step + g) * T::kKeys : kNoKey;
    state.mask(s[g], key, masks.add[g], p.scale_log2e, halves);
  }
  masks.load(p, state, step + masks.turn);
  state.weigh(s, halves);
#pragma unroll
  for (int g = 0; g < kGroup; g++) {
    if (masks.exists(step, g)) products.add_values(state.out, s[g], kv(g) + T::kBytesKV, row, lane);
  }
}

template <class T>
__device__ __forceinline__ void attention_few(const AttentionParams& p) {
  INFERNODE_DYNAMIC_SHARED(raw);
  const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
  const std::uint32_t q = shared_address(raw), stages = q + T::kBytesQ;
  let_next_start();
  if (p.lengths) wait_for_previous();
  const AttentionPlace at(p, T::kRows, T::kKeys);
  if (p.new_k && blockIdx.x > 0) return join_rows<T>(p, at, (blockIdx.x - 1) * p.splits + at.split);
  const FewKeys<T> keys(p, at, stages);
  const FewQueries<T> queries(p, at, keys.row, keys.bytes_k);
  const int steps = max(0, (at.last - at.first + T::kKeys - 1) / T::kKeys), all = at.first + steps * T::kKeys;
  const int ahead = min(at.last, at.first + T::kStages * T::kKeys);
  const int count = min(T::kRows, p.queries * p.group - at.tile), halves = count > 8 ? 2 : 1;
  FewProducts<T> products;
  FewState<T> state;
  state.begin(p, at, lane);
  if (p.past_given) keys.copy_past(at.first, ahead);
  if (steps > 0 && steps <= T::kStages && all > at.last) keys.clear(at.last, all);
  bring_near(p);
  wait_for_previous();
  queries.copy(q, keys.row);
  if (!p.past_given) keys.copy_past(at.first, ahead);
  keys.copy_new(at.first, ahead);
  copies_commit();
  FewMasks<T> masks(at.first + warp * T::kKeysWarp + (lane & 3) * 2, steps);
  masks.load(p, state, 0);
#pragma unroll 1
  for (int step = 0; step < steps; step += masks.turn) {
    if (step == 0) {
      copies_wait<0>();
      __syncthreads();
      products.load_queries(q, lane);
    } else if (steps > T::kStages) {
      copies_wait<T::kStages - 1>();
      __syncthreads();
    }
    take_step<T>(state, products, masks, p, q, stages, step, halves);
    if (steps <= T::kStages) continue;
    __syncthreads();
    const int next = at.first + (step + T::kStages) * T::kKeys;
    keys.copy_past(next, min(at.last, next + T::kKeys));
    keys.copy_new(next, min(at.last, next + T::kKeys));
    copies_commit();
  }
  finish_few<T>(state, p, at, reinterpret_cast<float*>(raw), count);
}

}  // namespace infernode::cuda

/// attention_few_<type>_<largest head>
#define ATTENTION_FEW(TYPE, KIND, D, PIECES)                                                   \
  extern "C" __global__ void __launch_bounds__(256)                                            \
      attention_few_##TYPE##_##D(const __grid_constant__ infernode::cuda::AttentionParams p) { \
    using namespace infernode::cuda;                                                           \
    attention_few<FewTile<MmaKind::KIND, D, PIECES>>(p);                                       \
  }
