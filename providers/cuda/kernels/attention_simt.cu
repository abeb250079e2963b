#include "providers/cuda/kernels/device/attention_common.cuh"

// Attention on the float32 units: any types, any alignment. 32 rows and 32 keys a block of 128 threads; a thread holds
// two rows of four scores, and of every 32 values four.
namespace infernode::cuda {
namespace {

constexpr int kRows = 32, kKeys = 32, kThreads = 128, kPitch = 36;
static_assert(kRows == kKeys);

template <int D>
struct Shared {
  float q[D][kPitch];
  union {
    float k[D][kPitch];
    float v[kKeys][D + 4];
  };
  float weights[kRows][kPitch];
};

/// 32 rows of up to D elements on their way from memory to shared memory; those that are not there are zeros. Vectors:
/// float32 rows of whole 16-byte words, all of which are under way at once.
template <int D>
struct Block32 {
  static constexpr int kLoads = kKeys * D / 4 / kThreads;
  float4 w[kLoads];

  /// The row and the first of four columns of a thread's i-th word: neighbours read rows apart, or one row.
  static __device__ __forceinline__ int row_of(int i, bool apart) {
    const int at = threadIdx.x + i * kThreads;
    return apart ? at % kKeys : at / (D / 4);
  }
  static __device__ __forceinline__ int column_of(int i, bool apart) {
    const int at = threadIdx.x + i * kThreads;
    return (apart ? at / kKeys : at % (D / 4)) * 4;
  }

  /// place(row): the address of its first element, 0 where there is none.
  template <class Place>
  __device__ __forceinline__ void load(const Place& place, int columns, bool apart) {
#pragma unroll
    for (int i = 0; i < kLoads; i++) {
      const std::uint64_t from = place(row_of(i, apart));
      const int column = column_of(i, apart);
      const uint4 v = load16_if(reinterpret_cast<const float*>(from) + column, from != 0 && column < columns);
      w[i] = make_float4(__uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z), __uint_as_float(v.w));
    }
  }

  /// to[column][row]
  __device__ __forceinline__ void store_columns(float (*to)[kPitch]) const {
#pragma unroll
    for (int i = 0; i < kLoads; i++) {
      const int row = row_of(i, true), column = column_of(i, true);
      to[column][row] = w[i].x, to[column + 1][row] = w[i].y, to[column + 2][row] = w[i].z,
      to[column + 3][row] = w[i].w;
    }
  }

  /// to[row][column]
  __device__ __forceinline__ void store_rows(float (*to)[D + 4]) const {
#pragma unroll
    for (int i = 0; i < kLoads; i++) {
      *reinterpret_cast<float4*>(&to[row_of(i, false)][column_of(i, false)]) = w[i];
    }
  }
};

/// The addresses of a tile's rows.
struct TileRows {
  const AttentionParams& p;
  const AttentionPlace& at;

  __device__ __forceinline__ std::uint64_t query_row(int i) const {
    const int row = at.tile + i, query = query_of(p, row), head = at.head + row - query * p.group;
    if (query >= p.queries) return 0;
    return p.q + (at.batch * p.q_at.batch + head * p.q_at.head + query * p.q_at.row) * element_size(p.type);
  }
  __device__ __forceinline__ std::uint64_t key_row(std::uint64_t base, const HeadStrides& s, int key) const {
    if (key >= at.last) return 0;
    return base + (at.batch * s.batch + at.kv_head * s.head + key * s.row) * element_size(p.type);
  }
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

/// The masks of a thread's scores, all under way at once.
__device__ __forceinline__ void load_bias(float (&add)[2][4], const AttentionParams& p, const AttentionPlace& at, int r,
                                          int key) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int row = at.tile + r + i, query = query_of(p, row), head = at.head + row - query * p.group;
    const std::int64_t from = at.batch * p.bias_at.batch + head * p.bias_at.head + query * p.bias_at.row + key;
    const char* base = reinterpret_cast<const char*>(p.bias) + from * element_size(p.bias_type);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const bool there = p.bias && query < p.queries && key + j < at.last;
      if (p.bias_type == Element::f32) {
        add[i][j] = __uint_as_float(load4_if(base + j * 4, there));
      } else {
        const std::uint32_t u = load2_if(base + j * 2, there);
        add[i][j] = p.bias_type == Element::f16 ? unpack_f16(u).x : unpack_bf16(u).x;
      }
    }
  }
}

template <int D>
__device__ __forceinline__ void weigh(float (&s)[2][4], const float (&add)[2][4], Rows<D>& rows, Shared<D>& shared,
                                      const AttentionParams& p, const AttentionPlace& at, int r, int c, int first) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int query = query_of(p, at.tile + r + i), low = at.low(p, query), high = at.high(p, query);
    float most = rows.most[i];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int key = first + c + j;
      float& v = s[i][j];
      v *= p.scale_log2e;
      if (p.bias) v += fmaxf(add[i][j] * kLog2E, kMaskedScore);
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

/// Rows of any type and alignment: to[column][row].
template <int D, class Place>
__device__ __forceinline__ void load_columns(float (*to)[kPitch], const AttentionParams& p, const Place& place) {
#pragma unroll 4
  for (int i = threadIdx.x; i < kKeys * p.d; i += kThreads) {
    const std::uint64_t from = place(i / p.d);
    to[i % p.d][i / p.d] = from ? load_element(from, p.type, i % p.d) : 0.f;
  }
}

/// The same for to[row][column].
template <int D, class Place>
__device__ __forceinline__ void load_rows(float (*to)[D + 4], const AttentionParams& p, const Place& place) {
#pragma unroll 4
  for (int i = threadIdx.x; i < kKeys * D; i += kThreads) {
    const std::uint64_t from = i % D < p.dv ? place(i / D) : 0;
    to[i / D][i % D] = from ? load_element(from, p.type, i % D) : 0.f;
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
  const TileRows tile{p, at};
  const auto query_row = [&](int i) { return tile.query_row(i); };
  Block32<D> block;
  if (p.vectors) {
    block.load(query_row, p.d, true);
    block.store_columns(shared.q);
  } else {
    load_columns<D>(shared.q, p, query_row);
  }
  Rows<D> rows = {};
  rows.most[0] = rows.most[1] = -INFINITY;
#pragma unroll 1
  for (int first = at.first; first < at.last; first += kKeys) {
    const auto key_row = [&](int i) { return tile.key_row(p.k, p.k_at, first + i); };
    const auto value_row = [&](int i) { return tile.key_row(p.v, p.v_at, first + i); };
    float add[2][4];
    load_bias(add, p, at, r, first + c);
    if (p.vectors) block.load(key_row, p.d, true);
    __syncthreads();
    if (p.vectors) {
      block.store_columns(shared.k);
    } else {
      load_columns<D>(shared.k, p, key_row);
    }
    __syncthreads();
    if (p.vectors) block.load(value_row, p.dv, false);
    float s[2][4] = {};
    score<D>(s, shared, p.d, r, c);
    weigh<D>(s, add, rows, shared, p, at, r, c, first);
    __syncthreads();
    if (p.vectors) {
      block.store_rows(shared.v);
    } else {
      load_rows<D>(shared.v, p, value_row);
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
