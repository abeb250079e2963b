#include "microkernels/qgemm/qgemm.h"
#include "microkernels/qgemm/detail/driver.simd.h"

namespace infernode::microkernels {
namespace {

// Two rows of eight uint8 times two columns of eight int8 per instruction, without saturation.
struct I8mmKernel : InRegisters<I8mmKernel, std::uint8_t> {
  static constexpr std::size_t kGroup = 8, kStep = 8;
  static constexpr std::int32_t kSignedShift = 128, kUnsignedShift = 0;

  // A group of two rows; where there is one row, zeros stand for the other.
  template <bool kBoth>
  INFERNODE_SIMD uint8x16_t load_pair(const Element* a, std::size_t lda) {
    return vcombine_u8(vld1_u8(a), kBoth ? vld1_u8(a + lda) : vdup_n_u8(0));
  }

  template <std::size_t kRows, std::size_t kVectors>
  static void accumulate(std::size_t groups, const Element* a, std::size_t lda, const std::int8_t* panel,
                         std::int32_t* tile) noexcept {
    constexpr std::size_t kPairs = divide_up(kRows, 2), kColumnPairs = 2 * kVectors;
    int32x4_t sum[kPairs][kColumnPairs];  // two columns of the upper row, then of the lower one
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kPairs; ++r) {
      INFERNODE_UNROLL
      for (std::size_t c = 0; c < kColumnPairs; ++c) sum[r][c] = vdupq_n_s32(0);
    }
    for (std::size_t g = 0; g < groups; ++g, a += kGroup, panel += kGroup * kNr) {
      uint8x16_t x[kPairs];
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kPairs; ++r)
        x[r] = 2 * r + 1 < kRows ? load_pair<true>(a + 2 * r * lda, lda) : load_pair<false>(a + 2 * r * lda, lda);
      INFERNODE_UNROLL
      for (std::size_t c = 0; c < kColumnPairs; ++c) {
        const int8x16_t columns = vld1q_s8(panel + c * 2 * kGroup);
        INFERNODE_UNROLL
        for (std::size_t r = 0; r < kPairs; ++r) sum[r][c] = vusmmlaq_s32(sum[r][c], x[r], columns);
      }
    }
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kPairs; ++r) {
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) {
        const int64x2_t left = vreinterpretq_s64_s32(sum[r][2 * v]), right = vreinterpretq_s64_s32(sum[r][2 * v + 1]);
        std::int32_t* const to = tile + 2 * r * kNr + v * kLanes;
        vst1q_s32(to, vreinterpretq_s32_s64(vzip1q_s64(left, right)));
        if (2 * r + 1 < kRows) vst1q_s32(to + kNr, vreinterpretq_s32_s64(vzip2q_s64(left, right)));
      }
    }
  }
};

}  // namespace

INFERNODE_TABLE(QgemmTable, qgemm) = Qgemm<I8mmKernel>::table("i8mm", "qgemm.i8mm");

}  // namespace infernode::microkernels
