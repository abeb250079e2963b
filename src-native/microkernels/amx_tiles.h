#pragma once

// Included by *.amx.cpp only: float32 products on the matrix unit, whose operands are bfloat16 and whose sums are
// float32. A float32 is split into `pieces` bfloat16 numbers, largest first, each the nearest to what the ones before
// it leave: three hold it exactly, two hold about 16 bits. Of the products of pieces i and j those with i + j < pieces
// are summed; the others lie below the last bit of float32 (three pieces) or of the precision asked for.
//
// Sizes: a tile of A is 16 rows by 32 k, one of B 32 k (in pairs) by 16 columns; both are 1 KiB of bfloat16. What is
// split is laid out in the order in which it is loaded: for each step of 32 k, for each tile, for each piece.

#include <immintrin.h>

#include "microkernels/gemm_tiles.h"
#include "microkernels/simd_file.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kTileRows = 16, kTileDepth = 32, kTileBytes = 1024;
constexpr std::size_t kPanelTiles = 2;  // 32 columns, as the float32 kernels' panels
constexpr std::size_t kPanelColumns = kPanelTiles * 16;

constexpr std::size_t steps_of(std::size_t k) noexcept { return divide_up(k, kTileDepth); }
constexpr std::size_t split_bytes(std::size_t k, std::size_t tiles, std::size_t pieces) noexcept {
  return steps_of(k) * tiles * pieces * kTileBytes;
}

// Calls fn with the number of pieces that a precision takes as a constant.
template <typename Fn>
INFERNODE_SIMD void with_pieces(Float32Precision precision, Fn fn) {
  switch (precision) {
    case Float32Precision::kHighest:
      fn.template operator()<3>();
      break;
    case Float32Precision::kHigh:
      fn.template operator()<2>();
      break;
    case Float32Precision::kMedium:
      fn.template operator()<1>();
      break;
  }
}

// The tiles of this thread, all of full size, while it lives.
class TileSession {
 public:
  TileSession() noexcept {
    alignas(64) std::uint8_t config[64] = {1};  // palette
    for (int tile = 0; tile < 8; ++tile) {
      config[16 + 2 * tile] = 64;  // bytes of a row
      config[48 + tile] = kTileRows;
    }
    _tile_loadconfig(config);
  }
  ~TileSession() { _tile_release(); }
  TileSession(const TileSession&) = delete;
  TileSession& operator=(const TileSession&) = delete;
};

// Watches whether all numbers seen can be split: zeros, and magnitudes from 2^-102 up to where rounding would overflow.
// Doubled bits leave out the sign; less one, zero becomes the largest.
class RangeWatch {
 public:
  void see(__m512i bits) noexcept {
    const __m512i doubled = _mm512_add_epi32(bits, bits);
    most_ = _mm512_max_epu32(most_, doubled);
    least_ = _mm512_min_epu32(least_, _mm512_sub_epi32(doubled, _mm512_set1_epi32(1)));
  }
  bool splits() const noexcept {
    const __m512i low = _mm512_set1_epi32(0x19000000 - 1), high = _mm512_set1_epi32(static_cast<int>(0xfeff0000u));
    return (_mm512_cmplt_epu32_mask(least_, low) | _mm512_cmpge_epu32_mask(most_, high)) == 0;
  }

 private:
  __m512i least_ = _mm512_set1_epi32(-1), most_ = _mm512_setzero_si512();
};

// Takes the nearest bfloat16 off x: returns it in the upper half of each lane; the lower half is 0.
INFERNODE_SIMD __m512i take_piece(__m512& x) noexcept {
  const __m512i rounded = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
  const __m512i piece = _mm512_and_si512(rounded, _mm512_set1_epi32(static_cast<int>(0xffff0000u)));
  x = _mm512_sub_ps(x, _mm512_castsi512_ps(piece));
  return piece;
}

// Splits two rows of B, k and k + 1: pairs per column, 64 bytes to each piece's tile.
template <int kPieces>
INFERNODE_SIMD void split_pair(__m512 even, __m512 odd, std::uint8_t* out) noexcept {
  INFERNODE_UNROLL
  for (int piece = 0; piece < kPieces; ++piece) {
    const __m512i low = _mm512_srli_epi32(take_piece(even), 16), high = take_piece(odd);
    _mm512_storeu_si512(out + static_cast<std::size_t>(piece) * kTileBytes, _mm512_or_si512(low, high));
  }
}

// Splits a panel of B: rows of 32 floats, `ldb` apart. Returns whether all of them can be split.
template <int kPieces>
bool split_panel(const float* b, std::size_t ldb, std::size_t k, std::uint8_t* out) noexcept {
  RangeWatch watch;
  const __m512 none = _mm512_setzero_ps();
  for (std::size_t step = 0; step < steps_of(k); ++step) {
    for (std::size_t pair = 0; pair < kTileDepth / 2; ++pair) {
      const std::size_t row = step * kTileDepth + 2 * pair;
      INFERNODE_UNROLL
      for (std::size_t tile = 0; tile < kPanelTiles; ++tile) {
        const float* from = b + row * ldb + tile * 16;
        const __m512 even = row < k ? _mm512_loadu_ps(from) : none,
                     odd = row + 1 < k ? _mm512_loadu_ps(from + ldb) : none;
        watch.see(_mm512_castps_si512(even));
        watch.see(_mm512_castps_si512(odd));
        split_pair<kPieces>(even, odd, out + tile * kPieces * kTileBytes + pair * 64);
      }
    }
    out += kPanelTiles * kPieces * kTileBytes;
  }
  return watch.splits();
}

