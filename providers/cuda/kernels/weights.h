#pragma once

#include "providers/cuda/kernels/launch.h"
#include "providers/cuda/kernels/params/pack.h"

namespace infernode::cuda {

/// What float32 products keep: all of float32 (three bfloat16 pieces), two pieces, or TF32.
enum class Precision : std::uint32_t { highest, high, medium };

/// How the second operand of a product lies in device memory: [rows][taps][channels], each row padded with zeros.
struct WeightLayout {
  Element type = Element::f16;  ///< bfloat16 where pieces > 1
  int pieces = 1;               ///< planes of bfloat16 whose sum is the float32 weight
  std::int64_t rows = 0, taps = 1, channels = 0;
  std::int64_t channels_padded = 0;  ///< of one tap
  std::int64_t row = 0, plane = 0;   ///< elements between rows, between pieces
  std::size_t bytes = 0;
};

/// The layout that the kernels of `target` want; `type` is that of the first operand. A matrix has one tap.
/// `groups` counts those of a convolution: rows are all output channels, channels those of a group.
WeightLayout weight_layout(const Target& target, Element type, Precision precision, std::int64_t rows,
                           std::int64_t taps, std::int64_t channels, std::int64_t groups = 1);

/// Where weights come from: element (row, tap, channel) at the sum of its strides.
struct WeightSource {
  DevicePtr address = 0;
  Element type = Element::f32;
  std::int64_t row_stride = 0, tap_stride = 0, channel_stride = 1;
};

/// Converts and pads weights once. `out` is a multiple of 256 bytes.
std::vector<Launch> plan_pack_weight(const WeightLayout& layout, const WeightSource& source, DevicePtr out);

}  // namespace infernode::cuda
