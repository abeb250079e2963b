#pragma once

// Included by blocked.amx.cpp only: the operands that come of weights.

#include "microkernels/blocked/detail/amx_plan.h"
#include "microkernels/common/bf16_pairs.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kSplitWeightBytes = 1 << 20;  // weights up to this size are split when they are packed

// ---- Weights: for each panel, step and block of its channels the pieces, a tile each ----

template <int kPieces>
struct WeightLayout {
  WeightLayout(const ConvShape& s, bool planar) noexcept
      : panel_bytes(2 * Steps(s, planar).count * kPieces * kTileBytes),
        plain_bytes(divide_up(kPieces > 1 ? blocked_conv_table_avx512.weights.bytes(s)
                              : planar    ? blocked_conv_table_bf16_medium.plane_weights.bytes(s)
                                          : 0,
                              kMarkBytes) *
                    kMarkBytes),
        split(kPieces == 1 || planar || plain_bytes <= kSplitWeightBytes),
        bytes(plain_bytes + kMarkBytes) {
    if (split && (!planar || packs_planes(s))) bytes += channel_blocks(s.out_channels) * (panel_bytes / 2);
  }
  // Behind the weights of the vector loops: whether all could be split, and the tiles.
  std::uint8_t* mark(void* weights) const noexcept { return static_cast<std::uint8_t*>(weights) + plain_bytes; }
  std::uint8_t* tiles(void* weights, std::size_t panel) const noexcept {
    return mark(weights) + kMarkBytes + panel * panel_bytes;
  }
  bool splits(const void* weights) const noexcept { return *mark(const_cast<void*>(weights)) != 0; }
  const std::uint8_t* tiles(const void* weights, std::size_t panel) const noexcept {
    return tiles(const_cast<void*>(weights), panel);
  }

  static constexpr std::size_t kMarkBytes = 64;
  std::size_t panel_bytes, plain_bytes;
  bool split;
  std::size_t bytes;
};

// Splits steps of a panel's weights, which lie as the AVX-512 loops read them, some words of all columns at a time. A
// word holds a channel of the one block and that of the other.
template <int kPieces>
class WeightSplit {
 public:
  WeightSplit() = default;
  WeightSplit(const ConvShape& s, const float* weight, std::size_t panel, std::size_t step, std::size_t count,
              std::uint8_t* out) noexcept
      : from_(weight + panel * kPanelColumns * s.depth()),
        out_(out),
        channels_(s.in_channels),
        points_(s.kernel_points()),
        blocks_(smaller(channel_blocks(s.out_channels) - panel * kPanelTiles, kPanelTiles)),
        pair_(step / points_),
        point_(step % points_),
        left_(count * kChannelBlock) {
    enter();
  }

  std::size_t left() const noexcept { return left_; }
  bool splits() const noexcept { return watch_.splits(); }

  // Splits `count` more words, or all that are left.
  void advance(std::size_t count) noexcept {
    for (count = smaller(count, left_), left_ -= count; count > 0; --count) {
      const std::size_t columns = blocks_ * kChannelBlock;
      INFERNODE_UNROLL
      for (std::size_t block = 0; block < kPanelTiles; ++block) {
        if (block >= blocks_) break;
        const float *even = even_ + row_ * columns + block * 16, *odd = odd_ + row_ * columns + block * 16;
        const __m512 x = row_ < even_rows_ ? _mm512_loadu_ps(even) : _mm512_setzero_ps(),
                     y = row_ < odd_rows_ ? _mm512_loadu_ps(odd) : _mm512_setzero_ps();
        _mm_prefetch(reinterpret_cast<const char*>(even) + kAhead, _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(odd) + kAhead, _MM_HINT_T0);
        watch_.see(_mm512_castps_si512(x));
        watch_.see(_mm512_castps_si512(y));
        split_pair<kPieces>(x, y, out_ + block * kPieces * kTileBytes + row_ * 64);
      }
      if (++row_ < kChannelBlock) continue;
      row_ = 0;
      out_ += blocks_ * kPieces * kTileBytes;
      if (++point_ == points_) {
        point_ = 0;
        ++pair_;
      }
      enter();
    }
  }

 private:
  static constexpr std::size_t kAhead = 4096;  // bytes: weights come from memory

  void enter() noexcept {
    const std::size_t columns = blocks_ * kChannelBlock;
    even_rows_ = channels_of(2 * pair_);
    odd_rows_ = channels_of(2 * pair_ + 1);
    even_ = from_ + (2 * pair_ * kChannelBlock * points_ + point_ * even_rows_) * columns;
    odd_ = from_ + ((2 * pair_ + 1) * kChannelBlock * points_ + point_ * odd_rows_) * columns;
  }
  std::size_t channels_of(std::size_t block) const noexcept {
    const std::size_t first = block * kChannelBlock;
    return first >= channels_ ? 0 : smaller(channels_ - first, kChannelBlock);
  }

