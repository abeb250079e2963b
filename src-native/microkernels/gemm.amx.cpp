#include "microkernels/gemm.h"

#include "microkernels/amx_tiles.h"

// Products of many rows on the matrix unit; few rows, other types and numbers that cannot be split go to the AVX-512
// kernels, whose packed form of B this table shares.
namespace infernode::microkernels {

extern const GemmTable gemm_table_avx512;

namespace {

constexpr std::size_t kFewRows = 32;    // below, splitting B costs more than the products save
constexpr std::size_t kMostRows = 512;  // of A, split at a time: with a block of K they fit the second-level cache

constexpr std::size_t kSplitA = split_bytes(kGemmBlockK, kMostRows / kTileRows, 3);
constexpr std::size_t kSplitB = split_bytes(kGemmBlockK, kPanelTiles, 3);
constexpr std::size_t kPanel = kGemmBlockK * kPanelColumns;  // floats
constexpr std::size_t kScratchFloats = (kSplitA + kSplitB) / sizeof(float) + kPanel;
static_assert(kMostRows / kTileRows <= 32);  // bits of a mask

bool fits(const GemmArgs& g) noexcept {
  return g.m >= kFewRows && g.k >= kTileDepth && g.a_type == FloatType::kF32 && !g.trans_a && !g.b_quantized;
}

std::uint32_t bit(std::size_t i) noexcept { return 1u << i; }

// Rows [m0, m0 + rows) of C, all columns of the range.
template <int kPieces>
void multiply_rows(const GemmArgs& g, std::size_t m0, std::size_t rows, std::size_t n_begin, std::size_t n_end,
                   std::uint8_t* split_a, std::uint8_t* split_b, float* floats) noexcept {
  const GemmTiles& plain = *gemm_table_avx512.tiles;
  alignas(64) float sums[2 * kTileRows * kPanelColumns];
  const std::size_t block = gemm_block_k(g.k), row_tiles = divide_up(rows, kTileRows);
  const auto* a = static_cast<const float*>(g.a);
  for (std::size_t k0 = 0; k0 < g.k; k0 += block) {
    const std::size_t k = smaller(block, g.k - k0), steps = steps_of(k);
    const std::size_t tile_bytes = split_bytes(k, 1, kPieces);
    std::uint32_t a_splits = 0;
    for (std::size_t t = 0; t < row_tiles; ++t) {
      const std::size_t row = t * kTileRows;
      if (split_rows<kPieces>(a + (m0 + row) * g.lda + k0, g.lda, smaller(kTileRows, rows - row), k,
                              split_a + t * tile_bytes))
        a_splits |= bit(t);
    }
    for (std::size_t n0 = n_begin; n0 < n_end; n0 += kPanelColumns) {
      const std::size_t cols = smaller(kPanelColumns, n_end - n0);
      const float* b = floats;
      std::size_t ldb = kPanelColumns;
      if (g.packed_b) {
        b = g.packed_b + n0 * g.k + k0 * kPanelColumns;
      } else if (!g.trans_b && g.b_type == FloatType::kF32 && cols == kPanelColumns) {
        b = static_cast<const float*>(g.b) + k0 * g.ldb + n0;
        ldb = g.ldb;
      } else {
        const std::size_t bytes = g.b_type == FloatType::kF32 ? 4 : 2;
        const std::size_t at = g.trans_b ? n0 * g.ldb + k0 : k0 * g.ldb + n0;
        gemm_table_avx512.pack_b(cols, k, static_cast<const std::uint8_t*>(g.b) + at * bytes, g.b_type, g.ldb,
                                 g.trans_b, floats, 0, cols);
      }
      const bool b_splits = split_panel<kPieces>(b, ldb, k, split_b);
      for (std::size_t t = 0; t < row_tiles; t += 2) {
        const bool two = t + 1 < row_tiles;
        const std::size_t row = t * kTileRows, count = smaller(2 * kTileRows, rows - row);
        const std::uint32_t wanted = bit(t) | (two ? bit(t + 1) : 0);
        const std::uint8_t *a0 = split_a + t * tile_bytes, *a1 = a0 + tile_bytes;
        if (!b_splits || (a_splits & wanted) != wanted) {
          for (std::size_t r = 0; r < count; r += plain.mr) {
            const std::size_t some = smaller(plain.mr, count - r);
            plain.accumulate[some - 1][kPanelColumns / plain.lanes - 1](k, a + (m0 + row + r) * g.lda + k0, g.lda, b,
                                                                        ldb, sums + r * kPanelColumns);
          }
        } else if (two) {
          multiply_tiles<kPieces, 2>(steps, a0, a1, split_b, sums);
        } else {
          multiply_tiles<kPieces, 1>(steps, a0, a0, split_b, sums);
        }
        const std::size_t m = m0 + row;
        const GemmEpilogue& e = g.epilogue;
        plain.finish(
            {g.c + m * g.ldc + n0, g.ldc, count, cols, g.alpha, k0 > 0 || g.accumulate, k0 + k == g.k,
             e.bias_m ? e.bias_m + m : nullptr, e.bias_n ? e.bias_n + n0 : nullptr,
             e.residual ? e.residual + m * e.ld_residual + n0 : nullptr, e.ld_residual, e.residual_scale, e.activation},
            sums);
      }
    }
  }
}

template <int kPieces>
void multiply(const GemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  auto* split_a = reinterpret_cast<std::uint8_t*>(scratch);
  std::uint8_t* split_b = split_a + kSplitA;
  auto* floats = reinterpret_cast<float*>(split_b + kSplitB);
  const std::size_t rows = range.m_end - range.m_begin, blocks = divide_up(rows, kMostRows);
  const TileSession tiles;
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t m0 = range.m_begin + i * kMostRows;
    multiply_rows<kPieces>(g, m0, smaller(kMostRows, range.m_end - m0), range.n_begin, range.n_end, split_a, split_b,
                           floats);
  }
}

void gemm(const GemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  if (range.m_begin >= range.m_end || range.n_begin >= range.n_end) return;
  if (!fits(g)) {
    gemm_table_avx512.gemm(g, range, scratch);
    return;
  }
  with_pieces(g.precision, [&]<int kPieces>() { multiply<kPieces>(g, range, scratch); });
}

std::size_t packed_b_floats(std::size_t n, std::size_t k) noexcept { return gemm_table_avx512.packed_b_floats(n, k); }
void pack_b(std::size_t n, std::size_t k, const void* b, FloatType type, std::size_t ldb, bool trans_b, float* out,
            std::size_t n_begin, std::size_t n_end) noexcept {
  gemm_table_avx512.pack_b(n, k, b, type, ldb, trans_b, out, n_begin, n_end);
}
void dgemm(const DgemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  gemm_table_avx512.dgemm(g, range, scratch);
}

}  // namespace

extern const GemmTable gemm_table_amx;
constexpr GemmTable gemm_table_amx = {"amx",  2 * kTileRows, kPanelColumns, kScratchFloats, packed_b_floats,
                                      pack_b, gemm,          dgemm,         nullptr};

}  // namespace infernode::microkernels
