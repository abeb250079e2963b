#pragma once

// Included by *.bf16.cpp and *.amx.cpp only: the driver of float32 products of medium precision, whose operands are
// rounded to words of two bfloat16 numbers (bf16_pairs.h). Packed weights take half as many bytes. 8-bit operands, and
// few rows by a B that is not packed, go to the AVX-512 kernels. So do short sums: they gain little, and who multiplies
// positions by frequencies of angles does not mean them to be rounded. A Kernel multiplies many rows by a panel:
//   static constexpr std::size_t kRows;      // of its largest tile
//   static constexpr std::size_t kBlockK;    // K is summed in blocks of at most so many, each a multiple of kUnitK
//   static constexpr std::size_t kUnitK;
//   void multiply(const PairsPanel& panel) noexcept;
//   void complete() noexcept;                // what `multiply` may have left to do
// It lives while products are made, and may read rows of words up to a whole tile.
// Rows of words end in zeros up to a whole vector.

#include "microkernels/common/bf16_pairs.h"
#include "microkernels/common/register_tile.simd.h"
#include "microkernels/common/tiles.h"
#include "microkernels/gemm/detail/output.simd.h"
#include "microkernels/gemm/gemm.h"

namespace infernode::microkernels {

namespace {

static_assert(kNr == kPairColumns);

constexpr std::size_t kSkinny = 4;          // up to this many rows the product is bound by reading B
constexpr std::size_t kSkinnyAhead = 2048;  // words of B, whose panels follow each other, that are fetched ahead then
constexpr std::size_t kLeastK = 32;         // of a sum that is worth it
constexpr std::size_t kMostRows = 384;      // however short they are
constexpr std::size_t kMostWords = 160 << 10;  // of A, rounded at a time: with a panel of B, in a cache of 1 MB
constexpr std::size_t kKeptWords = 320 << 10;  // of all blocks of K, of a PreparedA: with panels of B, in one of 2 MB

// Of words of A: whole vectors, and an odd number of them spreads rows over the cache sets.
constexpr std::size_t row_words(std::size_t k) noexcept { return (divide_up(pairs_of(k), std::size_t{16}) | 1) * 16; }

// Rows of A, rounded, times a panel of B, in a block of K.
struct PairsPanel {
  const GemmArgs& g;
  std::size_t m, rows, n, cols;  // of C
  bool first, last;              // of the blocks of K
  std::size_t pairs;
  const std::uint32_t* a;
  std::size_t lda;
  const std::uint32_t* b;
  const std::uint32_t* next;  // as many words of the panel that follows, or null
};

// Numbers of 16 bits, or a transposed A, become rows of float32 first, this many at a time.
constexpr std::size_t kChunk = 64;

INFERNODE_SIMD const void* element(const void* base, FloatType type, std::size_t i) noexcept {
  return static_cast<const std::uint8_t*>(base) + i * (type == FloatType::kF32 ? 4 : 2);
}

// A row of k numbers, in whole vectors.
INFERNODE_SIMD void round_into_vectors(const float* x, std::size_t k, std::uint32_t* out) noexcept {
  for (std::size_t p = 0; p < k; p += 32, out += 16) _mm512_storeu_si512(out, round_row(x + p, k - p));
}

// Few rows times packed panels: several sums per element hide the latency of the multiply-add.
template <std::size_t kRows>
void skinny_panel(std::size_t pairs, const std::uint32_t* a, std::size_t lda, const std::uint32_t* b,
                  float* tile) noexcept {
  constexpr std::size_t kChains = kRows == 1 ? 4 : kRows == 2 ? 2 : 1;
  __m512 sum[kChains][kRows][kNv];
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < kChains; ++i) {
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kNv; ++v) sum[i][r][v] = _mm512_setzero_ps();
    }
  }
  const auto add = [&](std::size_t p, __m512(&to)[kRows][kNv]) __attribute__((always_inline)) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kNv; ++v) {
      const std::uint32_t* const words = b + p * kPairColumns + v * 16;
      _mm_prefetch(reinterpret_cast<const char*>(words + kSkinnyAhead), _MM_HINT_T0);
      const __m512i row = _mm512_loadu_si512(words);
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r)
        to[r][v] = multiply_pairs(to[r][v], _mm512_set1_epi32(static_cast<int>(a[r * lda + p])), row);
    }
  };
  std::size_t p = 0;
  for (; p + kChains <= pairs; p += kChains) {
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < kChains; ++i) add(p + i, sum[i]);
  }
  for (; p < pairs; ++p) add(p, sum[0]);
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kNv; ++v) {
      __m512 total = sum[0][r][v];
      INFERNODE_UNROLL
      for (std::size_t i = 1; i < kChains; ++i) total = _mm512_add_ps(total, sum[i][r][v]);
      _mm512_storeu_ps(tile + r * kPairColumns + v * 16, total);
    }
  }
}

