#pragma once

// For files of special AVX-512 targets (*.amx.cpp, *.bf16.cpp): what they do with 16 lanes of 32 bits by intrinsics.

#include <immintrin.h>

#include "microkernels/common/simd_file.h"

namespace infernode::microkernels {
namespace {

// x[i][j] and x[j][i] change places.
INFERNODE_SIMD void transpose16(__m512 (&x)[16]) noexcept {
  __m512 y[16];
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < 16; i += 4) {  // of 4 rows: column 4 * lane + j in y[i + j]
    const __m512d low0 = _mm512_castps_pd(_mm512_unpacklo_ps(x[i], x[i + 1])),
                  high0 = _mm512_castps_pd(_mm512_unpackhi_ps(x[i], x[i + 1])),
                  low1 = _mm512_castps_pd(_mm512_unpacklo_ps(x[i + 2], x[i + 3])),
                  high1 = _mm512_castps_pd(_mm512_unpackhi_ps(x[i + 2], x[i + 3]));
    y[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(low0, low1));
    y[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low0, low1));
    y[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high0, high1));
    y[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high0, high1));
  }
  INFERNODE_UNROLL
  for (std::size_t j = 0; j < 4; ++j) {
    const __m512 even0 = _mm512_shuffle_f32x4(y[j], y[4 + j], 0x88), odd0 = _mm512_shuffle_f32x4(y[j], y[4 + j], 0xdd);
    const __m512 even1 = _mm512_shuffle_f32x4(y[8 + j], y[12 + j], 0x88),
                 odd1 = _mm512_shuffle_f32x4(y[8 + j], y[12 + j], 0xdd);
    x[j] = _mm512_shuffle_f32x4(even0, even1, 0x88);
    x[4 + j] = _mm512_shuffle_f32x4(odd0, odd1, 0x88);
    x[8 + j] = _mm512_shuffle_f32x4(even0, even1, 0xdd);
    x[12 + j] = _mm512_shuffle_f32x4(odd0, odd1, 0xdd);
  }
}

INFERNODE_SIMD __mmask16 first_lanes(std::size_t n) noexcept {
  return n >= 16 ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1u << n) - 1);
}

}  // namespace
}  // namespace infernode::microkernels
