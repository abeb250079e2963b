#include "providers/cuda/kernels/device/attention_common.cuh"

// Attention on the float32 units: any types, any alignment. 32 rows and 32 keys a block of 128 threads; a thread holds
// two rows of four scores, and of every 32 values four.
namespace infernode::cuda {
namespace {

constexpr int kRows = 32, kKeys = 32, kThreads = 128, kPitch = 36;

template <int D>
struct Shared {
  float q[D][kPitch];
  union {
    float k[D][kPitch];
    float v[kKeys][D + 4];
  };
  float weights[kRows][kPitch];
};

template <int D>
struct Rows {
  float out[2][D / 32][4], most[2], weight[2];
};

template <int D>
__device__ __forceinline__ void score(float (&s)[2][4], const Shared<D>& shared, int d, int r, int c) {
#pragma unroll 4
  for (int i = 0; i < d; i++) {
    const float2 q = *reinterpret_cast<const float2*>(&shared.q[i][r]);
    const float4 k = *reinterpret_cast<const float4*>(&shared.k[i][c]);
    s[0][0] = fmaf(q.x, k.x, s[0][0]), s[0][1] = fmaf(q.x, k.y, s[0][1]);
    s[0][2] = fmaf(q.x, k.z, s[0][2]), s[0][3] = fmaf(q.x, k.w, s[0][3]);
    s[1][0] = fmaf(q.y, k.x, s[1][0]), s[1][1] = fmaf(q.y, k.y, s[1][1]);
    s[1][2] = fmaf(q.y, k.z, s[1][2]), s[1][3] = fmaf(q.y, k.w, s[1][3]);
  }
}

template <int D>
__device__ __forceinline__ void weigh(float (&s)[2][4], Rows<D>& rows, Shared<D>& shared, const AttentionParams& p,
                                      const AttentionPlace& at, int r, int c, int first) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int row = at.tile + r + i, query = query_of(p, row), low = at.low(p, query), high = at.high(p, query);
    float most = rows.most[i];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int key = first + c + j;
      float& v = s[i][j];
      v *= p.scale_log2e;
      if (p.bias && query < p.queries && key < at.last) {
        v += bias_of(p, at.batch, at.head + row - query * p.group, query, key);
      }
      if (key < low || key >= high) v = -INFINITY;
      most = fmaxf(most, v);
    }
    for (int x = 1; x < 8; x *= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, x));
    const float base = most == -INFINITY ? 0.f : most, shrink = exp2f(rows.most[i] - base);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const float w = exp2f(s[i][j] - base);
      shared.weights[r + i][c + j] = w;
      sum += w;
    }
    for (int x = 1; x < 8; x *= 2) sum += __shfl_xor_sync(~0u, sum, x);
    rows.most[i] = most;
    rows.weight[i] = rows.weight[i] * shrink + sum;
#pragma unroll
    for (int j = 0; j < D / 32; j++) {
#pragma unroll
      for (int e = 0; e < 4; e++) rows.out[i][j][e] *= shrink;
    }
  }
}

template <int D>
__device__ __forceinline__ void add_values(Rows<D>& rows, const Shared<D>& shared, int r, int c) {
#pragma unroll 2
  for (int key = 0; key < kKeys; key++) {
    const float w[2] = {shared.weights[r][key], shared.weights[r + 1][key]};
#pragma unroll
    for (int j = 0; j < D / 32; j++) {
      const float4 v = *reinterpret_cast<const float4*>(&shared.v[key][j * 32 + c]);
#pragma unroll
      for (int i = 0; i < 2; i++) {
        float(&o)[4] = rows.out[i][j];
        o[0] = fmaf(w[i], v.x, o[0]), o[1] = fmaf(w[i], v.y, o[1]);
        o[2] = fmaf(w[i], v.z, o[2]), o[3] = fmaf(w[i], v.w, o[3]);
      }
    }
  }
}

template <int D>
__device__ __forceinline__ void store(const Rows<D>& rows, const AttentionParams& p, const AttentionPlace& at, int r,
                                      int c) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int row = at.tile + r + i, query = query_of(p, row), head = at.head + row - query * p.group;
    if (query >= p.queries) continue;
    float* partial = p.partial ? partial_of(p, at.split, at.batch, head, query) : nullptr;
    if (partial && c == 0) partial[p.dv] = rows.most[i], partial[p.dv + 1] = rows.weight[i];
    const float share = partial ? 1.f : rows.weight[i] > 0 ? 1.f / rows.weight[i] : 0.f;
    const std::int64_t to = at.batch * p.out_at.batch + head * p.out_at.head + query * p.out_at.row;
