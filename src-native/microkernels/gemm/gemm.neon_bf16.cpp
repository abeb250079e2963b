#include "microkernels/gemm/gemm.h"
#include "microkernels/common/register_tile.simd.h"
#include "microkernels/common/tiles.h"
#include "microkernels/gemm/detail/output.simd.h"

// Products of medium precision: operands rounded to bfloat16, sums of float32 (BFMMLA, which takes and gives denormal
// numbers as zeros). An instruction multiplies two rows by two columns, four numbers of each. Rows of A lie in pairs,
// [k / 4][2][4]; B lies in panels of kNr columns, [k / 4][kNr][4]. Missing numbers are zeros. 8-bit and 16-bit
// operands, few rows by a B that is not packed, and short sums go to the float32 loops, as on x86-64 (detail/pairs.h).
namespace infernode::microkernels {
namespace {

constexpr std::size_t kDepth = 4;       // numbers of a row or column that an instruction takes
constexpr std::size_t kFewRows = 4;     // to round and rearrange a B for so many does not pay
constexpr std::size_t kLeastK = 32;     // of a sum that is worth it
constexpr std::size_t kMostRows = 192;  // of A, rounded at a time: with a panel of B, in a cache of 512 KB
constexpr std::size_t kChunk = 64;      // rows of B that become float32 first
constexpr std::size_t kPairsOfTile = kMr / 2;
static_assert(kMr % 2 == 0 && kMostRows % kMr == 0 && kGemmBlockK % kDepth == 0 && kChunk % kDepth == 0);

constexpr std::size_t kNumbersOfA = kMostRows * kGemmBlockK, kNumbersOfPanel = kGemmBlockK * kNr;
// The float32 loops' among them.
constexpr std::size_t kScratchFloats =
    larger((kNumbersOfA + kNumbersOfPanel) / 2, 192 * (kGemmBlockK + 16) + kGemmBlockK * kNr);

constexpr std::size_t filled(std::size_t k) noexcept { return divide_up(k, kDepth) * kDepth; }

INFERNODE_SIMD const void* element(const void* base, FloatType type, std::size_t i) noexcept {
  return static_cast<const std::uint8_t*>(base) + i * (type == FloatType::kF32 ? 4 : 2);
}

INFERNODE_SIMD uint16x4_t round4(float32x4_t x) noexcept { return vreinterpret_u16_bf16(vcvt_bf16_f32(x)); }
INFERNODE_SIMD uint16x8_t round8(float32x4_t first, float32x4_t second) noexcept {
  return vreinterpretq_u16_bf16(vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(first), second));
}

// k numbers to their places in a pair of rows.
INFERNODE_SIMD void place_row(const float* x, std::size_t k, std::uint16_t* out) noexcept {
  for (; k >= kDepth; k -= kDepth, x += kDepth, out += 2 * kDepth) vst1_u16(out, round4(vld1q_f32(x)));
  if (k > 0) vst1_u16(out, round4(load_partial(x, k).v));
}
INFERNODE_SIMD void place_row(const std::uint16_t* x, std::size_t k, std::uint16_t* out) noexcept {
  for (; k >= kDepth; k -= kDepth, x += kDepth, out += 2 * kDepth) vst1_u16(out, vld1_u16(x));
  std::uint16_t last[kDepth] = {};
  for (std::size_t i = 0; i < k; ++i) last[i] = x[i];
  if (k > 0) vst1_u16(out, vld1_u16(last));
}
INFERNODE_SIMD void place_zeros(std::size_t k, std::uint16_t* out) noexcept {
  for (std::size_t p = 0; p < k; p += kDepth, out += 2 * kDepth) vst1_u16(out, vdup_n_u16(0));
}

// Rows [m0, m0 + rows) of A, k numbers of each from k0 on.
void place_rows(const GemmArgs& g, std::size_t m0, std::size_t rows, std::size_t k0, std::size_t k,
                std::uint16_t* out) noexcept {
  const auto place = [&](std::size_t r) { return out + r / 2 * 2 * filled(k) + r % 2 * kDepth; };
  if (rows % 2 == 1) place_zeros(k, place(rows));
  if (!g.trans_a && g.a_type != FloatType::kF16) {
    for (std::size_t r = 0; r < rows; ++r) {
      const void* const row = element(g.a, g.a_type, (m0 + r) * g.lda + k0);
      if (g.a_type == FloatType::kF32) {
        place_row(static_cast<const float*>(row), k, place(r));
      } else {
        place_row(static_cast<const std::uint16_t*>(row), k, place(r));
      }
    }
    return;
  }
  // What the float32 loops pack of a transposed A is rows of k numbers, as many as a panel has columns.
  alignas(64) float chunk[kMostRows * kNr];
  for (std::size_t p = 0; p < k; p += kNr) {
    const std::size_t width = smaller(kNr, k - p);
    const std::size_t at = g.trans_a ? (k0 + p) * g.lda + m0 : m0 * g.lda + k0 + p;
    gemm_table_neon.weights.pack(width, rows, element(g.a, g.a_type, at), g.a_type, g.lda, g.trans_a, chunk, 0, width);
    for (std::size_t r = 0; r < rows; ++r) place_row(chunk + r * kNr, width, place(r) + 2 * p);
  }
}

// kNr columns of kDepth rows, `ldb` apart, of which `rows` exist.
template <bool kWhole>
INFERNODE_SIMD void round_rows(const float* b, std::size_t ldb, std::size_t rows, std::uint16_t* out) noexcept {
  INFERNODE_UNROLL
  for (std::size_t c = 0; c < kNr; c += kLanes) {
    float32x4_t x[kDepth];
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < kDepth; ++i) x[i] = kWhole || i < rows ? vld1q_f32(b + i * ldb + c) : vdupq_n_f32(0);
    const float32x4x2_t even = vzipq_f32(x[0], x[2]), odd = vzipq_f32(x[1], x[3]);
    const float32x4x2_t first = vzipq_f32(even.val[0], odd.val[0]), second = vzipq_f32(even.val[1], odd.val[1]);
    vst1q_u16(out + c * kDepth, round8(first.val[0], first.val[1]));
    vst1q_u16(out + (c + 2) * kDepth, round8(second.val[0], second.val[1]));
  }
}

