#include "providers/cuda/kernels/device/any.cuh"
#include "providers/cuda/kernels/device/ptx.cuh"
#include "providers/cuda/kernels/params/attention_mask.h"

// What stands around attention: masks that kernels do not know, queries that see nothing, caches of keys and values.
namespace infernode::cuda {

__device__ __forceinline__ int int_at(std::uint64_t base, std::int64_t i) {
  return reinterpret_cast<const int*>(base)[i];
}
__device__ __forceinline__ std::int64_t mask_row(const MaskSource& m, std::int64_t batch, int head, int query) {
  return batch * m.stride[0] + head * m.stride[1] + query * m.stride[2];
}

extern "C" __global__ void __launch_bounds__(256) attention_mask(const __grid_constant__ AttentionMaskParams p) {
  const std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (i >= p.count) return;
  const int key = static_cast<int>(i % p.keys);
  const std::int64_t row = i / p.keys, matrix = row / p.queries, batch = matrix / p.heads;
  const int query = static_cast<int>(row % p.queries), head = static_cast<int>(matrix % p.heads);
  const int end = p.ends != 0 ? int_at(p.ends, batch) + p.more_end : p.keys;
  const int place = query + (p.place >= 0 ? p.place : max(end - p.queries, 0));
  const bool there = key < p.columns;
  bool shut = !there || key >= end || (p.starts != 0 && key < int_at(p.starts, batch));
  shut = shut || (p.right >= 0 && key > place + p.right) || (p.left >= 0 && key < place - p.left);
  if (there && p.open.at != 0) {
    shut = shut ||
           real(load_any(p.open.at, p.open.type, mask_row(p.open, batch, head, query) + key * p.open.stride[3])) == 0;
  }
  float sum = shut ? p.shut : 0.0f;
  if (there && p.added.at != 0 && !isinf(sum)) {
    sum += single(load_any(p.added.at, p.added.type, mask_row(p.added, batch, head, query) + key * p.added.stride[3]));
  }
  reinterpret_cast<float*>(p.out)[i] = sum;
}

extern "C" __global__ void __launch_bounds__(128) clear_shut(const __grid_constant__ ClearShutParams p) {
  const int lane = threadIdx.x % 32;
  const std::int64_t row = blockIdx.x * std::int64_t{4} + threadIdx.x / 32;
  bring_near(p);
  wait_and_let_next_start();
  if (row >= p.rows) return;
  const std::int64_t matrix = row / p.queries, batch = matrix / p.heads;
  const int query = static_cast<int>(row % p.queries), head = static_cast<int>(matrix % p.heads);
  const int keys = p.lengths != 0 ? min(p.keys, int_at(p.lengths, batch)) : p.keys;
  const int own = query + p.causal_offset + keys - p.keys;
  const int last = p.causal ? min(keys, own + 1) : keys, first = p.causal && p.window ? max(0, own + 1 - p.window) : 0;
  float sees = 0;
  for (int key = first + lane; key < last && sees == 0; key += 32) {
    const Any mask = load_any(p.mask.at, p.mask.type, mask_row(p.mask, batch, head, query) + key);
    if (!isinf(mask.real) || mask.real > 0) sees = 1;
  }
  if (warp_max(sees) != 0) return;
  const std::int64_t at = batch * p.out_at.batch + head * p.out_at.head + query * p.out_at.row;
  for (int i = lane; i < p.dv; i += 32) {
    if (p.type == Element::f32) {
      put(p.out, at + i, 0.0f);
    } else {
      put(p.out, at + i, static_cast<unsigned short>(0));
    }
  }
}

template <class Word>
__device__ __forceinline__ void join_cache(const CacheParams& p) {
  const std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (p.tokens != 0 && i < p.batch) reinterpret_cast<int*>(p.tokens)[i] = max(0, int_at(p.last, i) + 1);
  if (i >= p.count) return;
  const std::int64_t word = i % p.words, at = i / p.words, matrix = at / p.capacity, batch = matrix / p.heads;
  const int row = static_cast<int>(at % p.capacity);
  const int before = min(max(0, int_at(p.last, batch) + 1 - p.rows), p.held);
  const auto* const past = reinterpret_cast<const Word*>(p.past);
  auto* const to = reinterpret_cast<Word*>(p.to) + i;
  if (row >= before && row - before < p.rows) {
    *to = reinterpret_cast<const Word*>(p.fresh)[batch * p.fresh_at.batch + matrix % p.heads * p.fresh_at.head +
                                                 (row - before) * p.fresh_at.row + word];
  } else if (p.past != p.to) {
    *to = row < before ? past[(matrix * p.held + row) * p.words + word] : Word{};
  }
}

#define JOIN_CACHE(bytes, type)                                                                                 \
  extern "C" __global__ void __launch_bounds__(256) join_cache_##bytes(const __grid_constant__ CacheParams p) { \
    join_cache<type>(p);                                                                                        \
  }
JOIN_CACHE(2, std::uint16_t)
JOIN_CACHE(4, std::uint32_t)
JOIN_CACHE(16, uint4)

}  // namespace infernode::cuda
