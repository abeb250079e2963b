#pragma once

#include "microkernels/common/simd_file.h"
#include "microkernels/conv/conv.h"

// Depthwise convolutions of square windows of 3 to 9 and strides of 1 and 2: some rows of outputs are summed at once,
// as the rows of input that they share are then read once. Unaligned reads, not products, are what such a loop waits
// for.
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
  std::size_t phase;  // floats between planes of a phase of the width; the height's are strides of them apart
  const float* weight;
  VecF bias, low, high;
  const float* residual;
  float* out;
  std::size_t out_h, out_w;
};

constexpr std::size_t kRowsAtOnce = 7, kFewRowsAtOnce = 4;

// Adds the taps (i, j) with i % kStride = kPhase.
template <std::size_t kKernel, std::size_t kStride, std::size_t kRows, std::size_t kPhase>
INFERNODE_SIMD void add_rows_of_phase(const DepthwisePlane& p, std::size_t h, std::size_t at,
                                      const VecF (&weight)[kKernel * kKernel], VecF (&sum)[kRows]) noexcept {
  INFERNODE_UNROLL
  for (std::size_t y = 0; y < kRows + (kKernel - 1 - kPhase) / kStride; ++y) {
    const float* row = p.data + kPhase * kStride * p.phase + (h + y) * p.pitch + at;
    INFERNODE_UNROLL
    for (std::size_t j = 0; j < kKernel; ++j) {
      const VecF x = load(row + j % kStride * p.phase + j / kStride);
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) {
        if (y >= r && kPhase + kStride * (y - r) < kKernel)
          sum[r] = fma(x, weight[(kPhase + kStride * (y - r)) * kKernel + j], sum[r]);
      }
    }
  }
}

// Output rows [h, h + kRows). Tap (i, j) reads phase (i % kStride, j % kStride) of the input.
template <std::size_t kKernel, std::size_t kStride, std::size_t kRows>
void depthwise_rows(const DepthwisePlane& p, std::size_t h) noexcept {
  VecF weight[kKernel * kKernel];
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < kKernel * kKernel; ++i) weight[i] = set(p.weight[i]);
  for (std::size_t at = 0; at < p.out_w; at += kLanes) {
    VecF sum[kRows];
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) sum[r] = p.bias;
    add_rows_of_phase<kKernel, kStride, kRows, 0>(p, h, at, weight, sum);
    if constexpr (kStride == 2) add_rows_of_phase<kKernel, kStride, kRows, 1>(p, h, at, weight, sum);
    static_assert(kStride <= 2);
    const std::size_t n = smaller(kLanes, p.out_w - at);
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::size_t to = (h + r) * p.out_w + at;
      finish_outputs(sum[r], n, p.low, p.high, p.residual ? p.residual + to : nullptr, p.out + to);
    }
  }
}

template <std::size_t kKernel, std::size_t kStride, std::size_t kRows>
void depthwise_some_rows(const DepthwisePlane& p, std::size_t h, std::size_t rows) noexcept {
  if constexpr (kRows > 1) {
    if (rows < kRows) return depthwise_some_rows<kKernel, kStride, kRows - 1>(p, h, rows);
  }
  depthwise_rows<kKernel, kStride, kRows>(p, h);
}

template <std::size_t kKernel, std::size_t kStride>
void depthwise_all_rows(const DepthwisePlane& p) noexcept {
  constexpr std::size_t kMost = kKernel <= 5 && kStride == 1 ? kRowsAtOnce : kFewRowsAtOnce;
  const std::size_t groups = divide_up(p.out_h, kMost);
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t from = g * p.out_h / groups, to = (g + 1) * p.out_h / groups;
    depthwise_some_rows<kKernel, kStride, kMost>(p, from, to - from);
  }
}

using DepthwiseRows = void (*)(const DepthwisePlane&) noexcept;
template <std::size_t kStride>
DepthwiseRows depthwise_rows_of(std::size_t kernel) noexcept {
  return kernel == 3   ? depthwise_all_rows<3, kStride>
         : kernel == 5 ? depthwise_all_rows<5, kStride>
         : kernel == 7 ? depthwise_all_rows<7, kStride>
         : kernel == 9 ? depthwise_all_rows<9, kStride>
                       : nullptr;
}
// Null where the shape is of another kind.
DepthwiseRows depthwise_rows_of(const ConvShape& s) noexcept {
  if (s.stride_h != s.stride_w || s.dilation_h != 1 || s.dilation_w != 1 || s.kernel_h != s.kernel_w) return nullptr;
  return s.stride_h == 1   ? depthwise_rows_of<1>(s.kernel_h)
         : s.stride_h == 2 ? depthwise_rows_of<2>(s.kernel_h)
                           : nullptr;
}

}  // namespace
}  // namespace infernode::microkernels
