#pragma once

#include "microkernels/common/amx_tiles.h"
#include "microkernels/gemm/detail/output.simd.h"
#include "microkernels/gemm/gemm.h"

// For gemm*.amx.cpp: many rows by a B whose numbers are split into pieces, as they go or beforehand.
namespace infernode::microkernels {

namespace {

constexpr std::size_t kMostRows = 256;  // of A, split at a time: with a block of K they fit the second-level cache

constexpr std::size_t kNearBytes = 1 << 20;  // of a split B that all rows pass by, one pair of tiles after another

constexpr std::size_t kSplitA = split_bytes(kGemmBlockK, kMostRows / kTileRows, 3);
constexpr std::size_t kSplitB = split_bytes(kGemmBlockK, kPanelTiles, 3);
constexpr std::size_t kPanel = kGemmBlockK * kPanelColumns;  // floats
constexpr std::size_t kScratchFloats = (kSplitA + 2 * kSplitB) / sizeof(float) + 2 * kPanel;
static_assert(kMostRows / (2 * kTileRows) <= 32);  // bits of a mask

// A B that was split beforehand: panel after panel, each with all of K and a line that begins with whether it could be.
// If it could not, its place holds rows of 32 floats, unless the call names the B it is of.
template <int kPieces>
constexpr std::size_t tiles_bytes(std::size_t k) noexcept {
  return split_bytes(k, kPanelTiles, kPieces);
}
template <int kPieces>
constexpr std::size_t panel_bytes(std::size_t k) noexcept {
  return tiles_bytes<kPieces>(k) + 64;
}
template <int kPieces>
constexpr std::size_t kStepBytes = kPanelTiles* kPieces* kTileBytes;

inline const std::uint8_t* pieces_of(const GemmArgs& g) noexcept {
  return g.packed_b.form == PackedForm::kBf16Pieces ? static_cast<const std::uint8_t*>(g.packed_b.data) : nullptr;
}
template <int kPieces>
const std::uint8_t* split_panel_of(const GemmArgs& g, std::size_t n0) noexcept {
  return pieces_of(g) + n0 / kPanelColumns * panel_bytes<kPieces>(g.packed_b.k);
}
template <int kPieces>
const std::uint8_t* split_step_of(const GemmArgs& g, std::size_t n0, std::size_t k0) noexcept {
  return split_panel_of<kPieces>(g, n0) + k0 / kTileDepth * kStepBytes<kPieces>;
}
template <int kPieces>
bool is_split(const GemmArgs& g, std::size_t n0) noexcept {
  return split_panel_of<kPieces>(g, n0)[tiles_bytes<kPieces>(g.packed_b.k)] != 0;
}

// What split_pair split.
template <int kPieces>
INFERNODE_SIMD void join_pair(const std::uint8_t* from, __m512& first, __m512& second) noexcept {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  INFERNODE_UNROLL
  for (int piece = kPieces - 1; piece >= 0; --piece) {
    const __m512i words = _mm512_loadu_si512(from + static_cast<std::size_t>(piece) * kTileBytes);
    const __m512 low = _mm512_castsi512_ps(_mm512_slli_epi32(words, 16)),
                 high = _mm512_castsi512_ps(_mm512_and_si512(words, upper));
    first = piece == kPieces - 1 ? low : _mm512_add_ps(first, low);
    second = piece == kPieces - 1 ? high : _mm512_add_ps(second, high);
  }
}

// Rows of 32 floats of what `k` rows were split into, whole steps of them.
template <int kPieces>
void join_panel(const std::uint8_t* split, std::size_t k, float* out) noexcept {
  for (std::size_t step = 0; step < steps_of(k);
       ++step, split += kStepBytes<kPieces>, out += kTileDepth * kPanelColumns) {
    for (std::size_t i = 0; i < kPanelTiles * 16; ++i) {
      const std::size_t tile = i % kPanelTiles, pair = i / kPanelTiles;
      __m512 first, second;
      join_pair<kPieces>(split + tile * kPieces * kTileBytes + pair * 64, first, second);
      _mm512_storeu_ps(out + pair * kPanelColumns + tile * 16, first);
      _mm512_storeu_ps(out + (pair + 16) * kPanelColumns + tile * 16, second);
    }
  }
}

// Of panels of float32 numbers, behind which there are marks.
inline std::size_t panels_floats(std::size_t n, std::size_t k) noexcept {
  return gemm_table_avx512.weights.bytes(n, k) / sizeof(float);
}

// Blocks of K of whole steps.
std::size_t block_of(std::size_t k) noexcept { return steps_of(gemm_block_k(k)) * kTileDepth; }
static_assert(kGemmBlockK % kTileDepth == 0);

std::uint32_t bit(std::size_t i) noexcept { return 1u << i; }

// A block of K of 32 columns of B: where its numbers are, and where they go when they are split.
struct Panel {
  std::size_t k0, k, n0, cols;
  std::uint8_t* room;
  const std::uint8_t* split;
  const float* b = nullptr;
  std::size_t ldb = kPanelColumns;
  bool transposed = false;
  enum : std::uint8_t { kAsItGoes, kKnown, kReady, kNever } splits = kAsItGoes;  // kKnown: that it can be split
};

// Fetches lines that are needed soon, some at a time.
class LineFetch {
 public:
  LineFetch() = default;
  LineFetch(const std::uint8_t* at, std::size_t bytes) noexcept : at_(at), left_(divide_up(bytes, std::size_t{64})) {}
  std::size_t left() const noexcept { return left_; }
  void advance(std::size_t count) noexcept {
    for (count = smaller(count, left_), left_ -= count; count > 0; --count, at_ += 64)
      _mm_prefetch(reinterpret_cast<const char*>(at_), _MM_HINT_T1);
  }

