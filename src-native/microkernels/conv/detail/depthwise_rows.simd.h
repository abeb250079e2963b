#pragma once

#include "microkernels/common/simd_file.h"
#include "microkernels/conv/conv.h"

// Depthwise convolutions of 3x3 and 5x5 with stride 1: some rows of outputs are summed at once, as the rows of input
// that they share are then read once. Unaligned reads, not products, are what such a loop waits for.
namespace infernode::microkernels {
namespace {

// Writes n <= kLanes outputs; `residual` may be null.
INFERNODE_SIMD void finish_outputs(VecF sum, std::size_t n, VecF low, VecF high, const float* residual, float* out) {
  if (residual) sum = sum + load_partial(residual, n);
  sum = clamp(sum, low, high);
  if (n == kLanes) {
    store(out, sum);
  } else {
    store_partial(out, sum, n);
  }
}

struct DepthwisePlane {
  const float* data;  // zero-padded rows, `pitch` apart, with kLanes floats to spare behind the last
  std::size_t pitch;
  const float* weight;
  VecF bias, low, high;
  const float* residual;
  float* out;
  std::size_t out_h, out_w;
};

constexpr std::size_t kRowsAtOnce = 7;

// Output rows [h, h + kRows).
template <std::size_t kKernel, std::size_t kRows>
void depthwise_rows(const DepthwisePlane& p, std::size_t h) noexcept {
  VecF weight[kKernel * kKernel];
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < kKernel * kKernel; ++i) weight[i] = set(p.weight[i]);
  for (std::size_t at = 0; at < p.out_w; at += kLanes) {
    VecF sum[kRows];
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) sum[r] = p.bias;
    INFERNODE_UNROLL
    for (std::size_t y = 0; y < kRows + kKernel - 1; ++y) {
      const float* row = p.data + (h + y) * p.pitch + at;
      INFERNODE_UNROLL
      for (std::size_t j = 0; j < kKernel; ++j) {
        const VecF x = load(row + j);
        INFERNODE_UNROLL
        for (std::size_t i = 0; i < kKernel; ++i) {
          if (y >= i && y - i < kRows) sum[y - i] = fma(x, weight[i * kKernel + j], sum[y - i]);
        }
      }
    }
    const std::size_t n = smaller(kLanes, p.out_w - at);
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::size_t to = (h + r) * p.out_w + at;
      finish_outputs(sum[r], n, p.low, p.high, p.residual ? p.residual + to : nullptr, p.out + to);
    }
  }
}

template <std::size_t kKernel, std::size_t kRows>
void depthwise_some_rows(const DepthwisePlane& p, std::size_t h, std::size_t rows) noexcept {
  if constexpr (kRows > 1) {
    if (rows < kRows) return depthwise_some_rows<kKernel, kRows - 1>(p, h, rows);
  }
  depthwise_rows<kKernel, kRows>(p, h);
}

template <std::size_t kKernel>
void depthwise_all_rows(const DepthwisePlane& p) noexcept {
  const std::size_t groups = divide_up(p.out_h, kRowsAtOnce);
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t from = g * p.out_h / groups, to = (g + 1) * p.out_h / groups;
    depthwise_some_rows<kKernel, kRowsAtOnce>(p, from, to - from);
  }
}

using DepthwiseRows = void (*)(const DepthwisePlane&) noexcept;
// Null where the shape is of another kind.
DepthwiseRows depthwise_rows_of(const ConvShape& s) noexcept {
  if (s.stride_h != 1 || s.stride_w != 1 || s.dilation_h != 1 || s.dilation_w != 1 || s.kernel_h != s.kernel_w)
    return nullptr;
  return s.kernel_h == 3 ? depthwise_all_rows<3> : s.kernel_h == 5 ? depthwise_all_rows<5> : nullptr;
}

}  // namespace
}  // namespace infernode::microkernels
