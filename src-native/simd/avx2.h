#pragma once

#include <immintrin.h>

namespace infernode::simd::avx2 {

inline constexpr std::size_t kLanes = 8;

template <typename T>
struct Vec;
template <>
struct Vec<float> {
  __m256 v;
};
template <>
struct Vec<std::int32_t> {
  __m256i v;
};
struct Mask {
  __m256 m;
};
using F = Vec<float>;
using I = Vec<std::int32_t>;

INFERNODE_SIMD __m256i first_lanes(std::size_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INFERNODE_SIMD F set(float x) { return {_mm256_set1_ps(x)}; }
INFERNODE_SIMD I set(std::int32_t x) { return {_mm256_set1_epi32(x)}; }
INFERNODE_SIMD F zero() { return {_mm256_setzero_ps()}; }
INFERNODE_SIMD I iota() { return {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)}; }

INFERNODE_SIMD F load(const float* p) { return {_mm256_loadu_ps(p)}; }
INFERNODE_SIMD I load(const std::int32_t* p) { return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))}; }
INFERNODE_SIMD void store(float* p, F a) { _mm256_storeu_ps(p, a.v); }
INFERNODE_SIMD void store(std::int32_t* p, I a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.v); }
INFERNODE_SIMD F load_partial(const float* p, std::size_t n) { return {_mm256_maskload_ps(p, first_lanes(n))}; }
INFERNODE_SIMD I load_partial(const std::int32_t* p, std::size_t n) {
  return {_mm256_maskload_epi32(p, first_lanes(n))};
}
INFERNODE_SIMD F load_where(const float* p, Mask lanes) {
  return {_mm256_maskload_ps(p, _mm256_castps_si256(lanes.m))};
}
// In halves: masked stores are microcoded on several CPUs.
INFERNODE_SIMD void store_partial(float* p, F a, std::size_t n) {
  __m128 part = _mm256_castps256_ps128(a.v);
  if (n & 8) {
    _mm256_storeu_ps(p, a.v);
    return;
  }
  if (n & 4) {
    _mm_storeu_ps(p, part);
    part = _mm256_extractf128_ps(a.v, 1);
    p += 4;
  }
  if (n & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), part);
    part = _mm_movehl_ps(part, part);
    p += 2;
  }
  if (n & 1) _mm_store_ss(p, part);
}
INFERNODE_SIMD void store_partial(std::int32_t* p, I a, std::size_t n) {
  store_partial(reinterpret_cast<float*>(p), F{_mm256_castsi256_ps(a.v)}, n);
}
INFERNODE_SIMD F load_stride2(const float* p) {
  const __m256 low = _mm256_loadu_ps(p);
  const __m256 high = _mm256_loadu_ps(p + 7);  // lanes 1, 3, 5, 7 are elements 8, 10, 12, 14
  const __m256 mixed = _mm256_shuffle_ps(low, high, 0xd8 /* 0 2 1 3 */);
  return {_mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xd8))};
}
INFERNODE_SIMD F load_stride3(const float* p) {
  __m256 mixed = _mm256_loadu_ps(p);                              // 0, 3, 6 in their lanes
  mixed = _mm256_blend_ps(mixed, _mm256_loadu_ps(p + 7), 0x24);   // 9, 12 in lanes 2, 5
  mixed = _mm256_blend_ps(mixed, _mm256_loadu_ps(p + 14), 0x92);  // 15, 18, 21 in lanes 1, 4, 7
  return {_mm256_permutevar8x32_ps(mixed, _mm256_setr_epi32(0, 3, 6, 2, 5, 1, 4, 7))};
}
INFERNODE_SIMD F load_stride4(const float* p) {
  const __m256 low = _mm256_blend_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 7), 0x22);         // 0 8 . . 4 12 . .
  const __m256 high = _mm256_blend_ps(_mm256_loadu_ps(p + 14), _mm256_loadu_ps(p + 21), 0x88);  // . . 16 24 . . 20 28
  return {_mm256_permutevar8x32_ps(_mm256_blend_ps(low, high, 0xcc), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))};
}
INFERNODE_SIMD F next_lanes(F a, F b) {
  return {_mm256_permutevar8x32_ps(_mm256_blend_ps(a.v, b.v, 1), _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 0))};
}
INFERNODE_SIMD void part2(F (&v)[2]) {
  const auto order = [](__m256 mixed) {
    return F{_mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xd8))};
  };
  const F first = order(_mm256_shuffle_ps(v[0].v, v[1].v, 0x88));
  v[1] = order(_mm256_shuffle_ps(v[0].v, v[1].v, 0xdd));
  v[0] = first;
}
// Lane l of vector j is element 8 * j + l: those of a part lie in different lanes.
template <int kSecond, int kThird>
INFERNODE_SIMD F one_of_part3(const F (&v)[3], __m256i order) {
  const __m256 mixed = _mm256_blend_ps(_mm256_blend_ps(v[0].v, v[1].v, kSecond), v[2].v, kThird);
  return {_mm256_permutevar8x32_ps(mixed, order)};
}
INFERNODE_SIMD void part3(F (&v)[3]) {
  const F parts[] = {one_of_part3<0x92, 0x24>(v, _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5)),
                     one_of_part3<0x24, 0x49>(v, _mm256_setr_epi32(1, 4, 7, 2, 5, 0, 3, 6)),
                     one_of_part3<0x49, 0x92>(v, _mm256_setr_epi32(2, 5, 0, 3, 6, 1, 4, 7))};
  for (std::size_t i = 0; i < 3; ++i) v[i] = parts[i];
}
INFERNODE_SIMD I load_u8(const std::uint8_t* p) {
  return {_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))};
}
INFERNODE_SIMD I load_s8(const std::int8_t* p) {
  return {_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))};
}
INFERNODE_SIMD I load_u16(const std::uint16_t* p) {
  return {_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
INFERNODE_SIMD void store_u16(std::uint16_t* p, I a) {
  const __m256i low = _mm256_and_si256(a.v, _mm256_set1_epi32(0xffff));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1)));
}
INFERNODE_SIMD __m128i pack_words(I a) {
  return _mm_packs_epi32(_mm256_castsi256_si128(a.v), _mm256_extracti128_si256(a.v, 1));
}
INFERNODE_SIMD void store_u8(std::uint8_t* p, I a) {
  const __m128i words = pack_words(a);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(words, words));
}
INFERNODE_SIMD void store_s8(std::int8_t* p, I a) {
  const __m128i words = pack_words(a);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
}
INFERNODE_SIMD F load_f16(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
INFERNODE_SIMD void store_f16(std::uint16_t* p, F a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}

INFERNODE_SIMD F operator+(F a, F b) { return {_mm256_add_ps(a.v, b.v)}; }
INFERNODE_SIMD F operator-(F a, F b) { return {_mm256_sub_ps(a.v, b.v)}; }
INFERNODE_SIMD F operator*(F a, F b) { return {_mm256_mul_ps(a.v, b.v)}; }
INFERNODE_SIMD F operator/(F a, F b) { return {_mm256_div_ps(a.v, b.v)}; }
INFERNODE_SIMD F fma(F a, F b, F c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
INFERNODE_SIMD F fnma(F a, F b, F c) { return {_mm256_fnmadd_ps(a.v, b.v, c.v)}; }
INFERNODE_SIMD F min(F a, F b) { return {_mm256_min_ps(a.v, b.v)}; }
INFERNODE_SIMD F max(F a, F b) { return {_mm256_max_ps(a.v, b.v)}; }
INFERNODE_SIMD F sqrt(F a) { return {_mm256_sqrt_ps(a.v)}; }
INFERNODE_SIMD F floor(F a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
INFERNODE_SIMD F ceil(F a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)}; }
INFERNODE_SIMD F round_even(F a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }

INFERNODE_SIMD I operator+(I a, I b) { return {_mm256_add_epi32(a.v, b.v)}; }
INFERNODE_SIMD I operator-(I a, I b) { return {_mm256_sub_epi32(a.v, b.v)}; }
INFERNODE_SIMD I operator*(I a, I b) { return {_mm256_mullo_epi32(a.v, b.v)}; }
INFERNODE_SIMD I min(I a, I b) { return {_mm256_min_epi32(a.v, b.v)}; }
INFERNODE_SIMD I max(I a, I b) { return {_mm256_max_epi32(a.v, b.v)}; }
INFERNODE_SIMD I operator&(I a, I b) { return {_mm256_and_si256(a.v, b.v)}; }
INFERNODE_SIMD I operator|(I a, I b) { return {_mm256_or_si256(a.v, b.v)}; }
INFERNODE_SIMD I operator^(I a, I b) { return {_mm256_xor_si256(a.v, b.v)}; }
INFERNODE_SIMD I andnot(I a, I b) { return {_mm256_andnot_si256(a.v, b.v)}; }
template <int kBits>
INFERNODE_SIMD I shift_left(I a) {
  return {_mm256_slli_epi32(a.v, kBits)};
}
template <int kBits>
INFERNODE_SIMD I shift_right(I a) {
  return {_mm256_srli_epi32(a.v, kBits)};
}
template <int kBits>
INFERNODE_SIMD I shift_right_arithmetic(I a) {
  return {_mm256_srai_epi32(a.v, kBits)};
}

INFERNODE_SIMD Mask operator<(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
INFERNODE_SIMD Mask operator<=(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
INFERNODE_SIMD Mask operator>(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ)}; }
INFERNODE_SIMD Mask operator>=(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GE_OQ)}; }
INFERNODE_SIMD Mask operator==(F a, F b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
INFERNODE_SIMD Mask operator>(I a, I b) { return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(a.v, b.v))}; }
INFERNODE_SIMD Mask operator==(I a, I b) { return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.v, b.v))}; }
INFERNODE_SIMD Mask operator&(Mask a, Mask b) { return {_mm256_and_ps(a.m, b.m)}; }
INFERNODE_SIMD Mask operator|(Mask a, Mask b) { return {_mm256_or_ps(a.m, b.m)}; }
INFERNODE_SIMD Mask operator~(Mask a) { return {_mm256_xor_ps(a.m, _mm256_castsi256_ps(_mm256_set1_epi32(-1)))}; }
INFERNODE_SIMD bool any(Mask a) { return _mm256_movemask_ps(a.m) != 0; }
INFERNODE_SIMD bool all(Mask a) { return _mm256_movemask_ps(a.m) == 0xff; }
INFERNODE_SIMD F select(Mask m, F yes, F no) { return {_mm256_blendv_ps(no.v, yes.v, m.m)}; }
INFERNODE_SIMD I select(Mask m, I yes, I no) { return {_mm256_blendv_epi8(no.v, yes.v, _mm256_castps_si256(m.m))}; }

