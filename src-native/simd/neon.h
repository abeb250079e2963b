#pragma once

#include <arm_neon.h>

namespace infernode::simd::neon {

inline constexpr std::size_t kLanes = 4;

template <typename T>
struct Vec;
template <>
struct Vec<float> {
  float32x4_t v;
};
template <>
struct Vec<std::int32_t> {
  int32x4_t v;
};
struct Mask {
  uint32x4_t m;
};
using F = Vec<float>;
using I = Vec<std::int32_t>;

INFERNODE_SIMD F set(float x) { return {vdupq_n_f32(x)}; }
INFERNODE_SIMD I set(std::int32_t x) { return {vdupq_n_s32(x)}; }
INFERNODE_SIMD F zero() { return {vdupq_n_f32(0.0f)}; }
INFERNODE_SIMD I iota() {
  const std::int32_t first[4] = {0, 1, 2, 3};
  return {vld1q_s32(first)};
}

INFERNODE_SIMD F load(const float* p) { return {vld1q_f32(p)}; }
INFERNODE_SIMD I load(const std::int32_t* p) { return {vld1q_s32(p)}; }
INFERNODE_SIMD void store(float* p, F a) { vst1q_f32(p, a.v); }
INFERNODE_SIMD void store(std::int32_t* p, I a) { vst1q_s32(p, a.v); }
INFERNODE_SIMD F load_partial(const float* p, std::size_t n) {
  if (n >= 4) return load(p);
  float32x4_t v = vdupq_n_f32(0.0f);
  if (n > 0) v = vld1q_lane_f32(p, v, 0);
  if (n > 1) v = vld1q_lane_f32(p + 1, v, 1);
  if (n > 2) v = vld1q_lane_f32(p + 2, v, 2);
  return {v};
}
INFERNODE_SIMD I load_partial(const std::int32_t* p, std::size_t n) {
  return {vreinterpretq_s32_f32(load_partial(reinterpret_cast<const float*>(p), n).v)};
}
INFERNODE_SIMD F load_where(const float* p, Mask lanes) {
  float32x4_t v = vdupq_n_f32(0.0f);
  if (vgetq_lane_u32(lanes.m, 0)) v = vld1q_lane_f32(p, v, 0);
  if (vgetq_lane_u32(lanes.m, 1)) v = vld1q_lane_f32(p + 1, v, 1);
  if (vgetq_lane_u32(lanes.m, 2)) v = vld1q_lane_f32(p + 2, v, 2);
  if (vgetq_lane_u32(lanes.m, 3)) v = vld1q_lane_f32(p + 3, v, 3);
  return {v};
}
INFERNODE_SIMD void store_partial(float* p, F a, std::size_t n) {
  if (n >= 4) {
    vst1q_f32(p, a.v);
    return;
  }
  if (n > 0) vst1q_lane_f32(p, a.v, 0);
  if (n > 1) vst1q_lane_f32(p + 1, a.v, 1);
  if (n > 2) vst1q_lane_f32(p + 2, a.v, 2);
}
INFERNODE_SIMD void store_partial(std::int32_t* p, I a, std::size_t n) {
  store_partial(reinterpret_cast<float*>(p), F{vreinterpretq_f32_s32(a.v)}, n);
}
INFERNODE_SIMD F load_stride2(const float* p) {
  return {vcombine_f32(vget_low_f32(vuzp1q_f32(vld1q_f32(p), vld1q_f32(p))),
                       vget_low_f32(vuzp2q_f32(vld1q_f32(p + 3), vld1q_f32(p + 3))))};
}
template <int kStride>
INFERNODE_SIMD F load_apart(const float* p) {
  float32x4_t v = vld1q_dup_f32(p);
  v = vld1q_lane_f32(p + kStride, v, 1);
  v = vld1q_lane_f32(p + 2 * kStride, v, 2);
  return {vld1q_lane_f32(p + 3 * kStride, v, 3)};
}
INFERNODE_SIMD F load_stride3(const float* p) { return load_apart<3>(p); }
INFERNODE_SIMD F load_stride4(const float* p) { return load_apart<4>(p); }
INFERNODE_SIMD F next_lanes(F a, F b) { return {vextq_f32(a.v, b.v, 1)}; }
INFERNODE_SIMD void part2(F (&v)[2]) {
  const float32x4_t first = vuzp1q_f32(v[0].v, v[1].v);
  v[1].v = vuzp2q_f32(v[0].v, v[1].v);
  v[0].v = first;
}
INFERNODE_SIMD void part3(F (&v)[3]) {
  float all[12];
  for (std::size_t i = 0; i < 3; ++i) vst1q_f32(all + 4 * i, v[i].v);
  const float32x4x3_t parts = vld3q_f32(all);
  for (std::size_t i = 0; i < 3; ++i) v[i].v = parts.val[i];
}
INFERNODE_SIMD std::uint32_t load_word(const void* p) {
  std::uint32_t u;
  __builtin_memcpy(&u, p, sizeof u);
  return u;
}
INFERNODE_SIMD I load_u8(const std::uint8_t* p) {
  const uint8x8_t bytes = vreinterpret_u8_u32(vdup_n_u32(load_word(p)));
  return {vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(bytes))))};
}
INFERNODE_SIMD I load_s8(const std::int8_t* p) {
  const int8x8_t bytes = vreinterpret_s8_u32(vdup_n_u32(load_word(p)));
  return {vmovl_s16(vget_low_s16(vmovl_s8(bytes)))};
}
INFERNODE_SIMD I load_u16(const std::uint16_t* p) { return {vreinterpretq_s32_u32(vmovl_u16(vld1_u16(p)))}; }
INFERNODE_SIMD void store_u16(std::uint16_t* p, I a) { vst1_u16(p, vmovn_u32(vreinterpretq_u32_s32(a.v))); }
INFERNODE_SIMD void store_word(void* p, std::uint32_t u) { __builtin_memcpy(p, &u, sizeof u); }
INFERNODE_SIMD void store_u8(std::uint8_t* p, I a) {
  const int16x4_t words = vqmovn_s32(a.v);
  store_word(p, vget_lane_u32(vreinterpret_u32_u8(vqmovun_s16(vcombine_s16(words, words))), 0));
}
INFERNODE_SIMD void store_s8(std::int8_t* p, I a) {
  const int16x4_t words = vqmovn_s32(a.v);
  store_word(p, vget_lane_u32(vreinterpret_u32_s8(vqmovn_s16(vcombine_s16(words, words))), 0));
}
INFERNODE_SIMD F load_f16(const std::uint16_t* p) { return {vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))}; }
INFERNODE_SIMD void store_f16(std::uint16_t* p, F a) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(a.v))); }

