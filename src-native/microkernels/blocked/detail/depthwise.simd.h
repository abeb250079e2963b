#pragma once

#include <type_traits>

#include "microkernels/blocked/blocked.h"
#include "microkernels/blocked/detail/kernel_points.h"
#include "microkernels/common/activate.simd.h"
#include "microkernels/common/simd_file.h"

// Depthwise convolutions over channels in blocks, inside *.simd.cpp files. T is what blocks hold: float, or what the
// file that includes this has `load` and `put_outputs` for.
namespace infernode::microkernels {
namespace {

#if INFERNODE_SIMD_ID == 3 || INFERNODE_SIMD_ID == 4
constexpr std::size_t kOutputs =
    14;  // positions at once: what sums, a row of the kernel and an input leave registers for
#else
constexpr std::size_t kOutputs = 8;
#endif

// Some positions of a row, `step` floats apart; kernel rows [h0, h1) have input, and columns [w0, w1) from the first
// that the positions see. Columns are as far apart as positions, or places of the input where those are strided.
template <typename T>
struct Taps {
  const T* plane;
  std::size_t offset;  // of the first position and the kernel's first row and column, before the plane (wrapped) too
  std::size_t row_step, step;
  std::size_t h0, h1, w0, w1, kernel_w, stride, dilation;
  const float* weight;
  const float* bias;  // or null
  const T* residual;  // or null
  T* y;
  float low, high;
  const ActivationArgs* activation;  // null: the bounds are all of it
};

template <std::size_t kCount>
INFERNODE_SIMD void put_outputs(const Taps<float>& t, std::size_t lane, std::size_t step, const VecF* sum) {
  const VecF low = set(t.low), high = set(t.high);
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < kCount; ++i) {
    VecF value = sum[i];
    if (t.residual) value = value + load(t.residual + lane + i * step);
    store(t.y + lane + i * step, clamp(value, low, high));
  }
}

// kCount positions of a window of kKernel columns: each column of input is read once. A stride of 0 is that of
// positions that lie t.step apart.
template <typename T, std::size_t kKernel, std::size_t kStrideOf, std::size_t kCount>
void depthwise_outputs(const Taps<T>& t) noexcept {
  constexpr std::size_t kStride = kStrideOf == 0 ? 1 : kStrideOf;
  const std::size_t step = kStrideOf == 0 ? t.step : kChannelBlock;
  constexpr std::size_t kSeen = (kCount - 1) * kStride + kKernel;
  for (std::size_t lane = 0; lane < kChannelBlock; lane += kLanes) {
    VecF sum[kCount];
    const VecF bias = t.bias ? load(t.bias + lane) : zero();
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < kCount; ++i) sum[i] = bias;
    for (std::size_t h = t.h0; h < t.h1; ++h) {
      VecF tap[kKernel];
      INFERNODE_UNROLL
      for (std::size_t k = 0; k < kKernel; ++k) tap[k] = load(t.weight + (h * kKernel + k) * kChannelBlock + lane);
      const std::size_t row = t.offset + h * t.row_step + lane;
      INFERNODE_UNROLL
      for (std::size_t j = 0; j < kSeen; ++j) {
        if (j < t.w0 || j >= t.w1) continue;
        const VecF x = load(t.plane + (row + j * step));
        INFERNODE_UNROLL
        for (std::size_t k = 0; k < kKernel; ++k) {
          if (j >= k && (j - k) % kStride == 0 && (j - k) / kStride < kCount)
            sum[(j - k) / kStride] = fma(x, tap[k], sum[(j - k) / kStride]);
        }
      }
    }
    put_outputs<kCount>(t, lane, step, sum);
  }
}

template <typename T, std::size_t kKernel, std::size_t kStride, std::size_t kCount = kOutputs>
void depthwise_some(const Taps<T>& t, std::size_t count) noexcept {
  if constexpr (kCount > 1) {
    if (count < kCount) return depthwise_some<T, kKernel, kStride, kCount - 1>(t, count);
  }
  depthwise_outputs<T, kKernel, kStride, kCount>(t);
}

// kCount positions of any window.
template <typename T, std::size_t kCount>
void depthwise_any(const Taps<T>& t) noexcept {
  for (std::size_t lane = 0; lane < kChannelBlock; lane += kLanes) {
    VecF sum[kCount];
    const VecF bias = t.bias ? load(t.bias + lane) : zero();
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < kCount; ++i) sum[i] = bias;
    for (std::size_t h = t.h0; h < t.h1; ++h) {
      const std::size_t row = t.offset + h * t.row_step + lane;
      for (std::size_t k = 0; k < t.kernel_w; ++k) {
        const VecF tap = load(t.weight + (h * t.kernel_w + k) * kChannelBlock + lane);
        INFERNODE_UNROLL
        for (std::size_t i = 0; i < kCount; ++i) {
          const std::size_t j = i * t.stride + k * t.dilation;
          if (j >= t.w0 && j < t.w1) sum[i] = fma(load(t.plane + (row + j * kChannelBlock)), tap, sum[i]);
        }
      }
    }
    put_outputs<kCount>(t, lane, kChannelBlock, sum);
  }
}

template <typename T, std::size_t kCount = 8>
void depthwise_some_of_any(const Taps<T>& t, std::size_t count) noexcept {
  if constexpr (kCount > 1) {
    if (count < kCount) return depthwise_some_of_any<T, kCount - 1>(t, count);
  }
  depthwise_any<T, kCount>(t);
}

