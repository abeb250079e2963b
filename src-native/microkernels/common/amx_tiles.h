#pragma once

// Included by *.amx.cpp only: float32 products on the matrix unit, whose operands are bfloat16 and whose sums are
// float32. A float32 is split into `pieces` bfloat16 numbers, largest first, each the nearest to what the ones before
// it leave: three hold it exactly, two hold about 16 bits. Of the products of pieces i and j those with i + j < pieces
// are summed; the others lie below the last bit of float32 (three pieces) or of the precision asked for.
//
// Sizes: a tile of A is 16 rows by 32 k, one of B 32 k by 16 columns; both are 1 KiB of bfloat16, k and k + 16 side by
// side. What is split is laid out in the order in which it is loaded: for each step of 32 k, for each tile, for each
// piece.

#include <immintrin.h>

#if defined(INFERNODE_EMULATE_AMX)
#include "microkernels/common/amx_emulation.h"
#endif

#include "microkernels/common/activate.simd.h"
#include "microkernels/common/lanes16.h"
#include "microkernels/common/quick_activations.h"
#include "microkernels/common/tiles.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kTileRows = 16, kTileDepth = 32, kTileBytes = 1024;
constexpr std::size_t kPanelTiles = 2;  // 32 columns, as the float32 kernels' panels
constexpr std::size_t kPanelColumns = kPanelTiles * 16;

constexpr std::size_t steps_of(std::size_t k) noexcept { return divide_up(k, kTileDepth); }
constexpr std::size_t split_bytes(std::size_t k, std::size_t tiles, std::size_t pieces) noexcept {
  return steps_of(k) * tiles * pieces * kTileBytes;
}

// All tiles of full size. To be constants: the compiler believes that only its first bytes are read.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {kTileRows, kTileRows, kTileRows, kTileRows, kTileRows, kTileRows, kTileRows, kTileRows};
};
static_assert(sizeof(TileConfig) == 64);
constexpr TileConfig kTileConfig;

