#include "microkernels/gemm.h"

#include <utility>

#include "microkernels/bf16_pairs.h"
#include "microkernels/gemm_output.simd.h"
#include "microkernels/gemm_tiles.h"
#include "microkernels/quick_activations.h"
#include "microkernels/register_tile.simd.h"

// Float32 products of medium precision where the CPU multiplies bfloat16 but has no matrix unit. Packed weights take
// half as many bytes. 8-bit operands, and few rows by a B that is not packed, go to the AVX-512 kernels. So do short
// sums: they gain little, and who multiplies positions by frequencies of angles does not mean them to be rounded.
namespace infernode::microkernels {

extern const GemmTable gemm_table_avx512;

namespace {

static_assert(kNr == kPairColumns);

constexpr std::size_t kBlockK = 2 * kGemmBlockK;             // as many bytes as the float32 kernel's block
constexpr std::size_t kSkinny = 4;                           // up to this many rows the product is bound by reading B
constexpr std::size_t kLeastK = 32;                          // of a sum that is worth it
constexpr std::size_t kScratchA = 192 * (kBlockK / 2 + 16);  // words of A that are rounded at a time
constexpr std::size_t kScratchB = kBlockK / 2 * kPairColumns;
constexpr std::size_t kMostRows = 384;  // however short they are
// The AVX-512 kernel's among them.
constexpr std::size_t kScratchFloats = larger(kScratchA + kScratchB, 192 * (kGemmBlockK + 16) + kGemmBlockK * kNr);

// Of words of A: spreads its rows over the cache sets.
constexpr std::size_t row_words(std::size_t block) noexcept { return pairs_of(block) + 16; }

// How many rows are rounded at a time: the more, the fewer times B is read.
constexpr std::size_t rows_at_once(std::size_t block) noexcept {
  return smaller(kMostRows, kScratchA / row_words(block) / kMr * kMr);
}
static_assert(rows_at_once(kBlockK) == 192);

using SumPairs = void (*)(std::size_t pairs, const std::uint32_t* a, std::size_t lda, const std::uint32_t* b,
                          float* tile) noexcept;
struct SumTable {
  SumPairs by_size[kMr][kNv];
};
template <std::size_t kRows, std::size_t kVectors>
void sum_tile_of_pairs(std::size_t pairs, const std::uint32_t* a, std::size_t lda, const std::uint32_t* b,
                       float* tile) noexcept {
  sum_pairs<kRows, kVectors>(pairs, a, lda, b, tile);
}
constexpr SumTable make_sums() {
  SumTable table{};
  fill_by_size(table.by_size,
               []<std::size_t kRows, std::size_t kVectors>() { return sum_tile_of_pairs<kRows, kVectors>; });
  return table;
}
constexpr SumTable kSums = make_sums();

// A whole tile of C straight from the registers, where its activation is a clamp or quick.
template <std::size_t kRows>
void make_tile(std::size_t pairs, const std::uint32_t* a, std::size_t lda, const std::uint32_t* b,
               const TileOutput& out) noexcept {
  const float* const residual = out.last ? out.residual : nullptr;
  if (residual || out.load_c) {  // what is read after the sums is fetched meanwhile
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t v = 0; v < kNv; ++v) {
        if (residual) __builtin_prefetch(residual + r * out.ld_residual + v * kLanes);
        if (out.load_c) __builtin_prefetch(out.c + r * out.ldc + v * kLanes);
      }
    }
  }
  VecF sum[kRows][kNv];
  sum_registers<kRows, kNv>(pairs, a, lda, b, sum);
  const VecF alpha = set(out.alpha);
  VecF bias[kNv];
  INFERNODE_UNROLL
  for (std::size_t v = 0; v < kNv; ++v) bias[v] = out.last && out.bias_n ? load(out.bias_n + v * kLanes) : zero();
  const bool plain = !out.last || (!out.bias_m && out.activation.kind == Activation::kNone);
  if (plain) {
    const VecF scale = set(out.residual_scale);
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kNv; ++v) {
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) sum[r][v] = fma(sum[r][v], alpha, bias[v]);
      if (out.load_c) {
        INFERNODE_UNROLL
        for (std::size_t r = 0; r < kRows; ++r) sum[r][v] = sum[r][v] + load(out.c + r * out.ldc + v * kLanes);
      }
      if (residual) {
        INFERNODE_UNROLL
        for (std::size_t r = 0; r < kRows; ++r)
          sum[r][v] = fma(load(residual + r * out.ld_residual + v * kLanes), scale, sum[r][v]);
      }
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) store(out.c + r * out.ldc + v * kLanes, sum[r][v]);
    }
    return;
  }
  const ClampBounds bounds = clamp_bounds(out.activation);
  const bool quick = out.last && is_quick(out.activation);
  const VecF low = set(bounds.low), high = set(bounds.high), scale = set(out.residual_scale);
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kNv; ++v) {
      const float* const c = out.c + r * out.ldc + v * kLanes;
      VecF x = out.load_c ? fma(sum[r][v], alpha, load(c)) : sum[r][v] * alpha;
      if (out.last) {
        if (residual) x = fma(load(residual + r * out.ld_residual + v * kLanes), scale, x);
        if (out.bias_m) x = x + set(out.bias_m[r]);
        x = clamp(x + bias[v], low, high);
      }
      sum[r][v] = x;
    }
    if (quick) activate_quickly<kNv>(out.activation, sum[r]);
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kNv; ++v) store(out.c + r * out.ldc + v * kLanes, sum[r][v]);
  }
}