 private:
  const std::uint8_t* at_ = nullptr;
  std::size_t left_ = 0;
};

// Rows [m0, m0 + rows) of C, all columns of the range: panel after panel, block after block of K. While the matrix unit
// multiplies, the next panel is split and the tile before is finished.
template <int kPieces>
class RowBlock {
 public:
  RowBlock(const GemmArgs& g, std::size_t m0, std::size_t rows, const GemmRange& range, float* scratch) noexcept
      : g_(g),
        a_(static_cast<const float*>(g.a) + m0 * g.lda),
        m0_(m0),
        rows_(rows),
        n_begin_(range.n_begin),
        n_end_(range.n_end),
        block_(block_of(g.k)),
        split_a_(reinterpret_cast<std::uint8_t*>(scratch)),
        split_b_(split_a_ + kSplitA),
        floats_(reinterpret_cast<float*>(split_b_ + 2 * kSplitB)) {}

  void multiply() noexcept {
    Panel panel = panel_at(0, n_begin_);
    next_ = split(panel);
    for (;;) {
      next_.advance(next_.left());
      const bool splits = panel.splits != Panel::kNever && next_.splits();
      if (!splits && panel.transposed) pack(panel);
      const bool last_panel = panel.n0 + kPanelColumns >= n_end_, last = last_panel && panel.k0 + panel.k == g_.k;
      Panel following = panel;
      if (last) {
        next_ = {};
      } else {
        following = last_panel ? panel_at(panel.k0 + panel.k, n_begin_) : panel_at(panel.k0, panel.n0 + kPanelColumns);
        next_ = split(following);
      }
      coming_ = !last && following.splits == Panel::kReady
                    ? LineFetch(following.split, split_bytes(following.k, kPanelTiles, kPieces))
                    : LineFetch();
      multiply_panel(panel, splits);
      if (last) break;
      panel = following;
    }
    finish_.complete();
  }