#pragma unroll
    for (int j = 0; j < D / 32; j++) {
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int column = j * 32 + c + e;
        if (column >= p.dv) continue;
        const float v = rows.out[i][j][e] * share;
        if (partial) {
          partial[column] = v;
        } else {
          store_element(p.out, p.type, to + column, v);
        }
      }
    }
  }
}

template <int D>
__device__ __forceinline__ void attention_simt(const AttentionParams& p) {
  INFERNODE_DYNAMIC_SHARED(raw);
  Shared<D>& shared = *reinterpret_cast<Shared<D>*>(raw);
  let_next_start();
  wait_for_previous();
  const AttentionPlace at(p, kRows, kKeys);
  const int r = threadIdx.x / 8 * 2, c = threadIdx.x % 8 * 4;
#pragma unroll 1
  for (int i = threadIdx.x; i < kRows * p.d; i += kThreads) {
    const int row = at.tile + i / p.d, column = i % p.d, query = query_of(p, row),
              head = at.head + row - query * p.group;
    shared.q[column][i / p.d] =
        query < p.queries
            ? load_element(p.q, p.type, at.batch * p.q_at.batch + head * p.q_at.head + query * p.q_at.row + column)
            : 0.f;
  }
  Rows<D> rows = {};
  rows.most[0] = rows.most[1] = -INFINITY;
  const std::int64_t k = at.batch * p.k_at.batch + at.kv_head * p.k_at.head;
  const std::int64_t v = at.batch * p.v_at.batch + at.kv_head * p.v_at.head;
#pragma unroll 1
  for (int first = at.first; first < at.last; first += kKeys) {
    __syncthreads();
#pragma unroll 4
    for (int i = threadIdx.x; i < kKeys * p.d; i += kThreads) {
      const int key = first + i / p.d, column = i % p.d;
      shared.k[column][i / p.d] = key < at.last ? load_element(p.k, p.type, k + key * p.k_at.row + column) : 0.f;
    }
    __syncthreads();
    float s[2][4] = {};
    score<D>(s, shared, p.d, r, c);
    weigh<D>(s, rows, shared, p, at, r, c, first);
    __syncthreads();
#pragma unroll 4
    for (int i = threadIdx.x; i < kKeys * D; i += kThreads) {
      const int key = first + i / D, column = i % D;
      shared.v[i / D][column] =
          key < at.last && column < p.dv ? load_element(p.v, p.type, v + key * p.v_at.row + column) : 0.f;
    }
    __syncthreads();
    add_values<D>(rows, shared, r, c);
  }
  store<D>(rows, p, at, r, c);
}

}  // namespace
}  // namespace infernode::cuda

#define ATTENTION_SIMT(D)                                                              \
  extern "C" __global__ void __launch_bounds__(128)                                    \
      attention_simt_##D(const __grid_constant__ infernode::cuda::AttentionParams p) { \
    infernode::cuda::attention_simt<D>(p);                                             \
  }
ATTENTION_SIMT(64)
ATTENTION_SIMT(128)
ATTENTION_SIMT(256)

/// Merges the parts of the keys. Grid: x queries, y heads, z batch; a thread a value.
extern "C" __global__ void __launch_bounds__(128)
    attention_combine(const __grid_constant__ infernode::cuda::AttentionParams p) {
  using namespace infernode::cuda;
  let_next_start();
  wait_for_previous();
  const int query = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
  float top = -INFINITY;
#pragma unroll 4
  for (int i = 0; i < p.splits; i++) top = fmaxf(top, load_f32(partial_of(p, i, batch, head, query) + p.dv));
  const float base = top == -INFINITY ? 0.f : top;
  const std::int64_t to = batch * p.out_at.batch + head * p.out_at.head + query * p.out_at.row;
  for (int column = threadIdx.x; column < p.dv; column += 128) {
    float sum = 0, total = 0;
#pragma unroll 4
    for (int i = 0; i < p.splits; i++) {
      const float* from = partial_of(p, i, batch, head, query);
      const float share = exp2f(load_f32(from + p.dv) - base);
      sum += load_f32(from + column) * share;
      total += load_f32(from + p.dv + 1) * share;
    }
    store_element(p.out, p.type, to + column, total > 0 ? sum / total : 0.f);
  }
}