// The tiles of this thread while it lives.
class TileSession {
 public:
  explicit TileSession(const TileConfig& config = kTileConfig) noexcept { _tile_loadconfig(&config); }
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
  static bool splits(__m512i a, __m512i b) noexcept {
    RangeWatch watch;
    watch.see(a);
    watch.see(b);
    return watch.splits();
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

// The next piece of x; what two pieces leave of a float32 is the third.
INFERNODE_SIMD __m512i next_piece(__m512& x, int piece) noexcept {
  return piece == 2 ? _mm512_castps_si512(x) : take_piece(x);
}

// Splits two rows of numbers that are multiplied in one step: pairs of pieces, 64 bytes to each piece's tile.
template <int kPieces>
INFERNODE_SIMD void split_pair(__m512 first, __m512 second, std::uint8_t* out) noexcept {
  INFERNODE_UNROLL
  for (int piece = 0; piece < kPieces; ++piece) {
    const __m512i low = _mm512_srli_epi32(next_piece(first, piece), 16), high = next_piece(second, piece);
    _mm512_storeu_si512(out + static_cast<std::size_t>(piece) * kTileBytes, _mm512_or_si512(low, high));
  }
}

// Splits a panel of B, or of a transposed one, a few rows at a time, so that it can be done beside products.
template <int kPieces>
class PanelSplit {
 public:
  PanelSplit() = default;
  // Rows of 32 floats, `ldb` apart, or of fewer.
  PanelSplit(const float* b, std::size_t ldb, std::size_t k, std::uint8_t* out,
             std::size_t columns = kPanelColumns) noexcept
      : b_(b), out_(out), ldb_(ldb), k_(k), left_(steps_of(k) * kPairs) {
    for (std::size_t tile = 0; tile < kPanelTiles; ++tile)
      lanes_[tile] = columns > tile * 16 ? first_lanes(columns - tile * 16) : static_cast<__mmask16>(0);
  }
  // Rows of 32 floats, all of which are known to split.
  static PanelSplit known(const float* b, std::size_t ldb, std::size_t k, std::uint8_t* out) noexcept {
    PanelSplit split(b, ldb, k, out);
    split.known_ = true;
    return split;
  }
  // Columns of k floats, `ldb` apart: `columns` of them.
  static PanelSplit transposed(const float* b, std::size_t ldb, std::size_t k, std::size_t columns,
                               std::uint8_t* out) noexcept {
    PanelSplit split(b, ldb, k, out);
    split.columns_ = columns;
    return split;
  }

  // Splits `count` more pairs of rows, or somewhat less; none are left afterwards where `count` is left().
  void advance(std::size_t count) noexcept {
    if (left_ == 0) return;
    if (columns_ > 0) return advance_transposed(count);
    known_ ? advance_rows<false>(count) : advance_rows<true>(count);
  }
  std::size_t left() const noexcept { return left_; }
  // Of all that was split so far.
  bool splits() const noexcept { return watch_.splits(); }

 private:
  static constexpr std::size_t kPairs = kTileDepth / 2;  // of a step: rows 16 apart
  static constexpr std::size_t kAhead = 4096;            // bytes: weights come from memory
  static constexpr std::size_t kUnit = 8;                // pairs of rows that 32 rows of 16 columns count as

  template <bool kWatch>
  void advance_rows(std::size_t count) noexcept {
    count = smaller(count, left_);
    left_ -= count;
    while (count > 0) {
      const std::size_t row = at_ / kPairs * kTileDepth + at_ % kPairs;
      const std::size_t run = smaller(count, kPairs - at_ % kPairs);
      const float* from = b_ + row * ldb_;
      std::uint8_t* to = out_ + at_ / kPairs * (kPanelTiles * kPieces * kTileBytes) + at_ % kPairs * 64;
      const std::size_t pairs = row + kPairs < k_ ? smaller(run, k_ - row - kPairs) : 0;  // of two rows
      const std::size_t rows = row < k_ ? smaller(run, k_ - row) : 0;                     // first ones
      std::size_t i = 0;
      for (; i < pairs; ++i, from += ldb_, to += 64) split_rows_of<2, kWatch>(from, to);
      for (; i < rows; ++i, from += ldb_, to += 64) split_rows_of<1, kWatch>(from, to);
      for (; i < run; ++i, to += 64) split_rows_of<0, kWatch>(from, to);
      at_ += run;
      count -= run;
    }
  }

  // A row and the one 16 rows on, of which kRows exist.
  template <int kRows, bool kWatch>
  void split_rows_of(const float* from, std::uint8_t* to) noexcept {
    INFERNODE_UNROLL
    for (std::size_t tile = 0; tile < kPanelTiles; ++tile) {
      __m512 first = _mm512_setzero_ps(), second = _mm512_setzero_ps();
      if constexpr (kRows > 0) {
        const float* const x = from + tile * 16;
        _mm_prefetch(reinterpret_cast<const char*>(x) + kAhead, _MM_HINT_T0);
        first = _mm512_maskz_loadu_ps(lanes_[tile], x);
        if constexpr (kWatch) watch_.see(_mm512_castps_si512(first));
      }
      if constexpr (kRows > 1) {
        const float* const y = from + kPairs * ldb_ + tile * 16;
        _mm_prefetch(reinterpret_cast<const char*>(y) + kAhead, _MM_HINT_T0);
        second = _mm512_maskz_loadu_ps(lanes_[tile], y);
        if constexpr (kWatch) watch_.see(_mm512_castps_si512(second));
      }
      split_pair<kPieces>(first, second, to + tile * kPieces * kTileBytes);
    }
  }

  void advance_transposed(std::size_t count) noexcept {
    for (credit_ += smaller(count, left_); credit_ >= kUnit; credit_ -= kUnit, left_ -= kUnit, ++at_) {
      const std::size_t tile = at_ % kPanelTiles, k0 = at_ / kPanelTiles * kTileDepth;
      const float* from = b_ + tile * 16 * ldb_ + k0;
      const std::size_t columns = columns_ > tile * 16 ? smaller(columns_ - tile * 16, std::size_t{16}) : 0;
      alignas(64) float first[16][16];
      __m512 x[16];
      transpose_square(from, columns, k_ - k0, x);
      INFERNODE_UNROLL
      for (std::size_t i = 0; i < 16; ++i) _mm512_store_ps(first[i], x[i]);
      transpose_square(from + 16, columns, k_ > k0 + 16 ? k_ - k0 - 16 : 0, x);
      std::uint8_t* to = out_ + (k0 / kTileDepth * kPanelTiles + tile) * (kPieces * kTileBytes);
      INFERNODE_UNROLL
      for (std::size_t i = 0; i < 16; ++i) split_pair<kPieces>(_mm512_load_ps(first[i]), x[i], to + i * 64);
    }
  }

  // x[i]: number i of each of up to 16 columns, of which `numbers` exist.
  void transpose_square(const float* from, std::size_t columns, std::size_t numbers, __m512 (&x)[16]) noexcept {
    const __mmask16 mask = first_lanes(numbers);
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < 16; ++i) {
      x[i] = i < columns ? _mm512_maskz_loadu_ps(mask, from + i * ldb_) : _mm512_setzero_ps();
      watch_.see(_mm512_castps_si512(x[i]));
    }
    transpose16(x);
  }

  const float* b_ = nullptr;
  std::uint8_t* out_ = nullptr;
  std::size_t ldb_ = 0, k_ = 0, left_ = 0, at_ = 0;  // left: pairs of rows; at: the next pair or unit
  std::size_t columns_ = 0, credit_ = 0;             // of a transposed panel
  __mmask16 lanes_[kPanelTiles] = {};                // columns of each tile that there are
  bool known_ = false;
  RangeWatch watch_;
};

// Whether n numbers can be split.
inline bool all_split(const float* x, std::size_t n) noexcept {
  RangeWatch watch;
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) watch.see(_mm512_loadu_si512(x + i));
  if (i < n) watch.see(_mm512_maskz_loadu_epi32(first_lanes(n - i), x + i));
  return watch.splits();
}