  const float *from_ = nullptr, *even_ = nullptr, *odd_ = nullptr;  // the panel; a step's rows
  std::uint8_t* out_ = nullptr;
  std::size_t channels_ = 0, points_ = 1, blocks_ = 0, pair_ = 0, point_ = 0, left_ = 0;
  std::size_t row_ = 0, even_rows_ = 0, odd_rows_ = 0;
  RangeWatch watch_;
};

template <int kPieces, bool kPlanar>
PackedForm packed_form(const ConvShape&) noexcept {
  return kPieces > 1 ? PackedForm::kMarkedFloats : kPlanar ? PackedForm::kBf16Pairs : PackedForm::kBf16Pieces;
}
template <int kPieces, bool kPlanar>
std::size_t packed_bytes(const ConvShape& s) noexcept {
  return WeightLayout<kPieces>(s, kPlanar).bytes;
}

// Calls fill(panel's block, step, row of words, even weights, odd weights) for all tiles' rows, in the order in which
// they lie; weight_of(channel, step, k) of a step's 32.
template <typename WeightOf, typename Fill>
void for_each_row(const ConvShape& s, std::size_t steps, WeightOf weight_of, Fill fill) noexcept {
  const std::size_t all = channel_blocks(s.out_channels) * kChannelBlock;
  for (std::size_t n0 = 0; n0 < all; n0 += kPanelColumns) {
    for (std::size_t step = 0; step < steps; ++step) {
      for (std::size_t n = n0; n < smaller(n0 + kPanelColumns, all); n += kChannelBlock) {
        for (std::size_t row = 0; row < 16; ++row) {
          alignas(64) float even[16] = {}, odd[16] = {};
          for (std::size_t i = 0; i < 16 && n + i < s.out_channels; ++i) {
            even[i] = weight_of(n + i, step, 2 * row);
            odd[i] = weight_of(n + i, step, 2 * row + 1);
          }
          fill(row, _mm512_load_ps(even), _mm512_load_ps(odd));
        }
      }
    }
  }
}

// Of tiles whose words hold two channels that follow each other, as places of one piece or of planes do.
template <int kPieces>
bool pack_tiles(const ConvShape& s, bool planar, const float* weight, std::uint8_t* out) noexcept {
  const Steps steps(s, planar);
  const auto weight_of = [&](std::size_t n, std::size_t step, std::size_t k) {
    const std::size_t point = step % steps.points, kh = point / steps.columns;
    std::size_t c = step / steps.points * kTileDepth + k, kw = point % steps.columns;
    if (planar) {
      kw = kw * steps.width + k / (steps.place_bytes / 2);
      c = k % (steps.place_bytes / 2);
    }
    return c < s.in_channels && kw < s.kernel_w ? weight[((n * s.in_channels + c) * s.kernel_h + kh) * s.kernel_w + kw]
                                                : 0.0f;
  };
  RangeWatch watch;
  for_each_row(s, steps.count, weight_of, [&](std::size_t row, __m512 even, __m512 odd) {
    if constexpr (kPieces == 1) {
      _mm512_storeu_si512(out + row * 64, round_pairs(even, odd));
    } else {
      watch.see(_mm512_castps_si512(even));
      watch.see(_mm512_castps_si512(odd));
      split_pair<kPieces>(even, odd, out + row * 64);
    }
    if (row == 15) out += kPieces * kTileBytes;
  });
  return watch.splits();
}

template <int kPieces, bool kPlanar>
void pack(const ConvShape& s, const float* weight, void* out) noexcept {
  const WeightLayout<kPieces> layout(s, kPlanar);
  if constexpr (kPieces > 1) {
    (kPlanar ? blocked_conv_table_avx512.plane_weights : blocked_conv_table_avx512.weights).pack(s, weight, out);
  } else if constexpr (kPlanar) {
    blocked_conv_table_bf16_medium.plane_weights.pack(s, weight, out);
  }
  bool splits = true;
  if constexpr (kPieces == 1 || kPlanar) {
    if (!kPlanar || packs_planes(s)) splits = pack_tiles<kPieces>(s, kPlanar, weight, layout.tiles(out, 0));
    *layout.mark(out) = splits ? 1 : 0;
    return;
  }
  const auto* const plain = static_cast<const float*>(out);
  const std::size_t steps = Steps(s, kPlanar).count;
  alignas(64) std::uint8_t step_tiles[kPanelTiles * kPieces * kTileBytes];
  for (std::size_t panel = 0; panel * kPanelTiles < channel_blocks(s.out_channels); ++panel) {
    if (layout.split) {
      WeightSplit<kPieces> split(s, plain, panel, 0, steps, layout.tiles(out, panel));
      split.advance(split.left());
      splits = splits && split.splits();
      continue;
    }
    for (std::size_t step = 0; step < steps; ++step) {
      WeightSplit<kPieces> split(s, plain, panel, step, 1, step_tiles);
      split.advance(split.left());
      splits = splits && split.splits();
    }
  }
  *layout.mark(out) = splits ? 1 : 0;
}

}  // namespace
}  // namespace infernode::microkernels
