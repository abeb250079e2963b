#pragma once

// Included by *.bf16.cpp and *.amx.cpp only: float32 products with operands rounded to bfloat16 and sums of float32
// (vdpbf16ps, which takes and gives denormal numbers as zeros). Both operands lie in words of two numbers, k in the
// lower half and k + 1 in the upper one: a row of A as its words one after the other, a panel of B as rows of 32 words,
// one for each column. Two tiles of the matrix unit lie beside each other in such a panel. Where K is odd the last
// words end in a zero.

#include "microkernels/common/lanes16.h"

namespace infernode::microkernels {
namespace {

using simd::INFERNODE_TARGET::load;
using simd::INFERNODE_TARGET::store;

constexpr std::size_t kPairColumns = 32;  // of a panel

constexpr std::size_t pairs_of(std::size_t k) noexcept { return (k + 1) / 2; }

INFERNODE_SIMD __m512i as_bits(__m512bh x) noexcept { return (__m512i)x; }
INFERNODE_SIMD __m512bh as_pairs(__m512i x) noexcept { return (__m512bh)x; }

INFERNODE_SIMD __m512 multiply_pairs(__m512 sum, __m512i a, __m512i b) noexcept {
  return _mm512_dpbf16_ps(sum, as_pairs(a), as_pairs(b));
}

// Words of 32 numbers that follow each other.
INFERNODE_SIMD __m512i round_in_order(__m512 first, __m512 second) noexcept {
  return as_bits(_mm512_cvtne2ps_pbh(second, first));
}

// Words of even[i] and odd[i].
INFERNODE_SIMD __m512i round_pairs(__m512 even, __m512 odd) noexcept {
  const __m512i zipper = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                          21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(zipper, round_in_order(even, odd));
}

// Of up to 32 numbers, zeros behind them.
INFERNODE_SIMD __m512i round_row(const float* x, std::size_t n) noexcept {
  if (n >= 32) return round_in_order(_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16));
  return round_in_order(_mm512_maskz_loadu_ps(first_lanes(n), x),
                        n > 16 ? _mm512_maskz_loadu_ps(first_lanes(n - 16), x + 16) : _mm512_setzero_ps());
}

// 16 numbers that are kept rounded, and back.
INFERNODE_SIMD VecF load(const std::uint16_t* p) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))};
}
INFERNODE_SIMD void store(std::uint16_t* p, VecF x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh(x.v));
}
// Rows of 16 numbers, one after the other.
template <std::size_t kRows>
INFERNODE_SIMD void store_rows(std::uint16_t* p, const VecF* x) {
  INFERNODE_UNROLL
  for (std::size_t r = 0; r + 1 < kRows; r += 2) _mm512_storeu_si512(p + r * 16, round_in_order(x[r].v, x[r + 1].v));
  if constexpr (kRows % 2 == 1) store(p + (kRows - 1) * 16, x[kRows - 1]);
}

// A row of k numbers.
INFERNODE_SIMD void round_whole_row(const float* x, std::size_t k, std::uint32_t* out) noexcept {
  for (; k >= 32; k -= 32, x += 32, out += 16) _mm512_storeu_si512(out, round_row(x, 32));
  if (k > 0) _mm512_mask_storeu_epi32(out, first_lanes(pairs_of(k)), round_row(x, k));
}

// A panel of rows of at least 32 floats, `ldb` apart.
INFERNODE_SIMD void round_panel(const float* b, std::size_t ldb, std::size_t k, std::uint32_t* out) noexcept {
  for (std::size_t p = 0; p < k; p += 2, out += kPairColumns) {
    const float* from = b + p * ldb;
    INFERNODE_UNROLL
    for (std::size_t c = 0; c < kPairColumns; c += 16) {
      const __m512 odd = p + 1 < k ? _mm512_loadu_ps(from + ldb + c) : _mm512_setzero_ps();
      _mm512_storeu_si512(out + c, round_pairs(_mm512_loadu_ps(from + c), odd));
    }
  }
}

