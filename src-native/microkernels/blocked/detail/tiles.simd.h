#pragma once

#include "microkernels/blocked/blocked.h"
#include "microkernels/blocked/detail/kernel_points.h"
#include "microkernels/common/activate.simd.h"
#include "microkernels/common/register_tile.simd.h"
#include "microkernels/common/simd_file.h"

// Register tiles of the loops over blocks of channels.
namespace infernode::microkernels {
namespace {

constexpr std::size_t kLine = 16;  // floats that are fetched at a time

// Some positions of a row, or of some rows that lie below each other, by a panel of channels. The input is read in
// runs: for each block of channels and each row and column of the kernel, `length` consecutive floats from the
// position's place on. Rows and columns of which no position sees any input are left out.
struct Tile {
  const float* x;                                    // of the first row and column
  std::size_t step, line_step;                       // floats between positions, and between rows of them
  std::size_t blocks, block_step, group;             // blocks are summed up in groups, and these then
  std::size_t rows, row_step, columns, column_step;  // of the kernel
  KernelBlock block, last;                           // each block but the last, the last
  const float* weight;
  const float* bias;      // of the panel's channels, or null
  const float* residual;  // like y, or null
  float* y;               // the first position's first channel, in its block
  std::size_t plane;      // floats between the output's blocks
  std::size_t line;       // and between rows of positions
  std::size_t blank;      // floats of a position's block behind the panel's, which become what activation makes of 0
  float low, high;
  const ActivationArgs* activation;  // null: `low` and `high` are the whole activation
  bool adds;                         // to what y holds: sums of blocks that came before
  // How far from a position's place each number of its whole window lies, in the order of the weights; null: not
  // listed.
  const std::uint32_t *places, *places_end;
  // What later tiles read, fetched while this one computes: lines from `ahead` on with each block, and the input of
  // the next tile of its row.
  const float* ahead;
  std::size_t ahead_lines;
  bool ahead_rows;
};

// What follows the sums of a tile: earlier sums, bias, residual, activation.
template <std::size_t kRows, std::size_t kVectors, std::size_t kLines>
INFERNODE_SIMD void finish_tile(const Tile& t, const VecF (&sum)[kRows][kVectors]) noexcept {
  const VecF low = set(t.low), high = set(t.high);
  constexpr std::size_t kOfLine = kRows / kLines;
  const std::size_t line = kLines > 1 ? t.line : 0;
  INFERNODE_UNROLL
  for (std::size_t v = 0; v < kVectors; ++v) {
    const std::size_t place = v * kLanes / kChannelBlock * t.plane + v * kLanes % kChannelBlock;
    const VecF bias = t.bias ? load(t.bias + v * kLanes) : zero();
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::size_t at = place + r / kOfLine * line + r % kOfLine * kChannelBlock;
      VecF value = t.adds ? load(t.y + at) + sum[r][v] : sum[r][v];
      value = value + bias;
      if (t.residual) value = value + load(t.residual + at);
      store(t.y + at, clamp(value, low, high));
    }
  }
  if constexpr (kVectors * kLanes % kChannelBlock != 0) {
    constexpr std::size_t kAt = kVectors * kLanes % kChannelBlock;
    float* const behind = t.y + kVectors * kLanes / kChannelBlock * t.plane + kAt;
    for (std::size_t r = 0; t.blank > 0 && r < kRows; ++r) {
      float* const at = behind + r / kOfLine * line + r % kOfLine * kChannelBlock;
      for (std::size_t i = 0; i < t.blank; i += kLanes) store(at + i, clamp(zero(), low, high));
    }
  }
  if (!t.activation) return;
  for (std::size_t l = 0; l < kLines; ++l) {
    float* const y = t.y + l * line;
    if constexpr (kNr % kChannelBlock == 0) {
      constexpr std::size_t kBlocks = (kVectors * kLanes + kChannelBlock - 1) / kChannelBlock;
      for (std::size_t i = 0; i < kBlocks; ++i) activate_row(*t.activation, y + i * t.plane, kOfLine * kChannelBlock);
    } else {
      for (std::size_t r = 0; r < kOfLine; ++r) activate_row(*t.activation, y + r * kChannelBlock, kVectors * kLanes);
    }
  }
}

// Adds what positions see at `x`, by the weights of the panel's channels.
template <std::size_t kRows, std::size_t kVectors, std::size_t kLines = 1>
INFERNODE_SIMD void add_products(const float* x, std::size_t line_step, std::size_t step, const float* w,
                                 VecF (&sum)[kRows][kVectors]) noexcept {
  constexpr std::size_t kOfLine = kRows / kLines;
  VecF row[kVectors];
  INFERNODE_UNROLL
  for (std::size_t v = 0; v < kVectors; ++v) row[v] = load(w + v * kLanes);
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    const VecF at = set(x[r / kOfLine * line_step + r % kOfLine * step]);
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = fma(at, row[v], sum[r][v]);
  }
}

