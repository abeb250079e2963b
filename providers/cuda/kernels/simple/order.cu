#include "providers/cuda/kernels/device/any.cuh"
#include "providers/cuda/kernels/device/warp_rows.cuh"
#include "providers/cuda/kernels/params/order.h"

// Which elements of a row come first.
namespace infernode::cuda {

using Key = unsigned long long;

/// A key that compares as the numbers do: both zeros alike, NaN above all.
__device__ __forceinline__ Key order_key(const Any& x) {
  constexpr Key kTop = Key{1} << 63;
  if (x.integer) return x.is_unsigned ? static_cast<Key>(x.whole) : static_cast<Key>(x.whole) ^ kTop;
  if (x.real != x.real) return ~Key{0};
  const auto bits = static_cast<Key>(__double_as_longlong(x.real + 0.0));
  return bits & kTop ? ~bits : bits | kTop;
}

/// An element and where it stands; the better one of two is kept.
struct Best {
  Key key;
  long long at;  ///< -1: none yet

  __device__ __forceinline__ void meet(Key other, long long where, bool last) {
    if (where < 0) return;
    const bool wins = other == key ? (where > at) == last : other > key;
    if (at < 0 || wins) key = other, at = where;
  }
  __device__ __forceinline__ void meet_lanes(bool last) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      const Key other = static_cast<Key>(lane_xor(static_cast<long long>(key), step));
      const long long where = lane_xor(at, step);
      meet(other, where, last);
    }
  }
};

constexpr int kMostWarps = 32;

extern "C" __global__ void __launch_bounds__(1024) arg(const __grid_constant__ ArgParams p) {
  __shared__ Best parts[kMostWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::int64_t row = p.warps == 1 ? blockIdx.x * std::int64_t{kWarps} + warp : std::int64_t{blockIdx.x};
  const std::int64_t start = row / p.inner * p.columns * p.inner + row % p.inner;
  const int first = p.warps == 1 ? lane : threadIdx.x, step = p.warps * 32;
  bring_near(p);
  wait_and_let_next_start();
  if (row >= p.rows) return;
  Best best{0, -1};
  for (std::int64_t i = first; i < p.columns; i += step) {
    const Any x = load_any(p.in, p.type, start + i * p.inner);
    const Key key = order_key(x);
    // The smallest number comes first, but NaN stays before all.
    const Key turned = x.integer ? ~key : key == ~Key{0} ? key : ~key - 1;
    best.meet(p.smallest ? turned : key, i, p.last);
  }
  best.meet_lanes(p.last);
  if (p.warps > 1) {
    if (lane == 0) parts[warp] = best;
    __syncthreads();
    for (int i = 0; i < p.warps; ++i) best.meet(parts[i].key, parts[i].at, p.last);
  }
  if (p.one_hot) {
    for (std::int64_t i = first; i < p.columns; i += step) {
      store_any(p.out, p.type, start + i * p.inner, of(i == best.at ? 1.0 : 0.0));
    }
  } else if (first == 0) {
    reinterpret_cast<std::int64_t*>(p.out)[row] = best.at;
  }
}

/// A row of which the first k are chosen.
struct Row {
  const TopKParams& p;
  std::int64_t start;

  __device__ __forceinline__ Key key(std::int64_t i) const {
    const Key key = order_key(load_any(p.in, p.type, start + i * p.inner));
    return p.smallest ? ~key : key;
  }
  /// The digit of an element's key and, behind it, of its place; earlier places are larger.
  static __device__ __forceinline__ unsigned digit(Key key, std::int64_t i, int number) {
    const Key bits = number < 8 ? key : static_cast<Key>(~static_cast<unsigned>(i)) << 32;
    return static_cast<unsigned>(bits >> (56 - number % 8 * 8)) & 255;
  }
};

/// What is known of the last of those that are chosen: the digits it begins with.
struct Threshold {
  Key key;
  unsigned place;
  int digits;  ///< known

  /// Compares as far as digits are known: 1 above, 0 alike, -1 below.
  __device__ __forceinline__ int compare(Key other, std::int64_t i) const {
    for (int d = 0; d < digits; ++d) {
      const unsigned own =
          static_cast<unsigned>((d < 8 ? key : static_cast<Key>(place) << 32) >> (56 - d % 8 * 8)) & 255;
      const unsigned theirs = Row::digit(other, i, d);
      if (own != theirs) return theirs > own ? 1 : -1;
    }
    return 0;
  }
};

/// Finds digits until as many elements as are wanted reach the threshold.
__device__ __forceinline__ Threshold find_threshold(const Row& row) {
  constexpr int kDigits = 12;
  __shared__ int count[256];
  __shared__ int wanted, found;
  const TopKParams& p = row.p;
  Threshold t{0, 0, 0};
  if (threadIdx.x == 0) wanted = p.k;
  for (; t.digits < kDigits; ++t.digits) {
    for (int i = threadIdx.x; i < 256; i += blockDim.x) count[i] = 0;
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < p.columns; i += blockDim.x) {
      const Key key = row.key(i);
      if (t.compare(key, i) == 0) atomicAdd(&count[Row::digit(key, i, t.digits)], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = 255;
      for (; digit > 0 && count[digit] < wanted; --digit) wanted -= count[digit];
      found = digit;
    }
    __syncthreads();
    const Key bits = static_cast<Key>(found) << (56 - t.digits % 8 * 8);
    if (t.digits < 8) {
      t.key |= bits;
    } else {
      t.place |= static_cast<unsigned>(bits >> 32);
    }
    const bool exact = count[found] == wanted;
    __syncthreads();
    if (exact) {
      ++t.digits;
      break;
    }
  }
  return t;
}

extern "C" __global__ void __launch_bounds__(1024) top_k(const __grid_constant__ TopKParams p) {
  __shared__ int filled;
  const std::int64_t outer = blockIdx.x / p.inner, inner = blockIdx.x % p.inner;
  const Row row{p, outer * p.columns * p.inner + inner};
  bring_near(p);
  wait_and_let_next_start();
  if (threadIdx.x == 0) filled = 0;
  const Threshold threshold = find_threshold(row);
  auto* const keys = reinterpret_cast<Key*>(p.chosen_key) + blockIdx.x * std::int64_t{p.k};
  auto* const places = reinterpret_cast<int*>(p.chosen) + blockIdx.x * std::int64_t{p.k};
  for (std::int64_t i = threadIdx.x; i < p.columns; i += blockDim.x) {
    const Key key = row.key(i);
    if (threshold.compare(key, i) < 0) continue;
    const int slot = atomicAdd(&filled, 1);
    keys[slot] = key;
    places[slot] = static_cast<int>(i);
  }
  __syncthreads();
  for (int j = threadIdx.x; j < p.k; j += blockDim.x) {
    const Key key = keys[j];
    const int place = places[j];
    int rank = 0;
    for (int other = 0; other < p.k; ++other) {
      const bool before = p.sorted && keys[other] != key ? keys[other] > key : places[other] < place;
      rank += before ? 1 : 0;
    }
    const std::int64_t to = (outer * p.k + rank) * p.inner + inner;
    store_any(p.values, p.type, to, load_any(p.in, p.type, row.start + place * p.inner));
    reinterpret_cast<std::int64_t*>(p.indices)[to] = place;
  }
}

}  // namespace infernode::cuda
