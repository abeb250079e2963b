#include "microkernels/gemm/detail/amx_rows.h"

// Products of precision `high` on the matrix unit, of weights that are split when they are packed: two pieces of
// bfloat16 take as many bytes as a float32, and few rows add them up again.
namespace infernode::microkernels {

namespace {

constexpr int kPieces = 2;
constexpr std::size_t kFewRows = 8;  // below, tiles would be emptier than the sums of pieces take
constexpr std::size_t kAtOnce = 4;   // of those
static_assert(panel_bytes<kPieces>(kTileDepth) - 64 == kTileDepth * kPanelColumns * sizeof(float));

// Shorter sums are not worth a tile: the AVX-512 kernels have them, packed their way.
bool is_short(std::size_t k) noexcept { return k < kTileDepth; }

PackedForm packed_form(std::size_t k) noexcept { return is_short(k) ? PackedForm::kFloats : PackedForm::kBf16Pieces; }
std::size_t packed_bytes(std::size_t n, std::size_t k) noexcept {
  return is_short(k) ? gemm_table_avx512.weights.bytes(n, k) : pieces_bytes<kPieces>(n, k);
}

void pack_b(std::size_t n, std::size_t k, const void* b, FloatType type, std::size_t ldb, bool trans_b, void* out,
            std::size_t n_begin, std::size_t n_end) noexcept {
  if (is_short(k)) return gemm_table_avx512.weights.pack(n, k, b, type, ldb, trans_b, out, n_begin, n_end);
  const std::size_t bytes = type == FloatType::kF32 ? 4 : 2;
  alignas(64) float step[kTileDepth * kPanelColumns];
  for (std::size_t n0 = n_begin; n0 < n_end; n0 += kPanelColumns) {
    const std::size_t columns = smaller(kPanelColumns, n - n0);
    auto* const panel = static_cast<std::uint8_t*>(out) + n0 / kPanelColumns * panel_bytes<kPieces>(k);
    const auto numbers = [&](std::size_t k0, std::size_t rows, float* to) {
      const std::size_t at = trans_b ? n0 * ldb + k0 : k0 * ldb + n0;
      gemm_table_avx512.weights.pack(columns, rows, static_cast<const std::uint8_t*>(b) + at * bytes, type, ldb,
                                     trans_b, to, 0, columns);
    };
    bool splits = true;
    for (std::size_t k0 = 0; k0 < k && splits; k0 += kTileDepth) {
      const std::size_t rows = smaller(kTileDepth, k - k0);
      numbers(k0, rows, step);
      splits = split_panel<kPieces>(step, kPanelColumns, rows, panel + k0 / kTileDepth * kStepBytes<kPieces>);
    }
    if (!splits) numbers(0, k, reinterpret_cast<float*>(panel));
    panel[tiles_bytes<kPieces>(k)] = splits;
  }
}

// Up to kAtOnce rows from m on by a panel: pieces are added up on the way.
template <std::size_t kRows>
void few_rows(const GemmArgs& g, std::size_t m, std::size_t n0, std::size_t columns) noexcept {
  constexpr std::size_t kAhead = 8192;  // bytes: weights come from memory
  const std::uint8_t* at = split_panel_of<kPieces>(g, n0);
  __m512 sums[2][kRows][kPanelTiles];  // of each half of the steps
  for (auto& half : sums) {
    for (auto& row : half) {
      for (__m512& sum : row) sum = _mm512_setzero_ps();
    }
  }
  const float* a = static_cast<const float*>(g.a) + m * g.lda;
  std::size_t lda = g.lda;
  float tail[kRows * kTileDepth];
  for (std::size_t k0 = 0; k0 < g.k; k0 += kTileDepth, at += kStepBytes<kPieces>, a += kTileDepth) {
    if (g.k - k0 < kTileDepth) {  // behind the last row of B there are zeros, or rows of a longer one
      for (std::size_t i = 0; i < kRows * kTileDepth; ++i)
        tail[i] = i % kTileDepth < g.k - k0 ? a[i / kTileDepth * lda + i % kTileDepth] : 0.0f;
      a = tail;
      lda = kTileDepth;
    }
    for (std::size_t pair = 0; pair < 16; ++pair) {
      INFERNODE_UNROLL
      for (std::size_t tile = 0; tile < kPanelTiles; ++tile) {
        const std::uint8_t* const from = at + tile * kPieces * kTileBytes + pair * 64;
        _mm_prefetch(reinterpret_cast<const char*>(from) + kAhead, _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(from) + kTileBytes + kAhead, _MM_HINT_T0);
        __m512 first, second;
        join_pair<kPieces>(from, first, second);
        INFERNODE_UNROLL
        for (std::size_t r = 0; r < kRows; ++r) {
          sums[0][r][tile] = _mm512_fmadd_ps(_mm512_set1_ps(a[r * lda + pair]), first, sums[0][r][tile]);
          sums[1][r][tile] = _mm512_fmadd_ps(_mm512_set1_ps(a[r * lda + pair + 16]), second, sums[1][r][tile]);
        }
      }
    }
  }
  alignas(64) float tile[kRows * kPanelColumns];
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t i = 0; i < kPanelTiles; ++i)
      _mm512_store_ps(tile + r * kPanelColumns + i * 16, _mm512_add_ps(sums[0][r][i], sums[1][r][i]));
  }
  gemm_table_avx512.tiles->finish(output_at(g, m, kRows, n0, columns, true, true), tile);
}

