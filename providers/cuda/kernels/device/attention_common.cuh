#pragma once

#include "providers/cuda/kernels/device/epilogue.cuh"
#include "providers/cuda/kernels/params/attention.h"

// What the attention kernels share: which keys a block reads, what a query sees, masks.
namespace infernode::cuda {

/// Scores below this are as good as masked; a row that sees nothing else weighs its keys alike.
inline constexpr float kMaskedScore = -1e38f;

/// The query of a row of a tile, counted from the first tile.
__device__ __forceinline__ int query_of(const AttentionParams& p, int row) {
  return static_cast<int>((row + 0.5f) * p.per_group);
}

struct AttentionPlace {
  int tile, head, kv_head, batch, split;
  int keys, offset;  ///< of this batch
  int first, last;   ///< keys that any row of the tile sees, of this split

  /// Reads lengths: call it after the wait.
  __device__ __forceinline__ AttentionPlace(const AttentionParams& p, int rows, int block) {
    tile = blockIdx.x * rows;
    head = blockIdx.y * p.group;
    kv_head = head / p.heads_per_key;
    batch = blockIdx.z / p.splits;
    split = blockIdx.z - batch * p.splits;
    keys = p.lengths ? min(p.keys, __float_as_int(load_f32(reinterpret_cast<const int*>(p.lengths) + batch))) : p.keys;
    offset = p.causal_offset + keys - p.keys;
    first = 0, last = keys;
    if (p.causal) {
      last = min(keys, query_of(p, tile + rows - 1) + offset + 1);
      if (p.window) first = max(0, query_of(p, tile) + offset + 1 - p.window);
    }
    if (p.splits > 1) {
      const int per = ((keys + p.splits - 1) / p.splits + block - 1) / block * block;
      first = max(first, split * per);
      last = min(last, (split + 1) * per);
    }
    first = first / block * block;
  }

  /// The keys that a query sees are those in [low, high).
  __device__ __forceinline__ int high(const AttentionParams& p, int query) const {
    return p.causal ? min(last, query + offset + 1) : last;
  }
  __device__ __forceinline__ int low(const AttentionParams& p, int query) const {
    return p.window ? max(first, query + offset + 1 - p.window) : first;
  }
};

/// The additive mask of a score, in units of log 2.
__device__ __forceinline__ float bias_of(const AttentionParams& p, int batch, int head, int query, int key) {
  const std::int64_t at = batch * p.bias_at.batch + head * p.bias_at.head + query * p.bias_at.row + key;
  return fmaxf(load_element(p.bias, p.bias_type, at) * kLog2E, kMaskedScore);
}

/// Where a row's part of the keys is kept until attention_combine: dv sums, then the largest score and the weights'
/// sum.
__device__ __forceinline__ float* partial_of(const AttentionParams& p, int split, int batch, int head, int query) {
  const std::int64_t row = ((std::int64_t{split} * p.batch + batch) * p.heads + head) * p.queries + query;
  return reinterpret_cast<float*>(p.partial) + row * (p.dv + 2);
}

/// Eight values of a finished row: to the output, or with the row's state to where attention_combine finds them.
__device__ __forceinline__ void store_row(float (&v)[8], const AttentionParams& p, const AttentionPlace& at, int row,
                                          int column, float most, float weight) {
  const int query = query_of(p, row), head = at.head + row - query * p.group;
  if (query >= p.queries || column >= p.dv) return;
  if (p.partial) {
    float* to = partial_of(p, at.split, at.batch, head, query);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      if (column + i < p.dv) to[column + i] = v[i];
    }
    if (column == 0) to[p.dv] = most, to[p.dv + 1] = weight;
    return;
  }
  const float share = weight > 0 ? 1.f / weight : 0.f;
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] *= share;
  store8(v, p.out, p.type, at.batch * p.out_at.batch + head * p.out_at.head + query * p.out_at.row + column,
         min(8, p.dv - column), p.out_vector);
}

}  // namespace infernode::cuda
