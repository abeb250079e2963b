#include "microkernels/gemm/gemm.h"

#include "microkernels/gemm/detail/few_columns.simd.h"
#include "microkernels/gemm/detail/few_rows.simd.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kMaxRows = 192;           // rows of A that are copied at a time; a multiple of every kMr
constexpr std::size_t kLda = kGemmBlockK + 16;  // spreads the rows of a copied A over the cache sets
static_assert(kMaxRows % kMr == 0 && kMr * kNr <= GemmTiles::kMaxFloats && kNv <= GemmTiles::kMaxVectors);

constexpr std::size_t kScratchA = kMaxRows * kLda;
constexpr std::size_t kScratchB = kGemmBlockK * kNr;

template <std::size_t kRows, std::size_t kVectors>
void accumulate(std::size_t k, const float* a, std::size_t lda, const float* b, std::size_t ldb, float* tile) noexcept {
  sum_tile<kRows, kVectors>(
      k, a, lda, [=](std::size_t p) { return b + p * ldb; }, true, tile);
}

// The same in C itself, where sums are all that a product asks for.
template <std::size_t kRows, std::size_t kVectors>
void accumulate_into(std::size_t k, const float* a, std::size_t lda, const float* b, std::size_t ldb, float* c,
                     std::size_t ldc) noexcept {
  sum_tile<kRows, kVectors>(
      k, a, lda, [=](std::size_t p) { return b + p * ldb; }, true, c, ldc);
}

// By rows - 1 and vectors - 1.
struct DirectTiles {
  void (*accumulate[kMr][kNv])(std::size_t k, const float* a, std::size_t lda, const float* b, std::size_t ldb,
                               float* c, std::size_t ldc) noexcept;
};
constexpr DirectTiles make_direct() {
  DirectTiles tiles{};
  fill_by_size(tiles.accumulate,
               []<std::size_t kRows, std::size_t kVectors>() { return accumulate_into<kRows, kVectors>; });
  return tiles;
}
constexpr DirectTiles kDirectTiles = make_direct();

