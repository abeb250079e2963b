#include "microkernels/qgemm/qgemm.h"
#include "microkernels/qgemm/detail/driver.simd.h"

namespace infernode::microkernels {
namespace {

// Four int8 x int8 products per lane and instruction, without saturation. A vector of A holds four groups of a row, and
// an instruction takes the one that it names.
struct DotprodKernel : InRegisters<DotprodKernel, std::int8_t> {
  static constexpr std::size_t kGroup = 4, kStep = 16;
  static constexpr std::int32_t kSignedShift = 0, kUnsignedShift = -128;

  template <int kLane, std::size_t kRows, std::size_t kVectors>
  INFERNODE_SIMD void add_group(const int8x16_t (&x)[kRows], const std::int8_t* panel,
                                int32x4_t (&sum)[kRows][kVectors]) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) {
      const int8x16_t row = vld1q_s8(panel + (kLane * kNr + v * kLanes) * kGroup);
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) sum[r][v] = vdotq_laneq_s32(sum[r][v], row, x[r], kLane);
    }
  }

  template <std::size_t kRows, std::size_t kVectors>
  static void accumulate(std::size_t groups, const Element* a, std::size_t lda, const std::int8_t* panel,
                         std::int32_t* tile) noexcept {
    int32x4_t sum[kRows][kVectors];
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = vdupq_n_s32(0);
    }
    for (std::size_t g = 0; g < groups; g += 4, a += kStep, panel += kStep * kNr) {
      int8x16_t x[kRows];
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) x[r] = vld1q_s8(a + r * lda);
      add_group<0>(x, panel, sum);
      add_group<1>(x, panel, sum);
      add_group<2>(x, panel, sum);
      add_group<3>(x, panel, sum);
    }
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) vst1q_s32(tile + r * kNr + v * kLanes, sum[r][v]);
    }
  }
};

}  // namespace

INFERNODE_TABLE(QgemmTable, qgemm) = Qgemm<DotprodKernel>::table("dotprod", "qgemm.dotprod");

}  // namespace infernode::microkernels