template <std::size_t kRows, std::size_t kVectors>
INFERNODE_SIMD void clear(VecF (&sum)[kRows][kVectors]) noexcept {
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = zero();
  }
}

// Goes on to the tile that follows.
inline void advance(Tile& t, std::size_t positions, std::size_t step) noexcept {
  t.x += positions * step;
  t.y += positions * kChannelBlock;
  if (t.residual) t.residual += positions * kChannelBlock;
  t.ahead += t.ahead_lines * t.blocks * kLine;
}

// kRows positions, as many of each of kLines rows. kStep: t.step where it is known, so that no register need hold a
// position's place.
template <std::size_t kRows, std::size_t kVectors, std::size_t kStep = 0, std::size_t kLines = 1>
void blocked_tile(const Tile& t) noexcept {
  static_assert(kRows % kLines == 0);
  VecF sum[kRows][kVectors];
  alignas(64) float before[kRows * kVectors * kLanes];  // sums of earlier groups
  const float *w = t.weight, *from = t.x;
  const float* ahead = t.ahead;
  const std::size_t step = kStep > 0 ? kStep : t.step, line_step = kLines > 1 ? t.line_step : 0;
  for (std::size_t b = 0; b < t.blocks;) {
    const bool first = b == 0;
    const std::size_t end = smaller(b + t.group, t.blocks);
    clear(sum);
    for (; b < end; ++b, from += t.block_step) {
      const KernelBlock& block = b + 1 == t.blocks ? t.last : t.block;
      const std::size_t length = block.length;
      for (std::size_t i = 0; i < t.ahead_lines; ++i, ahead += kLine) __builtin_prefetch(ahead, 0, 2);
      for (std::size_t r = 0; t.ahead_rows && r < kRows; ++r) __builtin_prefetch(from + (kRows + r) * step, 0, 3);
      const float* const next = w + block.weights;
      w += block.lead;
      for (std::size_t h = 0; h < t.rows; ++h, w += block.row_gap) {
        for (std::size_t c = 0; c < t.columns; ++c) {
          const float* x = from + h * t.row_step + c * t.column_step;
          for (std::size_t i = 0; i < length; ++i, ++x, w += kVectors * kLanes)
            add_products<kRows, kVectors, kLines>(x, line_step, step, w, sum);
        }
      }
      w = next;
    }
    if (first && b == t.blocks) break;
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) {
        float* const at = before + (r * kVectors + v) * kLanes;
        if (!first) sum[r][v] = sum[r][v] + load(at);
        if (b < t.blocks) store(at, sum[r][v]);
      }
    }
  }
  finish_tile<kRows, kVectors, kLines>(t, sum);
}

// Tiles of kRows positions, one after the other, of kernels of one point whose blocks lie beside each other and are
// summed up at once; moves on to the positions that follow.
template <std::size_t kRows, std::size_t kVectors>
void point_tiles(Tile& t, std::size_t tiles) noexcept {
  const std::size_t last = t.last.length;
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    VecF sum[kRows][kVectors];
    clear(sum);
    const float *w = t.weight, *from = t.x, *ahead = t.ahead;
    for (std::size_t b = 0; b < t.blocks; ++b, from += t.block_step) {
      for (std::size_t i = 0; i < t.ahead_lines; ++i, ahead += kLine) __builtin_prefetch(ahead, 0, 2);
      for (std::size_t r = 0; t.ahead_rows && r < kRows; ++r)
        __builtin_prefetch(from + (kRows + r) * kChannelBlock, 0, 3);
      const float *x = from, *const end = from + (b + 1 == t.blocks ? last : kChannelBlock);
      for (; x < end; ++x, w += kVectors * kLanes) add_products(x, 0, kChannelBlock, w, sum);
    }
    finish_tile<kRows, kVectors, 1>(t, sum);
    advance(t, kRows, kChannelBlock);
  }
}

