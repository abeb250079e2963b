#pragma once

#include "microkernels/common/simd_file.h"
#include "microkernels/reduce/reduce.h"

// Orders of keys: whole numbers that compare as what they stand for.
namespace infernode::microkernels {
namespace {

// The bits of floats compare as whole numbers do where those of negative ones are turned round. No key is the least
// int32, of NaN neither.
void order_keys(const float* x, std::int32_t* keys, std::size_t n, bool largest) noexcept {
  const VecI magnitude = set(std::int32_t{0x7fffffff}), nan = set(std::int32_t{0x7ffffffe});
  const VecI flip = set(largest ? 0 : -1);
  for (std::size_t i = 0; i < n; i += kLanes) {
    const std::size_t count = smaller(kLanes, n - i);
    const VecF v = load_partial(x + i, count) + zero();  // -0 becomes 0
    const VecI bits = as_int(v), key = bits ^ (shift_right_arithmetic<31>(bits) & magnitude);
    store_partial(keys + i, select(is_nan(v), nan, key) ^ flip, count);
  }
}

void ranks(const std::int32_t* keys, std::size_t n, std::int32_t* out) noexcept {
  const VecI none = set(0), one = set(1);
  for (std::size_t i = 0; i < n; i += kLanes) {
    const std::size_t count = smaller(kLanes, n - i);
    const VecI own = load_partial(keys + i, count), at = iota() + set(static_cast<std::int32_t>(i));
    VecI behind = none, ahead = none;  // of those before: which are smaller; of those after: which are greater
    for (std::size_t j = 0; j < i; ++j) behind = behind + select(own > set(keys[j]), one, none);
    for (std::size_t j = i; j < i + count; ++j) {
      const VecI other = set(keys[j]), place = set(static_cast<std::int32_t>(j));
      ahead = ahead + select((other > own) | ((other == own) & (at > place)), one, none);
    }
    for (std::size_t j = i + count; j < n; ++j) ahead = ahead + select(set(keys[j]) > own, one, none);
    store_partial(out + i, set(static_cast<std::int32_t>(i)) - behind + ahead, count);
  }
}

// kLanes of the columns; the best so far stay in registers, in order.
template <std::size_t kBest>
void best_lanes(const std::int32_t* keys, std::size_t n, std::int32_t* indices) noexcept {
  VecI best[kBest], at[kBest];
  INFERNODE_UNROLL
  for (std::size_t t = 0; t < kBest; ++t) {
    best[t] = set(std::int32_t{-0x7fffffff - 1});
    at[t] = set(0);
  }
  for (std::size_t j = 0; j < n; ++j) {
    const VecI key = load(keys + j * kOrderColumns), place = set(static_cast<std::int32_t>(j));
    INFERNODE_UNROLL
    for (std::size_t u = 1; u < kBest; ++u) {
      const std::size_t t = kBest - u;
      const Mask here = key > best[t], above = key > best[t - 1];
      best[t] = select(here, select(above, best[t - 1], key), best[t]);
      at[t] = select(here, select(above, at[t - 1], place), at[t]);
    }
    const Mask first = key > best[0];
    best[0] = select(first, key, best[0]);
    at[0] = select(first, place, at[0]);
  }
  INFERNODE_UNROLL
  for (std::size_t t = 0; t < kBest; ++t) store(indices + t * kOrderColumns, at[t]);
}

template <std::size_t kBest>
void best_columns(const std::int32_t* keys, std::size_t n, std::size_t k, std::int32_t* indices) noexcept {
  if constexpr (kBest > 0) {
    if (k < kBest) return best_columns<kBest - 1>(keys, n, k, indices);
    for (std::size_t c = 0; c < kOrderColumns; c += kLanes) best_lanes<kBest>(keys + c, n, indices + c);
  }
}

}  // namespace
}  // namespace infernode::microkernels
