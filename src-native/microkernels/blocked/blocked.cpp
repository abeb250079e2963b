#include "microkernels/blocked/blocked.h"

namespace infernode::microkernels {

namespace {

PackedForm packed_form(const ConvShape&) noexcept { return PackedForm::kFloats; }

std::size_t packed_bytes(const ConvShape& s) noexcept {
  return channel_blocks(s.out_channels) * kChannelBlock * s.kernel_points() * sizeof(float);
}

void pack(const ConvShape& s, const float* weight, void* to) noexcept {
  const std::size_t points = s.kernel_points(), all = channel_blocks(s.out_channels) * kChannelBlock;
  auto* const out = static_cast<float*>(to);
  for (std::size_t c = 0; c < all; ++c) {
    for (std::size_t i = 0; i < points; ++i) {
      out[(c / kChannelBlock * points + i) * kChannelBlock + c % kChannelBlock] =
          c < s.out_channels ? weight[c * points + i] : 0.0f;
    }
  }
}

constexpr ConvPacking kDepthwise{"blocked.depthwise", packed_form, packed_bytes, pack};

}  // namespace

const ConvPacking& depthwise_packing() noexcept { return kDepthwise; }

}  // namespace infernode::microkernels