// The same of a kernel whose window is listed.
template <std::size_t kRows, std::size_t kVectors>
void listed_tiles(Tile& t, std::size_t tiles) noexcept {
  const std::size_t step = t.step;
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    VecF sum[kRows][kVectors];
    clear(sum);
    const float* w = t.weight;
    for (const std::uint32_t* place = t.places; place < t.places_end; ++place, w += kVectors * kLanes)
      add_products(t.x + *place, 0, step, w, sum);
    finish_tile<kRows, kVectors, 1>(t, sum);
    advance(t, kRows, step);
  }
}

// A panel of one vector has twice the rows where positions lie beside each other, so that there are as many sums to
// work on and fewer reads of weights.
constexpr std::size_t kNarrowMr = kNv == 2 && kNr % kChannelBlock == 0 ? 2 * kMr : kMr;
// Rows that a tile takes its positions of, where rows are short.
constexpr std::size_t kMostLines = smaller(kMr, std::size_t{6});

using TileFunction = void (*)(const Tile& tile) noexcept;
using TilesFunction = void (*)(Tile& tile, std::size_t tiles) noexcept;
struct BlockedTiles {
  TileFunction sum[kMr][kNv];
  TilesFunction points[kMr][kNv], listed[kMr][kNv];  // null for few positions
  TileFunction narrow[kNarrowMr];
  TileFunction joined[kMostLines - 1][kMr / 2][kNv];  // by rows from two on, positions of each, vectors
};
template <std::size_t kRows>
constexpr void fill_narrow(BlockedTiles& tiles) {
  if constexpr (kRows > 0) {
    tiles.narrow[kRows - 1] = blocked_tile<kRows, 1, kChannelBlock>;
    fill_narrow<kRows - 1>(tiles);
  }
}
template <std::size_t kLines = kMostLines, std::size_t kOfLine = kMr / kLines>
constexpr void fill_joined(BlockedTiles& tiles) {
  constexpr std::size_t kRows = kLines * kOfLine;
  TileFunction(&of)[kNv] = tiles.joined[kLines - 2][kOfLine - 1];
  of[0] = blocked_tile<kRows, 1, 0, kLines>;
  of[1] = blocked_tile<kRows, 2, 0, kLines>;
  if constexpr (kNv > 2) {
    of[2] = blocked_tile<kRows, 3, 0, kLines>;
    of[3] = blocked_tile<kRows, 4, 0, kLines>;
  }
  if constexpr (kOfLine > 1) {
    fill_joined<kLines, kOfLine - 1>(tiles);
  } else if constexpr (kLines > 2) {
    fill_joined<kLines - 1>(tiles);
  }
}
constexpr BlockedTiles make_tiles() {
  BlockedTiles tiles{};
  fill_by_size(tiles.sum, []<std::size_t kRows, std::size_t kVectors>() { return blocked_tile<kRows, kVectors>; });
  fill_by_size(tiles.points, []<std::size_t kRows, std::size_t kVectors>() -> TilesFunction {
    if constexpr (2 * kRows > kMr) return point_tiles<kRows, kVectors>;
    return nullptr;
  });
  fill_by_size(tiles.listed, []<std::size_t kRows, std::size_t kVectors>() -> TilesFunction {
    if constexpr (2 * kRows > kMr) return listed_tiles<kRows, kVectors>;
    return nullptr;
  });
  fill_narrow<kNarrowMr>(tiles);
  fill_joined(tiles);
  return tiles;
}
constexpr BlockedTiles kBlockedTiles = make_tiles();

}  // namespace
}  // namespace infernode::microkernels