INFERNODE_SIMD F operator+(F a, F b) { return {vaddq_f32(a.v, b.v)}; }
INFERNODE_SIMD F operator-(F a, F b) { return {vsubq_f32(a.v, b.v)}; }
INFERNODE_SIMD F operator*(F a, F b) { return {vmulq_f32(a.v, b.v)}; }
INFERNODE_SIMD F operator/(F a, F b) { return {vdivq_f32(a.v, b.v)}; }
INFERNODE_SIMD F fma(F a, F b, F c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
INFERNODE_SIMD F fnma(F a, F b, F c) { return {vfmsq_f32(c.v, a.v, b.v)}; }
// As on x86: b unless the comparison holds.
INFERNODE_SIMD F min(F a, F b) { return {vbslq_f32(vcltq_f32(a.v, b.v), a.v, b.v)}; }
INFERNODE_SIMD F max(F a, F b) { return {vbslq_f32(vcgtq_f32(a.v, b.v), a.v, b.v)}; }
INFERNODE_SIMD F sqrt(F a) { return {vsqrtq_f32(a.v)}; }
INFERNODE_SIMD F floor(F a) { return {vrndmq_f32(a.v)}; }
INFERNODE_SIMD F ceil(F a) { return {vrndpq_f32(a.v)}; }
INFERNODE_SIMD F round_even(F a) { return {vrndnq_f32(a.v)}; }

INFERNODE_SIMD I operator+(I a, I b) { return {vaddq_s32(a.v, b.v)}; }
INFERNODE_SIMD I operator-(I a, I b) { return {vsubq_s32(a.v, b.v)}; }
INFERNODE_SIMD I operator*(I a, I b) { return {vmulq_s32(a.v, b.v)}; }
INFERNODE_SIMD I min(I a, I b) { return {vminq_s32(a.v, b.v)}; }
INFERNODE_SIMD I max(I a, I b) { return {vmaxq_s32(a.v, b.v)}; }
INFERNODE_SIMD I operator&(I a, I b) { return {vandq_s32(a.v, b.v)}; }
INFERNODE_SIMD I operator|(I a, I b) { return {vorrq_s32(a.v, b.v)}; }
INFERNODE_SIMD I operator^(I a, I b) { return {veorq_s32(a.v, b.v)}; }
INFERNODE_SIMD I andnot(I a, I b) { return {vbicq_s32(b.v, a.v)}; }
template <int kBits>
INFERNODE_SIMD I shift_left(I a) {
  return {vshlq_n_s32(a.v, kBits)};
}
template <int kBits>
INFERNODE_SIMD I shift_right(I a) {
  return {vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.v), kBits))};
}
template <int kBits>
INFERNODE_SIMD I shift_right_arithmetic(I a) {
  return {vshrq_n_s32(a.v, kBits)};
}

