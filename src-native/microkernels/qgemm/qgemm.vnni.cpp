#include "microkernels/qgemm/qgemm.h"
#include "microkernels/qgemm/detail/driver.simd.h"

namespace infernode::microkernels {
namespace {

// Four uint8 x int8 products per lane and instruction, without saturation.
struct VnniKernel : InRegisters<VnniKernel, std::uint8_t> {
  static constexpr std::size_t kGroup = 4, kStep = 4;
  static constexpr std::int32_t kSignedShift = 128, kUnsignedShift = 0;

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
      for (std::size_t v = 0; v < kVectors; ++v) row[v] = {_mm512_loadu_si512(panel + v * kLanes * kGroup)};
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) {
        const VecI x = set(load_group(a + r * lda));
        INFERNODE_UNROLL
        for (std::size_t v = 0; v < kVectors; ++v) sum[r][v].v = _mm512_dpbusd_epi32(sum[r][v].v, x.v, row[v].v);
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

INFERNODE_TABLE(QgemmTable, qgemm) = Qgemm<VnniKernel>::table("vnni", "qgemm.vnni");

}  // namespace infernode::microkernels