  // Where all of B was split beforehand: pair of row tiles after pair, panel after panel. While the matrix unit
  // multiplies, the next pair is split.
  void multiply_split() noexcept {
    constexpr std::size_t kCalls = kCallsBeside<kPieces>;
    const std::size_t panels = divide_up(n_end_ - n_begin_, kPanelColumns);
    std::size_t tile = 0;
    std::uint8_t* const rooms[2] = {split_a_, split_a_ + kSplitA / 2};
    std::size_t turn = 0;
    RowsSplit<kPieces> rows = rows_at(0, 0, rooms[0]);
    for (std::size_t k0 = 0; k0 < g_.k; k0 += block_) {
      const std::size_t k = smaller(block_, g_.k - k0), steps = steps_of(k), calls = steps * kCalls;
      const std::size_t finished = divide_up(2 * kTileRows, calls);
      for (std::size_t row = 0; row < rows_; row += 2 * kTileRows) {
        const std::size_t count = smaller(2 * kTileRows, rows_ - row);
        rows.advance(rows.left());
        const bool splits = rows.splits();
        const std::uint8_t *a0 = rooms[turn++ % 2], *a1 = a0 + split_bytes(k, 1, kPieces);
        std::uint8_t* const other = rooms[turn % 2];
        rows = row + 2 * kTileRows < rows_ ? rows_at(row + 2 * kTileRows, k0, other) : rows_at(0, k0 + block_, other);
        const std::size_t slices = divide_up(rows.left(), panels * calls);
        for (std::size_t n0 = n_begin_; n0 < n_end_; n0 += kPanelColumns) {
          const TileOutput output =
              output_at(g_, m0_ + row, count, n0, smaller(kPanelColumns, n_end_ - n0), k0 == 0, k0 + k == g_.k);
          float* const sums = sums_[tile++ % 2];
          OutputFetch fetch(output);
          const auto beside = [&]() __attribute__((always_inline)) {
            finish_.advance(larger(finished, finish_.portion()));
            rows.advance(slices);
            fetch.advance(finished);
          };
          if (splits) {
            multiply_pair(steps, a0, a1, split_step_of<kPieces>(g_, n0, k0), output, sums, beside);
          } else {
            multiply_plain(in_numbers(panel_at(k0, n0)), row, count, sums);
            finish_tile(output, sums);
          }
        }
      }
    }
    finish_.complete();
  }

 private:
  Panel panel_at(std::size_t k0, std::size_t n0) noexcept {
    odd_ = !odd_;
    std::uint8_t* const room = split_b_ + (odd_ ? kSplitB : 0);
    Panel p{k0, smaller(block_, g_.k - k0), n0, smaller(kPanelColumns, n_end_ - n0), room, room};
    if (pieces_of(g_)) {
      p.splits = is_split<kPieces>(g_, n0) ? Panel::kReady : Panel::kNever;
      p.split = split_step_of<kPieces>(g_, n0, k0);
      p.b = reinterpret_cast<const float*>(split_panel_of<kPieces>(g_, n0)) + k0 * kPanelColumns;
    } else if (const float* const packed = g_.packed_b.floats()) {
      p.b = packed + n0 * g_.packed_b.k + k0 * kPanelColumns;
      if (g_.packed_b.form == PackedForm::kMarkedFloats &&
          packed[panels_floats(g_.packed_b.n, g_.packed_b.k) + n0 / kPanelColumns] != 0.0f)
        p.splits = Panel::kKnown;
    } else if (!g_.trans_b && g_.b_type == FloatType::kF32 && p.cols == kPanelColumns) {
      p.b = static_cast<const float*>(g_.b) + k0 * g_.ldb + n0;
      p.ldb = g_.ldb;
    } else if (g_.trans_b && g_.b_type == FloatType::kF32) {
      p.b = static_cast<const float*>(g_.b) + n0 * g_.ldb + k0;
      p.ldb = g_.ldb;
      p.transposed = true;
    } else {
      pack(p);
    }
    return p;
  }

  // Copies a panel's numbers into rows of 32 floats.
  void pack(Panel& p) noexcept {
    const std::size_t bytes = g_.b_type == FloatType::kF32 ? 4 : 2;
    const std::size_t at = g_.trans_b ? p.n0 * g_.ldb + p.k0 : p.k0 * g_.ldb + p.n0;
    float* const packed = floats_of(p);
    gemm_table_avx512.weights.pack(p.cols, p.k, static_cast<const std::uint8_t*>(g_.b) + at * bytes, g_.b_type, g_.ldb,
                                   g_.trans_b, packed, 0, p.cols);
    p.b = packed;
    p.ldb = kPanelColumns;
    p.transposed = false;
  }

  float* floats_of(const Panel& p) const noexcept { return floats_ + (p.room == split_b_ ? 0 : kPanel); }

  // What its numbers are, also of a panel that was split beforehand.
  Panel in_numbers(Panel p) noexcept {
    if (p.transposed) pack(p);
    if (p.splits == Panel::kReady) {
      join_panel<kPieces>(p.split, p.k, floats_of(p));
      p.b = floats_of(p);
    }
    return p;
  }

  static PanelSplit<kPieces> split(const Panel& p) noexcept {
    if (p.splits == Panel::kReady || p.splits == Panel::kNever) return {};
    if (p.splits == Panel::kKnown) return PanelSplit<kPieces>::known(p.b, p.ldb, p.k, p.room);
    return p.transposed ? PanelSplit<kPieces>::transposed(p.b, p.ldb, p.k, p.cols, p.room)
                        : PanelSplit<kPieces>(p.b, p.ldb, p.k, p.room);
  }