INFERNODE_SIMD void copy_into_vectors(const std::uint16_t* x, std::size_t k, std::uint32_t* out) noexcept {
  for (; k >= 32; k -= 32, x += 32, out += 16) _mm512_storeu_si512(out, _mm512_loadu_si512(x));
  if (k > 0) _mm512_storeu_si512(out, _mm512_maskz_loadu_epi16((1u << k) - 1u, x));
}

template <typename Kernel>
struct GemmOfPairs {
  static constexpr std::size_t kPanelWords = Kernel::kBlockK / 2 * kPairColumns;
  // The AVX-512 kernel's among them.
  static constexpr std::size_t kScratchFloats =
      larger(kMostWords + kPanelWords, 192 * (kGemmBlockK + 16) + kGemmBlockK * kNr);

  static std::size_t block_of(std::size_t k) noexcept {
    if (k <= Kernel::kBlockK) return larger(k, std::size_t{1});
    const std::size_t blocks = divide_up(k, Kernel::kBlockK);
    return divide_up(divide_up(k, blocks), Kernel::kUnitK) * Kernel::kUnitK;
  }

  // How many rows are rounded at a time: the more, the fewer times B is read.
  static constexpr std::size_t rows_at_once(std::size_t block) noexcept {
    return smaller(kMostRows, kMostWords / row_words(block)) / Kernel::kRows * Kernel::kRows;
  }
  static_assert(rows_at_once(Kernel::kBlockK) > 0);
  // Rows that a tile reads behind the last one are memory, too.
  static constexpr std::size_t kBehind = (Kernel::kRows - 1) * row_words(Kernel::kBlockK);
  static_assert(kBehind <= kPanelWords);

  // A panel of B: rows [k0, k0 + k), `cols` columns from n0 on.
  static void pack_panel(const void* b, FloatType type, std::size_t ldb, bool trans, std::size_t k0, std::size_t k,
                         std::size_t n0, std::size_t cols, std::uint32_t* out) noexcept {
    if (type == FloatType::kF32) {
      const auto* const numbers = static_cast<const float*>(b);
      if (trans) return round_columns(numbers + n0 * ldb + k0, ldb, k, cols, out);
      if (cols == kPairColumns) return round_panel(numbers + k0 * ldb + n0, ldb, k, out);
    }
    alignas(64) float chunk[kChunk * kPairColumns];
    for (std::size_t p = 0; p < k; p += kChunk) {
      const std::size_t rows = smaller(kChunk, k - p), at = trans ? n0 * ldb + k0 + p : (k0 + p) * ldb + n0;
      gemm_table_avx512.weights.pack(cols, rows, element(b, type, at), type, ldb, trans, chunk, 0, cols);
      round_panel(chunk, kPairColumns, rows, out + p / 2 * kPairColumns);
    }
  }

  static PackedForm packed_form(std::size_t k) noexcept {
    return k < kLeastK ? PackedForm::kFloats : PackedForm::kBf16Pairs;
  }
  static std::size_t packed_bytes(std::size_t n, std::size_t k) noexcept {
    if (k < kLeastK) return gemm_table_avx512.weights.bytes(n, k);
    return divide_up(n, kPairColumns) * kPairColumns * pairs_of(k) * sizeof(std::uint32_t);
  }