INFERNODE_SIMD Mask operator<(F a, F b) { return {vcltq_f32(a.v, b.v)}; }
INFERNODE_SIMD Mask operator<=(F a, F b) { return {vcleq_f32(a.v, b.v)}; }
INFERNODE_SIMD Mask operator>(F a, F b) { return {vcgtq_f32(a.v, b.v)}; }
INFERNODE_SIMD Mask operator>=(F a, F b) { return {vcgeq_f32(a.v, b.v)}; }
INFERNODE_SIMD Mask operator==(F a, F b) { return {vceqq_f32(a.v, b.v)}; }
INFERNODE_SIMD Mask operator>(I a, I b) { return {vcgtq_s32(a.v, b.v)}; }
INFERNODE_SIMD Mask operator==(I a, I b) { return {vceqq_s32(a.v, b.v)}; }
INFERNODE_SIMD Mask operator&(Mask a, Mask b) { return {vandq_u32(a.m, b.m)}; }
INFERNODE_SIMD Mask operator|(Mask a, Mask b) { return {vorrq_u32(a.m, b.m)}; }
INFERNODE_SIMD Mask operator~(Mask a) { return {vmvnq_u32(a.m)}; }
INFERNODE_SIMD bool any(Mask a) { return vmaxvq_u32(a.m) != 0; }
INFERNODE_SIMD bool all(Mask a) { return vminvq_u32(a.m) != 0; }
INFERNODE_SIMD F select(Mask m, F yes, F no) { return {vbslq_f32(m.m, yes.v, no.v)}; }
INFERNODE_SIMD I select(Mask m, I yes, I no) { return {vbslq_s32(m.m, yes.v, no.v)}; }

INFERNODE_SIMD I as_int(F a) { return {vreinterpretq_s32_f32(a.v)}; }
INFERNODE_SIMD F as_float(I a) { return {vreinterpretq_f32_s32(a.v)}; }
INFERNODE_SIMD I to_int(F a) { return {vcvtnq_s32_f32(a.v)}; }
INFERNODE_SIMD F to_float(I a) { return {vcvtq_f32_s32(a.v)}; }

INFERNODE_SIMD float reduce_add(F a) { return vaddvq_f32(a.v); }
INFERNODE_SIMD float reduce_max(F a) { return vmaxvq_f32(a.v); }
INFERNODE_SIMD float reduce_min(F a) { return vminvq_f32(a.v); }
INFERNODE_SIMD std::int32_t reduce_add(I a) { return vaddvq_s32(a.v); }

// 2 * kLanes bytes, sign-extended to pairs of 16 bits per lane.
INFERNODE_SIMD I load_s8_pairs(const std::int8_t* p) { return {vreinterpretq_s32_s16(vmovl_s8(vld1_s8(p)))}; }
// Per lane, the sum of the two products of 16-bit halves.
INFERNODE_SIMD I dot_pairs(I a, I b) {
  const int16x8_t x = vreinterpretq_s16_s32(a.v), y = vreinterpretq_s16_s32(b.v);
  return {vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y))};
}

template <>
struct Vec<double> {
  float64x2_t v;
};
using D = Vec<double>;
INFERNODE_SIMD D set(double x) { return {vdupq_n_f64(x)}; }
INFERNODE_SIMD D load(const double* p) { return {vld1q_f64(p)}; }
INFERNODE_SIMD void store(double* p, D a) { vst1q_f64(p, a.v); }
INFERNODE_SIMD D fma(D a, D b, D c) { return {vfmaq_f64(c.v, a.v, b.v)}; }

// a0 b0 a1 b1 ...: the first half, the second half.
INFERNODE_SIMD F zip_low(F a, F b) { return {vzip1q_f32(a.v, b.v)}; }
INFERNODE_SIMD F zip_high(F a, F b) { return {vzip2q_f32(a.v, b.v)}; }

// dst[c * ld_dst + r] = src[r * ld_src + c] for r, c < 4.
INFERNODE_SIMD void transpose4(const float* src, std::size_t ld_src, float* dst, std::size_t ld_dst) {
  const float32x4_t r0 = vld1q_f32(src), r1 = vld1q_f32(src + ld_src);
  const float32x4_t r2 = vld1q_f32(src + 2 * ld_src), r3 = vld1q_f32(src + 3 * ld_src);
  const float32x4x2_t even = vzipq_f32(r0, r2), odd = vzipq_f32(r1, r3);
  const float32x4x2_t low = vzipq_f32(even.val[0], odd.val[0]), high = vzipq_f32(even.val[1], odd.val[1]);
  vst1q_f32(dst, low.val[0]);
  vst1q_f32(dst + ld_dst, low.val[1]);
  vst1q_f32(dst + 2 * ld_dst, high.val[0]);
  vst1q_f32(dst + 3 * ld_dst, high.val[1]);
}

}  // namespace infernode::simd::neon