// A panel of k rows of kNr floats, `ldb` apart.
void round_panel(const float* b, std::size_t ldb, std::size_t k, std::uint16_t* out) noexcept {
  for (; k >= kDepth; k -= kDepth, b += kDepth * ldb, out += kDepth * kNr) round_rows<true>(b, ldb, kDepth, out);
  if (k > 0) round_rows<false>(b, ldb, k, out);
}

// Rows [k0, k0 + k) of B, `cols` columns from n0 on.
void pack_panel(const void* b, FloatType type, std::size_t ldb, bool trans, std::size_t k0, std::size_t k,
                std::size_t n0, std::size_t cols, std::uint16_t* out) noexcept {
  if (type == FloatType::kF32 && !trans && cols == kNr)
    return round_panel(static_cast<const float*>(b) + k0 * ldb + n0, ldb, k, out);
  alignas(64) float chunk[kChunk * kNr];
  for (std::size_t p = 0; p < k; p += kChunk) {
    const std::size_t rows = smaller(kChunk, k - p), at = trans ? n0 * ldb + k0 + p : (k0 + p) * ldb + n0;
    gemm_table_neon.weights.pack(cols, rows, element(b, type, at), type, ldb, trans, chunk, 0, cols);
    round_panel(chunk, kNr, rows, out + p * kNr);
  }
}

PackedForm packed_form(std::size_t k) noexcept { return k < kLeastK ? PackedForm::kFloats : PackedForm::kBf16Pairs; }
std::size_t packed_bytes(std::size_t n, std::size_t k) noexcept {
  if (k < kLeastK) return gemm_table_neon.weights.bytes(n, k);
  return divide_up(n, kNr) * kNr * filled(k) * sizeof(std::uint16_t);
}
void pack_b(std::size_t n, std::size_t k, const void* b, FloatType type, std::size_t ldb, bool trans_b, void* out,
            std::size_t n_begin, std::size_t n_end) noexcept {
  if (k < kLeastK) return gemm_table_neon.weights.pack(n, k, b, type, ldb, trans_b, out, n_begin, n_end);
  auto* const numbers = static_cast<std::uint16_t*>(out);
  for (std::size_t n0 = n_begin; n0 < n_end; n0 += kNr)
    pack_panel(b, type, ldb, trans_b, 0, k, n0, smaller(kNr, n - n0), numbers + n0 * filled(k));
}

// tile[r * kNr + c] = the sums of pairs of rows, each of `depth` numbers a row, and the first vectors of a panel.
template <std::size_t kPairs, std::size_t kVectors>
void sum_tile_of_pairs(std::size_t depth, const std::uint16_t* a, const std::uint16_t* b, float* tile) noexcept {
  constexpr std::size_t kColumnPairs = 2 * kVectors;
  const auto load8 = [](const std::uint16_t* p) { return vreinterpretq_bf16_u16(vld1q_u16(p)); };
  float32x4_t sum[kPairs][kColumnPairs];  // two columns of the upper row, then of the lower one
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kPairs; ++r) {
    INFERNODE_UNROLL
    for (std::size_t c = 0; c < kColumnPairs; ++c) sum[r][c] = vdupq_n_f32(0);
  }
  for (std::size_t p = 0; p < depth; p += kDepth, b += kDepth * kNr) {
    bfloat16x8_t x[kPairs];
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kPairs; ++r) x[r] = load8(a + 2 * (r * depth + p));
    INFERNODE_UNROLL
    for (std::size_t c = 0; c < kColumnPairs; ++c) {
      const bfloat16x8_t columns = load8(b + c * 2 * kDepth);
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kPairs; ++r) sum[r][c] = vbfmmlaq_f32(sum[r][c], x[r], columns);
    }
  }
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kPairs; ++r) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) {
      const float64x2_t left = vreinterpretq_f64_f32(sum[r][2 * v]), right = vreinterpretq_f64_f32(sum[r][2 * v + 1]);
      float* const to = tile + 2 * r * kNr + v * kLanes;
      vst1q_f32(to, vreinterpretq_f32_f64(vzip1q_f64(left, right)));
      vst1q_f32(to + kNr, vreinterpretq_f32_f64(vzip2q_f64(left, right)));
    }
  }
}