INFERNODE_SIMD I as_int(F a) { return {_mm256_castps_si256(a.v)}; }
INFERNODE_SIMD F as_float(I a) { return {_mm256_castsi256_ps(a.v)}; }
INFERNODE_SIMD I to_int(F a) { return {_mm256_cvtps_epi32(a.v)}; }
INFERNODE_SIMD F to_float(I a) { return {_mm256_cvtepi32_ps(a.v)}; }

INFERNODE_SIMD float reduce_add(F a) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
INFERNODE_SIMD float reduce_max(F a) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
INFERNODE_SIMD float reduce_min(F a) {
  __m128 s = _mm_min_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  s = _mm_min_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_min_ss(s, _mm_movehdup_ps(s)));
}
INFERNODE_SIMD std::int32_t reduce_add(I a) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(a.v), _mm256_extracti128_si256(a.v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

// 2 * kLanes bytes, sign-extended to pairs of 16 bits per lane.
INFERNODE_SIMD I load_s8_pairs(const std::int8_t* p) {
  return {_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
// Per lane, the sum of the two products of 16-bit halves.
INFERNODE_SIMD I dot_pairs(I a, I b) { return {_mm256_madd_epi16(a.v, b.v)}; }

template <>
struct Vec<double> {
  __m256d v;
};
using D = Vec<double>;
INFERNODE_SIMD D set(double x) { return {_mm256_set1_pd(x)}; }
INFERNODE_SIMD D load(const double* p) { return {_mm256_loadu_pd(p)}; }
INFERNODE_SIMD void store(double* p, D a) { _mm256_storeu_pd(p, a.v); }
INFERNODE_SIMD D fma(D a, D b, D c) { return {_mm256_fmadd_pd(a.v, b.v, c.v)}; }

// a0 b0 a1 b1 ...: the first half, the second half.
INFERNODE_SIMD F zip_low(F a, F b) {
  return {_mm256_permute2f128_ps(_mm256_unpacklo_ps(a.v, b.v), _mm256_unpackhi_ps(a.v, b.v), 0x20)};
}
INFERNODE_SIMD F zip_high(F a, F b) {
  return {_mm256_permute2f128_ps(_mm256_unpacklo_ps(a.v, b.v), _mm256_unpackhi_ps(a.v, b.v), 0x31)};
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

}  // namespace infernode::simd::avx2
