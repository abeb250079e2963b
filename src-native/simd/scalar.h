#pragma once

#include "simd/half_bits.h"

// The fallback for architectures without a header of their own: four lanes, loops that any compiler understands.
namespace infernode::simd::scalar {

inline constexpr std::size_t kLanes = 4;

template <typename T>
struct Vec {
  T v[kLanes];
};
struct Mask {
  bool m[kLanes];
};
using F = Vec<float>;
using I = Vec<std::int32_t>;

template <typename R, typename Fn>
INFERNODE_SIMD R each(Fn fn) {
  R r;
  for (std::size_t i = 0; i < kLanes; ++i) fn(r, i);
  return r;
}
#define INFERNODE_EACH(R, member, expression) return each<R>([&](R& r, std::size_t i) { r.member[i] = (expression); })
INFERNODE_SIMD std::uint32_t bits(std::int32_t x) { return static_cast<std::uint32_t>(x); }
INFERNODE_SIMD std::int32_t from_bits(std::uint32_t x) { return static_cast<std::int32_t>(x); }
INFERNODE_SIMD std::int32_t saturate(std::int32_t x, std::int32_t low, std::int32_t high) {
  return x < low ? low : x > high ? high : x;
}

INFERNODE_SIMD F set(float x) { return {{x, x, x, x}}; }
INFERNODE_SIMD I set(std::int32_t x) { return {{x, x, x, x}}; }
INFERNODE_SIMD F zero() { return set(0.0f); }
INFERNODE_SIMD I iota() { return {{0, 1, 2, 3}}; }

template <typename T>
INFERNODE_SIMD Vec<T> load_partial(const T* p, std::size_t n) {
  INFERNODE_EACH(Vec<T>, v, i < n ? p[i] : T(0));
}
template <typename T>
INFERNODE_SIMD Vec<T> load(const T* p) {
  return load_partial(p, kLanes);
}
INFERNODE_SIMD F load_where(const float* p, Mask lanes) { INFERNODE_EACH(F, v, lanes.m[i] ? p[i] : 0.0f); }
template <typename T>
INFERNODE_SIMD void store_partial(T* p, Vec<T> a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) p[i] = a.v[i];
}
template <typename T>
INFERNODE_SIMD void store(T* p, Vec<T> a) {
  store_partial(p, a, kLanes);
}
INFERNODE_SIMD F load_stride2(const float* p) { INFERNODE_EACH(F, v, p[2 * i]); }
INFERNODE_SIMD F load_stride3(const float* p) { INFERNODE_EACH(F, v, p[3 * i]); }
INFERNODE_SIMD F load_stride4(const float* p) { INFERNODE_EACH(F, v, p[4 * i]); }
INFERNODE_SIMD F next_lanes(F a, F b) { INFERNODE_EACH(F, v, i + 1 < kLanes ? a.v[i + 1] : b.v[0]); }
template <std::size_t kParts>
INFERNODE_SIMD void part(F (&v)[kParts]) {
  F parts[kParts];
  for (std::size_t i = 0; i < kParts * kLanes; ++i) parts[i % kParts].v[i / kParts] = v[i / kLanes].v[i % kLanes];
  for (std::size_t i = 0; i < kParts; ++i) v[i] = parts[i];
}
INFERNODE_SIMD void part2(F (&v)[2]) { part(v); }
INFERNODE_SIMD void part3(F (&v)[3]) { part(v); }
INFERNODE_SIMD I load_u8(const std::uint8_t* p) { INFERNODE_EACH(I, v, p[i]); }
INFERNODE_SIMD I load_s8(const std::int8_t* p) { INFERNODE_EACH(I, v, p[i]); }
INFERNODE_SIMD I load_u16(const std::uint16_t* p) { INFERNODE_EACH(I, v, p[i]); }
INFERNODE_SIMD void store_u16(std::uint16_t* p, I a) {
  for (std::size_t i = 0; i < kLanes; ++i) p[i] = static_cast<std::uint16_t>(bits(a.v[i]));
}
INFERNODE_SIMD void store_u8(std::uint8_t* p, I a) {
  for (std::size_t i = 0; i < kLanes; ++i) p[i] = static_cast<std::uint8_t>(saturate(a.v[i], 0, 255));
}
INFERNODE_SIMD void store_s8(std::int8_t* p, I a) {
  for (std::size_t i = 0; i < kLanes; ++i) p[i] = static_cast<std::int8_t>(saturate(a.v[i], -128, 127));
}
INFERNODE_SIMD F load_f16(const std::uint16_t* p) { INFERNODE_EACH(F, v, half_to_float(p[i])); }
INFERNODE_SIMD void store_f16(std::uint16_t* p, F a) {
  for (std::size_t i = 0; i < kLanes; ++i) p[i] = float_to_half(a.v[i]);
}

