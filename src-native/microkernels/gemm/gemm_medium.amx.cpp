#include "microkernels/common/amx_tiles.h"
#include "microkernels/gemm/detail/pairs.h"

// Products of medium precision on the matrix unit, which takes words of two bfloat16 numbers as they are packed.
namespace infernode::microkernels {
namespace {

constexpr std::size_t kStepPairs = kTileDepth / 2;  // words of a row of a tile

template <int kRowTiles>
INFERNODE_SIMD void multiply_step(const std::uint32_t* a, std::size_t lda, const std::uint32_t* b) noexcept {
  constexpr std::size_t kPanelStride = kPairColumns * sizeof(std::uint32_t);
  const std::size_t stride = lda * sizeof(std::uint32_t);
  _tile_loadd(4, a, stride);
  _tile_loadd(6, b, kPanelStride);
  _tile_loadd(7, b + 16, kPanelStride);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  if constexpr (kRowTiles == 2) {
    _tile_loadd(5, a + kTileRows * lda, stride);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

template <int kRowTiles, typename Beside>
INFERNODE_SIMD void sum_tiles(std::size_t steps, const std::uint32_t* a, std::size_t lda, const std::uint32_t* b,
                              const std::uint32_t* tail, float* sums, std::size_t ld, const Beside& beside) noexcept {
  __asm__ volatile("" ::: "memory");  // the loads below do not tell the compiler what they read
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kRowTiles == 2) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::size_t i = 0; i < steps; ++i, a += kStepPairs, b += kStepPairs * kPairColumns) {
    multiply_step<kRowTiles>(a, lda, b);
    beside();
  }
  if (tail) multiply_step<kRowTiles>(a, lda, tail);
  store_sums<kRowTiles>(sums, ld);
}

class TilePairs {
 public:
  static constexpr std::size_t kRows = 2 * kTileRows, kUnitK = kTileDepth;
  static constexpr std::size_t kBlockK = 1024;  // more, and less of C is read and written; less, and a panel stays near

  void multiply(const PairsPanel& p) noexcept {
    const std::size_t steps = p.pairs / kStepPairs, rest = p.pairs % kStepPairs;
    alignas(64) std::uint32_t tail[kStepPairs * kPairColumns];  // the last step of B, with zeros behind
    if (rest > 0) {
      const std::uint32_t* from = p.b + steps * kStepPairs * kPairColumns;
      for (std::size_t i = 0; i < kStepPairs * kPairColumns; i += 16)
        _mm512_store_si512(tail + i, i < rest * kPairColumns ? _mm512_loadu_si512(from + i) : _mm512_setzero_si512());
    }
    const std::size_t calls = divide_up(p.rows, kRows) * steps, lines = p.next ? 2 * p.pairs : 0;
    const std::size_t share = calls > 0 ? divide_up(lines, calls) : 0;
    const std::size_t rows_share = steps > 0 ? divide_up(kRows, steps) : 0;
    std::size_t fetched = 0;
    for (std::size_t row = 0; row < p.rows; row += kRows) {
      const std::size_t count = smaller(kRows, p.rows - row), finished = finish_.portion();
      const TileOutput output = output_at(p.g, p.m + row, count, p.n, p.cols, p.first, p.last);
      const bool plain = is_plain(output);
      float* const sums = plain ? output.c : sums_[current_];
      const std::size_t ld = plain ? output.ldc : kPanelColumns;
      OutputFetch fetch(output);
      const auto beside = [&]() __attribute__((always_inline)) {
        finish_.advance(finished);
        fetch.advance(rows_share);
        for (const std::size_t end = smaller(lines, fetched + share); fetched < end; ++fetched)
          _mm_prefetch(reinterpret_cast<const char*>(p.next + fetched * 16), _MM_HINT_T1);
      };
      const std::uint32_t* const a = p.a + row * p.lda;
      const std::uint32_t* const last = rest > 0 ? tail : nullptr;
      if (count > kTileRows) {
        sum_tiles<2>(steps, a, p.lda, p.b, last, sums, ld, beside);
      } else {
        sum_tiles<1>(steps, a, p.lda, p.b, last, sums, ld, beside);
      }
      finish_.complete();
      if (plain) continue;
      finish_ = TileFinish(*gemm_table_avx512.tiles, output, sums, true);
      current_ = 1 - current_;
    }
  }
  void complete() noexcept { finish_.complete(); }

 private:
  TileSession session_;
  TileFinish finish_;
  std::size_t current_ = 0;
  alignas(64) float sums_[2][kRows * kPanelColumns];
};
static_assert(kPanelColumns == kPairColumns);

}  // namespace

INFERNODE_TABLE_OF(GemmTable, gemm, medium) = GemmOfPairs<TilePairs>::table("amx.bf16", true);

}  // namespace infernode::microkernels