// A panel of `cols` columns of k floats, `ldb` apart; columns beyond are zeros.
INFERNODE_SIMD void round_columns(const float* b, std::size_t ldb, std::size_t k, std::size_t cols,
                                  std::uint32_t* out) noexcept {
  for (std::size_t c = 0; c < kPairColumns; c += 16) {
    const std::size_t count = cols > c ? smaller(cols - c, std::size_t{16}) : 0;
    for (std::size_t p = 0; p < k; p += 32) {
      __m512 x[16];
      INFERNODE_UNROLL
      for (std::size_t i = 0; i < 16; ++i) {
        x[i] = _mm512_setzero_ps();
        if (i < count) x[i] = _mm512_castsi512_ps(round_row(b + (c + i) * ldb + p, k - p));
      }
      transpose16(x);
      std::uint32_t* const to = out + p / 2 * kPairColumns + c;
      const std::size_t rows = smaller(pairs_of(k - p), std::size_t{16});
      if (rows == 16) {
        INFERNODE_UNROLL
        for (std::size_t i = 0; i < 16; ++i) _mm512_storeu_ps(to + i * kPairColumns, x[i]);
      } else {
        INFERNODE_UNROLL
        for (std::size_t i = 0; i < 16; ++i) {
          if (i < rows) _mm512_storeu_ps(to + i * kPairColumns, x[i]);
        }
      }
    }
  }
}

// Weights that are read next are fetched beside products, a part of them with each word that is multiplied.
struct Ahead {
  const char* from;
  std::size_t step;  // bytes
};

// What to fetch ahead: the `part`th of `parts` equal parts of `rows` rows of `row` words. Where
// nothing is to come (null), the first row of what is read now again and again.
INFERNODE_SIMD Ahead ahead_of(const std::uint32_t* next, const std::uint32_t* now, std::size_t rows, std::size_t row,
                              std::size_t part, std::size_t parts) noexcept {
  const std::size_t step = next ? row * sizeof(std::uint32_t) / parts : 0;
  return {reinterpret_cast<const char*>(next ? next : now) + part * step * rows, step};
}

// A row has two lines at most.
INFERNODE_SIMD void fetch(Ahead& ahead) noexcept {
  _mm_prefetch(ahead.from, _MM_HINT_T1);
  _mm_prefetch(ahead.from + 64, _MM_HINT_T1);
  ahead.from += ahead.step;
}

// The products' sums over `pairs` words of rows of A, `lda` apart, and a panel; beside() is called with each word.
template <std::size_t kRows, std::size_t kVectors, typename Beside>
INFERNODE_SIMD void sum_registers(std::size_t pairs, const std::uint32_t* a, std::size_t lda, const std::uint32_t* b,
                                  VecF (&out)[kRows][kVectors], const Beside& beside) noexcept {
  __m512 sum[kRows][kVectors];
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = _mm512_setzero_ps();
  }
  for (std::size_t p = 0; p < pairs; ++p, ++a, b += kPairColumns) {
    beside();
    __m512i row[kVectors];
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) row[v] = _mm512_loadu_si512(b + v * 16);
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      const __m512i x = _mm512_set1_epi32(static_cast<int>(a[r * lda]));
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = multiply_pairs(sum[r][v], x, row[v]);
    }
  }
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) out[r][v] = {sum[r][v]};
  }
}

// tile[r * 32 + c] = those sums.
template <std::size_t kRows, std::size_t kVectors>
INFERNODE_SIMD void sum_pairs(std::size_t pairs, const std::uint32_t* a, std::size_t lda, const std::uint32_t* b,
                              float* tile) noexcept {
  VecF sum[kRows][kVectors];
  sum_registers<kRows, kVectors>(pairs, a, lda, b, sum, []() __attribute__((always_inline)){});
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) store(tile + r * kPairColumns + v * 16, sum[r][v]);
  }
}

}  // namespace
}  // namespace infernode::microkernels