// The rows of a range by one panel of numbers, with the AVX-512 kernels.
void by_numbers(const GemmArgs& g, const GemmRange& range, std::size_t n0, std::size_t columns,
                float* scratch) noexcept {
  const std::size_t bytes = g.a_type == FloatType::kF32 ? 4 : 2;
  GemmArgs part = g;
  part.n = columns;
  part.c = g.c + n0;
  for (std::size_t k0 = 0; k0 < g.k; k0 += kGemmBlockK) {
    part.k = smaller(kGemmBlockK, g.k - k0);
    part.a = static_cast<const std::uint8_t*>(g.a) + (g.trans_a ? k0 * g.lda : k0) * bytes;
    if (is_split<kPieces>(g, n0)) {
      join_panel<kPieces>(split_step_of<kPieces>(g, n0, k0), part.k, scratch);
      part.packed_b = {PackedForm::kFloats, scratch, 0, columns, part.k};
    } else {
      const auto* const numbers = reinterpret_cast<const float*>(split_panel_of<kPieces>(g, n0));
      part.packed_b = {PackedForm::kFloats, numbers + k0 * kPanelColumns, 0, columns, part.k};
    }
    part.accumulate = g.accumulate || k0 > 0;
    part.epilogue = {};
    if (k0 + part.k == g.k) {
      part.epilogue = g.epilogue;
      if (g.epilogue.bias_n) part.epilogue.bias_n = g.epilogue.bias_n + n0;
      if (g.epilogue.residual) part.epilogue.residual = g.epilogue.residual + n0;
    }
    gemm_table_avx512.gemm(part, {range.m_begin, range.m_end, 0, columns}, scratch + kPanel);
  }
}

void gemm(const GemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  if (range.m_begin >= range.m_end || range.n_begin >= range.n_end) return;
  if (!g.packed_b || g.b) return gemm_float32_table_amx_high.gemm(g, range, scratch);  // packed as an operand, or not
  if (!pieces_of(g) || g.k == 0) return gemm_table_avx512.gemm(g, range, scratch);
  const bool plain = g.a_type == FloatType::kF32 && !g.trans_a;
  if (plain && g.m >= kFewRows) return multiply<kPieces>(g, range, scratch);
  for (std::size_t n0 = range.n_begin; n0 < range.n_end; n0 += kPanelColumns) {
    const std::size_t columns = smaller(kPanelColumns, range.n_end - n0);
    if (!plain || !is_split<kPieces>(g, n0)) {
      by_numbers(g, range, n0, columns, scratch);
      continue;
    }
    for (std::size_t m = range.m_begin; m < range.m_end; m += kAtOnce) {
      switch (range.m_end - m) {
        case 1:
          few_rows<1>(g, m, n0, columns);
          break;
        case 2:
          few_rows<2>(g, m, n0, columns);
          break;
        case 3:
          few_rows<3>(g, m, n0, columns);
          break;
        default:
          few_rows<kAtOnce>(g, m, n0, columns);
          break;
      }
    }
  }
}

constexpr GemmPacking kWeights{"gemm.amx.high", 2, packed_form, packed_bytes, pack_b};

}  // namespace

// Scratch of the AVX-512 kernels lies behind a panel of numbers, in less than what splitting takes.
INFERNODE_TABLE_OF(GemmTable, gemm, high) = table_of<kPieces>("amx.high", kWeights, gemm);

}  // namespace infernode::microkernels