INFERNODE_SIMD F operator+(F a, F b) { INFERNODE_EACH(F, v, a.v[i] + b.v[i]); }
INFERNODE_SIMD F operator-(F a, F b) { INFERNODE_EACH(F, v, a.v[i] - b.v[i]); }
INFERNODE_SIMD F operator*(F a, F b) { INFERNODE_EACH(F, v, a.v[i] * b.v[i]); }
INFERNODE_SIMD F operator/(F a, F b) { INFERNODE_EACH(F, v, a.v[i] / b.v[i]); }
INFERNODE_SIMD F fma(F a, F b, F c) { INFERNODE_EACH(F, v, a.v[i] * b.v[i] + c.v[i]); }
INFERNODE_SIMD F fnma(F a, F b, F c) { INFERNODE_EACH(F, v, c.v[i] - a.v[i] * b.v[i]); }
INFERNODE_SIMD F min(F a, F b) { INFERNODE_EACH(F, v, a.v[i] < b.v[i] ? a.v[i] : b.v[i]); }
INFERNODE_SIMD F max(F a, F b) { INFERNODE_EACH(F, v, a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
INFERNODE_SIMD F sqrt(F a) { INFERNODE_EACH(F, v, __builtin_sqrtf(a.v[i])); }
INFERNODE_SIMD F floor(F a) { INFERNODE_EACH(F, v, __builtin_floorf(a.v[i])); }
INFERNODE_SIMD F ceil(F a) { INFERNODE_EACH(F, v, __builtin_ceilf(a.v[i])); }
INFERNODE_SIMD F round_even(F a) { INFERNODE_EACH(F, v, __builtin_nearbyintf(a.v[i])); }

INFERNODE_SIMD I operator+(I a, I b) { INFERNODE_EACH(I, v, from_bits(bits(a.v[i]) + bits(b.v[i]))); }
INFERNODE_SIMD I operator-(I a, I b) { INFERNODE_EACH(I, v, from_bits(bits(a.v[i]) - bits(b.v[i]))); }
INFERNODE_SIMD I operator*(I a, I b) { INFERNODE_EACH(I, v, from_bits(bits(a.v[i]) * bits(b.v[i]))); }
INFERNODE_SIMD I min(I a, I b) { INFERNODE_EACH(I, v, a.v[i] < b.v[i] ? a.v[i] : b.v[i]); }
INFERNODE_SIMD I max(I a, I b) { INFERNODE_EACH(I, v, a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
INFERNODE_SIMD I operator&(I a, I b) { INFERNODE_EACH(I, v, a.v[i] & b.v[i]); }
INFERNODE_SIMD I operator|(I a, I b) { INFERNODE_EACH(I, v, a.v[i] | b.v[i]); }
INFERNODE_SIMD I operator^(I a, I b) { INFERNODE_EACH(I, v, a.v[i] ^ b.v[i]); }
INFERNODE_SIMD I andnot(I a, I b) { INFERNODE_EACH(I, v, ~a.v[i] & b.v[i]); }
template <int kBits>
INFERNODE_SIMD I shift_left(I a) {
  INFERNODE_EACH(I, v, from_bits(bits(a.v[i]) << kBits));
}
template <int kBits>
INFERNODE_SIMD I shift_right(I a) {
  INFERNODE_EACH(I, v, from_bits(bits(a.v[i]) >> kBits));
}
template <int kBits>
INFERNODE_SIMD I shift_right_arithmetic(I a) {
  INFERNODE_EACH(I, v, a.v[i] >> kBits);
}

INFERNODE_SIMD Mask operator<(F a, F b) { INFERNODE_EACH(Mask, m, a.v[i] < b.v[i]); }
INFERNODE_SIMD Mask operator<=(F a, F b) { INFERNODE_EACH(Mask, m, a.v[i] <= b.v[i]); }
INFERNODE_SIMD Mask operator>(F a, F b) { INFERNODE_EACH(Mask, m, a.v[i] > b.v[i]); }
INFERNODE_SIMD Mask operator>=(F a, F b) { INFERNODE_EACH(Mask, m, a.v[i] >= b.v[i]); }
INFERNODE_SIMD Mask operator==(F a, F b) { INFERNODE_EACH(Mask, m, a.v[i] == b.v[i]); }
INFERNODE_SIMD Mask operator>(I a, I b) { INFERNODE_EACH(Mask, m, a.v[i] > b.v[i]); }
INFERNODE_SIMD Mask operator==(I a, I b) { INFERNODE_EACH(Mask, m, a.v[i] == b.v[i]); }
INFERNODE_SIMD Mask operator&(Mask a, Mask b) { INFERNODE_EACH(Mask, m, a.m[i] && b.m[i]); }
INFERNODE_SIMD Mask operator|(Mask a, Mask b) { INFERNODE_EACH(Mask, m, a.m[i] || b.m[i]); }
INFERNODE_SIMD Mask operator~(Mask a) { INFERNODE_EACH(Mask, m, !a.m[i]); }
INFERNODE_SIMD bool any(Mask a) { return a.m[0] || a.m[1] || a.m[2] || a.m[3]; }
INFERNODE_SIMD bool all(Mask a) { return a.m[0] && a.m[1] && a.m[2] && a.m[3]; }
template <typename T>
INFERNODE_SIMD Vec<T> select(Mask m, Vec<T> yes, Vec<T> no) {
  INFERNODE_EACH(Vec<T>, v, m.m[i] ? yes.v[i] : no.v[i]);
}

INFERNODE_SIMD I as_int(F a) { INFERNODE_EACH(I, v, from_bits(float_to_bits(a.v[i]))); }
INFERNODE_SIMD F as_float(I a) { INFERNODE_EACH(F, v, bits_to_float(bits(a.v[i]))); }
// Outside of int32 (and for NaN) the smallest int32, as on x86.
INFERNODE_SIMD I to_int(F a) {
  INFERNODE_EACH(I, v,
                 a.v[i] >= -2147483648.0f && a.v[i] < 2147483648.0f
                     ? static_cast<std::int32_t>(__builtin_nearbyintf(a.v[i]))
                     : from_bits(0x80000000u));
}
INFERNODE_SIMD F to_float(I a) { INFERNODE_EACH(F, v, static_cast<float>(a.v[i])); }

INFERNODE_SIMD float reduce_add(F a) { return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]); }
INFERNODE_SIMD float greater(float a, float b) { return a > b ? a : b; }
INFERNODE_SIMD float less(float a, float b) { return a < b ? a : b; }
INFERNODE_SIMD float reduce_max(F a) { return greater(greater(a.v[0], a.v[2]), greater(a.v[1], a.v[3])); }
INFERNODE_SIMD float reduce_min(F a) { return less(less(a.v[0], a.v[2]), less(a.v[1], a.v[3])); }
INFERNODE_SIMD std::int32_t reduce_add(I a) {
  return from_bits(bits(a.v[0]) + bits(a.v[1]) + bits(a.v[2]) + bits(a.v[3]));
}
// 2 * kLanes bytes, sign-extended to pairs of 16 bits per lane.
INFERNODE_SIMD I load_s8_pairs(const std::int8_t* p) {
  INFERNODE_EACH(I, v, from_bits((bits(p[2 * i]) & 0xffffu) | (bits(p[2 * i + 1]) << 16)));
}
// Per lane, the sum of the two products of 16-bit halves.
INFERNODE_SIMD std::int32_t low_half(std::int32_t x) { return static_cast<std::int16_t>(bits(x) & 0xffffu); }
INFERNODE_SIMD I dot_pairs(I a, I b) {
  INFERNODE_EACH(I, v, low_half(a.v[i]) * low_half(b.v[i]) + (a.v[i] >> 16) * (b.v[i] >> 16));
}

using D = Vec<double>;
INFERNODE_SIMD D set(double x) { return {{x, x, x, x}}; }
INFERNODE_SIMD D fma(D a, D b, D c) { INFERNODE_EACH(D, v, a.v[i] * b.v[i] + c.v[i]); }
#undef INFERNODE_EACH

// a0 b0 a1 b1 ...: the first half, the second half.
INFERNODE_SIMD F zip_low(F a, F b) { return {{a.v[0], b.v[0], a.v[1], b.v[1]}}; }
INFERNODE_SIMD F zip_high(F a, F b) { return {{a.v[2], b.v[2], a.v[3], b.v[3]}}; }

// dst[c * ld_dst + r] = src[r * ld_src + c] for r, c < 4.
INFERNODE_SIMD void transpose4(const float* src, std::size_t ld_src, float* dst, std::size_t ld_dst) {
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t c = 0; c < 4; ++c) __builtin_memcpy(dst + c * ld_dst + r, src + r * ld_src + c, sizeof(float));
  }
}

}  // namespace infernode::simd::scalar
