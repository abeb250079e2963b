#include "microkernels/gemm.h"

#include "microkernels/amx_tiles.h"
#include "microkernels/gemm_output.simd.h"

// Products of many rows on the matrix unit; few rows, other types and numbers that cannot be split go to the AVX-512
// kernels, whose packed form of B this table shares.
namespace infernode::microkernels {

extern const GemmTable gemm_table_avx512;

namespace {

constexpr std::size_t kFewRows = 32;     // below, splitting B costs more than the products save,
constexpr std::size_t kVeryFewRows = 8;  // and so do half-empty tiles
constexpr std::size_t kMostRows = 256;   // of A, split at a time: with a block of K they fit the second-level cache

constexpr std::size_t kSplitA = split_bytes(kGemmBlockK, kMostRows / kTileRows, 3);
constexpr std::size_t kSplitB = split_bytes(kGemmBlockK, kPanelTiles, 3);
constexpr std::size_t kPanel = kGemmBlockK * kPanelColumns;  // floats
constexpr std::size_t kScratchFloats = (kSplitA + 2 * kSplitB) / sizeof(float) + 2 * kPanel;
static_assert(kMostRows / (2 * kTileRows) <= 32);  // bits of a mask

bool fits(const GemmArgs& g) noexcept {
  return g.m >= (g.split_b ? kVeryFewRows : kFewRows) && g.k >= kTileDepth && g.a_type == FloatType::kF32 &&
         !g.trans_a && !g.b_quantized;
}

// A B that was split beforehand: panel after panel, each with all of K and a line that begins with whether it could be.
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

// Blocks of K of whole steps.
std::size_t block_of(std::size_t k) noexcept { return steps_of(gemm_block_k(k)) * kTileDepth; }
static_assert(kGemmBlockK % kTileDepth == 0);

std::uint32_t bit(std::size_t i) noexcept { return 1u << i; }

// A block of K of 32 columns of B: where its numbers are, and where they go when they are split.
struct Panel {
  std::size_t k0, k, n0, cols;
  const float* b;
  std::size_t ldb;
  bool transposed;
  std::uint8_t* split;
  bool known = false;  // that it can be split
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
      const bool splits = next_.splits();
      if (!splits && panel.transposed) pack(panel);
      const bool last_panel = panel.n0 + kPanelColumns >= n_end_, last = last_panel && panel.k0 + panel.k == g_.k;
      Panel following = panel;
      if (last) {
        next_ = {};
      } else {
        following = last_panel ? panel_at(panel.k0 + panel.k, n_begin_) : panel_at(panel.k0, panel.n0 + kPanelColumns);
        next_ = split(following);
      }
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
    bool odd = false;
    RowsSplit<kPieces> rows = rows_to(0, 0, odd);
    for (std::size_t k0 = 0; k0 < g_.k; k0 += block_) {
      const std::size_t k = smaller(block_, g_.k - k0), steps = steps_of(k), calls = steps * kCalls;
      const std::size_t finished = divide_up(2 * kTileRows, calls);
      for (std::size_t row = 0; row < rows_; row += 2 * kTileRows) {
        const std::size_t count = smaller(2 * kTileRows, rows_ - row);
        rows.advance(rows.left());
        const bool splits = rows.splits();
        const std::uint8_t *a0 = split_a_ + (odd ? kSplitA / 2 : 0), *a1 = a0 + split_bytes(k, 1, kPieces);
        odd = !odd;
        rows = row + 2 * kTileRows < rows_ ? rows_to(row + 2 * kTileRows, k0, odd) : rows_to(0, k0 + block_, odd);
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
            multiply_pair(steps, a0, a1, split_panel_of(g_, n0, k0), output, sums, beside);
          } else {
            const Panel p = plain_panel(k0, n0);
            multiply_plain(p, row, count, sums);
            finish_tile(output, sums);
          }
        }
      }
    }
    finish_.complete();
  }

 private:
  Panel panel_at(std::size_t k0, std::size_t n0) noexcept {
    Panel p{k0,     smaller(block_, g_.k - k0), n0, smaller(kPanelColumns, n_end_ - n0), nullptr, kPanelColumns, false,
            nullptr};
    odd_ = !odd_;
    p.split = split_b_ + (odd_ ? kSplitB : 0);
    if (g_.packed_b) {
      const std::size_t depth = g_.packed_depth();
      p.b = g_.packed_b + n0 * depth + k0 * kPanelColumns;
      p.known = g_.packed_b[gemm_table_avx512.packed_b_floats(g_.n, depth) + n0 / kPanelColumns] != 0.0f;
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
    float* const packed = floats_ + (p.split == split_b_ ? 0 : kPanel);
    gemm_table_avx512.pack_b(p.cols, p.k, static_cast<const std::uint8_t*>(g_.b) + at * bytes, g_.b_type, g_.ldb,
                             g_.trans_b, packed, 0, p.cols);
    p.b = packed;
    p.ldb = kPanelColumns;
    p.transposed = false;
  }

  static PanelSplit<kPieces> split(const Panel& p) noexcept {
    if (p.known) return PanelSplit<kPieces>::known(p.b, p.ldb, p.k, p.split);
    return p.transposed ? PanelSplit<kPieces>::transposed(p.b, p.ldb, p.k, p.cols, p.split)
                        : PanelSplit<kPieces>(p.b, p.ldb, p.k, p.split);
  }

  // Rows of A from `row` on, for a pair of tiles.
  RowsSplit<kPieces> rows_at(const Panel& p, std::size_t row) const noexcept {
    if (row >= rows_) return {};
    return {a_ + row * g_.lda + p.k0, g_.lda, smaller(2 * kTileRows, rows_ - row), p.k,
            split_a_ + row / kTileRows * split_bytes(p.k, 1, kPieces)};
  }

  void multiply_panel(const Panel& p, bool splits) noexcept {
    const bool first = p.n0 == n_begin_;  // of this block of K: A is split beside it
    const std::size_t steps = steps_of(p.k), tile_bytes = split_bytes(p.k, 1, kPieces);
    const std::size_t calls = steps * kCallsBeside<kPieces>;
    const std::size_t pairs = divide_up(next_.left(), divide_up(rows_, 2 * kTileRows) * calls),
                      slices = divide_up(steps * 2 * kTileRows, calls), finished = divide_up(2 * kTileRows, calls);
    RowsSplit<kPieces> rows;
    if (first) {
      a_splits_ = 0;
      rows = rows_at(p, 0);
    }
    for (std::size_t row = 0; row < rows_; row += 2 * kTileRows) {
      const std::size_t pair = row / (2 * kTileRows), count = smaller(2 * kTileRows, rows_ - row);
      if (first) {
        rows.advance(rows.left());
        if (rows.splits()) a_splits_ |= bit(pair);
        rows = rows_at(p, row + 2 * kTileRows);
      }
      const std::uint8_t *a0 = split_a_ + 2 * pair * tile_bytes, *a1 = a0 + tile_bytes;
      const TileOutput output = output_at(g_, m0_ + row, count, p.n0, p.cols, p.k0 == 0, p.k0 + p.k == g_.k);
      float* const sums = sums_[pair % 2];
      OutputFetch fetch(output);
      const auto beside = [&]() __attribute__((always_inline)) {
        finish_.advance(larger(finished, finish_.portion()));
        rows.advance(slices);
        next_.advance(pairs);
        fetch.advance(finished);
      };
      if (splits && (a_splits_ & bit(pair)) != 0) {
        multiply_pair(steps, a0, a1, p.split, output, sums, beside);
      } else {
        multiply_plain(p, row, count, sums);
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

  static const std::uint8_t* split_panel_of(const GemmArgs& g, std::size_t n0, std::size_t k0) noexcept {
    return g.split_b + n0 / kPanelColumns * panel_bytes<kPieces>(g.packed_depth()) +
           k0 / kTileDepth * kStepBytes<kPieces>;
  }

  // Rows of A from `row` and `k0` on, for a pair of tiles; none where there are no more.
  RowsSplit<kPieces> rows_to(std::size_t row, std::size_t k0, bool odd) const noexcept {
    if (k0 >= g_.k) return {};
    return {a_ + row * g_.lda + k0, g_.lda, smaller(2 * kTileRows, rows_ - row), smaller(block_, g_.k - k0),
            split_a_ + (odd ? kSplitA / 2 : 0)};
  }

  Panel plain_panel(std::size_t k0, std::size_t n0) noexcept {
    Panel p = panel_at(k0, n0);
    if (p.transposed) pack(p);
    return p;
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
  TileFinish finish_;
  alignas(64) float sums_[2][2 * kTileRows * kPanelColumns];
};

// Whether all columns of the range could be split beforehand.
template <int kPieces>
bool is_split(const GemmArgs& g, const GemmRange& range) noexcept {
  const std::size_t k = g.packed_depth();
  for (std::size_t n = range.n_begin; n < range.n_end; n += kPanelColumns) {
    if (g.split_b[n / kPanelColumns * panel_bytes<kPieces>(k) + tiles_bytes<kPieces>(k)] == 0) return false;
  }
  return true;
}

template <int kPieces>
void multiply(const GemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  const TileSession tiles;
  const std::size_t rows = range.m_end - range.m_begin;
  if (g.split_b && is_split<kPieces>(g, range)) {
    return RowBlock<kPieces>(g, range.m_begin, rows, range, scratch).multiply_split();
  }
  const std::size_t block = divide_up(divide_up(rows, divide_up(rows, kMostRows)), 2 * kTileRows) * 2 * kTileRows;
  for (std::size_t m0 = range.m_begin; m0 < range.m_end; m0 += block)
    RowBlock<kPieces>(g, m0, smaller(block, range.m_end - m0), range, scratch).multiply();
}

void gemm(const GemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  if (range.m_begin >= range.m_end || range.n_begin >= range.n_end) return;
  if (!fits(g)) {
    gemm_table_avx512.gemm(g, range, scratch);
    return;
  }
  with_pieces(g.precision, [&]<int kPieces>() { multiply<kPieces>(g, range, scratch); });
}

// Behind the panels of the AVX-512 kernels a number for each: 1 where all of its numbers can be split.
std::size_t packed_b_floats(std::size_t n, std::size_t k) noexcept {
  return gemm_table_avx512.packed_b_floats(n, k) + divide_up(divide_up(n, kPanelColumns), std::size_t{16}) * 16;
}
void pack_b(std::size_t n, std::size_t k, const void* b, FloatType type, std::size_t ldb, bool trans_b, float* out,
            std::size_t n_begin, std::size_t n_end) noexcept {
  gemm_table_avx512.pack_b(n, k, b, type, ldb, trans_b, out, n_begin, n_end);
  float* const marks = out + gemm_table_avx512.packed_b_floats(n, k);
  for (std::size_t n0 = n_begin; n0 < n_end; n0 += kPanelColumns)
    marks[n0 / kPanelColumns] = all_split(out + n0 * k, k * kPanelColumns) ? 1.0f : 0.0f;
}
void dgemm(const DgemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  gemm_table_avx512.dgemm(g, range, scratch);
}

std::size_t split_b_bytes(std::size_t n, std::size_t k, Float32Precision precision) noexcept {
  std::size_t bytes = 0;
  with_pieces(precision, [&]<int kPieces>() { bytes = divide_up(n, kPanelColumns) * panel_bytes<kPieces>(k); });
  return bytes;
}
void split_b(std::size_t n, std::size_t k, const float* b, std::size_t ldb, bool trans_b, Float32Precision precision,
             std::uint8_t* out) noexcept {
  with_pieces(precision, [&]<int kPieces>() {
    for (std::size_t n0 = 0; n0 < n; n0 += kPanelColumns, out += panel_bytes<kPieces>(k)) {
      const std::size_t columns = smaller(kPanelColumns, n - n0);
      PanelSplit<kPieces> split = trans_b ? PanelSplit<kPieces>::transposed(b + n0 * ldb, ldb, k, columns, out)
                                          : PanelSplit<kPieces>(b + n0, ldb, k, out, columns);
      split.advance(split.left());
      out[tiles_bytes<kPieces>(k)] = split.splits();
    }
  });
}
constexpr GemmSplitting kSplitting{split_b_bytes, split_b};

}  // namespace

extern const GemmTable gemm_table_amx;
constexpr GemmTable gemm_table_amx = {"amx",  2 * kTileRows, kPanelColumns, kScratchFloats, packed_b_floats,
                                      pack_b, gemm,          dgemm,         nullptr,        &kSplitting};

}  // namespace infernode::microkernels
