#include "microkernels/gemm/detail/amx_rows.h"

// Products of many rows on the matrix unit; few rows, other types and numbers that cannot be split go to the AVX-512
// kernels, whose packed form of B this table shares.
namespace infernode::microkernels {
namespace {

// Callers that name no way get these rules; others ask the model of costs.
constexpr std::size_t kFewRows = 32;     // below, splitting B costs more than the products save
constexpr std::size_t kVeryFewRows = 8;  // below, half-empty tiles cost more, too

bool fits(const GemmArgs& g) noexcept {
  const std::size_t least = g.way == GemmWay::kUnit ? 1 : pieces_of(g) ? kVeryFewRows : kFewRows;
  return g.m >= least && g.k >= kTileDepth && g.a_type == FloatType::kF32 && !g.trans_a && !g.b_quantized;
}

template <int kPieces>
void gemm(const GemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  if (range.m_begin >= range.m_end || range.n_begin >= range.n_end) return;
  if (!fits(g)) return gemm_table_avx512.gemm(g, range, scratch);
  multiply<kPieces>(g, range, scratch);
}

// Behind the panels of the AVX-512 kernels a number for each: 1 where all of its numbers can be split.
PackedForm packed_form(std::size_t) noexcept { return PackedForm::kMarkedFloats; }
std::size_t packed_bytes(std::size_t n, std::size_t k) noexcept {
  const std::size_t marks = divide_up(divide_up(n, kPanelColumns), std::size_t{16}) * 16;
  return (panels_floats(n, k) + marks) * sizeof(float);
}
void pack_b(std::size_t n, std::size_t k, const void* b, FloatType type, std::size_t ldb, bool trans_b, void* out,
            std::size_t n_begin, std::size_t n_end) noexcept {
  gemm_table_avx512.weights.pack(n, k, b, type, ldb, trans_b, out, n_begin, n_end);
  auto* const panels = static_cast<float*>(out);
  float* const marks = panels + panels_floats(n, k);
  for (std::size_t n0 = n_begin; n0 < n_end; n0 += kPanelColumns)
    marks[n0 / kPanelColumns] = all_split(panels + n0 * k, k * kPanelColumns) ? 1.0f : 0.0f;
}

constexpr GemmPacking kWeights{"gemm.amx", 2, packed_form, packed_bytes, pack_b};

}  // namespace

INFERNODE_TABLE_OF(GemmTable, gemm, highest) = table_of<3>("amx", kWeights, gemm<3>);
INFERNODE_TABLE_OF(GemmTable, gemm_float32, high) = table_of<2>("amx.two", kWeights, gemm<2>);
INFERNODE_TABLE_OF(GemmTable, gemm_float32, medium) = table_of<1>("amx.one", kWeights, gemm<1>);

}  // namespace infernode::microkernels
