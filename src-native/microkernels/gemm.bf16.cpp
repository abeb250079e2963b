#include "microkernels/gemm_pairs.h"

// Products of medium precision where the CPU multiplies bfloat16 by vectors.
namespace infernode::microkernels {
namespace {

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

struct VectorPairs {
  static constexpr std::size_t kRows = kMr, kUnitK = 8;
  static constexpr std::size_t kBlockK = 2 * kGemmBlockK;  // as many bytes as the float32 kernel's block

  void multiply(const PairsPanel& p) const noexcept {
    alignas(64) float tile[GemmTiles::kMaxFloats];
    const std::size_t tiles = divide_up(p.rows, kMr);  // rows are dealt out evenly over tiles
    for (std::size_t t = 0; t < tiles; ++t) {
      const std::size_t r0 = t * p.rows / tiles, r1 = (t + 1) * p.rows / tiles;
      kSums.by_size[r1 - r0 - 1][divide_up(p.cols, std::size_t{16}) - 1](p.pairs, p.a + r0 * p.lda, p.lda, p.b, tile);
      gemm_table_avx512.tiles->finish(output_at(p.g, p.m + r0, r1 - r0, p.n, p.cols, p.first, p.last), tile);
    }
  }
  void complete() const noexcept {}
};

}  // namespace

extern const GemmTable gemm_table_bf16;
constexpr GemmTable gemm_table_bf16 = GemmOfPairs<VectorPairs>::table("bf16");

}  // namespace infernode::microkernels
