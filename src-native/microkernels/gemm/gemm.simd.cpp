#include "microkernels/gemm/gemm.h"

#include "microkernels/gemm/detail/few_rows.simd.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kMaxRows = 192;           // rows of A that are packed at a time; a multiple of every kMr
constexpr std::size_t kLda = kGemmBlockK + 16;  // spreads the rows of a packed A over the cache sets
static_assert(kMaxRows % kMr == 0 && kMr * kNr <= GemmTiles::kMaxFloats && kNv <= GemmTiles::kMaxVectors);

constexpr std::size_t kScratchA = kMaxRows * kLda;
constexpr std::size_t kScratchB = kGemmBlockK * kNr;

template <std::size_t kRows, std::size_t kVectors>
void accumulate(std::size_t k, const float* a, std::size_t lda, const float* b, std::size_t ldb, float* tile) noexcept {
  sum_tile<kRows, kVectors>(
      k, a, lda, [=](std::size_t p) { return b + p * ldb; }, true, tile);
}

// The same of a whole panel of packed weights, while lines of the next one, which begins at `ahead`, are fetched: with
// each row of B every kEvery-th of them from there on.
constexpr std::size_t kLine = 16;
template <std::size_t kRows, std::size_t kEvery>
void accumulate_ahead(std::size_t k, const float* a, std::size_t lda, const float* b, const float* ahead,
                      float* tile) noexcept {
  sum_tile<kRows, kNv>(
      k, a, lda, [=](std::size_t p) { return b + p * kNr; }, true, tile, kNr,
      [=](std::size_t p) {
        INFERNODE_UNROLL
        for (std::size_t i = 0; i < kNr; i += kEvery * kLine) __builtin_prefetch(ahead + p * kNr + i, 0, 2);
      });
}

constexpr GemmTiles make_tiles() {
  GemmTiles tiles{kMr, kNr, kLanes, {}, finish};
  fill_by_size(tiles.accumulate, []<std::size_t kRows, std::size_t kVectors>() { return accumulate<kRows, kVectors>; });
  return tiles;
}
constexpr GemmTiles kTiles = make_tiles();

// By rows - 1, and whether it fetches every line or every other one.
struct AheadTiles {
  void (*accumulate[kMr][2])(std::size_t k, const float* a, std::size_t lda, const float* b, const float* ahead,
                             float* tile) noexcept;
};
template <std::size_t kRows = kMr>
constexpr void fill_ahead(AheadTiles& tiles) {
  if constexpr (kRows > 0) {
    tiles.accumulate[kRows - 1][0] = accumulate_ahead<kRows, 1>;
    tiles.accumulate[kRows - 1][1] = accumulate_ahead<kRows, 2>;
    fill_ahead<kRows - 1>(tiles);
  }
}
constexpr AheadTiles make_ahead() {
  AheadTiles tiles{};
  fill_ahead(tiles);
  return tiles;
}
constexpr AheadTiles kAheadTiles = make_ahead();

PackedForm packed_form(std::size_t) noexcept { return PackedForm::kFloats; }
std::size_t packed_bytes(std::size_t n, std::size_t k) noexcept { return divide_up(n, kNr) * kNr * k * sizeof(float); }

// Panel after panel of kNr columns, each with all of K.
void pack_b(std::size_t n, std::size_t k, const void* b, FloatType type, std::size_t ldb, bool trans_b, void* out,
            std::size_t n_begin, std::size_t n_end) noexcept {
  auto* const floats = static_cast<float*>(out);
  with_type(type, [&]<Stored kType>() {
    for (std::size_t n0 = n_begin; n0 < n_end; n0 += kNr) {
      pack_b_panel<kType>(b, ldb, trans_b, 0, k, n0, smaller(kNr, n - n0), floats + n0 * k);
    }
  });
}

// ---- Drivers ----

