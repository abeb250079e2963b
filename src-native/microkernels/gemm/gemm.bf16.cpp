#include <utility>

#include "microkernels/common/quick_activations.h"
#include "microkernels/gemm/detail/pairs.h"

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

// A whole tile of C straight from the registers, where its activation is a clamp or quick.
template <std::size_t kRows>
void make_tile(std::size_t pairs, const std::uint32_t* a, std::size_t lda, const std::uint32_t* b,
               const TileOutput& out, Ahead ahead) noexcept {
  const float* const residual = out.last ? out.residual : nullptr;
  // What is read or written after the sums is fetched meanwhile.
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kNv; ++v) {
      if (residual) __builtin_prefetch(residual + r * out.ld_residual + v * kLanes);
      __builtin_prefetch(out.c + r * out.ldc + v * kLanes, 1);
    }
  }
  VecF sum[kRows][kNv];
  sum_registers<kRows, kNv>(
      pairs, a, lda, b, sum, [&]() __attribute__((always_inline)) { fetch(ahead); });
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
                       const TileOutput& out, Ahead ahead) noexcept;
};
template <std::size_t... kIndex>
constexpr TileTable make_tile_table(std::index_sequence<kIndex...>) {
  return {{make_tile<kIndex + 1>...}};
}
constexpr TileTable kWholeTiles = make_tile_table(std::make_index_sequence<kMr>());

struct VectorPairs {
  static constexpr std::size_t kRows = kMr, kUnitK = 8;
  static constexpr std::size_t kBlockK = 2 * kGemmBlockK;  // as many bytes as the float32 kernel's block

  void multiply(const PairsPanel& p) const noexcept {
    alignas(64) float tile[GemmTiles::kMaxFloats];
    const bool direct = is_clamp(p.g.epilogue.activation) || is_quick(p.g.epilogue.activation);
    const std::size_t tiles = divide_up(p.rows, kMr);  // rows are dealt out evenly over tiles
    for (std::size_t t = 0; t < tiles; ++t) {
      const std::size_t r0 = t * p.rows / tiles, r1 = (t + 1) * p.rows / tiles;
      const TileOutput out = output_at(p.g, p.m + r0, r1 - r0, p.n, p.cols, p.first, p.last);
      if (p.cols == kPairColumns && (direct || !p.last)) {
        kWholeTiles.by_rows[r1 - r0 - 1](p.pairs, p.a + r0 * p.lda, p.lda, p.b, out,
                                         ahead_of(p.next, p.b, p.pairs, kPairColumns, t, tiles));
        continue;
      }
      kSums.by_size[r1 - r0 - 1][divide_up(p.cols, std::size_t{16}) - 1](p.pairs, p.a + r0 * p.lda, p.lda, p.b, tile);
      gemm_table_avx512.tiles->finish(out, tile);
    }
  }
  void complete() const noexcept {}
};

}  // namespace

INFERNODE_TABLE_OF(GemmTable, gemm, medium) = GemmOfPairs<VectorPairs>::table("bf16", false);

}  // namespace infernode::microkernels