struct TileTable {
  void (*by_rows[kMr])(std::size_t pairs, const std::uint32_t* a, std::size_t lda, const std::uint32_t* b,
                       const TileOutput& out) noexcept;
};
template <std::size_t... kIndex>
constexpr TileTable make_tile_table(std::index_sequence<kIndex...>) {
  return {{make_tile<kIndex + 1>...}};
}
constexpr TileTable kWholeTiles = make_tile_table(std::make_index_sequence<kMr>());

// Numbers of 16 bits, or a transposed A, become rows of float32 first, this many at a time.
constexpr std::size_t kChunk = 64;

INFERNODE_SIMD const void* element(const void* base, FloatType type, std::size_t i) noexcept {
  return static_cast<const std::uint8_t*>(base) + i * (type == FloatType::kF32 ? 4 : 2);
}

// A panel of B: rows [k0, k0 + k), `cols` columns from n0 on.
void pack_panel(const void* b, FloatType type, std::size_t ldb, bool trans, std::size_t k0, std::size_t k,
                std::size_t n0, std::size_t cols, std::uint32_t* out) noexcept {
  if (type == FloatType::kF32) {
    const auto* const numbers = static_cast<const float*>(b);
    if (trans) return round_columns(numbers + n0 * ldb + k0, ldb, k, cols, out);
    if (cols == kPairColumns) return round_panel(numbers + k0 * ldb + n0, ldb, k, out);
  }
  alignas(64) float chunk[kChunk * kPairColumns];
  for (std::size_t p = 0; p < k; p += kChunk) {
    const std::size_t rows = smaller(kChunk, k - p), at = trans ? n0 * ldb + k0 + p : (k0 + p) * ldb + n0;
    gemm_table_avx512.pack_b(cols, rows, element(b, type, at), type, ldb, trans, chunk, 0, cols);
    round_panel(chunk, kPairColumns, rows, out + p / 2 * kPairColumns);
  }
}

std::size_t packed_b_floats(std::size_t n, std::size_t k) noexcept {
  if (k < kLeastK) return gemm_table_avx512.packed_b_floats(n, k);
  return divide_up(n, kPairColumns) * kPairColumns * pairs_of(k);
}

void pack_b(std::size_t n, std::size_t k, const void* b, FloatType type, std::size_t ldb, bool trans_b, float* out,
            std::size_t n_begin, std::size_t n_end) noexcept {
  if (k < kLeastK) return gemm_table_avx512.pack_b(n, k, b, type, ldb, trans_b, out, n_begin, n_end);
  auto* const words = reinterpret_cast<std::uint32_t*>(out);
  for (std::size_t n0 = n_begin; n0 < n_end; n0 += kPairColumns)
    pack_panel(b, type, ldb, trans_b, 0, k, n0, smaller(kPairColumns, n - n0), words + n0 * pairs_of(k));
}

// Rows [m0, m0 + rows) of A, k numbers of each from k0 on; rows of words `lda` apart.
void pack_a(const GemmArgs& g, std::size_t m0, std::size_t rows, std::size_t k0, std::size_t k, std::uint32_t* out,
            std::size_t lda) noexcept {
  if (g.a_type == FloatType::kF32 && !g.trans_a) {
    const float* from = static_cast<const float*>(g.a) + m0 * g.lda + k0;
    for (std::size_t r = 0; r < rows; ++r) round_whole_row(from + r * g.lda, k, out + r * lda);
    return;
  }
  if (g.a_type == FloatType::kBf16 && !g.trans_a) {
    const std::uint16_t* from = static_cast<const std::uint16_t*>(g.a) + m0 * g.lda + k0;
    for (std::size_t r = 0; r < rows; ++r) copy_whole_row(from + r * g.lda, k, out + r * lda);
    return;
  }
  // What pack_b makes of a transposed A is rows of k numbers, 32 k at a time.
  alignas(64) float chunk[kMostRows * kPairColumns];
  for (std::size_t p = 0; p < k; p += kPairColumns) {
    const std::size_t width = smaller(kPairColumns, k - p),
                      at = g.trans_a ? (k0 + p) * g.lda + m0 : m0 * g.lda + k0 + p;
    gemm_table_avx512.pack_b(width, rows, element(g.a, g.a_type, at), g.a_type, g.lda, g.trans_a, chunk, 0, width);
    for (std::size_t r = 0; r < rows; ++r) round_whole_row(chunk + r * kPairColumns, width, out + r * lda + p / 2);
  }
}

