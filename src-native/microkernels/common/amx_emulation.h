#pragma once

// Included by amx_tiles.h where INFERNODE_EMULATE_AMX is defined: the matrix unit's instructions in plain code with the
// same results (products of bfloat16 to the last bit but for denormal numbers, which the unit takes and gives as
// zeros), so that its loops are tested on any CPU with AVX-512. It is far slower than the AVX-512 loops.

#include <cstdint>
#include <cstring>

namespace infernode::microkernels {
namespace {

struct EmulatedTiles {
  std::uint8_t rows[8], row_bytes[8];
  alignas(64) std::uint8_t data[8][16][64];
};
inline thread_local EmulatedTiles emulated_tiles;

inline void emulated_config(const void* config) noexcept {
  const auto* bytes = static_cast<const std::uint8_t*>(config);
  for (int i = 0; i < 8; ++i) {
    emulated_tiles.row_bytes[i] = bytes[16 + 2 * i];
    emulated_tiles.rows[i] = bytes[48 + i];
  }
  std::memset(emulated_tiles.data, 0, sizeof emulated_tiles.data);
}

inline void emulated_zero(int tile) noexcept {
  std::memset(emulated_tiles.data[tile], 0, sizeof emulated_tiles.data[tile]);
}

inline void emulated_load(int tile, const void* base, std::size_t stride) noexcept {
  const EmulatedTiles& t = emulated_tiles;
  for (std::size_t r = 0; r < t.rows[tile]; ++r)
    std::memcpy(emulated_tiles.data[tile][r], static_cast<const std::uint8_t*>(base) + r * stride, t.row_bytes[tile]);
}

inline void emulated_store(int tile, void* base, std::size_t stride) noexcept {
  const EmulatedTiles& t = emulated_tiles;
  for (std::size_t r = 0; r < t.rows[tile]; ++r)
    std::memcpy(static_cast<std::uint8_t*>(base) + r * stride, t.data[tile][r], t.row_bytes[tile]);
}

// Calls add(sums, word of a, row of b) for each row of the sums and each word of A's row.
template <typename Add>
inline void emulated_product(int to, int a, int b, Add add) noexcept {
  EmulatedTiles& t = emulated_tiles;
  const std::size_t words = t.row_bytes[a] / 4;
  const __mmask16 columns = static_cast<__mmask16>((1u << (t.row_bytes[to] / 4)) - 1);
  for (std::size_t r = 0; r < t.rows[to]; ++r) {
    __m512i sums = _mm512_maskz_loadu_epi32(columns, t.data[to][r]);
    for (std::size_t k = 0; k < words; ++k) {
      std::int32_t word;
      std::memcpy(&word, t.data[a][r] + 4 * k, sizeof word);
      sums = add(sums, _mm512_set1_epi32(word), _mm512_maskz_loadu_epi32(columns, t.data[b][k]));
    }
    _mm512_mask_storeu_epi32(t.data[to][r], columns, sums);
  }
}

inline void emulated_dpbf16ps(int to, int a, int b) noexcept {
  emulated_product(to, a, b, [](__m512i sums, __m512i x, __m512i y) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    const auto low = [](__m512i v) { return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16)); };
    const auto high = [&](__m512i v) { return _mm512_castsi512_ps(_mm512_and_si512(v, upper)); };
    __m512 sum = _mm512_castsi512_ps(sums);
    sum = _mm512_fmadd_ps(low(x), low(y), sum);
    return _mm512_castps_si512(_mm512_fmadd_ps(high(x), high(y), sum));
  });
}

// The unit neither saturates sums nor pairs of products, as vpdpbusd does not.
inline void emulated_dpbusd(int to, int a, int b) noexcept {
  emulated_product(to, a, b, [](__m512i sums, __m512i x, __m512i y) { return _mm512_dpbusd_epi32(sums, x, y); });
}

}  // namespace
}  // namespace infernode::microkernels

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#undef _tile_dpbusd
#define _tile_loadconfig emulated_config
#define _tile_release() static_cast<void>(0)
#define _tile_zero emulated_zero
#define _tile_loadd emulated_load
#define _tile_stream_loadd emulated_load
#define _tile_stored emulated_store
#define _tile_dpbf16ps emulated_dpbf16ps
#define _tile_dpbusd emulated_dpbusd
