#pragma once

// Included by blocked.amx.cpp only: how rows, columns and steps are cut.

#include "microkernels/blocked/blocked.h"
#include "microkernels/blocked/detail/kernel_points.h"
#include "microkernels/common/amx_tiles.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kPlaceBytes = 64;
constexpr std::size_t kImageBytes = 768 << 10;  // two images fit the second-level cache
constexpr std::size_t kFewestCycles = 13;       // that products of four tiles take each, however few their rows

// A kernel of one point without borders: rows of positions are cut anywhere, as the AVX-512 loops do.
bool is_flat(const ConvShape& s) noexcept {
  return s.kernel_h == 1 && s.kernel_w == 1 && s.pad_top == 0 && s.pad_left == 0 &&
         (s.out_h - 1) * s.stride_h < s.in_h && (s.out_w - 1) * s.stride_w < s.in_w;
}

std::size_t pairs_of_blocks(const ConvShape& s) noexcept { return divide_up(s.in_channels, 2 * kChannelBlock); }

// How steps go over a kernel. Where the input is in blocks, each takes a point and two blocks; of few planes a place
// holds all, and a step takes some columns.
struct Steps {
  Steps(const ConvShape& s, bool planar) noexcept {
    if (planar) {
      place_bytes = s.in_channels <= 2 ? 4 : s.in_channels <= 4 ? 8 : 16;
      width = kPlaceBytes / place_bytes;
      columns = divide_up(s.kernel_w, width);
    } else {
      place_bytes = kPlaceBytes;
      width = s.dilation_w;
      columns = s.kernel_w;
    }
    points = s.kernel_h * columns;
    count = points * (planar ? 1 : pairs_of_blocks(s));
  }

  std::size_t place_bytes;
  std::size_t width, columns;  // places from one to the next of a row, and how many those are
  std::size_t points, count;
};

// Whether weights of an input of planes are packed as tiles.
bool packs_planes(const ConvShape& s) noexcept { return s.in_channels <= kMostPlanes && s.kernel_h * s.kernel_w > 1; }
// Whether the input's planes are read as such.
bool is_thin(const ConvShape& s) noexcept { return packs_planes(s) && s.dilation_w == 1; }

// What does not depend on the range.
struct Plan {
  Plan(const ConvShape& s, bool planar, std::size_t pieces) noexcept
      : s(s),
        planar(planar),
        flat(!planar && is_flat(s)),
        pairs(planar ? 1 : pairs_of_blocks(s)),
        pieces(pieces),
        steps(s, planar) {
    rows = blocked_conv_table_avx512.grid(s).rows;
    width = flat ? divide_up(s.positions(), rows) : s.out_w;
    const std::size_t all_tiles = divide_up(width, kTileRows);
    tile_rows = divide_up(width, all_tiles);
    cut(all_tiles);
    runs = !flat && s.stride_h == 1 && s.stride_w == 1 && pitch < all_tiles * larger(tile_rows, kFewestCycles);
    if (runs) tile_rows = kTileRows;
    row_bytes = (flat ? 1 : s.stride_w) * steps.place_bytes;
    for (std::size_t tiles = all_tiles; !flat && !runs && tiles > 1 && !holds(kImageBytes, 1);)
      cut(tiles = divide_up(tiles, std::size_t{2}));
    while (band < rows && holds(kImageBytes, 2 * band)) band *= 2;
    for (std::size_t more = band / 2; more > 0; more /= 2) {
      if (band + more <= rows && holds(kImageBytes, band + more)) band += more;
    }
    fits = holds(kImageBytes, band);
  }

  // Strips of so many tiles of columns.
  void cut(std::size_t tiles) noexcept {
    column_tiles = tiles;
    strip = tiles * tile_rows;
    strips = divide_up(width, strip);
    const std::size_t before = (smaller(strip, width) - 1) * s.stride_w;
    pitch = flat ? width : planar ? before + steps.columns * steps.width : before + (s.kernel_w - 1) * s.dilation_w + 1;
  }

  // Of an image of so many rows of the grid, with what tiles read behind it that are not full. Pieces and pairs of
  // blocks that are read together lie in different sets of the cache.
  std::size_t piece_bytes(std::size_t count) const noexcept {
    constexpr std::size_t kSets = 64, kShift = 17;
    const std::size_t places = flat ? count * width : SeenLines(s, count).count * pitch;
    std::size_t lines = divide_up(places * steps.place_bytes + kTileRows * row_bytes + kPlaceBytes, kPlaceBytes) | 1;
    if (lines > 2 * kSets) lines += (kSets + kShift - lines % kSets) % kSets;
    return lines * kPlaceBytes;
  }
  // Whether an image of so many rows takes no more.
  bool holds(std::size_t bytes, std::size_t count) const noexcept {
    return pairs * pieces * piece_bytes(count) <= bytes;
  }
  // Positions before a row.
  std::size_t position(std::size_t row) const noexcept { return smaller(row * width, s.positions()); }

  const ConvShape& s;
  bool planar, flat;
  std::size_t pairs, pieces;
  Steps steps;
  std::size_t rows, width;  // of the grid
  // Images are of a strip of the columns at a time: of how many of those and tiles; places of an image's row.
  std::size_t strips, strip, column_tiles, pitch;
  std::size_t tile_rows;
  bool runs;              // whether tiles run through the image's rows, with the places between them
  std::size_t row_bytes;  // between rows of a tile
  std::size_t band = 1;   // rows of the grid whose image is small enough
  bool fits;
};

}  // namespace
}  // namespace infernode::microkernels