template <int kPieces>
bool split_panel(const float* b, std::size_t ldb, std::size_t k, std::uint8_t* out) noexcept {
  PanelSplit<kPieces> split(b, ldb, k, out);
  split.advance(split.left());
  return split.splits();
}

// Finishes a tile of sums, some of its rows at a time; with the quick activations where `medium` precision asks for no
// better ones.
class TileFinish {
 public:
  TileFinish() = default;
  TileFinish(const GemmTiles& tiles, const TileOutput& output, float* sums, bool medium = false) noexcept
      : tiles_(&tiles), output_(output), sums_(sums), rows_(output.rows), activation_(output.activation) {
    quick_ = medium && output.last && output.cols == kPanelColumns && is_quick(activation_);
    if (quick_) output_.activation = {};
  }

  void advance(std::size_t count) noexcept {
    if (rows_ == 0) return;
    output_.rows = smaller(count, rows_);
    tiles_->finish(output_, sums_);
    const std::size_t done = output_.rows;
    for (std::size_t r = 0; quick_ && r < done; ++r) {
      float* const c = output_.c + r * output_.ldc;
      VecF row[kPanelTiles] = {load(c), load(c + 16)};
      activate_quickly<kPanelTiles>(activation_, row);
      store(c, row[0]);
      store(c + 16, row[1]);
    }
    rows_ -= done;
    sums_ += done * kPanelColumns;
    output_.c += done * output_.ldc;
    if (output_.bias_m) output_.bias_m += done;
    if (output_.residual) output_.residual += done * output_.ld_residual;
  }
  void complete() noexcept { advance(rows_); }
  // Rows that take about as long as some products.
  std::size_t portion() const noexcept { return is_clamp(activation_) ? 8 : 4; }
  bool done() const noexcept { return rows_ == 0; }

