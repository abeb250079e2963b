#pragma once

#include <nmmintrin.h>

namespace infernode::simd::sse42 {

inline constexpr std::size_t kLanes = 4;

template <typename T>
struct Vec;
template <>
struct Vec<float> {
  __m128 v;
};
template <>
struct Vec<std::int32_t> {
  __m128i v;
};
struct Mask {
  __m128 m;
};
using F = Vec<float>;
using I = Vec<std::int32_t>;

INFERNODE_SIMD F set(float x) { return {_mm_set1_ps(x)}; }
INFERNODE_SIMD I set(std::int32_t x) { return {_mm_set1_epi32(x)}; }
INFERNODE_SIMD F zero() { return {_mm_setzero_ps()}; }
INFERNODE_SIMD I iota() { return {_mm_setr_epi32(0, 1, 2, 3)}; }

INFERNODE_SIMD F load(const float* p) { return {_mm_loadu_ps(p)}; }
INFERNODE_SIMD I load(const std::int32_t* p) { return {_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))}; }
INFERNODE_SIMD void store(float* p, F a) { _mm_storeu_ps(p, a.v); }
INFERNODE_SIMD void store(std::int32_t* p, I a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), a.v); }
INFERNODE_SIMD F load_partial(const float* p, std::size_t n) {
  switch (n) {
    case 0:
      return zero();
    case 1:
      return {_mm_load_ss(p)};
    case 2:
      return {_mm_loadl_pi(_mm_setzero_ps(), reinterpret_cast<const __m64*>(p))};
    case 3:
      return {_mm_movelh_ps(_mm_loadl_pi(_mm_setzero_ps(), reinterpret_cast<const __m64*>(p)), _mm_load_ss(p + 2))};
    default:
      return load(p);
  }
}
INFERNODE_SIMD I load_partial(const std::int32_t* p, std::size_t n) {
  return {_mm_castps_si128(load_partial(reinterpret_cast<const float*>(p), n).v)};
}
INFERNODE_SIMD F load_where(const float* p, Mask lanes) {
  const int bits = _mm_movemask_ps(lanes.m);
  if (bits == 0xf) return load(p);
  const auto lane = [&](int i) { return bits >> i & 1 ? p[i] : 0.0f; };
  return {_mm_setr_ps(lane(0), lane(1), lane(2), lane(3))};
}
INFERNODE_SIMD void store_partial(float* p, F a, std::size_t n) {
  __m128 part = a.v;
  if (n & 4) {
    _mm_storeu_ps(p, part);
    return;
  }
  if (n & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), part);
    part = _mm_movehl_ps(part, part);
    p += 2;
  }
  if (n & 1) _mm_store_ss(p, part);
}
INFERNODE_SIMD void store_partial(std::int32_t* p, I a, std::size_t n) {
  store_partial(reinterpret_cast<float*>(p), F{_mm_castsi128_ps(a.v)}, n);
}
INFERNODE_SIMD F load_stride2(const float* p) {
  return {_mm_shuffle_ps(_mm_loadu_ps(p), _mm_loadu_ps(p + 3), 0xd8 /* 0 2 | 4 6 */)};
}
INFERNODE_SIMD F load_stride3(const float* p) {
  return {_mm_shuffle_ps(_mm_loadu_ps(p), _mm_loadu_ps(p + 6), 0xcc /* 0 3 | 6 9 */)};
}
INFERNODE_SIMD F load_stride4(const float* p) {
  const __m128 low = _mm_unpacklo_ps(_mm_load_ss(p), _mm_load_ss(p + 4));
  return {_mm_movelh_ps(low, _mm_unpacklo_ps(_mm_load_ss(p + 8), _mm_load_ss(p + 12)))};
}
INFERNODE_SIMD F next_lanes(F a, F b) {
  const __m128 mixed = _mm_blend_ps(a.v, b.v, 1);
  return {_mm_shuffle_ps(mixed, mixed, 0x39 /* 1 2 3 0 */)};
}
INFERNODE_SIMD void part2(F (&v)[2]) {
  const __m128 first = _mm_shuffle_ps(v[0].v, v[1].v, 0x88);
  v[1].v = _mm_shuffle_ps(v[0].v, v[1].v, 0xdd);
  v[0].v = first;
}
// Lane l of vector j is element 4 * j + l: those of a part lie in different lanes.
template <int kSecond, int kThird, int kOrder>
INFERNODE_SIMD F one_of_part3(const F (&v)[3]) {
  const __m128 mixed = _mm_blend_ps(_mm_blend_ps(v[0].v, v[1].v, kSecond), v[2].v, kThird);
  return {_mm_shuffle_ps(mixed, mixed, kOrder)};
}
INFERNODE_SIMD void part3(F (&v)[3]) {
  const F parts[] = {one_of_part3<4, 2, 0x6c /* 0 3 2 1 */>(v), one_of_part3<9, 4, 0xb1 /* 1 0 3 2 */>(v),
                     one_of_part3<2, 9, 0xc6 /* 2 1 0 3 */>(v)};
  for (std::size_t i = 0; i < 3; ++i) v[i] = parts[i];
}
INFERNODE_SIMD __m128i load_word(const void* p) {
  std::int32_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return _mm_cvtsi32_si128(word);
}
INFERNODE_SIMD I load_u8(const std::uint8_t* p) { return {_mm_cvtepu8_epi32(load_word(p))}; }
INFERNODE_SIMD I load_s8(const std::int8_t* p) { return {_mm_cvtepi8_epi32(load_word(p))}; }
INFERNODE_SIMD I load_u16(const std::uint16_t* p) {
  return {_mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))};
}
INFERNODE_SIMD void store_u16(std::uint16_t* p, I a) {
  const __m128i low = _mm_and_si128(a.v, _mm_set1_epi32(0xffff));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi32(low, low));
}
INFERNODE_SIMD void store_word(void* p, __m128i a) {
  const std::int32_t word = _mm_cvtsi128_si32(a);
  __builtin_memcpy(p, &word, sizeof word);
}
INFERNODE_SIMD void store_u8(std::uint8_t* p, I a) {
  const __m128i words = _mm_packs_epi32(a.v, a.v);
  store_word(p, _mm_packus_epi16(words, words));
}
INFERNODE_SIMD void store_s8(std::int8_t* p, I a) {
  const __m128i words = _mm_packs_epi32(a.v, a.v);
  store_word(p, _mm_packs_epi16(words, words));
}
// F16C is younger than this target.
INFERNODE_SIMD F load_f16(const std::uint16_t* p) {
  const __m128i half = load_u16(p).v, magnitude = _mm_and_si128(half, _mm_set1_epi32(0x7fff));
  const __m128i sign = _mm_slli_epi32(_mm_xor_si128(half, magnitude), 16), shifted = _mm_slli_epi32(magnitude, 13);
  const __m128i normal = _mm_add_epi32(shifted, _mm_set1_epi32(0x38000000));
  // Subnormal: magnitude counts units of 2^-24.
  const __m128i tiny = _mm_castps_si128(_mm_mul_ps(_mm_cvtepi32_ps(magnitude), _mm_set1_ps(0x1p-24f)));
  const __m128i quiet = _mm_and_si128(_mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x7c00)), _mm_set1_epi32(0x400000));
  const __m128i endless = _mm_or_si128(_mm_add_epi32(shifted, _mm_set1_epi32(0x70000000)), quiet);
  const __m128i some = _mm_blendv_epi8(normal, tiny, _mm_cmpgt_epi32(_mm_set1_epi32(0x0400), magnitude));
  const __m128i all = _mm_blendv_epi8(some, endless, _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x7bff)));
  return {_mm_castsi128_ps(_mm_or_si128(sign, all))};
}
// Rounds to nearest even.
INFERNODE_SIMD void store_f16(std::uint16_t* p, F a) {
  const __m128i bits = _mm_castps_si128(a.v), magnitude = _mm_and_si128(bits, _mm_set1_epi32(0x7fffffff));
  const __m128i sign = _mm_slli_epi32(_mm_srli_epi32(bits, 31), 15), shifted = _mm_srli_epi32(magnitude, 13);
  const __m128i odd = _mm_and_si128(shifted, _mm_set1_epi32(1));
  const __m128i up = _mm_add_epi32(odd, _mm_set1_epi32(0xfff - 0x38000000));
  const __m128i normal = _mm_srli_epi32(_mm_add_epi32(magnitude, up), 13);
  // Subnormal: beside 0.5 the last bit is 2^-24, to which the sum is rounded.
  const __m128 beside = _mm_add_ps(_mm_castsi128_ps(magnitude), _mm_set1_ps(0.5f));
  const __m128i tiny = _mm_sub_epi32(_mm_castps_si128(beside), _mm_set1_epi32(0x3f000000));
  const __m128i payload = _mm_or_si128(_mm_and_si128(shifted, _mm_set1_epi32(0x3ff)), _mm_set1_epi32(0x0200));
  const __m128i nan = _mm_and_si128(_mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x7f800000)), payload);
  const __m128i endless = _mm_or_si128(_mm_set1_epi32(0x7c00), nan);
  const __m128i some = _mm_blendv_epi8(normal, tiny, _mm_cmpgt_epi32(_mm_set1_epi32(0x38800000), magnitude));
  // 65520 and up round to infinity.
  const __m128i all = _mm_blendv_epi8(some, endless, _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x477fefff)));
  store_u16(p, {_mm_or_si128(sign, all)});
}

