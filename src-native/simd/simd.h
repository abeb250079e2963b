#pragma once

// The vector vocabulary that *.simd.cpp loops are written in. Each such file is compiled once per target with that
// target's flags; this header picks the target's definitions, all of them forced inline in infernode::simd::<target>,
// so that no two targets share a symbol. Files outside *.simd.cpp do not include it.
//
// Vec<float> and Vec<std::int32_t> hold kLanes elements; Mask holds one truth value per lane.
//   memory    load store load_partial store_partial (n <= kLanes elements; others read as 0 and are not touched)
//             load_where (lanes of a mask; others read as 0 and are not touched)
//             load_stride2 load_stride3 load_stride4 load_f16 store_f16 load_bf16 store_bf16
//             load_u8 load_s8 load_u16 store_u8 store_s8 (saturating) store_u16 (low bits)
//   make      zero set iota
//   float     + - * / fma(a,b,c)=a*b+c  fnma(a,b,c)=c-a*b  min max abs neg sqrt floor ceil round_even copysign
//             min and max return b when either is NaN; min_nan and max_nan return NaN
//   int       + - * min max shift_left<n> shift_right<n> (logical) shift_right_arithmetic<n>
//   bits      & | ^ andnot(a,b)=~a&b  as_int as_float
//   compare   < <= > >= == is_nan -> Mask; & | ~ on masks; select(mask, yes, no); any all
//             lanes_between(from, to)
//   convert   to_int (round to nearest even) to_float
//   reduce    reduce_add reduce_max reduce_min
//   8 bit     load_s8_pairs dot_pairs (products of 16-bit pairs)
//   other     in_register (a itself, which compilers may else read from memory for each use)
//             zip_low zip_high (a0 b0 a1 b1 ...); next_lanes (lanes 1, 2, ... of a, lane 0 of b)
//             part2 part3 part4 (of n vectors, one after the other, vector i becomes
//             elements i, i + n, i + 2n ...); transpose4 (a 4 x 4 block in memory); Vec<double>: set load store fma
//   over kDoubleLanes elements

#if !defined(INFERNODE_TARGET)
#if defined(__AVX512F__)
#define INFERNODE_TARGET avx512
#elif defined(__AVX2__)
#define INFERNODE_TARGET avx2
#elif defined(__SSE4_2__)
#define INFERNODE_TARGET sse42
#elif defined(__aarch64__) && defined(__ARM_NEON)
#define INFERNODE_TARGET neon
#else
#define INFERNODE_TARGET scalar
#endif
#endif

#include <cstddef>
#include <cstdint>

#define INFERNODE_SIMD static inline __attribute__((always_inline, unused))  // GCC and Clang, on Windows too

#define INFERNODE_SIMD_CAT2(a, b) a##b
#define INFERNODE_SIMD_CAT(a, b) INFERNODE_SIMD_CAT2(a, b)

// Comparing numbers that the target names stand for lets the preprocessor choose.
#define INFERNODE_SIMD_IS_scalar 0
#define INFERNODE_SIMD_IS_sse42 1
#define INFERNODE_SIMD_IS_avx2 2
#define INFERNODE_SIMD_IS_avx512 3
#define INFERNODE_SIMD_IS_neon 4
#define INFERNODE_SIMD_ID INFERNODE_SIMD_CAT(INFERNODE_SIMD_IS_, INFERNODE_TARGET)

#if INFERNODE_SIMD_ID == 1
#include "simd/sse42.h"
#elif INFERNODE_SIMD_ID == 2
#include "simd/avx2.h"
#elif INFERNODE_SIMD_ID == 3
#include "simd/avx512.h"
#elif INFERNODE_SIMD_ID == 4
#include "simd/neon.h"
#else
#include "simd/scalar.h"
#endif

namespace infernode::simd::INFERNODE_TARGET {

using VecF = Vec<float>;
using VecI = Vec<std::int32_t>;
using VecD = Vec<double>;
inline constexpr std::size_t kDoubleLanes = sizeof(VecD) / sizeof(double);

INFERNODE_SIMD VecF in_register(VecF a) {
#if INFERNODE_SIMD_ID == 1 || INFERNODE_SIMD_ID == 2
  __asm__("" : "+x"(a.v));
#elif INFERNODE_SIMD_ID == 3
  __asm__("" : "+v"(a.v));
#elif INFERNODE_SIMD_ID == 4
  __asm__("" : "+w"(a.v));
#endif
  return a;
}
INFERNODE_SIMD VecF operator-(VecF a) { return as_float(as_int(a) ^ set(static_cast<std::int32_t>(0x80000000u))); }
INFERNODE_SIMD VecF abs(VecF a) { return as_float(as_int(a) & set(std::int32_t{0x7fffffff})); }
INFERNODE_SIMD VecF copysign(VecF magnitude, VecF sign) {
  const VecI bit = set(static_cast<std::int32_t>(0x80000000u));
  return as_float(andnot(bit, as_int(magnitude)) | (as_int(sign) & bit));
}
INFERNODE_SIMD Mask is_nan(VecF a) { return ~(a == a); }
INFERNODE_SIMD VecF min_nan(VecF a, VecF b) { return select(is_nan(a), a, min(a, b)); }
INFERNODE_SIMD VecF max_nan(VecF a, VecF b) { return select(is_nan(a), a, max(a, b)); }
INFERNODE_SIMD VecF clamp(VecF x, VecF low, VecF high) { return min(high, max(low, x)); }

INFERNODE_SIMD Mask lanes_between(std::ptrdiff_t from, std::ptrdiff_t to) {
  const VecF lane = to_float(iota());
  return (lane >= set(static_cast<float>(from))) & (lane < set(static_cast<float>(to)));
}
INFERNODE_SIMD void part4(VecF (&v)[4]) {
  VecF first[] = {v[0], v[1]}, second[] = {v[2], v[3]};
  part2(first);
  part2(second);
  VecF even[] = {first[0], second[0]}, odd[] = {first[1], second[1]};
  part2(even);
  part2(odd);
  v[0] = even[0];
  v[1] = odd[0];
  v[2] = even[1];
  v[3] = odd[1];
}

INFERNODE_SIMD VecF load_bf16(const std::uint16_t* p) { return as_float(shift_left<16>(load_u16(p))); }
// Rounds to nearest even; a NaN keeps its sign and becomes quiet.
INFERNODE_SIMD void store_bf16(std::uint16_t* p, VecF v) {
  const VecI bits = as_int(v);
  const VecI lsb = shift_right<16>(bits) & set(1);
  const VecI rounded = shift_right<16>(bits + set(0x7fff) + lsb);
  const VecI quiet = shift_right<16>(bits) | set(0x40);
  store_u16(p, as_int(select(is_nan(v), as_float(quiet), as_float(rounded))));
}

}  // namespace infernode::simd::INFERNODE_TARGET
