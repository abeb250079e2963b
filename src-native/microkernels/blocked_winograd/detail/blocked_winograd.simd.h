#pragma once

// What the loops of Winograd's F(2x2, 3x3) over blocks of channels have in common, whatever they multiply: how an
// output is cut into bands, and the transformations in float32.

#include "microkernels/blocked_winograd/blocked_winograd.h"
#include "microkernels/common/register_tile.simd.h"
#include "microkernels/common/winograd_transforms.simd.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kMostRows = 64;  // rows of tiles in a band

std::size_t out_floats(const ConvShape& s) noexcept { return channel_blocks(s.out_channels) * kChannelBlock; }
std::size_t tile_columns(const ConvShape& s) noexcept { return divide_up(s.out_w, 2); }
std::size_t tile_rows_of(const ConvShape& s) noexcept { return divide_up(s.out_h, 2); }
std::size_t empty_floats(const ConvShape& s) noexcept { return s.in_w * kChannelBlock; }

BlockedGrid grid(const ConvShape& s) noexcept { return {tile_rows_of(s), divide_up(out_floats(s), kNr)}; }

// Whether there is enough to do for transformations to pay, of at least so many channels.
bool pays_from(const ConvShape& s, std::size_t channels) noexcept {
  return s.out_channels >= channels && s.in_channels >= channels && tile_rows_of(s) * tile_columns(s) >= 16;
}

// How many rows of tiles make a band: transformed inputs, `unit` words of a block at a place, and sums fit `words`.
std::size_t rows_of_band(const ConvShape& s, std::size_t unit, std::size_t words) noexcept {
  const std::size_t row = kPoints * tile_columns(s) * (channel_blocks(s.in_channels) * unit + kNr);
  const std::size_t most = smaller(larger(words / row, std::size_t{1}), kMostRows), all = tile_rows_of(s);
  return divide_up(all, divide_up(all, most));
}

// Memory of a band of `rows` rows of tiles. Transformed inputs: [point][piece of tiles][block][tile][unit];
// sums of a panel: [point][tile][kNr].
struct Layout {
  Layout(const ConvShape& s, std::size_t rows, std::size_t piece, std::size_t unit) noexcept
      : rows(rows),
        columns(tile_columns(s)),
        tiles(rows * columns),
        piece(piece),
        unit(unit),
        blocks(channel_blocks(s.in_channels)),
        input_point(spread(blocks * tiles * unit)),
        sum_point(spread(tiles * kNr)),
        seen(2 * columns + 2) {}

  std::size_t rows, columns, tiles;
  std::size_t piece;  // tiles of a register tile
  std::size_t unit;   // words of a block
  std::size_t blocks;
  std::size_t input_point, sum_point;  // words of a point
  std::size_t seen;                    // columns of input

  std::size_t measures() const noexcept { return rows * seen * 2 * kLanes; }
  std::size_t inputs() const noexcept { return kPoints * input_point; }
  std::size_t sums() const noexcept { return kPoints * sum_point; }

  // Where a tile's transformed block begins, at the first point.
  std::size_t place(std::size_t block, std::size_t tile) const noexcept {
    const std::size_t first = tile / piece * piece, count = smaller(piece, tiles - first);
    return (first * blocks + block * count + tile - first) * unit;
  }
};

// Two columns of a row of tiles, transformed down them.
struct Columns {
  VecF v[2][4];
};

// Reads columns w and w + 1, those that exist by read(row, column) of four rows, and adds to the measures what they
// say of them: the sum of magnitudes and that of squares, by channel.
template <typename Read>
INFERNODE_SIMD void read_columns(std::ptrdiff_t w, std::ptrdiff_t width, float* measures, Columns& out, Read read) {
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < 2; ++i, ++w, measures += 2 * kLanes) {
    if (w < 0 || w >= width) {
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < 4; ++r) out.v[i][r] = zero();
      continue;
    }
    VecF x[4];
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < 4; ++r) x[r] = read(r, static_cast<std::size_t>(w));
    transform4(x[0], x[1], x[2], x[3], out.v[i]);
    store(measures, load(measures) + ((abs(x[0]) + abs(x[1])) + (abs(x[2]) + abs(x[3]))));
    store(measures + kLanes, fma(x[0], x[0], fma(x[1], x[1], load(measures + kLanes))) + fma(x[2], x[2], x[3] * x[3]));
  }
}

// A row of tiles, the first of which is number `tile` of the band and begins at column w of the input: write(place,
// point, transformed).
template <typename Read, typename Write>
INFERNODE_SIMD void transform_tiles(const Layout& l, std::size_t block, std::size_t tile, std::ptrdiff_t w,
                                    std::ptrdiff_t width, float* measures, Read read, Write write) {
  Columns left, right;
  read_columns(w, width, measures, left, read);
  for (std::size_t j = 0; j < l.columns; ++j) {
    measures += 4 * kLanes;
    w += 2;
    read_columns(w, width, measures, right, read);
    const std::size_t place = l.place(block, tile + j);
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < 4; ++r) {
      VecF v[4];
      transform4(left.v[0][r], left.v[1][r], right.v[0][r], right.v[1][r], v);
      INFERNODE_UNROLL
      for (std::size_t i = 0; i < 4; ++i) write(place, 4 * r + i, v[i]);
    }
    left = right;
  }
}

// Whether in each tile of a row enough numbers matter, by (sum |x|)^2 / sum x^2 over the channels, and all are finite.
bool is_even(const float* measures, std::size_t columns) noexcept {
  for (std::size_t j = 0; j < columns; ++j, measures += 4 * kLanes) {
    VecF sums = zero(), squares = zero();
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < 4; ++i) {
      sums = sums + load(measures + 2 * i * kLanes);
      squares = squares + load(measures + (2 * i + 1) * kLanes);
    }
    const float sum = reduce_add(sums), square = reduce_add(squares);
    const bool even = sum * sum >= static_cast<float>(kEvenInputs) * square && square > 1e-30f && sum < 1e15f;
    if (!even && sum != 0) return false;
  }
  return true;
}

// The four positions of a tile, A^T m A for A^T = [1 1 1 0; 0 1 -1 -1], and bias; `point` floats lie between points.
INFERNODE_SIMD void positions_of(const float* sums, std::size_t point, VecF bias, VecF (&out)[2][2]) {
  VecF half[2][4];
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < 4; ++i) {
    const VecF m0 = load(sums + i * point), m1 = load(sums + (4 + i) * point);
    const VecF m2 = load(sums + (8 + i) * point), m3 = load(sums + (12 + i) * point);
    half[0][i] = m0 + (m1 + m2);
    half[1][i] = (m1 - m2) - m3;
  }
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < 2; ++r) {
    const VecF* const t = half[r];
    out[r][0] = t[0] + (t[1] + t[2]) + bias;
    out[r][1] = (t[1] - t[2]) - t[3] + bias;
  }
}

}  // namespace
}  // namespace infernode::microkernels