  // Rows of A from `row` and `k0` on, for a pair of tiles; none where there are no more.
  RowsSplit<kPieces> rows_at(std::size_t row, std::size_t k0, std::uint8_t* to) const noexcept {
    if (row >= rows_ || k0 >= g_.k) return {};
    return {a_ + row * g_.lda + k0, g_.lda, smaller(2 * kTileRows, rows_ - row), smaller(block_, g_.k - k0), to};
  }

  void multiply_panel(const Panel& p, bool splits) noexcept {
    const bool first = p.n0 == n_begin_;  // of this block of K: A is split beside it
    const std::size_t steps = steps_of(p.k), tile_bytes = split_bytes(p.k, 1, kPieces);
    const std::size_t calls = steps * kCallsBeside<kPieces>;
    const std::size_t pairs = divide_up(next_.left(), divide_up(rows_, 2 * kTileRows) * calls),
                      slices = divide_up(steps * 2 * kTileRows, calls), finished = divide_up(2 * kTileRows, calls);
    const std::size_t lines = divide_up(coming_.left(), divide_up(rows_, 2 * kTileRows) * calls);
    RowsSplit<kPieces> rows;
    if (first) {
      a_splits_ = 0;
      rows = rows_at(0, p.k0, split_a_);
    }
    for (std::size_t row = 0; row < rows_; row += 2 * kTileRows) {
      const std::size_t pair = row / (2 * kTileRows), count = smaller(2 * kTileRows, rows_ - row);
      if (first) {
        rows.advance(rows.left());
        if (rows.splits()) a_splits_ |= bit(pair);
        rows = rows_at(row + 2 * kTileRows, p.k0, split_a_ + 2 * (pair + 1) * tile_bytes);
      }
      const std::uint8_t *a0 = split_a_ + 2 * pair * tile_bytes, *a1 = a0 + tile_bytes;
      const TileOutput output = output_at(g_, m0_ + row, count, p.n0, p.cols, p.k0 == 0, p.k0 + p.k == g_.k);
      float* const sums = sums_[pair % 2];
      OutputFetch fetch(output);
      const auto beside = [&]() __attribute__((always_inline)) {
        finish_.advance(larger(finished, finish_.portion()));
        rows.advance(slices);
        next_.advance(pairs);
        coming_.advance(lines);
        fetch.advance(finished);
      };
      if (splits && (a_splits_ & bit(pair)) != 0) {
        multiply_pair(steps, a0, a1, p.split, output, sums, beside);
      } else {
        multiply_plain(in_numbers(p), row, count, sums);
        finish_tile(output, sums);
      }
    }
    if (divide_up(rows_, 2 * kTileRows) % 2 != 0) finish_.complete();  // its sums are the next panel's first
  }

  // One or two tiles of A, as the output has rows, by a panel's.
  template <typename Beside>
  void multiply_pair(std::size_t steps, const std::uint8_t* a0, const std::uint8_t* a1, const std::uint8_t* panel,
                     const TileOutput& output, float* sums, const Beside& beside) noexcept {
    if (is_plain(output)) {
      multiply_tiles<kPieces, 2>(steps, a0, a1, panel_tiles<kPieces>(panel), output.c, beside, output.ldc);
      return finish_.complete();
    }
    if (output.rows > kTileRows) {
      multiply_tiles<kPieces, 2>(steps, a0, a1, panel_tiles<kPieces>(panel), sums, beside);
    } else {
      multiply_tiles<kPieces, 1>(steps, a0, a0, panel_tiles<kPieces>(panel), sums, beside);
    }
    finish_tile(output, sums);
  }

  // The tile before is finished by now; these sums come next.
  void finish_tile(const TileOutput& output, float* sums) noexcept {
    finish_.complete();
    finish_ = TileFinish(*gemm_table_avx512.tiles, output, sums);
  }

  void multiply_plain(const Panel& p, std::size_t row, std::size_t count, float* sums) const noexcept {
    const GemmTiles& plain = *gemm_table_avx512.tiles;
    for (std::size_t r = 0; r < count; r += plain.mr) {
      const std::size_t some = smaller(plain.mr, count - r);
      plain.accumulate[some - 1][kPanelColumns / plain.lanes - 1](p.k, a_ + (row + r) * g_.lda + p.k0, g_.lda, p.b,
                                                                  p.ldb, sums + r * kPanelColumns);
    }
  }