const std::uint32_t* packed_words(const GemmArgs& g) noexcept {
  return reinterpret_cast<const std::uint32_t*>(g.packed_b);
}

void multiply_rows(const GemmArgs& g, std::size_t m0, std::size_t rows, std::size_t n_begin, std::size_t n_end,
                   std::uint32_t* scratch) noexcept {
  std::uint32_t* const a = scratch;
  std::uint32_t* const panel = scratch + kScratchA;
  alignas(64) float tile[GemmTiles::kMaxFloats];
  const std::size_t block = larger(gemm_block_k(g.k, kBlockK), std::size_t{1});
  const std::size_t lda = row_words(block), tiles = divide_up(rows, kMr);  // rows are dealt out evenly over tiles
  const bool direct = is_clamp(g.epilogue.activation) || is_quick(g.epilogue.activation);
  std::size_t k0 = 0;
  do {
    const std::size_t k = smaller(block, g.k - k0), pairs = pairs_of(k);
    const bool first = k0 == 0, last = k0 + k == g.k;
    pack_a(g, m0, rows, k0, k, a, lda);
    for (std::size_t n0 = n_begin; n0 < n_end; n0 += kPairColumns) {
      const std::size_t cols = smaller(kPairColumns, n_end - n0);
      const std::uint32_t* b = panel;
      if (g.packed_b) {
        b = packed_words(g) + n0 * pairs_of(g.packed_depth()) + k0 / 2 * kPairColumns;
      } else {
        pack_panel(g.b, g.b_type, g.ldb, g.trans_b, k0, k, n0, cols, panel);
      }
      for (std::size_t t = 0; t < tiles; ++t) {
        const std::size_t r0 = t * rows / tiles, r1 = (t + 1) * rows / tiles;
        const TileOutput out = output_at(g, m0 + r0, r1 - r0, n0, cols, first, last);
        if (cols == kPairColumns && (direct || !last)) {
          kWholeTiles.by_rows[r1 - r0 - 1](pairs, a + r0 * lda, lda, b, out);
          continue;
        }
        kSums.by_size[r1 - r0 - 1][divide_up(cols, std::size_t{16}) - 1](pairs, a + r0 * lda, lda, b, tile);
        gemm_table_avx512.tiles->finish(out, tile);
      }
    }
    k0 += k;
  } while (k0 < g.k);
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
      const __m512i row = _mm512_loadu_si512(b + p * kPairColumns + v * 16);
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

template <std::size_t kRows>
void skinny_rows(const GemmArgs& g, const GemmRange& range, std::uint32_t* a) noexcept {
  const std::size_t pairs = pairs_of(g.k);
  pack_a(g, 0, kRows, 0, g.k, a, pairs);
  alignas(64) float tile[GemmTiles::kMaxFloats];
  for (std::size_t n0 = range.n_begin; n0 < range.n_end; n0 += kPairColumns) {
    skinny_panel<kRows>(pairs, a, pairs, packed_words(g) + n0 * pairs_of(g.packed_depth()), tile);
    gemm_table_avx512.tiles->finish(output_at(g, range.m_begin, range.m_end - range.m_begin, n0,
                                              smaller(kPairColumns, range.n_end - n0), true, true),
                                    tile + range.m_begin * kPairColumns);
  }
}

void gemm(const GemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  if (range.m_begin >= range.m_end || range.n_begin >= range.n_end) return;
  const bool other = g.m <= kSkinny || g.b_quantized || g.a_type != FloatType::kF32 || g.b_type != FloatType::kF32;
  if (g.packed_depth() < kLeastK || (!g.packed_b && other)) return gemm_table_avx512.gemm(g, range, scratch);
  auto* const words = reinterpret_cast<std::uint32_t*>(scratch);
  // All rows, even where a range holds some of them: sums must not depend on the cut.
  if (g.m <= kSkinny && g.m * pairs_of(g.k) <= kScratchA) {
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
  const std::size_t rows = range.m_end - range.m_begin,
                    blocks = divide_up(rows, rows_at_once(gemm_block_k(g.k, kBlockK)));
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t m0 = range.m_begin + i * rows / blocks, m1 = range.m_begin + (i + 1) * rows / blocks;
    multiply_rows(g, m0, m1 - m0, range.n_begin, range.n_end, words);
  }
}

void dgemm(const DgemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  gemm_table_avx512.dgemm(g, range, scratch);
}

}  // namespace

extern const GemmTable gemm_table_bf16;
constexpr GemmTable gemm_table_bf16 = {"bf16", kMr,  kPairColumns, kScratchFloats, packed_b_floats,
                                       pack_b, gemm, dgemm,        nullptr};

}  // namespace infernode::microkernels