 private:
  const GemmTiles* tiles_ = nullptr;
  TileOutput output_{};
  float* sums_ = nullptr;
  std::size_t rows_ = 0;  // left
  ActivationArgs activation_;
  bool quick_ = false;
};

// Fetches where a tile of sums goes, some of its rows at a time: written at once, lines that are far are waited for.
class OutputFetch {
 public:
  explicit OutputFetch(const TileOutput& output) noexcept
      : c_(output.c), ldc_(output.ldc), cols_(output.cols), rows_(output.rows) {}

  void advance(std::size_t count) noexcept {
    for (count = smaller(count, rows_), rows_ -= count; count > 0; --count, c_ += ldc_) {
      __builtin_prefetch(c_, 1);
      if (cols_ > 16) __builtin_prefetch(c_ + 16, 1);
      __builtin_prefetch(c_ + cols_ - 1, 1);
    }
  }

 private:
  const float* c_;
  std::size_t ldc_, cols_, rows_;  // left
};

// Splits up to 32 rows of A, `lda` apart, a tile of 16 after the other; rows that are missing are 0. A few at a time
// too.
template <int kPieces>
class RowsSplit {
 public:
  RowsSplit() = default;
  RowsSplit(const float* a, std::size_t lda, std::size_t rows, std::size_t k, std::uint8_t* out) noexcept
      : a_(a), out_(out), lda_(lda), rows_(rows), k_(k), left_(divide_up(rows, kTileRows) * kTileRows * steps_of(k)) {}

  // Splits up to `count` more rows' steps of 32 k; none are left afterwards where `count` is left().
  void advance(std::size_t count) noexcept {
    count = smaller(count, left_);
    left_ -= count;
    while (count > 0) {
      const std::size_t run = smaller(count, kTileRows - row_), before = first_ + row_;
      const std::size_t there = before < rows_ ? smaller(run, rows_ - before) : 0;
      const std::size_t width = k_ - at_;
      const __mmask16 low = first_lanes(width), high = width > 16 ? first_lanes(width - 16) : static_cast<__mmask16>(0);
      const float* from = a_ + before * lda_ + at_;
      std::uint8_t* to = out_ + row_ * 64;
      for (std::size_t i = 0; i < there; ++i, from += lda_, to += 64) {
        const __m512 x = _mm512_maskz_loadu_ps(low, from), y = _mm512_maskz_loadu_ps(high, from + 16);
        watch_.see(_mm512_castps_si512(x));
        watch_.see(_mm512_castps_si512(y));
        split_pair<kPieces>(x, y, to);
      }
      for (std::size_t i = there; i < run; ++i, to += 64)
        split_pair<kPieces>(_mm512_setzero_ps(), _mm512_setzero_ps(), to);
      row_ += run;
      count -= run;
      if (row_ < kTileRows) continue;
      row_ = 0;
      out_ += kPieces * kTileBytes;
      if ((at_ += kTileDepth) < k_) continue;
      at_ = 0;
      first_ += kTileRows;
    }
  }
  std::size_t left() const noexcept { return left_; }
  // Of all that was split so far.
  bool splits() const noexcept { return watch_.splits(); }

 private:
  const float* a_ = nullptr;
  std::uint8_t* out_ = nullptr;
  std::size_t lda_ = 0, rows_ = 0, k_ = 0, left_ = 0;
  std::size_t first_ = 0, row_ = 0, at_ = 0;  // row of the tile, row in it, k
  RangeWatch watch_;
};

template <int kPieces>
bool split_rows(const float* a, std::size_t lda, std::size_t rows, std::size_t k, std::uint8_t* out) noexcept {
  RowsSplit<kPieces> split(a, lda, rows, k, out);
  split.advance(split.left());
  return split.splits();
}

// One step: the tiles of A in registers 4 and 5, those of B in 6 and 7, sums in 0 to 3. Tile numbers must be constants.
// A passes through; B is read again for the next rows.
#define INFERNODE_LOAD_A(piece)                       \
  _tile_stream_loadd(4, a0 + (piece)*kTileBytes, 64); \
  if constexpr (kRowTiles == 2) _tile_stream_loadd(5, a1 + (piece)*kTileBytes, 64)