// How the outputs of a row are made, and how many at once. Rows fall into `parts`: positions that lie so far apart see
// the same columns of a dilated kernel, as neighbours do of another.
template <typename T>
struct DepthwiseWay {
  void (*some)(const Taps<T>& t, std::size_t count) noexcept;
  std::size_t most, parts;
  std::size_t tiles = 0;  // of a row that is one part
};
template <typename T, std::size_t kKernel>
DepthwiseWay<T> depthwise_way_of(const ConvShape& s) noexcept {
  constexpr std::size_t kApart = 8;  // outputs at once
  if (s.dilation_w > 1) return {depthwise_some<T, kKernel, 0, kApart>, kApart, s.dilation_w};
  if constexpr (kKernel <= 7)
    if (s.stride_w == 2) return {depthwise_some<T, kKernel, 2>, kOutputs, 1};
  return {depthwise_some<T, kKernel, 1>, kOutputs, 1};
}
template <typename T>
DepthwiseWay<T> depthwise_way(const ConvShape& s) noexcept {
  const bool any = s.stride_w > 2 || (s.stride_w == 2 && (s.dilation_w > 1 || s.kernel_w == 9));
  if (!any && s.kernel_w == 3) return depthwise_way_of<T, 3>(s);
  if (!any && s.kernel_w == 5) return depthwise_way_of<T, 5>(s);
  if (!any && s.kernel_w == 7) return depthwise_way_of<T, 7>(s);
  if (!any && s.kernel_w == 9) return depthwise_way_of<T, 9>(s);
  return {depthwise_some_of_any<T>, 8, 1};
}

// Row h of a block: its outputs from `output` on. Rows of one part are many and short: nothing is divided for them that
// need not be.
template <bool kParted, typename T>
void depthwise_row(const ConvShape& s, const DepthwiseWay<T>& way, Taps<T> t, std::size_t h, const T* residual,
                   T* output) noexcept {
  const Reach rows = reach(h, s.stride_h, s.kernel_h, s.dilation_h, s.pad_top, s.in_h);
  const std::ptrdiff_t top = static_cast<std::ptrdiff_t>(h * s.stride_h) - s.pad_top;
  t.h0 = rows.first;
  t.h1 = rows.end;
  const std::size_t parts = kParted ? way.parts : 1;
  const std::size_t kernel = (s.kernel_w - 1) * s.dilation_w / parts + 1;
  for (std::size_t part = 0; part < smaller(parts, s.out_w); ++part) {
    const std::size_t positions = divide_up(s.out_w - part, parts),
                      tiles = kParted ? divide_up(positions, way.most) : way.tiles;
    for (std::size_t i = 0; i < tiles; ++i) {
      const std::size_t first = i * positions / tiles, count = (i + 1) * positions / tiles - first,
                        w = part + first * parts;
      const Reach columns = reach(w, s.stride_w, (count - 1) * s.stride_w + kernel, parts, s.pad_left, s.in_w);
      t.w0 = columns.first;
      t.w1 = columns.end;
      const std::ptrdiff_t left = static_cast<std::ptrdiff_t>(w * s.stride_w) - s.pad_left;
      t.offset = static_cast<std::size_t>(top * static_cast<std::ptrdiff_t>(s.in_w) + left) * kChannelBlock;
      t.y = output + w * kChannelBlock;
      t.residual = residual ? residual + w * kChannelBlock : nullptr;
      way.some(t, count);
    }
  }
}

// Blocks [begin, end). Where T is float, the activation is applied to whole rows; other outputs get it before they are
// rounded.
template <typename T>
void depthwise_blocks(const BlockedConvArgs& args, const T* input, const T* residual, T* output, std::size_t begin,
                      std::size_t end) noexcept {
  const ConvShape& s = args.shape;
  const ClampBounds bounds = clamp_bounds(args.activation);
  const bool activates = !is_clamp(args.activation);
  DepthwiseWay<T> way = depthwise_way<T>(s);
  way.tiles = divide_up(s.out_w, way.most);
  Taps<T> t{};
  t.activation = activates ? &args.activation : nullptr;
  t.row_step = s.dilation_h * s.in_w * kChannelBlock;
  t.step = way.parts * kChannelBlock;
  t.stride = s.stride_w;
  t.dilation = s.dilation_w;
  t.kernel_w = s.kernel_w;
  t.low = bounds.low;
  t.high = bounds.high;
  for (std::size_t block = begin; block < end; ++block) {
    t.plane = input + block * s.in_h * s.in_w * kChannelBlock;
    t.weight = args.weights.floats() + block * s.kernel_points() * kChannelBlock;
    t.bias = args.bias ? args.bias + block * kChannelBlock : nullptr;
    for (std::size_t h = 0; h < s.out_h; ++h) {
      const std::size_t out = (block * s.positions() + h * s.out_w) * kChannelBlock;
      (way.parts > 1 ? depthwise_row<true, T>
                     : depthwise_row<false, T>)(s, way, t, h, residual ? residual + out : nullptr, output + out);
      if constexpr (std::is_same_v<T, float>) {
        if (activates) activate_row(args.activation, output + out, s.out_w * kChannelBlock);
      }
    }
  }
}

}  // namespace
}  // namespace infernode::microkernels
