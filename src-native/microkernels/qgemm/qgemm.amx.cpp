#include "microkernels/qgemm/qgemm.h"

#include "microkernels/common/amx_tiles.h"
#include "microkernels/qgemm/detail/driver.simd.h"

namespace infernode::microkernels {
namespace {

// 16 rows by 64 k of uint8 times 64 k by 16 columns of int8 at a time. The packed forms of the vector kernels are what
// the tiles load: rows of A as they lie, groups of four k of a column next to each other.
struct AmxKernel {
  static constexpr std::size_t kGroup = 4, kStep = 64, kRows = 2 * kTileRows;
  using Element = std::uint8_t;
  static constexpr std::int32_t kSignedShift = 128, kUnsignedShift = 0;
  using Session = TileSession;

  static void multiply(std::size_t rows, std::size_t, std::size_t groups, const Element* a, std::size_t lda,
                       const std::int8_t* panel, std::int32_t* tile) noexcept {
    if (rows > kTileRows) {
      multiply_tiles<2>(groups, a, lda, panel, tile);
    } else {
      multiply_tiles<1>(groups, a, lda, panel, tile);
    }
  }

 private:
  template <int kRowTiles>
  static void multiply_tiles(std::size_t groups, const Element* a, std::size_t lda, const std::int8_t* panel,
                             std::int32_t* tile) noexcept {
    constexpr std::size_t kPanelStride = kPanelColumns * kGroup, kTileStride = kPanelColumns * sizeof(std::int32_t);
    __asm__ volatile("" ::: "memory");  // the loads below do not tell the compiler what they read
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (kRowTiles == 2) {
      _tile_zero(2);
      _tile_zero(3);
    }
    for (std::size_t g = 0; g < groups; g += kStep / kGroup) {
      _tile_loadd(4, a, lda);
      _tile_loadd(6, panel, kPanelStride);
      _tile_loadd(7, panel + kPanelStride / 2, kPanelStride);
      _tile_dpbusd(0, 4, 6);
      _tile_dpbusd(1, 4, 7);
      if constexpr (kRowTiles == 2) {
        _tile_loadd(5, a + kTileRows * lda, lda);
        _tile_dpbusd(2, 5, 6);
        _tile_dpbusd(3, 5, 7);
      }
      a += kStep;
      panel += kStep * kPanelColumns;
    }
    _tile_stored(0, tile, kTileStride);
    _tile_stored(1, tile + 16, kTileStride);
    if constexpr (kRowTiles == 2) {
      _tile_stored(2, tile + kTileRows * kPanelColumns, kTileStride);
      _tile_stored(3, tile + kTileRows * kPanelColumns + 16, kTileStride);
    }
  }
};
static_assert(kPanelColumns == kNr);

}  // namespace

INFERNODE_TABLE(QgemmTable, qgemm) = Qgemm<AmxKernel>::table("amx", "qgemm.amx");

}  // namespace infernode::microkernels