// By pairs of rows - 1 and vectors - 1.
struct SumTable {
  void (*by_size[kPairsOfTile][kNv])(std::size_t depth, const std::uint16_t* a, const std::uint16_t* b,
                                     float* tile) noexcept;
};
constexpr SumTable make_sums() {
  SumTable table{};
  fill_by_size<kPairsOfTile>(
      table.by_size, []<std::size_t kPairs, std::size_t kVectors>() { return sum_tile_of_pairs<kPairs, kVectors>; });
  return table;
}
constexpr SumTable kSums = make_sums();

// Rows [m0, m0 + rows) of the range, in blocks of K.
void multiply_rows(const GemmArgs& g, const GemmRange& range, std::size_t m0, std::size_t rows,
                   std::uint16_t* a) noexcept {
  std::uint16_t* const panel = a + kNumbersOfA;
  const auto* const packed = static_cast<const std::uint16_t*>(g.packed_b.data);
  const std::size_t block = larger(gemm_block_k(g.k), std::size_t{1});
  const std::size_t pairs = divide_up(rows, 2), tiles = divide_up(pairs, kPairsOfTile);
  alignas(64) float tile[kMr * kNr];
  std::size_t k0 = 0;
  do {
    const std::size_t k = smaller(block, g.k - k0), depth = filled(k);
    place_rows(g, m0, rows, k0, k, a);
    for (std::size_t n0 = range.n_begin; n0 < range.n_end; n0 += kNr) {
      const std::size_t cols = smaller(kNr, range.n_end - n0);
      const std::uint16_t* const b = packed ? packed + n0 * filled(g.packed_b.k) + k0 * kNr : panel;
      if (!packed) pack_panel(g.b, g.b_type, g.ldb, g.trans_b, k0, k, n0, cols, panel);
      for (std::size_t t = 0; t < tiles; ++t) {
        const std::size_t p0 = t * pairs / tiles, p1 = (t + 1) * pairs / tiles;
        kSums.by_size[p1 - p0 - 1][divide_up(cols, kLanes) - 1](depth, a + p0 * 2 * depth, b, tile);
        const std::size_t r0 = 2 * p0, r1 = smaller(rows, 2 * p1);
        gemm_table_neon.tiles->finish(output_at(g, m0 + r0, r1 - r0, n0, cols, k0 == 0, k0 + k == g.k), tile);
      }
    }
    k0 += k;
  } while (k0 < g.k);
}

void gemm(const GemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  if (range.m_begin >= range.m_end || range.n_begin >= range.n_end) return;
  const bool other = g.m <= kFewRows || g.b_quantized || g.a_type != FloatType::kF32 || g.b_type != FloatType::kF32;
  if (g.packed_b ? g.packed_b.form != PackedForm::kBf16Pairs : g.k < kLeastK || other)
    return gemm_table_neon.gemm(g, range, scratch);
  const std::size_t rows = range.m_end - range.m_begin, parts = divide_up(rows, kMostRows);
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t m0 = range.m_begin + i * rows / parts, m1 = range.m_begin + (i + 1) * rows / parts;
    multiply_rows(g, range, m0, m1 - m0, reinterpret_cast<std::uint16_t*>(scratch));
  }
}

void dgemm(const DgemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  gemm_table_neon.dgemm(g, range, scratch);
}

constexpr GemmPacking kPacking{"gemm.neon_bf16", kDepth, packed_form, packed_bytes, pack_b};

}  // namespace

INFERNODE_TABLE_OF(GemmTable, gemm, medium) = {.name = "bf16",
                                               .mr = kMr,
                                               .nr = kNr,
                                               .scratch_floats = kScratchFloats,
                                               .prepared_floats = 0,
                                               .matrix_unit = false,
                                               .splits = false,
                                               .rounds = true,
                                               .row_cost = 14,  // rows are multiplied faster than they are rounded
                                               .weights = kPacking,
                                               .operand = kPacking,
                                               .gemm = gemm,
                                               .dgemm = dgemm,
                                               .tiles = nullptr};

}  // namespace infernode::microkernels