// Rows [m0, m0 + rows) of C, all columns of the range, in blocks of K.
void multiply_rows(const GemmArgs& g, std::size_t m0, std::size_t rows, std::size_t n_begin, std::size_t n_end,
                   float* scratch) noexcept {
  float* const packed_a = scratch;
  float* const panel = scratch + kScratchA;
  const float* const packed_b = g.packed_b.floats();
  alignas(64) float tile[GemmTiles::kMaxFloats];
  const std::size_t block = larger(gemm_block_k(g.k), std::size_t{1});
  // Rows are dealt out evenly over the register tiles: no tile is much emptier than another.
  const std::size_t tiles = divide_up(rows, kMr);
  std::size_t k0 = 0;
  do {
    const std::size_t k = smaller(block, g.k - k0);
    const bool first = k0 == 0, last = k0 + k == g.k;
    with_type(g.a_type, [&]<Stored kType>() { pack_a<kType>(g.a, g.lda, g.trans_a, m0, rows, k0, k, packed_a, kLda); });
    for (std::size_t n0 = n_begin; n0 < n_end; n0 += kNr) {
      const std::size_t cols = smaller(kNr, n_end - n0);
      const float* b = panel;
      std::size_t ldb = kNr;
      if (packed_b) {
        b = packed_b + n0 * g.packed_b.k + k0 * kNr;
      } else if (tiles == 1 && cols == kNr && !g.trans_b && g.b_type == FloatType::kF32 && !g.b_quantized) {
        b = static_cast<const float*>(g.b) + k0 * g.ldb + n0;
        ldb = g.ldb;
      } else {
        with_b_type(g, [&]<Stored kType>() {
          if constexpr (kIsCode<kType>) {
            if (!g.trans_b && cols == kNr) return pack_codes<kType>(*g.b_quantized, g.b, g.ldb, k0, k, n0, panel);
          }
          pack_b_panel<kType>(g.b, g.ldb, g.trans_b, k0, k, n0, cols, panel);
          if (g.b_quantized) dequantize_panel(*g.b_quantized, k, n0, cols, panel);
        });
      }
      const std::size_t vectors = divide_up(cols, kLanes);
      for (std::size_t t = 0; t < tiles; ++t) {
        const std::size_t r0 = t * rows / tiles, r1 = (t + 1) * rows / tiles;
        // The next panel comes from far away: the first tiles, that read this one from near, fetch it.
        if (packed_b && n0 + kNr < n_end && t < 2 && (t == 0 || kNr > kLine)) {
          const float* const ahead = b + kNr * g.packed_b.k + t * kLine;
          kAheadTiles.accumulate[r1 - r0 - 1][tiles > 1](k, packed_a + r0 * kLda, kLda, b, ahead, tile);
        } else {
          kTiles.accumulate[r1 - r0 - 1][vectors - 1](k, packed_a + r0 * kLda, kLda, b, ldb, tile);
        }
        finish(output_at(g, m0 + r0, r1 - r0, n0, cols, first, last), tile);
      }
    }
    k0 += k;
  } while (k0 < g.k);
}

void gemm(const GemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  if (range.m_begin >= range.m_end || range.n_begin >= range.n_end) return;
  const std::size_t rows = range.m_end - range.m_begin;
  if (is_skinny(g) && g.packed_b.floats()) {
    return with_rows(g.m, [&]<std::size_t kRows>() { skinny_packed<kRows>(g, range); });
  }
  if (is_skinny(g)) {
    const GemmArgs part = rows_of(g, range);
    return with_rows(rows, [&]<std::size_t kRows>() { skinny_rows<kRows>(part, range); });
  }
  const std::size_t blocks = divide_up(rows, kMaxRows);
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t m0 = range.m_begin + i * rows / blocks, m1 = range.m_begin + (i + 1) * rows / blocks;
    multiply_rows(g, m0, m1 - m0, range.n_begin, range.n_end, scratch);
  }
}

// ---- float64 ----

constexpr std::size_t kDoubleRows = 4, kDoubleColumns = kNv * kDoubleLanes, kDoubleBlockK = 256;

