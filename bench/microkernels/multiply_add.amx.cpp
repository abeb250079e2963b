#include <immintrin.h>

#include <cstdint>

#include "multiply_add.h"

namespace infernode::bench {
namespace {

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

}  // namespace

std::size_t multiply_add_amx(std::size_t turns, float& sum) noexcept {
  const TileConfig config;
  alignas(64) std::uint16_t numbers[4][512];
  alignas(64) float result[256];
  std::uint32_t random = 7;
  for (auto& tile : numbers) {
    for (std::uint16_t& number :
         tile) {  // from 0.5 up to 1, of either sign: the unit's rate depends on what it multiplies
      random = random * 1664525u + 1013904223u;
      number = static_cast<std::uint16_t>(0x3f00u | (random >> 25) | (random >> 9 & 0x8000u));
    }
  }
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, numbers[0], 64);
  _tile_loadd(5, numbers[1], 64);
  _tile_loadd(6, numbers[2], 64);
  _tile_loadd(7, numbers[3], 64);
  for (std::size_t turn = 0; turn < turns; ++turn) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, result, 64);
  _tile_release();
  sum += result[0];
  return turns * 4 * 16 * 16 * 32 * 2;
}

}  // namespace infernode::bench
