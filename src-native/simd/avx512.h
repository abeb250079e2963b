#pragma once

#include <immintrin.h>

namespace infernode::simd::avx512 {

inline constexpr std::size_t kLanes = 16;

template <typename T>
struct Vec;
template <>
struct Vec<float> {
  __m512 v;
};
template <>
struct Vec<std::int32_t> {
  __m512i v;
};
struct Mask {
  __mmask16 m;
};
using F = Vec<float>;
using I = Vec<std::int32_t>;

INFERNODE_SIMD __mmask16 first_lanes(std::size_t n) { return static_cast<__mmask16>((1u << n) - 1u); }

INFERNODE_SIMD F set(float x) { return {_mm512_set1_ps(x)}; }
INFERNODE_SIMD I set(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
INFERNODE_SIMD F zero() { return {_mm512_setzero_ps()}; }
INFERNODE_SIMD I iota() { return {_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)}; }

INFERNODE_SIMD F load(const float* p) { return {_mm512_loadu_ps(p)}; }
INFERNODE_SIMD I load(const std::int32_t* p) { return {_mm512_loadu_si512(p)}; }
INFERNODE_SIMD void store(float* p, F a) { _mm512_storeu_ps(p, a.v); }
INFERNODE_SIMD void store(std::int32_t* p, I a) { _mm512_storeu_si512(p, a.v); }
INFERNODE_SIMD F load_partial(const float* p, std::size_t n) { return {_mm512_maskz_loadu_ps(first_lanes(n), p)}; }
INFERNODE_SIMD I load_partial(const std::int32_t* p, std::size_t n) {
  return {_mm512_maskz_loadu_epi32(first_lanes(n), p)};
}
INFERNODE_SIMD F load_where(const float* p, Mask lanes) { return {_mm512_maskz_loadu_ps(lanes.m, p)}; }
INFERNODE_SIMD void store_partial(float* p, F a, std::size_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), a.v); }
INFERNODE_SIMD void store_partial(std::int32_t* p, I a, std::size_t n) {
  _mm512_mask_storeu_epi32(p, first_lanes(n), a.v);
}
// Elements 0, 2, 4, ...; touches 2 * kLanes - 1 elements.
INFERNODE_SIMD F load_stride2(const float* p) {
  const __m512i index = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return {_mm512_permutex2var_ps(_mm512_loadu_ps(p), index, _mm512_maskz_loadu_ps(0x7fff, p + 16))};
}
// Elements 0, 3, 6, ...; touches 3 * kLanes - 2 elements.
INFERNODE_SIMD F load_stride3(const float* p) {
  __m512 mixed = _mm512_loadu_ps(p);  // element 3 * i lies in lane 3 * i % 16
  mixed = _mm512_mask_loadu_ps(mixed, 0x4924, p + 16);
  mixed = _mm512_mask_loadu_ps(mixed, 0x2492, p + 32);
  return {_mm512_permutexvar_ps(_mm512_setr_epi32(0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14, 1, 4, 7, 10, 13), mixed)};
}
// Elements 0, 4, 8, ...; touches 4 * kLanes - 3 elements.
INFERNODE_SIMD F load_stride4(const float* p) {
  __m512 mixed = _mm512_loadu_ps(p);  // elements 16 * j + 4 * i lie in lanes j + 4 * i
  mixed = _mm512_mask_loadu_ps(mixed, 0x2222, p + 15);
  mixed = _mm512_mask_loadu_ps(mixed, 0x4444, p + 30);
  mixed = _mm512_mask_loadu_ps(mixed, 0x8888, p + 45);
  return {_mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), mixed)};
}
INFERNODE_SIMD F next_lanes(F a, F b) {
  return {_mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(b.v), _mm512_castps_si512(a.v), 1))};
}
INFERNODE_SIMD void part2(F (&v)[2]) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512 first = _mm512_permutex2var_ps(v[0].v, even, v[1].v);
  v[1].v = _mm512_permutex2var_ps(v[0].v, _mm512_add_epi32(even, _mm512_set1_epi32(1)), v[1].v);
  v[0].v = first;
}
INFERNODE_SIMD void part3(F (&v)[3]) {
  // Lane l of vector j is element 16 * j + l: those of a part lie in different lanes.
  const auto part = [&](__mmask16 second, __mmask16 third, __m512i order) {
    const __m512 mixed = _mm512_mask_blend_ps(third, _mm512_mask_blend_ps(second, v[0].v, v[1].v), v[2].v);
    return F{_mm512_permutexvar_ps(order, mixed)};
  };
  const __m512i order = _mm512_setr_epi32(0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14, 1, 4, 7, 10, 13);
  const F parts[] = {part(0x4924, 0x2492, order), part(0x9249, 0x4924, _mm512_add_epi32(order, _mm512_set1_epi32(1))),
                     part(0x2492, 0x9249, _mm512_add_epi32(order, _mm512_set1_epi32(2)))};
  for (std::size_t i = 0; i < 3; ++i) v[i] = parts[i];
}
INFERNODE_SIMD I load_u8(const std::uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
INFERNODE_SIMD I load_s8(const std::int8_t* p) {
  return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
INFERNODE_SIMD I load_u16(const std::uint16_t* p) {
  return {_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
// Low 16 bits of each lane.
INFERNODE_SIMD void store_u16(std::uint16_t* p, I a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a.v));
}
// Saturating.
INFERNODE_SIMD void store_u8(std::uint8_t* p, I a) {
  const __m512i positive = _mm512_max_epi32(a.v, _mm512_setzero_si512());
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtusepi32_epi8(positive));
}
INFERNODE_SIMD void store_s8(std::int8_t* p, I a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(a.v));
}
INFERNODE_SIMD F load_f16(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
INFERNODE_SIMD void store_f16(std::uint16_t* p, F a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}

INFERNODE_SIMD F operator+(F a, F b) { return {_mm512_add_ps(a.v, b.v)}; }
INFERNODE_SIMD F operator-(F a, F b) { return {_mm512_sub_ps(a.v, b.v)}; }
INFERNODE_SIMD F operator*(F a, F b) { return {_mm512_mul_ps(a.v, b.v)}; }
INFERNODE_SIMD F operator/(F a, F b) { return {_mm512_div_ps(a.v, b.v)}; }
INFERNODE_SIMD F fma(F a, F b, F c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
INFERNODE_SIMD F fnma(F a, F b, F c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
INFERNODE_SIMD F min(F a, F b) { return {_mm512_min_ps(a.v, b.v)}; }
INFERNODE_SIMD F max(F a, F b) { return {_mm512_max_ps(a.v, b.v)}; }
INFERNODE_SIMD F sqrt(F a) { return {_mm512_sqrt_ps(a.v)}; }
INFERNODE_SIMD F floor(F a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
INFERNODE_SIMD F ceil(F a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)}; }
INFERNODE_SIMD F round_even(F a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }

INFERNODE_SIMD I operator+(I a, I b) { return {_mm512_add_epi32(a.v, b.v)}; }
INFERNODE_SIMD I operator-(I a, I b) { return {_mm512_sub_epi32(a.v, b.v)}; }
INFERNODE_SIMD I operator*(I a, I b) { return {_mm512_mullo_epi32(a.v, b.v)}; }
INFERNODE_SIMD I min(I a, I b) { return {_mm512_min_epi32(a.v, b.v)}; }
INFERNODE_SIMD I max(I a, I b) { return {_mm512_max_epi32(a.v, b.v)}; }
INFERNODE_SIMD I operator&(I a, I b) { return {_mm512_and_si512(a.v, b.v)}; }
INFERNODE_SIMD I operator|(I a, I b) { return {_mm512_or_si512(a.v, b.v)}; }
INFERNODE_SIMD I operator^(I a, I b) { return {_mm512_xor_si512(a.v, b.v)}; }
INFERNODE_SIMD I andnot(I a, I b) { return {_mm512_andnot_si512(a.v, b.v)}; }
template <int kBits>
INFERNODE_SIMD I shift_left(I a) {
  return {_mm512_slli_epi32(a.v, kBits)};
}
template <int kBits>
INFERNODE_SIMD I shift_right(I a) {
  return {_mm512_srli_epi32(a.v, kBits)};
}
template <int kBits>
INFERNODE_SIMD I shift_right_arithmetic(I a) {
  return {_mm512_srai_epi32(a.v, kBits)};
}

INFERNODE_SIMD Mask operator<(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
INFERNODE_SIMD Mask operator<=(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
INFERNODE_SIMD Mask operator>(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
INFERNODE_SIMD Mask operator>=(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ)}; }
INFERNODE_SIMD Mask operator==(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
INFERNODE_SIMD Mask operator>(I a, I b) { return {_mm512_cmpgt_epi32_mask(a.v, b.v)}; }
INFERNODE_SIMD Mask operator==(I a, I b) { return {_mm512_cmpeq_epi32_mask(a.v, b.v)}; }
INFERNODE_SIMD Mask operator&(Mask a, Mask b) { return {static_cast<__mmask16>(a.m & b.m)}; }
INFERNODE_SIMD Mask operator|(Mask a, Mask b) { return {static_cast<__mmask16>(a.m | b.m)}; }
INFERNODE_SIMD Mask operator~(Mask a) { return {static_cast<__mmask16>(~a.m)}; }
INFERNODE_SIMD bool any(Mask a) { return a.m != 0; }
INFERNODE_SIMD bool all(Mask a) { return a.m == 0xffff; }
INFERNODE_SIMD F select(Mask m, F yes, F no) { return {_mm512_mask_blend_ps(m.m, no.v, yes.v)}; }
INFERNODE_SIMD I select(Mask m, I yes, I no) { return {_mm512_mask_blend_epi32(m.m, no.v, yes.v)}; }

INFERNODE_SIMD I as_int(F a) { return {_mm512_castps_si512(a.v)}; }
INFERNODE_SIMD F as_float(I a) { return {_mm512_castsi512_ps(a.v)}; }
INFERNODE_SIMD I to_int(F a) { return {_mm512_cvtps_epi32(a.v)}; }
INFERNODE_SIMD F to_float(I a) { return {_mm512_cvtepi32_ps(a.v)}; }

INFERNODE_SIMD float reduce_add(F a) { return _mm512_reduce_add_ps(a.v); }
INFERNODE_SIMD float reduce_max(F a) { return _mm512_reduce_max_ps(a.v); }
INFERNODE_SIMD float reduce_min(F a) { return _mm512_reduce_min_ps(a.v); }
INFERNODE_SIMD std::int32_t reduce_add(I a) { return _mm512_reduce_add_epi32(a.v); }

// 2 * kLanes bytes, sign-extended to pairs of 16 bits per lane.
INFERNODE_SIMD I load_s8_pairs(const std::int8_t* p) {
  return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
// Per lane, the sum of the two products of 16-bit halves.
INFERNODE_SIMD I dot_pairs(I a, I b) { return {_mm512_madd_epi16(a.v, b.v)}; }

template <>
struct Vec<double> {
  __m512d v;
};
using D = Vec<double>;
INFERNODE_SIMD D set(double x) { return {_mm512_set1_pd(x)}; }
INFERNODE_SIMD D load(const double* p) { return {_mm512_loadu_pd(p)}; }
INFERNODE_SIMD void store(double* p, D a) { _mm512_storeu_pd(p, a.v); }
INFERNODE_SIMD D fma(D a, D b, D c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }

// a0 b0 a1 b1 ...: the first half, the second half.
INFERNODE_SIMD F zip_low(F a, F b) {
  const __m512i index = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  return {_mm512_permutex2var_ps(a.v, index, b.v)};
}
INFERNODE_SIMD F zip_high(F a, F b) {
  const __m512i index = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  return {_mm512_permutex2var_ps(a.v, index, b.v)};
}

// dst[c * ld_dst + r] = src[r * ld_src + c] for r, c < 4.
INFERNODE_SIMD void transpose4(const float* src, std::size_t ld_src, float* dst, std::size_t ld_dst) {
  __m128 r0 = _mm_loadu_ps(src), r1 = _mm_loadu_ps(src + ld_src);
  __m128 r2 = _mm_loadu_ps(src + 2 * ld_src), r3 = _mm_loadu_ps(src + 3 * ld_src);
  _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
  _mm_storeu_ps(dst, r0);
  _mm_storeu_ps(dst + ld_dst, r1);
  _mm_storeu_ps(dst + 2 * ld_dst, r2);
  _mm_storeu_ps(dst + 3 * ld_dst, r3);
}

}  // namespace infernode::simd::avx512
