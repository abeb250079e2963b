#include "microkernels/gemm/detail/amx_rows.h"

// Products of many rows on the matrix unit; few rows, other types and numbers that cannot be split go to the AVX-512
// kernels, whose packed form of B this table shares.
namespace infernode::microkernels {
namespace {

constexpr std::size_t kFewRows = 32;     // below, splitting B costs more than the products save,
constexpr std::size_t kVeryFewRows = 8;  // and so do half-empty tiles

bool fits(const GemmArgs& g) noexcept {
  return g.m >= (g.split_b ? kVeryFewRows : kFewRows) && g.k >= kTileDepth && g.a_type == FloatType::kF32 &&
         !g.trans_a && !g.b_quantized;
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

}  // namespace

INFERNODE_TABLE(GemmTable, gemm) = {"amx",  2 * kTileRows, kPanelColumns, kScratchFloats, packed_b_floats,
                                    pack_b, gemm,          dgemm,         nullptr,        &kSplitting};

}  // namespace infernode::microkernels
