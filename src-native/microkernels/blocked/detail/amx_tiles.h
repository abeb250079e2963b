#pragma once

// Included by blocked.amx.cpp only: products of tiles.

#include "microkernels/common/amx_tiles.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kTileFloats = kTileRows * 16;  // of sums
constexpr std::size_t kMostTiles = 4;                // of positions in a group

// Tiles of positions' rows are in registers 4 and 5, those of weights in 6 and 7, sums in 0 to 3.
#define INFERNODE_LOAD_A(to, i, piece) _tile_loadd(to, a[i] + at + (piece)*piece_bytes, row_bytes)
#define INFERNODE_LOAD_B(to, i, piece) _tile_loadd(to, b + ((i)*kPieces + (piece)) * kTileBytes, 64)

// Bytes from a tile of positions to what a step reads, and from the first of its weights to the step's.
struct StepPlaces {
  std::size_t a, b;
};

struct Operands {
  const std::uint8_t* a[kMostTiles];  // tiles of positions
  std::size_t piece_bytes, row_bytes;
  const StepPlaces* places;
  std::size_t steps;
  const std::uint8_t* b;
};

// Two blocks of channels by one or two tiles of positions. The order of what is summed is the same for all shapes.
template <int kPieces, int kTiles, typename Beside>
INFERNODE_SIMD void multiply_two_blocks(const Operands& o, float* sums, const Beside& beside) noexcept {
  const std::uint8_t* const(&a)[kMostTiles] = o.a;
  const std::size_t piece_bytes = o.piece_bytes, row_bytes = o.row_bytes;
#define INFERNODE_LOAD_ROWS(piece) \
  INFERNODE_LOAD_A(4, 0, piece);   \
  if constexpr (kTiles == 2) INFERNODE_LOAD_A(5, 1, piece)
#define INFERNODE_LOAD_COLUMNS(piece) \
  INFERNODE_LOAD_B(6, 0, piece);      \
  INFERNODE_LOAD_B(7, 1, piece)
#define INFERNODE_MULTIPLY()   \
  _tile_dpbf16ps(0, 4, 6);     \
  _tile_dpbf16ps(1, 4, 7);     \
  if constexpr (kTiles == 2) { \
    _tile_dpbf16ps(2, 5, 6);   \
    _tile_dpbf16ps(3, 5, 7);   \
  }
  __asm__ volatile("" ::: "memory");  // the loads below do not tell the compiler what they read
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kTiles == 2) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::size_t step = 0; step < o.steps; ++step) {
    const std::size_t at = o.places[step].a;
    const std::uint8_t* const b = o.b + o.places[step].b;
    if constexpr (kPieces == 3) {
      INFERNODE_LOAD_ROWS(2);
      INFERNODE_LOAD_COLUMNS(0);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_ROWS(1);
      INFERNODE_MULTIPLY();
      beside();
      INFERNODE_LOAD_COLUMNS(1);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_ROWS(0);
      INFERNODE_MULTIPLY();
      beside();
      INFERNODE_LOAD_COLUMNS(2);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_COLUMNS(0);
      INFERNODE_MULTIPLY();
    } else if constexpr (kPieces == 2) {
      INFERNODE_LOAD_ROWS(1);
      INFERNODE_LOAD_COLUMNS(0);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_ROWS(0);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_COLUMNS(1);
      INFERNODE_MULTIPLY();
    } else {
      INFERNODE_LOAD_ROWS(0);
      INFERNODE_LOAD_COLUMNS(0);
      INFERNODE_MULTIPLY();
    }
    beside();
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + kTileFloats, 64);
  if constexpr (kTiles == 2) {
    _tile_stored(2, sums + 2 * kTileFloats, 64);
    _tile_stored(3, sums + 3 * kTileFloats, 64);
  }
#undef INFERNODE_LOAD_ROWS
#undef INFERNODE_LOAD_COLUMNS
#undef INFERNODE_MULTIPLY
}

// One block of channels by four tiles of positions.
template <int kPieces, typename Beside>
INFERNODE_SIMD void multiply_one_block(const Operands& o, float* sums, const Beside& beside) noexcept {
  const std::uint8_t* const(&a)[kMostTiles] = o.a;
  const std::size_t piece_bytes = o.piece_bytes, row_bytes = o.row_bytes;
#define INFERNODE_LOAD_AND_MULTIPLY(i, j, piece, with) \
  INFERNODE_LOAD_A(4, i, piece);                       \
  INFERNODE_LOAD_A(5, j, piece);                       \
  _tile_dpbf16ps(i, 4, with);                          \
  _tile_dpbf16ps(j, 5, with)
#define INFERNODE_MULTIPLY_AGAIN(i, j, with) \
  _tile_dpbf16ps(i, 4, with);                \
  _tile_dpbf16ps(j, 5, with)
  __asm__ volatile("" ::: "memory");
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::size_t step = 0; step < o.steps; ++step) {
    const std::size_t at = o.places[step].a;
    const std::uint8_t* const b = o.b + o.places[step].b;
    INFERNODE_LOAD_B(6, 0, 0);
    if constexpr (kPieces == 3) {
      INFERNODE_LOAD_B(7, 0, 1);
      INFERNODE_LOAD_AND_MULTIPLY(0, 1, 2, 6);
      INFERNODE_LOAD_AND_MULTIPLY(2, 3, 2, 6);
      INFERNODE_LOAD_AND_MULTIPLY(0, 1, 1, 6);
      INFERNODE_MULTIPLY_AGAIN(0, 1, 7);
      beside();
      INFERNODE_LOAD_AND_MULTIPLY(2, 3, 1, 6);
      INFERNODE_MULTIPLY_AGAIN(2, 3, 7);
      INFERNODE_LOAD_AND_MULTIPLY(0, 1, 0, 7);
      INFERNODE_LOAD_AND_MULTIPLY(2, 3, 0, 7);
      beside();
      INFERNODE_LOAD_B(7, 0, 2);
      INFERNODE_LOAD_AND_MULTIPLY(0, 1, 0, 7);
      INFERNODE_MULTIPLY_AGAIN(0, 1, 6);
      INFERNODE_LOAD_AND_MULTIPLY(2, 3, 0, 7);
      INFERNODE_MULTIPLY_AGAIN(2, 3, 6);
    } else if constexpr (kPieces == 2) {
      INFERNODE_LOAD_B(7, 0, 1);
      INFERNODE_LOAD_AND_MULTIPLY(0, 1, 1, 6);
      INFERNODE_LOAD_AND_MULTIPLY(2, 3, 1, 6);
      INFERNODE_LOAD_AND_MULTIPLY(0, 1, 0, 6);
      INFERNODE_MULTIPLY_AGAIN(0, 1, 7);
      INFERNODE_LOAD_AND_MULTIPLY(2, 3, 0, 6);
      INFERNODE_MULTIPLY_AGAIN(2, 3, 7);
    } else {
      INFERNODE_LOAD_AND_MULTIPLY(0, 1, 0, 6);
      INFERNODE_LOAD_AND_MULTIPLY(2, 3, 0, 6);
    }
    beside();
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + kTileFloats, 64);
  _tile_stored(2, sums + 2 * kTileFloats, 64);
  _tile_stored(3, sums + 3 * kTileFloats, 64);
#undef INFERNODE_LOAD_AND_MULTIPLY
#undef INFERNODE_MULTIPLY_AGAIN
}
#undef INFERNODE_LOAD_A
#undef INFERNODE_LOAD_B

}  // namespace
}  // namespace infernode::microkernels