  static void pack_b(std::size_t n, std::size_t k, const void* b, FloatType type, std::size_t ldb, bool trans_b,
                     void* out, std::size_t n_begin, std::size_t n_end) noexcept {
    if (k < kLeastK) return gemm_table_avx512.weights.pack(n, k, b, type, ldb, trans_b, out, n_begin, n_end);
    auto* const words = static_cast<std::uint32_t*>(out);
    for (std::size_t n0 = n_begin; n0 < n_end; n0 += kPairColumns)
      pack_panel(b, type, ldb, trans_b, 0, k, n0, smaller(kPairColumns, n - n0), words + n0 * pairs_of(k));
  }

  // Rows [m0, m0 + rows) of A, k numbers of each from k0 on; rows of words `lda` apart.
  static void pack_a(const GemmArgs& g, std::size_t m0, std::size_t rows, std::size_t k0, std::size_t k,
                     std::uint32_t* out, std::size_t lda) noexcept {
    if (g.a_type == FloatType::kF32 && !g.trans_a) {
      const float* from = static_cast<const float*>(g.a) + m0 * g.lda + k0;
      for (std::size_t r = 0; r < rows; ++r) round_into_vectors(from + r * g.lda, k, out + r * lda);
      return;
    }
    if (g.a_type == FloatType::kBf16 && !g.trans_a) {
      const std::uint16_t* from = static_cast<const std::uint16_t*>(g.a) + m0 * g.lda + k0;
      for (std::size_t r = 0; r < rows; ++r) copy_into_vectors(from + r * g.lda, k, out + r * lda);
      return;
    }
    // What pack_b makes of a transposed A is rows of k numbers, 32 k at a time.
    alignas(64) float chunk[kMostRows * kPairColumns];
    for (std::size_t p = 0; p < k; p += kPairColumns) {
      const std::size_t width = smaller(kPairColumns, k - p),
                        at = g.trans_a ? (k0 + p) * g.lda + m0 : m0 * g.lda + k0 + p;
      gemm_table_avx512.weights.pack(width, rows, element(g.a, g.a_type, at), g.a_type, g.lda, g.trans_a, chunk, 0,
                                     width);
      for (std::size_t r = 0; r < rows; ++r) round_into_vectors(chunk + r * kPairColumns, width, out + r * lda + p / 2);
    }
  }

  static const std::uint32_t* packed_words(const GemmArgs& g) noexcept { return g.packed_b.pairs(); }

  // Whether all words of the range's rows fit a PreparedA.
  static bool keeps(const GemmArgs& g, const GemmRange& range) noexcept {
    const std::size_t block = block_of(g.k), blocks = divide_up(larger(g.k, std::size_t{1}), block);
    return g.prepared_a && (range.m_end - range.m_begin) * blocks * row_words(block) <= kKeptWords;
  }

  // Rows [m0, m0 + rows) of the range.
  static void multiply_rows(const GemmArgs& g, const GemmRange& range, std::size_t m0, std::size_t rows,
                            std::uint32_t* scratch) noexcept {
    std::uint32_t* const panel = scratch + kMostWords;
    const std::size_t block = block_of(g.k), lda = row_words(block);
    const std::size_t whole_row = divide_up(larger(g.k, std::size_t{1}), block) * lda;
    const bool kept = keeps(g, range), ready = kept && g.prepared_a->ready;
    std::uint32_t* a =
        kept ? reinterpret_cast<std::uint32_t*>(g.prepared_a->memory) + (m0 - range.m_begin) * whole_row : scratch;
    Kernel kernel;
    std::size_t k0 = 0;
    do {
      const std::size_t k = smaller(block, g.k - k0), panel_step = pairs_of(g.packed_b.k) * kPairColumns;
      const bool last = k0 + k == g.k;
      if (!ready) pack_a(g, m0, rows, k0, k, a, lda);
      for (std::size_t n0 = range.n_begin; n0 < range.n_end; n0 += kPairColumns) {
        const std::size_t cols = smaller(kPairColumns, range.n_end - n0);
        const std::uint32_t *b = panel, *next = nullptr;
        if (g.packed_b) {
          b = packed_words(g) + n0 / kPairColumns * panel_step + k0 / 2 * kPairColumns;
          if (n0 + kPairColumns < range.n_end) next = b + panel_step;
        } else {
          pack_panel(g.b, g.b_type, g.ldb, g.trans_b, k0, k, n0, cols, panel);
        }
        kernel.multiply({g, m0, rows, n0, cols, k0 == 0, last, pairs_of(k), a, lda, b, next});
      }
      if (kept) a += rows * lda;
      k0 += k;
    } while (k0 < g.k);
    kernel.complete();
  }

