#include "microkernels/winograd/winograd.h"

#include <algorithm>

#include "microkernels/common/evenness.h"

namespace infernode::microkernels {

namespace {

constexpr std::size_t kMostColumns = 128;  // tiles in a row of a block
constexpr std::size_t kMostRows = 32;      // rows of tiles in a block
constexpr std::size_t kMostTiles = 512;
constexpr std::size_t kBlockFloats = 160 * 1024;  // transformed inputs of a block: they fit a second-level cache

std::size_t divide_up(std::size_t a, std::size_t b) noexcept { return (a + b - 1) / b; }

}  // namespace

bool winograd_holds(std::size_t out_channels, std::size_t in_channels, const float* weight) noexcept {
  return many_weights_matter(out_channels, in_channels * 9, weight);
}

bool winograd_pays(const WinogradTable& table, const ConvShape& s) noexcept {
  return s.out_channels >= 24 && s.in_channels >= 24 && divide_up(s.out_h, 2) * divide_up(s.out_w, 2) >= table.lanes;
}

WinogradBlock WinogradSplit::block(std::size_t index) const noexcept {
  const std::size_t c = index % channel_blocks, x = index / channel_blocks % column_blocks,
                    y = index / channel_blocks / column_blocks;
  return {y * rows,     std::min((y + 1) * rows, tile_rows),
          x * columns,  std::min((x + 1) * columns, tile_columns),
          c * channels, std::min((c + 1) * channels, out_channels)};
}

WinogradSplit split_winograd(const WinogradTable& table, const ConvShape& s, std::size_t workers) noexcept {
  WinogradSplit split{};
  split.tile_rows = divide_up(s.out_h, 2);
  split.tile_columns = divide_up(s.out_w, 2);
  split.out_channels = s.out_channels;
  split.columns = divide_up(split.tile_columns, divide_up(split.tile_columns, kMostColumns));
  const std::size_t tiles = std::clamp(kBlockFloats / (16 * s.in_channels), 2 * table.lanes, kMostTiles);
  std::size_t most = std::clamp<std::size_t>(tiles / split.columns, 1, std::min(kMostRows, split.tile_rows));
  if (workers > 1) most = std::min(most, std::max<std::size_t>(1, split.tile_rows / workers));
  // Of the heights in reach, the one whose tiles fill vectors best; the tallest of equals.
  double best = 1e30;
  for (std::size_t rows = most; 2 * rows >= most && rows > 0; --rows) {
    const std::size_t whole = split.tile_rows / rows, rest = split.tile_rows % rows;
    const auto vectors = [&](std::size_t r) { return divide_up(r * split.columns, table.lanes); };
    const double cost =
        static_cast<double>(whole * vectors(rows) + vectors(rest)) * (1 + 0.1 / static_cast<double>(rows));
    if (cost < best) {
      best = cost;
      split.rows = rows;
    }
  }
  split.row_blocks = divide_up(split.tile_rows, split.rows);
  split.column_blocks = divide_up(split.tile_columns, split.columns);
  // Cutting channels repeats the transformation of inputs: only where blocks are few.
  const std::size_t blocks = split.row_blocks * split.column_blocks, row_tiles = divide_up(s.out_channels, table.mr);
  const std::size_t parts = blocks >= 2 * workers ? 1 : std::min(row_tiles, divide_up(2 * workers, blocks));
  split.channels = workers <= 1 ? s.out_channels : divide_up(row_tiles, parts) * table.mr;
  split.channel_blocks = divide_up(s.out_channels, split.channels);
  return split;
}

}  // namespace infernode::microkernels
