#pragma once

// Included by conv.amx.cpp only: the operands that come of weights.

#include "microkernels/common/amx_tiles.h"
#include "microkernels/conv/conv.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kBlockChannels = kTileDepth;

bool suits(std::size_t out_channels, std::size_t in_channels) noexcept {
  return out_channels >= 2 * kTileRows && in_channels >= 24;
}

// ---- Weights: whether each 16 channels could be split, then their tiles: blocks of input channels, kernel points.
// Those that could not be split stay float32, in the order of the definition. ----

struct WeightLayout {
  WeightLayout(std::size_t out_channels, std::size_t in_channels, std::size_t points) noexcept
      : points(points),
        depth(in_channels * points),
        tiles(divide_up(out_channels, kTileRows)),
        tile_bytes(divide_up(in_channels, kBlockChannels) * points * 3 * kTileBytes),
        header_bytes(divide_up(tiles, std::size_t{64}) * 64),
        bytes(header_bytes + tiles * tile_bytes) {}

  const std::uint8_t* at(const void* weight, std::size_t m) const noexcept {
    return static_cast<const std::uint8_t*>(weight) + header_bytes + m / kTileRows * tile_bytes;
  }
  bool splits(const void* weight, std::size_t m) const noexcept {
    return static_cast<const std::uint8_t*>(weight)[m / kTileRows] != 0;
  }
  // The weight of channel m at index k of the definition.
  float value(const void* weight, std::size_t m, std::size_t k) const noexcept {
    const std::uint8_t* tile = at(weight, m);
    if (!splits(weight, m)) return reinterpret_cast<const float*>(tile)[m % kTileRows * depth + k];
    const std::size_t channel = k / points;
    tile += (channel / kBlockChannels * points + k % points) * 3 * kTileBytes + m % kTileRows * 64 +
            channel % kBlockChannels * 2;
    float sum = 0;
    for (std::size_t piece = 3; piece-- > 0;) {
      const std::uint32_t bits =
          static_cast<std::uint32_t>(*reinterpret_cast<const std::uint16_t*>(tile + piece * kTileBytes)) << 16;
      sum += __builtin_bit_cast(float, bits);
    }
    return sum;
  }

  std::size_t points, depth, tiles, tile_bytes, header_bytes, bytes;
};

PackedForm packed_form(const ConvShape& s) noexcept {
  return suits(s.out_channels, s.in_channels) ? PackedForm::kBf16Pieces : PackedForm::kFloats;
}

std::size_t packed_bytes(const ConvShape& s) noexcept {
  if (!suits(s.out_channels, s.in_channels)) return conv_table_avx512.weights.bytes(s);
  return WeightLayout(s.out_channels, s.in_channels, s.kernel_points()).bytes;
}

void pack(const ConvShape& s, const float* weight, void* out) noexcept {
  const std::size_t out_channels = s.out_channels, in_channels = s.in_channels, points = s.kernel_points();
  if (!suits(out_channels, in_channels)) return conv_table_avx512.weights.pack(s, weight, out);
  const WeightLayout layout(out_channels, in_channels, points);
  for (std::size_t m = 0; m < out_channels; m += kTileRows) {
    const std::size_t rows = smaller(kTileRows, out_channels - m);
    const float* from = weight + m * layout.depth;
    auto* const tiles = const_cast<std::uint8_t*>(layout.at(out, m));
    std::uint8_t* to = tiles;
    bool splits = true;
    for (std::size_t c0 = 0; c0 < in_channels; c0 += kBlockChannels) {
      const std::size_t channels = smaller(kBlockChannels, in_channels - c0);
      for (std::size_t point = 0; point < points; ++point, to += 3 * kTileBytes) {
        float tile[kTileRows][kBlockChannels];
        for (std::size_t r = 0; r < kTileRows; ++r) {
          for (std::size_t c = 0; c < kBlockChannels; ++c)
            tile[r][c % 2 * 16 + c / 2] =  // channels that images pair
                r < rows && c < channels ? from[r * layout.depth + (c0 + c) * points + point] : 0.0f;
        }
        if (!split_rows<3>(tile[0], kBlockChannels, kTileRows, kBlockChannels, to)) splits = false;
      }
    }
    static_cast<std::uint8_t*>(out)[m / kTileRows] = splits ? 1 : 0;
    if (splits) continue;
    auto* plain = reinterpret_cast<float*>(tiles);
    for (std::size_t i = 0; i < kTileRows * layout.depth; ++i) plain[i] = i < rows * layout.depth ? from[i] : 0.0f;
  }
}

}  // namespace
}  // namespace infernode::microkernels