  template <std::size_t kRows>
  static void skinny_rows(const GemmArgs& g, const GemmRange& range, std::uint32_t* a) noexcept {
    const std::size_t pairs = pairs_of(g.k), lda = row_words(g.k);
    pack_a(g, 0, kRows, 0, g.k, a, lda);
    alignas(64) float tile[GemmTiles::kMaxFloats];
    for (std::size_t n0 = range.n_begin; n0 < range.n_end; n0 += kPairColumns) {
      skinny_panel<kRows>(pairs, a, lda, packed_words(g) + n0 * pairs_of(g.packed_b.k), tile);
      gemm_table_avx512.tiles->finish(output_at(g, range.m_begin, range.m_end - range.m_begin, n0,
                                                smaller(kPairColumns, range.n_end - n0), true, true),
                                      tile + range.m_begin * kPairColumns);
    }
  }

  static void gemm(const GemmArgs& g, const GemmRange& range, float* scratch) noexcept {
    if (range.m_begin >= range.m_end || range.n_begin >= range.n_end) return;
    const bool other = g.m <= kSkinny || g.b_quantized || g.a_type != FloatType::kF32 || g.b_type != FloatType::kF32;
    if (g.packed_b ? g.packed_b.form != PackedForm::kBf16Pairs : g.k < kLeastK || other)
      return gemm_table_avx512.gemm(g, range, scratch);
    auto* const words = reinterpret_cast<std::uint32_t*>(scratch);
    // All rows, even where a range holds some of them: sums must not depend on the cut.
    if (g.m <= kSkinny && g.m * row_words(g.k) <= kMostWords) {
      switch (g.m) {
        case 1:
          return skinny_rows<1>(g, range, words);
        case 2:
          return skinny_rows<2>(g, range, words);
        case 3:
          return skinny_rows<3>(g, range, words);
        default:
          return skinny_rows<4>(g, range, words);
      }
    }
    const std::size_t rows = range.m_end - range.m_begin, blocks = divide_up(rows, rows_at_once(block_of(g.k)));
    for (std::size_t i = 0; i < blocks; ++i) {
      const std::size_t m0 = range.m_begin + i * rows / blocks, m1 = range.m_begin + (i + 1) * rows / blocks;
      multiply_rows(g, range, m0, m1 - m0, words);
    }
    if (keeps(g, range)) g.prepared_a->ready = true;
  }

  static void dgemm(const DgemmArgs& g, const GemmRange& range, float* scratch) noexcept {
    gemm_table_avx512.dgemm(g, range, scratch);
  }

  // All of them pack B alike.
  static constexpr GemmTable table(const char* name, bool matrix_unit) {
    const GemmPacking packing{"gemm.bf16", 2, packed_form, packed_bytes, pack_b};
    return {.name = name,
            .mr = Kernel::kRows,
            .nr = kPairColumns,
            .scratch_floats = kScratchFloats,
            .prepared_floats = kKeptWords + kBehind,
            .matrix_unit = matrix_unit,
            .splits = false,
            .rounds = true,
            .row_cost = 14,  // rows are multiplied faster than they are rounded, unless few enough to be kept
            .weights = packing,
            .operand = packing,
            .gemm = gemm,
            .dgemm = dgemm,
            .tiles = nullptr};
  }
};

}  // namespace
}  // namespace infernode::microkernels
