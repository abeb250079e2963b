#include "providers/cuda/kernels/device/ptx.cuh"
#include "providers/cuda/kernels/device/wide.cuh"
#include "providers/cuda/kernels/params/places.h"

// Elements that indices name, and moves that depend on where an element is.
namespace infernode::cuda {

/// The number of the slice that i names; -1: outside.
__device__ __forceinline__ std::int64_t place_of(const Places& p, std::int64_t i) {
  std::int64_t at = 0, rest = i;
  for (int d = p.rank - 1; d >= 0; --d) {
    at += rest % p.dims[d] * p.step[d];
    rest /= p.dims[d];
  }
  for (int d = 0; d < p.depth; ++d) {
    const std::int64_t j = i * p.depth + d;
    std::int64_t index = p.index_is_64 ? reinterpret_cast<const std::int64_t*>(p.index)[j]
                                       : reinterpret_cast<const std::int32_t*>(p.index)[j];
    if (index < 0) index += p.bound[d];
    if (index < 0 || index >= p.bound[d]) return -1;
    at += index * p.stride[d];
  }
  return at;
}

template <class T>
__device__ __forceinline__ void gather_places(const PlacedCopyParams& p) {
  const std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (i >= p.count) return;
  const std::int64_t place = place_of(p.places, i / p.slice);
  const T* const from = reinterpret_cast<const T*>(p.from) + place * p.slice + i % p.slice;
  reinterpret_cast<T*>(p.to)[i] = place < 0 ? T{} : *from;
}

template <class T>
__device__ __forceinline__ void scatter_places(const PlacedCopyParams& p) {
  const std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (i >= p.count) return;
  const std::int64_t update = i / p.slice, place = place_of(p.places, update);
  if (place < 0 || (p.owner != 0 && reinterpret_cast<const int*>(p.owner)[place] != update)) return;
  reinterpret_cast<T*>(p.to)[place * p.slice + i % p.slice] =
      reinterpret_cast<const T*>(p.from)[update * p.from_slice + i % p.slice];
}

extern "C" __global__ void __launch_bounds__(256) scatter_owner(const __grid_constant__ OwnerParams p) {
  const std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (i >= p.count) return;
  const std::int64_t place = place_of(p.places, i);
  if (place >= 0) atomicMax(reinterpret_cast<int*>(p.owner) + place, static_cast<int>(i));
}

extern "C" __global__ void __launch_bounds__(256) scatter_link(const __grid_constant__ LinkParams p) {
  const std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (i >= p.count) return;
  const std::int64_t place = place_of(p.places, i);
  reinterpret_cast<int*>(p.next)[i] =
      place < 0 ? -1 : atomicExch(reinterpret_cast<int*>(p.head) + place, static_cast<int>(i));
}

/// The lists' order is by chance; what is found in them is not.
extern "C" __global__ void __launch_bounds__(256) scatter_order(const __grid_constant__ OrderParams p) {
  const std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (i >= p.count) return;
  const std::int64_t place = place_of(p.places, i);
  const auto* const next = reinterpret_cast<const int*>(p.next);
  bool is_first = place >= 0;
  int after = kNoUpdate;
  for (int other = place < 0 ? -1 : reinterpret_cast<const int*>(p.head)[place]; other >= 0; other = next[other]) {
    if (other < i) is_first = false;
    if (other > i) after = min(after, other);
  }
  reinterpret_cast<int*>(p.after)[i] = is_first ? after : -1 - after;
}

extern "C" __global__ void __launch_bounds__(256) scatter_sum(const __grid_constant__ PlacedSumParams p) {
  const std::int64_t thread = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (thread >= p.count) return;
  const auto* const after = reinterpret_cast<const int*>(p.after);
  const std::int64_t element = thread % p.slice, first = thread / p.slice;
  if (after[first] < 0) return;
  const std::int64_t at = place_of(p.places, first) * p.slice + element;
  for (auto i = static_cast<int>(first); i != kNoUpdate; i = after[i] < 0 ? -1 - after[i] : after[i]) {
    const Any sum = load_any(p.to, p.type, at), x = load_any(p.from, p.type, i * p.slice + element);
    store_any(p.to, p.type, at, wide_binary_of(p.op, sum, x));
  }
}

template <class T>
__device__ __forceinline__ void triangle(const TriangleParams& p) {
  const std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (i >= p.count) return;
  const std::int64_t above = i % p.columns - i / p.columns % p.rows - p.diagonal;
  const bool kept = p.upper ? above >= 0 : above <= 0;
  reinterpret_cast<T*>(p.to)[i] = kept ? reinterpret_cast<const T*>(p.from)[i] : T{};
}

template <class T>
__device__ __forceinline__ void reverse(const ReverseParams& p) {
  const std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (i >= p.count) return;
  const std::int64_t row = i / p.inner;
  const std::int64_t b = p.batch_first ? row / p.steps : row % p.batches;
  const std::int64_t step = p.batch_first ? row % p.steps : row / p.batches;
  const std::int64_t length = reinterpret_cast<const std::int64_t*>(p.lengths)[b];
  const std::int64_t other = step < length && length <= p.steps ? length - 1 - step : step;
  const std::int64_t from = p.batch_first ? b * p.steps + other : other * p.batches + b;
  reinterpret_cast<T*>(p.to)[i] = reinterpret_cast<const T*>(p.from)[from * p.inner + i % p.inner];
}

template <class T>
__device__ __forceinline__ void write_rows(const RowsParams& p) {
  const std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (i >= p.count) return;
  const std::int64_t line = i / p.inner, matrix = line / p.length;
  const std::int64_t start = p.start != 0 ? reinterpret_cast<const std::int64_t*>(p.start)[matrix / p.middle] : 0;
  std::int64_t row = line % p.length - start;
  if (p.circular && row < 0) row += p.length;
  T* const to = reinterpret_cast<T*>(p.to) + i;
  if (row >= 0 && row < p.rows) {
    *to = reinterpret_cast<const T*>(p.fresh)[(matrix * p.rows + row) * p.inner + i % p.inner];
  } else if (p.past != p.to) {
    *to = reinterpret_cast<const T*>(p.past)[i];
  }
}

#define PLACES(bytes, type)                                                                                      \
  extern "C" __global__ void __launch_bounds__(256)                                                              \
      gather_places_##bytes(const __grid_constant__ PlacedCopyParams p) {                                        \
    gather_places<type>(p);                                                                                      \
  }                                                                                                              \
  extern "C" __global__ void __launch_bounds__(256)                                                              \
      scatter_places_##bytes(const __grid_constant__ PlacedCopyParams p) {                                       \
    scatter_places<type>(p);                                                                                     \
  }                                                                                                              \
  extern "C" __global__ void __launch_bounds__(256) write_rows_##bytes(const __grid_constant__ RowsParams p) {   \
    write_rows<type>(p);                                                                                         \
  }                                                                                                              \
  extern "C" __global__ void __launch_bounds__(256) triangle_##bytes(const __grid_constant__ TriangleParams p) { \
    triangle<type>(p);                                                                                           \
  }                                                                                                              \
  extern "C" __global__ void __launch_bounds__(256) reverse_##bytes(const __grid_constant__ ReverseParams p) {   \
    reverse<type>(p);                                                                                            \
  }
PLACES(1, std::uint8_t)
PLACES(2, std::uint16_t)
PLACES(4, std::uint32_t)
PLACES(8, std::uint64_t)

}  // namespace infernode::cuda
