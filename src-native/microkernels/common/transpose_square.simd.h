#pragma once

#include "microkernels/common/simd_file.h"
#if INFERNODE_SIMD_ID == 3
#include "microkernels/common/lanes16.h"
#endif

// Squares of numbers whose rows become columns, as large as registers make them.
namespace infernode::microkernels {
namespace {

#if INFERNODE_SIMD_ID == 3
constexpr std::size_t kSquare = 16;
#elif INFERNODE_SIMD_ID == 2
constexpr std::size_t kSquare = 8;

// x[i][j] and x[j][i] change places.
INFERNODE_SIMD void transpose_registers(VecF (&x)[kSquare]) noexcept {
  __m256 y[kSquare];
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < kSquare; i += 4) {  // of 4 rows: columns j and j + 4 in y[i + j]
    const __m256 low0 = _mm256_unpacklo_ps(x[i].v, x[i + 1].v), high0 = _mm256_unpackhi_ps(x[i].v, x[i + 1].v);
    const __m256 low1 = _mm256_unpacklo_ps(x[i + 2].v, x[i + 3].v), high1 = _mm256_unpackhi_ps(x[i + 2].v, x[i + 3].v);
    y[i] = _mm256_shuffle_ps(low0, low1, 0x44);
    y[i + 1] = _mm256_shuffle_ps(low0, low1, 0xee);
    y[i + 2] = _mm256_shuffle_ps(high0, high1, 0x44);
    y[i + 3] = _mm256_shuffle_ps(high0, high1, 0xee);
  }
  INFERNODE_UNROLL
  for (std::size_t j = 0; j < 4; ++j) {
    x[j].v = _mm256_permute2f128_ps(y[j], y[4 + j], 0x20);
    x[4 + j].v = _mm256_permute2f128_ps(y[j], y[4 + j], 0x31);
  }
}
#else
constexpr std::size_t kSquare = 4;
#endif

// out[c * ld_out + r] = x[r * ldx + c] of a square, of which `rows` and `cols` exist: whole rows of `cols` squares are
// written, with zeros where x has no row.
INFERNODE_SIMD void transpose_square(const float* x, std::size_t ldx, std::size_t rows, std::size_t cols, float* out,
                                     std::size_t ld_out) noexcept {
#if INFERNODE_SIMD_ID == 3
  __m512 v[kSquare];
  const __mmask16 there = first_lanes(cols);
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < kSquare; ++i)
    v[i] = i < rows ? _mm512_maskz_loadu_ps(there, x + i * ldx) : _mm512_setzero_ps();
  transpose16(v);
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < kSquare; ++i)
    if (i < cols) _mm512_storeu_ps(out + i * ld_out, v[i]);
#elif INFERNODE_SIMD_ID == 2
  VecF v[kSquare];
  const bool whole = cols == kSquare;
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < kSquare; ++i)
    v[i] = i >= rows ? zero() : whole ? load(x + i * ldx) : load_partial(x + i * ldx, cols);
  transpose_registers(v);
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < kSquare; ++i)
    if (i < cols) store(out + i * ld_out, v[i]);
#else
  if (rows == kSquare && cols == kSquare) return transpose4(x, ldx, out, ld_out);
  for (std::size_t c = 0; c < cols; ++c) {
    for (std::size_t r = 0; r < kSquare; ++r) out[c * ld_out + r] = r < rows ? x[r * ldx + c] : 0.0f;
  }
#endif
}

}  // namespace
}  // namespace infernode::microkernels