// Splits up to 16 rows of A, `lda` apart, rows that are missing being 0. Returns whether all of them can be split.
template <int kPieces>
bool split_rows(const float* a, std::size_t lda, std::size_t rows, std::size_t k, std::uint8_t* out) noexcept {
  RangeWatch watch;
  const __m512i upper_halves = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29,
                                                27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  for (std::size_t step = 0; step < steps_of(k); ++step) {
    const std::size_t left = k - step * kTileDepth;
    const __mmask16 first = left >= 16 ? 0xffff : static_cast<__mmask16>((1u << left) - 1);
    const __mmask16 second = left >= 32  ? 0xffff
                             : left > 16 ? static_cast<__mmask16>((1u << (left - 16)) - 1)
                                         : static_cast<__mmask16>(0);
    for (std::size_t row = 0; row < kTileRows; ++row) {
      __m512 x = _mm512_setzero_ps(), y = _mm512_setzero_ps();
      if (row < rows) {
        const float* from = a + row * lda + step * kTileDepth;
        x = _mm512_maskz_loadu_ps(first, from);
        y = _mm512_maskz_loadu_ps(second, from + 16);
        watch.see(_mm512_castps_si512(x));
        watch.see(_mm512_castps_si512(y));
      }
      INFERNODE_UNROLL
      for (int piece = 0; piece < kPieces; ++piece) {
        const __m512i low = take_piece(x), high = take_piece(y);
        _mm512_storeu_si512(out + static_cast<std::size_t>(piece) * kTileBytes + row * 64,
                            _mm512_permutex2var_epi16(low, upper_halves, high));
      }
    }
    out += kPieces * kTileBytes;
  }
  return watch.splits();
}

// The numbers that split_rows<3> split: out[row * ld + i] for 16 rows.
INFERNODE_SIMD void join_rows(const std::uint8_t* split, std::size_t k, float* out, std::size_t ld) {
  for (std::size_t step = 0; step < steps_of(k); ++step, split += 3 * kTileBytes) {
    for (std::size_t row = 0; row < kTileRows; ++row) {
      for (std::size_t half = 0; half < kTileDepth; half += 16) {
        const std::size_t at = step * kTileDepth + half;
        if (at >= k) break;
        __m512 sum = _mm512_setzero_ps();
        for (std::size_t piece = 3; piece-- > 0;) {
          const std::uint8_t* from = split + piece * kTileBytes + row * 64 + half * 2;
          const __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
          sum = _mm512_add_ps(sum, _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16)));
        }
        const __mmask16 mask = k - at >= 16 ? 0xffff : static_cast<__mmask16>((1u << (k - at)) - 1);
        _mm512_mask_storeu_ps(out + row * ld + at, mask, sum);
      }
    }
  }
}

// One step: the tiles of A in registers 4 and 5, those of B in 6 and 7, sums in 0 to 3. Tile numbers must be constants.
#define INFERNODE_LOAD_A(piece)                \
  _tile_loadd(4, a0 + (piece)*kTileBytes, 64); \
  if constexpr (kRowTiles == 2) _tile_loadd(5, a1 + (piece)*kTileBytes, 64)
#define INFERNODE_LOAD_B(piece)               \
  _tile_loadd(6, b + (piece)*kTileBytes, 64); \
  _tile_loadd(7, b + (kPieces + (piece)) * kTileBytes, 64)
#define INFERNODE_MULTIPLY()      \
  _tile_dpbf16ps(0, 4, 6);        \
  _tile_dpbf16ps(1, 4, 7);        \
  if constexpr (kRowTiles == 2) { \
    _tile_dpbf16ps(2, 5, 6);      \
    _tile_dpbf16ps(3, 5, 7);      \
  }

// sums[r * 32 + c] of one or two row tiles (each `steps` steps long) times a panel. A may hold more pieces than are
// used.
template <int kPieces, int kRowTiles, int kStoredA = kPieces>
void multiply_tiles(std::size_t steps, const std::uint8_t* a0, const std::uint8_t* a1, const std::uint8_t* b,
                    float* sums) noexcept {
  __asm__ volatile("" ::: "memory");  // the loads below do not tell the compiler what they read
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kRowTiles == 2) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::size_t step = 0; step < steps; ++step) {
    if constexpr (kPieces == 3) {
      INFERNODE_LOAD_A(2);
      INFERNODE_LOAD_B(0);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_A(1);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_B(1);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_A(0);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_B(2);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_B(0);
      INFERNODE_MULTIPLY();
    } else if constexpr (kPieces == 2) {
      INFERNODE_LOAD_A(1);
      INFERNODE_LOAD_B(0);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_A(0);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_B(1);
      INFERNODE_MULTIPLY();
    } else {
      INFERNODE_LOAD_A(0);
      INFERNODE_LOAD_B(0);
      INFERNODE_MULTIPLY();
    }
    a0 += kStoredA * kTileBytes;
    a1 += kStoredA * kTileBytes;
    b += kPanelTiles * kPieces * kTileBytes;
  }
  constexpr std::size_t kStride = kPanelColumns * sizeof(float);
  _tile_stored(0, sums, kStride);
  _tile_stored(1, sums + 16, kStride);
  if constexpr (kRowTiles == 2) {
    _tile_stored(2, sums + kTileRows * kPanelColumns, kStride);
    _tile_stored(3, sums + kTileRows * kPanelColumns + 16, kStride);
  }
}

#undef INFERNODE_LOAD_A
#undef INFERNODE_LOAD_B
#undef INFERNODE_MULTIPLY

}  // namespace
}  // namespace infernode::microkernels