  const GemmArgs& g_;
  const float* a_;
  std::size_t m0_, rows_, n_begin_, n_end_, block_;
  std::uint8_t *split_a_, *split_b_;
  float* floats_;
  std::uint32_t a_splits_ = 0;  // by pairs of row tiles
  bool odd_ = false;            // which halves of split_b_ and floats_ the last panel has
  PanelSplit<kPieces> next_;
  LineFetch coming_;
  TileFinish finish_;
  alignas(64) float sums_[2][2 * kTileRows * kPanelColumns];
};

template <int kPieces>
void multiply(const GemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  const std::size_t rows = range.m_end - range.m_begin;
  if (pieces_of(g)) {
    bool all = true;  // could be split
    for (std::size_t n = range.n_begin; n < range.n_end; n += kPanelColumns) all = all && is_split<kPieces>(g, n);
    if (!all && g.b) {
      GemmArgs whole = g;
      whole.packed_b = {};
      return multiply<kPieces>(whole, range, scratch);
    }
    const std::size_t panels = divide_up(range.n_end - range.n_begin, kPanelColumns);
    if (all && panels * panel_bytes<kPieces>(g.packed_b.k) <= kNearBytes) {
      const TileSession tiles;
      return RowBlock<kPieces>(g, range.m_begin, rows, range, scratch).multiply_split();
    }
  }
  const TileSession tiles;
  const std::size_t block = divide_up(divide_up(rows, divide_up(rows, kMostRows)), 2 * kTileRows) * 2 * kTileRows;
  for (std::size_t m0 = range.m_begin; m0 < range.m_end; m0 += block)
    RowBlock<kPieces>(g, m0, smaller(block, range.m_end - m0), range, scratch).multiply();
}

// ---- What the tables share ----

inline void dgemm(const DgemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  gemm_table_avx512.dgemm(g, range, scratch);
}

// An operand's packing: float32 numbers in pieces.
constexpr const char* kPiecesNames[] = {"gemm.amx.pieces1", "gemm.amx.pieces2", "gemm.amx.pieces3"};
inline PackedForm pieces_form(std::size_t) noexcept { return PackedForm::kBf16Pieces; }
template <int kPieces>
std::size_t pieces_bytes(std::size_t n, std::size_t k) noexcept {
  return divide_up(n, kPanelColumns) * panel_bytes<kPieces>(k);
}
template <int kPieces>
void pack_pieces(std::size_t n, std::size_t k, const void* b, FloatType, std::size_t ldb, bool trans_b, void* out,
                 std::size_t n_begin, std::size_t n_end) noexcept {
  const auto* const numbers = static_cast<const float*>(b);
  auto* panel = static_cast<std::uint8_t*>(out) + n_begin / kPanelColumns * panel_bytes<kPieces>(k);
  for (std::size_t n0 = n_begin; n0 < n_end; n0 += kPanelColumns, panel += panel_bytes<kPieces>(k)) {
    const std::size_t columns = smaller(kPanelColumns, n - n0);
    PanelSplit<kPieces> split = trans_b ? PanelSplit<kPieces>::transposed(numbers + n0 * ldb, ldb, k, columns, panel)
                                        : PanelSplit<kPieces>(numbers + n0, ldb, k, panel, columns);
    split.advance(split.left());
    panel[tiles_bytes<kPieces>(k)] = split.splits();
  }
}

// A table of the matrix unit whose products are of so many pieces.
template <int kPieces>
constexpr GemmTable table_of(const char* name, const GemmPacking& weights,
                             void (*gemm)(const GemmArgs&, const GemmRange&, float*) noexcept) noexcept {
  return {.name = name,
          .mr = 2 * kTileRows,
          .nr = kPanelColumns,
          .scratch_floats = kScratchFloats,
          .prepared_floats = 0,
          .matrix_unit = true,
          .splits = true,
          .rounds = false,
          .row_cost = 14,
          .weights = weights,
          .operand = {kPiecesNames[kPieces - 1], 1, pieces_form, pieces_bytes<kPieces>, pack_pieces<kPieces>},
          .gemm = gemm,
          .dgemm = dgemm,
          .tiles = nullptr};
}

}  // namespace
}  // namespace infernode::microkernels
