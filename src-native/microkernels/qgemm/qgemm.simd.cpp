#include "microkernels/qgemm/qgemm.h"

#include "microkernels/qgemm/detail/driver.simd.h"

namespace infernode::microkernels {
namespace {

// Pairs of 16-bit products: exact for all 8-bit operands, unlike the saturating 8-bit multiply-add.
struct PairKernel : InRegisters<PairKernel, std::int16_t> {
  static constexpr std::size_t kGroup = 2, kStep = 2;
  static constexpr std::int32_t kSignedShift = 0, kUnsignedShift = 0;

  template <std::size_t kRows, std::size_t kVectors>
  static void accumulate(std::size_t groups, const Element* a, std::size_t lda, const std::int8_t* panel,
                         std::int32_t* tile) noexcept {
    VecI sum[kRows][kVectors];
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = set(0);
    }
    for (std::size_t g = 0; g < groups; ++g, a += kGroup, panel += kNr * kGroup) {
      VecI row[kVectors];
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) row[v] = load_s8_pairs(panel + v * kLanes * kGroup);
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) {
        const VecI x = set(load_group(a + r * lda));
        INFERNODE_UNROLL
        for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = sum[r][v] + dot_pairs(x, row[v]);
      }
    }
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) store(tile + r * kNr + v * kLanes, sum[r][v]);
    }
  }
};

}  // namespace

INFERNODE_TABLE(QgemmTable, qgemm) = Qgemm<PairKernel>::table(INFERNODE_TARGET_NAME(INFERNODE_TARGET),
                                                              "qgemm." INFERNODE_TARGET_NAME(INFERNODE_TARGET));

}  // namespace infernode::microkernels
