#pragma once

#include "microkernels/common/simd_file.h"

// Rows that strided windows pass over, parted in registers: each part is what every so many columns of a window see.
namespace infernode::microkernels {
namespace {

template <std::size_t kParts>
INFERNODE_SIMD void part(VecF (&v)[kParts]) {
  if constexpr (kParts == 2) part2(v);
  if constexpr (kParts == 3) part3(v);
  if constexpr (kParts == 4) part4(v);
}

template <bool kInside>
INFERNODE_SIMD VecF load_part(const float* x, const Mask& inside) {
  return in_register(kInside ? load(x) : load_where(x, inside));
}

// Rows of an input. Column i * stride + p - pad of each goes to place i of phase p, zero where there is none.
struct PhaseRows {
  const float* row;  // the first of them
  std::size_t width, step, count;
  std::ptrdiff_t pad;
  float* out;
  std::size_t pitch;         // places of a row
  std::size_t phase_floats;  // from a phase to the next
};

// Whether a kernel's columns see all phases of the input's in turn, so many that they are parted at once.
constexpr bool sees_phase_rows(std::size_t kernel, std::size_t stride, std::size_t dilation) noexcept {
  return stride >= 2 && stride <= 4 && kernel >= stride && dilation == 1;
}

// Places [at, at + places) of all rows, kLanes at most.
template <std::size_t kStride, bool kInside>
INFERNODE_SIMD void part_places(const PhaseRows& p, std::size_t at, std::size_t places, const Mask (&inside)[kStride]) {
  const float* from = p.row + (static_cast<std::ptrdiff_t>(at * kStride) - p.pad);
  float* to = p.out + at;
  for (std::size_t r = 0; r < p.count; ++r, from += p.step, to += p.pitch) {
    VecF v[kStride];
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < kStride; ++i) v[i] = load_part<kInside>(from + i * kLanes, inside[i]);
    part(v);
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < kStride; ++i) {
      if constexpr (kInside) {
        store(to + i * p.phase_floats, v[i]);
      } else {
        store_partial(to + i * p.phase_floats, v[i], places);
      }
    }
  }
}

template <std::size_t kStride>
[[gnu::noinline]] void part_rows(const PhaseRows& p) noexcept {
  for (std::size_t at = 0; at < p.pitch; at += kLanes) {
    const std::size_t places = smaller(kLanes, p.pitch - at);
    const auto column = static_cast<std::ptrdiff_t>(at * kStride) - p.pad,
               left = static_cast<std::ptrdiff_t>(p.width) - column;
    Mask inside[kStride] = {};
    if (column >= 0 && left >= static_cast<std::ptrdiff_t>(kStride * kLanes) && places == kLanes) {
      part_places<kStride, true>(p, at, places, inside);
      continue;
    }
    for (std::size_t i = 0; i < kStride; ++i) {
      const auto first = static_cast<std::ptrdiff_t>(i * kLanes);
      inside[i] = lanes_between(-column - first, left - first);
    }
    part_places<kStride, false>(p, at, places, inside);
  }
}
[[maybe_unused]] void part_rows(const PhaseRows& p, std::size_t stride) noexcept {
  if (stride == 2) part_rows<2>(p);
  if (stride == 3) part_rows<3>(p);
  if (stride == 4) part_rows<4>(p);
}

}  // namespace
}  // namespace infernode::microkernels