INFERNODE_SIMD F operator+(F a, F b) { return {_mm_add_ps(a.v, b.v)}; }
INFERNODE_SIMD F operator-(F a, F b) { return {_mm_sub_ps(a.v, b.v)}; }
INFERNODE_SIMD F operator*(F a, F b) { return {_mm_mul_ps(a.v, b.v)}; }
INFERNODE_SIMD F operator/(F a, F b) { return {_mm_div_ps(a.v, b.v)}; }
INFERNODE_SIMD F fma(F a, F b, F c) { return {_mm_add_ps(_mm_mul_ps(a.v, b.v), c.v)}; }
INFERNODE_SIMD F fnma(F a, F b, F c) { return {_mm_sub_ps(c.v, _mm_mul_ps(a.v, b.v))}; }
INFERNODE_SIMD F min(F a, F b) { return {_mm_min_ps(a.v, b.v)}; }
INFERNODE_SIMD F max(F a, F b) { return {_mm_max_ps(a.v, b.v)}; }
INFERNODE_SIMD F sqrt(F a) { return {_mm_sqrt_ps(a.v)}; }
INFERNODE_SIMD F floor(F a) { return {_mm_round_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
INFERNODE_SIMD F ceil(F a) { return {_mm_round_ps(a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)}; }
INFERNODE_SIMD F round_even(F a) { return {_mm_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }

INFERNODE_SIMD I operator+(I a, I b) { return {_mm_add_epi32(a.v, b.v)}; }
INFERNODE_SIMD I operator-(I a, I b) { return {_mm_sub_epi32(a.v, b.v)}; }
INFERNODE_SIMD I operator*(I a, I b) { return {_mm_mullo_epi32(a.v, b.v)}; }
INFERNODE_SIMD I min(I a, I b) { return {_mm_min_epi32(a.v, b.v)}; }
INFERNODE_SIMD I max(I a, I b) { return {_mm_max_epi32(a.v, b.v)}; }
INFERNODE_SIMD I operator&(I a, I b) { return {_mm_and_si128(a.v, b.v)}; }
INFERNODE_SIMD I operator|(I a, I b) { return {_mm_or_si128(a.v, b.v)}; }
INFERNODE_SIMD I operator^(I a, I b) { return {_mm_xor_si128(a.v, b.v)}; }
INFERNODE_SIMD I andnot(I a, I b) { return {_mm_andnot_si128(a.v, b.v)}; }
template <int kBits>
INFERNODE_SIMD I shift_left(I a) {
  return {_mm_slli_epi32(a.v, kBits)};
}
template <int kBits>
INFERNODE_SIMD I shift_right(I a) {
  return {_mm_srli_epi32(a.v, kBits)};
}
template <int kBits>
INFERNODE_SIMD I shift_right_arithmetic(I a) {
  return {_mm_srai_epi32(a.v, kBits)};
}

INFERNODE_SIMD Mask operator<(F a, F b) { return {_mm_cmplt_ps(a.v, b.v)}; }
INFERNODE_SIMD Mask operator<=(F a, F b) { return {_mm_cmple_ps(a.v, b.v)}; }
INFERNODE_SIMD Mask operator>(F a, F b) { return {_mm_cmpgt_ps(a.v, b.v)}; }
INFERNODE_SIMD Mask operator>=(F a, F b) { return {_mm_cmpge_ps(a.v, b.v)}; }
INFERNODE_SIMD Mask operator==(F a, F b) { return {_mm_cmpeq_ps(a.v, b.v)}; }
INFERNODE_SIMD Mask operator>(I a, I b) { return {_mm_castsi128_ps(_mm_cmpgt_epi32(a.v, b.v))}; }
INFERNODE_SIMD Mask operator==(I a, I b) { return {_mm_castsi128_ps(_mm_cmpeq_epi32(a.v, b.v))}; }
INFERNODE_SIMD Mask operator&(Mask a, Mask b) { return {_mm_and_ps(a.m, b.m)}; }
INFERNODE_SIMD Mask operator|(Mask a, Mask b) { return {_mm_or_ps(a.m, b.m)}; }
INFERNODE_SIMD Mask operator~(Mask a) { return {_mm_xor_ps(a.m, _mm_castsi128_ps(_mm_set1_epi32(-1)))}; }
INFERNODE_SIMD bool any(Mask a) { return _mm_movemask_ps(a.m) != 0; }
INFERNODE_SIMD bool all(Mask a) { return _mm_movemask_ps(a.m) == 0xf; }
INFERNODE_SIMD F select(Mask m, F yes, F no) { return {_mm_blendv_ps(no.v, yes.v, m.m)}; }
INFERNODE_SIMD I select(Mask m, I yes, I no) { return {_mm_blendv_epi8(no.v, yes.v, _mm_castps_si128(m.m))}; }

INFERNODE_SIMD I as_int(F a) { return {_mm_castps_si128(a.v)}; }
INFERNODE_SIMD F as_float(I a) { return {_mm_castsi128_ps(a.v)}; }
INFERNODE_SIMD I to_int(F a) { return {_mm_cvtps_epi32(a.v)}; }
INFERNODE_SIMD F to_float(I a) { return {_mm_cvtepi32_ps(a.v)}; }

INFERNODE_SIMD float reduce_add(F a) {
  const __m128 s = _mm_add_ps(a.v, _mm_movehl_ps(a.v, a.v));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
INFERNODE_SIMD float reduce_max(F a) {
  const __m128 s = _mm_max_ps(a.v, _mm_movehl_ps(a.v, a.v));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
INFERNODE_SIMD float reduce_min(F a) {
  const __m128 s = _mm_min_ps(a.v, _mm_movehl_ps(a.v, a.v));
  return _mm_cvtss_f32(_mm_min_ss(s, _mm_movehdup_ps(s)));
}
INFERNODE_SIMD std::int32_t reduce_add(I a) {
  const __m128i s = _mm_add_epi32(a.v, _mm_shuffle_epi32(a.v, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

// 2 * kLanes bytes, sign-extended to pairs of 16 bits per lane.
INFERNODE_SIMD I load_s8_pairs(const std::int8_t* p) {
  return {_mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))};
}
// Per lane, the sum of the two products of 16-bit halves.
INFERNODE_SIMD I dot_pairs(I a, I b) { return {_mm_madd_epi16(a.v, b.v)}; }

template <>
struct Vec<double> {
  __m128d v;
};
using D = Vec<double>;
INFERNODE_SIMD D set(double x) { return {_mm_set1_pd(x)}; }
INFERNODE_SIMD D load(const double* p) { return {_mm_loadu_pd(p)}; }
INFERNODE_SIMD void store(double* p, D a) { _mm_storeu_pd(p, a.v); }
INFERNODE_SIMD D fma(D a, D b, D c) { return {_mm_add_pd(_mm_mul_pd(a.v, b.v), c.v)}; }

// a0 b0 a1 b1 ...: the first half, the second half.
INFERNODE_SIMD F zip_low(F a, F b) { return {_mm_unpacklo_ps(a.v, b.v)}; }
INFERNODE_SIMD F zip_high(F a, F b) { return {_mm_unpackhi_ps(a.v, b.v)}; }

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

}  // namespace infernode::simd::sse42
