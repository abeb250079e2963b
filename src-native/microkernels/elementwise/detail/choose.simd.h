#pragma once

#include "microkernels/common/simd_file.h"
#include "microkernels/elementwise/elementwise.h"

// Comparisons, and choices by what they said.
namespace infernode::microkernels {
namespace {

template <Relation kRelation>
INFERNODE_SIMD Mask related(VecF x, VecF y) {
  if constexpr (kRelation == Relation::kEqual) return x == y;
  if constexpr (kRelation == Relation::kLess) return x < y;
  return x <= y;
}

// step(first) for kLanes elements each, all n of them; the last steps may overlap. Fewer are one(i)'s.
template <typename Step, typename One>
INFERNODE_SIMD void step_lanes(std::size_t n, Step step, One one) {
  if (n < kLanes) {
    for (std::size_t i = 0; i < n; ++i) one(i);
    return;
  }
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) step(i);
  if (i < n) step(n - kLanes);
}

template <Relation kRelation, bool kStillX, bool kStillY>
void compare_sides(const float* x, const float* y, std::uint8_t* out, std::size_t n) noexcept {
  const VecF first_x = set(*x), first_y = set(*y);
  const VecI yes = set(1), no = set(0);
  step_lanes(
      n,
      [&](std::size_t i) {
        const VecF a = kStillX ? first_x : load(x + i), b = kStillY ? first_y : load(y + i);
        store_u8(out + i, select(related<kRelation>(a, b), yes, no));
      },
      [&](std::size_t i) {
        const float a = x[kStillX ? 0 : i], b = y[kStillY ? 0 : i];
        const bool holds = kRelation == Relation::kEqual ? a == b : kRelation == Relation::kLess ? a < b : a <= b;
        out[i] = holds ? 1 : 0;
      });
}

template <Relation kRelation>
void compare(const float* x, bool still_x, const float* y, bool still_y, std::uint8_t* out, std::size_t n) noexcept {
  if (n == 0) return;
  if (still_x) {
    (still_y ? compare_sides<kRelation, true, true> : compare_sides<kRelation, true, false>)(x, y, out, n);
  } else {
    (still_y ? compare_sides<kRelation, false, true> : compare_sides<kRelation, false, false>)(x, y, out, n);
  }
}

// Both sides are read whatever the condition says: what decides by branches waits for one guess in two.
template <bool kStillX, bool kStillY, typename T>
void choose_sides(const std::uint8_t* __restrict c, const T* __restrict x, const T* __restrict y, T* __restrict out,
                  std::size_t n) noexcept {
  const T first_x = *x, first_y = *y;
  const auto one = [&](std::size_t i) {
    const T a = kStillX ? first_x : x[i], b = kStillY ? first_y : y[i];
    out[i] = c[i] != 0 ? a : b;
  };
  if constexpr (sizeof(T) == sizeof(std::int32_t)) {
    const VecI none = set(0), every_x = set(static_cast<std::int32_t>(first_x));
    const VecI every_y = set(static_cast<std::int32_t>(first_y));
    const auto words = [](const T* p) { return load(reinterpret_cast<const std::int32_t*>(p)); };
    step_lanes(
        n,
        [&](std::size_t i) {
          const VecI a = kStillX ? every_x : words(x + i), b = kStillY ? every_y : words(y + i);
          store(reinterpret_cast<std::int32_t*>(out + i), select(load_u8(c + i) == none, b, a));
        },
        one);
  } else {
    for (std::size_t i = 0; i < n; ++i) one(i);
  }
}

template <typename T>
void choose(const std::uint8_t* c, const T* x, bool still_x, const T* y, bool still_y, T* out, std::size_t n) noexcept {
  if (n == 0) return;
  if (still_x) {
    (still_y ? choose_sides<true, true, T> : choose_sides<true, false, T>)(c, x, y, out, n);
  } else {
    (still_y ? choose_sides<false, true, T> : choose_sides<false, false, T>)(c, x, y, out, n);
  }
}

}  // namespace
}  // namespace infernode::microkernels