bool takes_sums(const GemmArgs& g) noexcept {
  const GemmEpilogue& e = g.epilogue;
  return g.alpha == 1.0f && !g.accumulate && !e.bias_n && !e.bias_m && !e.residual &&
         e.activation.kind == Activation::kNone;
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

// What of the product a call makes at a time: a block of K, rows of A as the register tile reads them, panels of B.
struct Block {
  std::size_t k0, k;
  const float* a;  // of row m0
  std::size_t m0, rows, lda;
  std::size_t n_begin, n_end;
  const float* panels;  // of B, packed in this call; null: B was packed before
  bool in_place;        // whole panels of B are read where they lie
  bool direct;          // sums are stored in C as they are
};

constexpr std::size_t kGroup = kScratchA / kScratchB;  // panels that are packed at a time for more rows than stay near
constexpr std::size_t kNearBytes = 256 << 10;          // of panels that stay near while all rows pass by

// Whether rows of A are copied before they are read: others than float32, and rows that fall on the same lines of a
// cache where many panels read them again.
bool copies_a(const GemmArgs& g, std::size_t panels) noexcept {
  constexpr std::size_t kSameLines = 1024, kMany = 8;
  return g.a_type != FloatType::kF32 || g.trans_a || (g.lda % kSameLines == 0 && panels >= kMany);
}

// The register tiles of one panel, from n0 on, with rows [r0, r1) of a block.
void multiply_tile(const GemmArgs& g, const Block& block, std::size_t n0, std::size_t r0, std::size_t r1,
                   std::size_t tile_index, std::size_t tiles) noexcept {
  alignas(64) float tile[GemmTiles::kMaxFloats];
  const std::size_t cols = smaller(kNr, block.n_end - n0), k = block.k;
  const float* const a = block.a + r0 * block.lda;
  const float* const packed = block.panels || block.in_place ? nullptr : g.packed_b.floats();
  // The next panel comes from far away: the first tiles, that read this one from near, fetch it.
  if (packed && n0 + kNr < block.n_end && tile_index < 2 && (tile_index == 0 || kNr > kLine)) {
    const float* const b = packed + n0 * g.packed_b.k + block.k0 * kNr;
    const float* const ahead = b + kNr * g.packed_b.k + tile_index * kLine;
    kAheadTiles.accumulate[r1 - r0 - 1][tiles > 1](k, a, block.lda, b, ahead, tile);
  } else {
    const std::size_t vectors = divide_up(cols, kLanes);
    const bool lies = block.in_place && cols == kNr;
    const float* const b = lies     ? static_cast<const float*>(g.b) + block.k0 * g.ldb + n0
                           : packed ? packed + n0 * g.packed_b.k + block.k0 * kNr
                                    : block.panels + (n0 - block.n_begin) / kNr * k * kNr;
    const std::size_t ldb = lies ? g.ldb : kNr;
    if (block.direct && cols % kLanes == 0)
      return kDirectTiles.accumulate[r1 - r0 - 1][vectors - 1](k, a, block.lda, b, ldb,
                                                               g.c + (block.m0 + r0) * g.ldc + n0, g.ldc);
    kTiles.accumulate[r1 - r0 - 1][vectors - 1](k, a, block.lda, b, ldb, tile);
  }
  const bool first = block.k0 == 0, last = block.k0 + k == g.k;
  finish(output_at(g, block.m0 + r0, r1 - r0, n0, cols, first, last), tile);
}

// Rows are dealt out evenly over the register tiles: no tile is much emptier than another.
void multiply_block(const GemmArgs& g, const Block& block) noexcept {
  const std::size_t tiles = divide_up(block.rows, kMr), panels = divide_up(block.n_end - block.n_begin, kNr);
  const auto make = [&](std::size_t t, std::size_t n0) {
    multiply_tile(g, block, n0, t * block.rows / tiles, (t + 1) * block.rows / tiles, t, tiles);
  };
  // What is read again and again is near: the panels, or the rows.
  if (panels * block.k * kNr * sizeof(float) <= kNearBytes) {
    for (std::size_t t = 0; t < tiles; ++t) {
      for (std::size_t n0 = block.n_begin; n0 < block.n_end; n0 += kNr) make(t, n0);
    }
    return;
  }
  for (std::size_t n0 = block.n_begin; n0 < block.n_end; n0 += kNr) {
    for (std::size_t t = 0; t < tiles; ++t) make(t, n0);
  }
}

// Panels of B, of a block of K, one after the other; those that are read in place are left out.
void pack_panels(const GemmArgs& g, const Block& block, float* out) noexcept {
  with_b_type(g, [&]<Stored kType>() {
    for (std::size_t n0 = block.n_begin; n0 < block.n_end; n0 += kNr, out += block.k * kNr) {
      const std::size_t cols = smaller(kNr, block.n_end - n0);
      if (block.in_place && cols == kNr) continue;
      if constexpr (kIsCode<kType>) {
        if (!g.trans_b && cols == kNr) {
          pack_codes<kType>(*g.b_quantized, g.b, g.ldb, block.k0, block.k, n0, out);
          continue;
        }
      }
      pack_b_panel<kType>(g.b, g.ldb, g.trans_b, block.k0, block.k, n0, cols, out);
      if (g.b_quantized) dequantize_panel(*g.b_quantized, block.k, n0, cols, out);
    }
  });
}

// Rows [m0, m0 + rows) of C in blocks of K: of each, groups of panels; by those, rows that stay near.
void multiply_rows(const GemmArgs& g, std::size_t m0, std::size_t rows, const GemmRange& range, bool copied,
                   float* scratch) noexcept {
  float* const panels = copied ? scratch + kScratchA : scratch;
  const bool packed = g.packed_b.floats() != nullptr;
  const std::size_t block_k = larger(gemm_block_k(g.k), std::size_t{1});
  Block block{};
  block.direct = block_k >= g.k && takes_sums(g);
  block.in_place = !packed && rows <= kMr && !g.trans_b && g.b_type == FloatType::kF32 && !g.b_quantized;
  std::size_t k0 = 0;
  do {
    block.k0 = k0;
    block.k = smaller(block_k, g.k - k0);
    if (copied)
      with_type(g.a_type,
                [&]<Stored kType>() { pack_a<kType>(g.a, g.lda, g.trans_a, m0, rows, k0, block.k, scratch, kLda); });
    block.lda = copied ? kLda : g.lda;
    const std::size_t near = copied ? rows : larger(kMaxRows, kScratchA / larger(block.k, std::size_t{1}) / kMr * kMr);
    const std::size_t parts = divide_up(rows, near);
    // A panel stays nearest where all rows use it up before the next one is packed.
    const std::size_t group = packed ? range.n_end - range.n_begin : (parts > 1 ? kGroup : 1) * kNr;
    for (std::size_t n = range.n_begin; n < range.n_end; n += group) {
      block.n_begin = n;
      block.n_end = smaller(range.n_end, n + group);
      block.panels = packed ? nullptr : panels;
      if (!packed) pack_panels(g, block, panels);
      for (std::size_t i = 0; i < parts; ++i) {
        const std::size_t first = i * rows / parts;
        block.m0 = m0 + first;
        block.rows = (i + 1) * rows / parts - first;
        block.a = copied ? scratch : static_cast<const float*>(g.a) + block.m0 * g.lda + k0;
        multiply_block(g, block);
      }
    }
    k0 += block.k;
  } while (k0 < g.k);
}

// The one that is asked for, where it can make the product.
GemmWay way_of(const GemmArgs& g) noexcept {
  const bool any = g.way != GemmWay::kTiles && g.way != GemmWay::kFewRows && g.way != GemmWay::kFewColumns;
  if ((any || g.way == GemmWay::kFewRows) && is_skinny(g)) return GemmWay::kFewRows;
  const bool fits = divide_up(g.k, kLanes) * kLanes * g.n <= kScratchA;
  if ((any || g.way == GemmWay::kFewColumns) && fits && is_narrow(g)) return GemmWay::kFewColumns;
  return GemmWay::kTiles;
}

void gemm(const GemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  if (range.m_begin >= range.m_end || range.n_begin >= range.n_end) return;
  const std::size_t rows = range.m_end - range.m_begin;
  const GemmWay way = way_of(g);
  if (way == GemmWay::kFewRows && g.packed_b.floats()) {
    return with_rows(g.m, [&]<std::size_t kRows>() { skinny_packed<kRows>(g, range); });
  }
  if (way == GemmWay::kFewRows) {
    const GemmArgs part = rows_of(g, range);
    return with_rows(rows, [&]<std::size_t kRows>() { skinny_rows<kRows>(part, range); });
  }
  if (way == GemmWay::kFewColumns) return narrow(g, range, scratch);
  const bool copied = copies_a(g, divide_up(range.n_end - range.n_begin, kNr));
  const std::size_t parts = copied ? divide_up(rows, kMaxRows) : 1;
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t m0 = range.m_begin + i * rows / parts, m1 = range.m_begin + (i + 1) * rows / parts;
    multiply_rows(g, m0, m1 - m0, range, copied, scratch);
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

constexpr GemmPacking kPacking{"gemm." INFERNODE_TARGET_NAME(INFERNODE_TARGET), 2, packed_form, packed_bytes, pack_b};

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
