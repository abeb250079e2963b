#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernel/kernel.h"
#include "microkernels/convert/convert.h"

namespace infernode::ops {

/// Scale and zero point with which uint8 holds [low, high] and 0, as DynamicQuantizeLinear defines them. A range that
/// is not finite keeps the zero point at 0.
struct DynamicScale {
  float scale = 1;
  std::int32_t zero = 0;
  DynamicScale(float low, float high) {
    low = std::min(low, 0.0f);
    high = std::max(high, 0.0f);
    if (low < high) scale = (high - low) / 255.0f;
    const float at = std::nearbyint(-low / scale);
    if (at == at) zero = static_cast<std::int32_t>(std::clamp(at, 0.0f, 255.0f));
  }
};

/// The scale of n numbers.
DynamicScale dynamic_scale(const kernel::KernelContext& ctx, const microkernels::ConvertTable& table, const float* x,
                           std::size_t n);
/// Codes of n numbers.
void quantize_dynamically(const kernel::KernelContext& ctx, const microkernels::ConvertTable& table, const float* x,
                          std::size_t n, const DynamicScale& scale, std::uint8_t* out);

}  // namespace infernode::ops