#define INFERNODE_LOAD_B(i)                   \
  _tile_loadd(6, tiles + (i)*b.piece, b.row); \
  _tile_loadd(7, tiles + (i)*b.piece + b.tile, b.row)
#define INFERNODE_MULTIPLY()      \
  _tile_dpbf16ps(0, 4, 6);        \
  _tile_dpbf16ps(1, 4, 7);        \
  if constexpr (kRowTiles == 2) { \
    _tile_dpbf16ps(2, 5, 6);      \
    _tile_dpbf16ps(3, 5, 7);      \
  }

// Registers 0 to 3: the sums of one or two row tiles and a panel's columns, sums[r * ld + c].
template <int kRowTiles>
INFERNODE_SIMD void store_sums(float* sums, std::size_t ld = kPanelColumns) noexcept {
  const std::size_t stride = ld * sizeof(float);
  _tile_stored(0, sums, stride);
  _tile_stored(1, sums + 16, stride);
  if constexpr (kRowTiles == 2) {
    _tile_stored(2, sums + kTileRows * ld, stride);
    _tile_stored(3, sums + kTileRows * ld + 16, stride);
  }
}

// Whether the sums of all rows and columns of two tiles are what the output is.
INFERNODE_SIMD bool is_plain(const TileOutput& o) noexcept {
  return o.rows == 2 * kTileRows && o.cols == kPanelColumns && o.alpha == 1.0f && !o.load_c &&
         (!o.last || (!o.bias_m && !o.bias_n && !o.residual && o.activation.kind == Activation::kNone));
}

// How many times multiply_tiles calls `beside` in a step.
template <int kPieces>
inline constexpr std::size_t kCallsBeside = kPieces == 3 ? 3 : 1;

// Where the tiles of B lie: `at` names the first piece of a step's first tile; strides are in bytes.
template <typename At>
struct TilesOfB {
  At at;  // (step) -> const std::uint8_t*
  std::size_t piece, tile, row;
};

// Tiles that split_panel laid out.
template <int kPieces>
INFERNODE_SIMD auto panel_tiles(const std::uint8_t* b) {
  const auto at = [b](std::size_t step) { return b + step * (kPanelTiles * kPieces * kTileBytes); };
  return TilesOfB<decltype(at)>{at, kTileBytes, kPieces * kTileBytes, 64};
}

// sums[r * ld + c] of one or two row tiles (each `steps` steps long) times a panel. A may hold more pieces than are
// used. The matrix unit works by itself: what `beside` does meanwhile costs little.
template <int kPieces, int kRowTiles, int kStoredA = kPieces, typename B, typename Beside>
INFERNODE_SIMD void multiply_tiles(std::size_t steps, const std::uint8_t* a0, const std::uint8_t* a1, const B& b,
                                   float* sums, const Beside& beside, std::size_t ld = kPanelColumns) noexcept {
  __asm__ volatile("" ::: "memory");  // the loads below do not tell the compiler what they read
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kRowTiles == 2) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::size_t step = 0; step < steps; ++step) {
    const std::uint8_t* tiles = b.at(step);
    if constexpr (kPieces == 3) {
      INFERNODE_LOAD_A(2);
      INFERNODE_LOAD_B(0);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_A(1);
      INFERNODE_MULTIPLY();
      beside();
      INFERNODE_LOAD_B(1);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_A(0);
      INFERNODE_MULTIPLY();
      beside();
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
    beside();
    a0 += kStoredA * kTileBytes;
    a1 += kStoredA * kTileBytes;
  }
  store_sums<kRowTiles>(sums, ld);
}

#undef INFERNODE_LOAD_A
#undef INFERNODE_LOAD_B
#undef INFERNODE_MULTIPLY

}  // namespace
}  // namespace infernode::microkernels