void dgemm(const DgemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  double* const panel = reinterpret_cast<double*>(scratch);     // [kDoubleBlockK][kDoubleColumns]
  double* const rows = panel + kDoubleBlockK * kDoubleColumns;  // [kDoubleBlockK][kDoubleRows]
  std::size_t k0 = 0;
  do {
    const std::size_t k = smaller(kDoubleBlockK, g.k - k0);
    const bool add = k0 > 0 || g.accumulate;
    for (std::size_t n0 = range.n_begin; n0 < range.n_end; n0 += kDoubleColumns) {
      const std::size_t cols = smaller(kDoubleColumns, range.n_end - n0);
      for (std::size_t p = 0; p < k; ++p) {
        for (std::size_t c = 0; c < kDoubleColumns; ++c) {
          const std::size_t row = k0 + p, col = n0 + c;
          panel[p * kDoubleColumns + c] = c >= cols ? 0.0 : g.trans_b ? g.b[col * g.ldb + row] : g.b[row * g.ldb + col];
        }
      }
      for (std::size_t m0 = range.m_begin; m0 < range.m_end; m0 += kDoubleRows) {
        const std::size_t count = smaller(kDoubleRows, range.m_end - m0);
        for (std::size_t p = 0; p < k; ++p) {
          for (std::size_t r = 0; r < kDoubleRows; ++r) {
            const std::size_t row = m0 + r, col = k0 + p;
            rows[p * kDoubleRows + r] = r >= count ? 0.0 : g.trans_a ? g.a[col * g.lda + row] : g.a[row * g.lda + col];
          }
        }
        VecD sum[kDoubleRows][kNv];
        INFERNODE_UNROLL
        for (std::size_t r = 0; r < kDoubleRows; ++r) {
          INFERNODE_UNROLL
          for (std::size_t v = 0; v < kNv; ++v) sum[r][v] = set(0.0);
        }
        for (std::size_t p = 0; p < k; ++p) {
          INFERNODE_UNROLL
          for (std::size_t v = 0; v < kNv; ++v) {
            const VecD b = load(panel + p * kDoubleColumns + v * kDoubleLanes);
            INFERNODE_UNROLL
            for (std::size_t r = 0; r < kDoubleRows; ++r) sum[r][v] = fma(set(rows[p * kDoubleRows + r]), b, sum[r][v]);
          }
        }
        double tile[kDoubleRows][kDoubleColumns];
        INFERNODE_UNROLL
        for (std::size_t r = 0; r < kDoubleRows; ++r) {
          INFERNODE_UNROLL
          for (std::size_t v = 0; v < kNv; ++v) store(&tile[r][v * kDoubleLanes], sum[r][v]);
        }
        for (std::size_t r = 0; r < count; ++r) {
          double* c = g.c + (m0 + r) * g.ldc + n0;
          for (std::size_t i = 0; i < cols; ++i) c[i] = g.alpha * tile[r][i] + (add ? c[i] : 0.0);
        }
      }
    }
    k0 += k;
  } while (k0 < g.k);
}

static_assert(2 * kDoubleBlockK * (kDoubleColumns + kDoubleRows) <= kScratchA);

constexpr GemmPacking kPacking{INFERNODE_TARGET_NAME(INFERNODE_TARGET), 2, packed_form, packed_bytes, pack_b};

}  // namespace

INFERNODE_TABLE(GemmTable, gemm) = {.name = INFERNODE_TARGET_NAME(INFERNODE_TARGET),
                                    .mr = kMr,
                                    .nr = kNr,
                                    .scratch_floats = kScratchA + kScratchB,
                                    .prepared_floats = 0,
                                    .matrix_unit = false,
                                    .splits = false,
                                    .rounds = false,
                                    .row_cost = 8,
                                    .weights = kPacking,
                                    .operand = kPacking,
                                    .gemm = gemm,
                                    .dgemm = dgemm,
                                    .tiles = &kTiles};

}  // namespace infernode::microkernels
