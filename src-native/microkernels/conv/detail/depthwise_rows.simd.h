#pragma once

#include "microkernels/common/simd_file.h"
#include "microkernels/conv/conv.h"

// Depthwise convolutions of windows of 2 to 11 rows that move by 1 to 4 of them: some rows of outputs are summed at
// once, as the rows of input that they share are then read once. Unaligned reads, not products, are what such a loop
// waits for.
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

// With the weights of a column of the kernel and a row of input they fit the registers of every target.
constexpr std::size_t kRowsAtOnce = 7, kFewRowsAtOnce = 4;

// Rows of outputs, `out_step` floats apart. Row i of the kernel sees row i / stride of phase i % stride of the input's
// rows, counted from the output's own.
struct DepthwisePlane {
  const float* data;         // zero-padded rows of a phase, `pitch` apart, with kLanes floats to spare behind the last
  std::size_t pitch, phase;  // floats from a phase of the rows to the next
  const std::size_t* columns;  // floats from the first place to what each column of the kernel sees
  std::size_t column_count;
  const float* weight;
  VecF bias, low, high;
  const float* residual;
  float* out;
  std::size_t out_h, out_w, out_step;
};

// Adds what rows i of the kernel with i % kStride = kPhase see in one column.
template <std::size_t kKernel, std::size_t kStride, std::size_t kRows, std::size_t kPhase>
INFERNODE_SIMD void add_rows_of_phase(const float* column, std::size_t pitch, const VecF (&weight)[kKernel],
                                      VecF (&sum)[kRows]) noexcept {
  INFERNODE_UNROLL
  for (std::size_t y = 0; y < kRows + (kKernel - 1 - kPhase) / kStride; ++y) {
    const VecF x = in_register(load(column + y * pitch));
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      if (y >= r && kPhase + kStride * (y - r) < kKernel) sum[r] = fma(x, weight[kPhase + kStride * (y - r)], sum[r]);
    }
  }
}

// The same of phase kPhase and those behind it, `phase` floats apart.
template <std::size_t kKernel, std::size_t kStride, std::size_t kRows, std::size_t kPhase>
INFERNODE_SIMD void add_rows_from_phase(const float* column, std::size_t pitch, std::size_t phase,
                                        const VecF (&weight)[kKernel], VecF (&sum)[kRows]) noexcept {
  add_rows_of_phase<kKernel, kStride, kRows, kPhase>(column, pitch, weight, sum);
  if constexpr (kPhase + 1 < kStride)
    add_rows_from_phase<kKernel, kStride, kRows, kPhase + 1>(column + phase, pitch, phase, weight, sum);
}

// Output rows [h, h + kRows), by a column of the kernel after the other, so that its weights stay in registers.
template <std::size_t kKernel, std::size_t kStride, std::size_t kRows>
void depthwise_rows(const DepthwisePlane& p, std::size_t h) noexcept {
  static_assert(kStride <= kKernel);
  for (std::size_t at = 0; at < p.out_w; at += kLanes) {
    VecF sum[kRows];
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) sum[r] = p.bias;
    const float* const from = p.data + h * p.pitch + at;
    for (std::size_t j = 0; j < p.column_count; ++j) {
      VecF weight[kKernel];
      INFERNODE_UNROLL
      for (std::size_t i = 0; i < kKernel; ++i) weight[i] = set(p.weight[i * p.column_count + j]);
      add_rows_from_phase<kKernel, kStride, kRows, 0>(from + p.columns[j], p.pitch, p.phase, weight, sum);
    }
    const std::size_t n = smaller(kLanes, p.out_w - at);
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::size_t to = (h + r) * p.out_step + at;
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
  constexpr std::size_t kMost = kKernel <= 7 ? kRowsAtOnce : kFewRowsAtOnce;
  const std::size_t groups = divide_up(p.out_h, kMost);
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t from = g * p.out_h / groups, to = (g + 1) * p.out_h / groups;
    depthwise_some_rows<kKernel, kStride, kMost>(p, from, to - from);
  }
}

using DepthwiseRows = void (*)(const DepthwisePlane&) noexcept;
template <std::size_t kKernel, std::size_t kStride>
constexpr DepthwiseRows depthwise_rows_or_null() noexcept {
  if constexpr (has_row_loops(kKernel, kStride)) return depthwise_all_rows<kKernel, kStride>;
  return nullptr;
}
template <std::size_t kStride>
DepthwiseRows depthwise_rows_of(std::size_t kernel) noexcept {
  switch (kernel) {
    case 2:
      return depthwise_rows_or_null<2, kStride>();
    case 3:
      return depthwise_rows_or_null<3, kStride>();
    case 4:
      return depthwise_rows_or_null<4, kStride>();
    case 5:
      return depthwise_rows_or_null<5, kStride>();
    case 7:
      return depthwise_rows_or_null<7, kStride>();
    case 9:
      return depthwise_rows_or_null<9, kStride>();
    case 11:
      return depthwise_rows_or_null<11, kStride>();
    default:
      return nullptr;
  }
}
// Null where the shape is of another kind.
DepthwiseRows depthwise_rows_of(const ConvShape& s) noexcept {
  if (!has_row_loops(s)) return nullptr;
  return s.stride_h == 1   ? depthwise_rows_of<1>(s.kernel_h)
         : s.stride_h == 2 ? depthwise_rows_of<2>(s.kernel_h)
         : s.stride_h == 3 ? depthwise_rows_of<3>(s.kernel_h)
                           : depthwise_rows_of<4>(s.kernel_h);
}

}  // namespace
}  // namespace infernode::microkernels
