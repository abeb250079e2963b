#pragma once

// Included by *.bf16.cpp only: what the loops over blocks of bfloat16 numbers have in common.

#include "microkernels/blocked/blocked.h"
#include "microkernels/common/quick_activations.h"

namespace infernode::microkernels {

struct BlockedDepthwiseTable {
  void (*conv)(const BlockedConvArgs& args, std::size_t begin, std::size_t end) noexcept;
};

namespace {

// Applies the activation to kRows vectors.
template <std::size_t kRows>
INFERNODE_SIMD void activate_tile(const ActivationArgs& activation, VecF* x) {
  if (is_quick(activation)) return activate_quickly<kRows>(activation, x);
  alignas(64) float rows[kRows * kLanes];
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) store(rows + r * kLanes, x[r]);
  activate_row(activation, rows, kRows * kLanes);
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) x[r] = load(rows + r * kLanes);
}

}  // namespace
}  // namespace infernode::microkernels
