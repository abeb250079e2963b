#pragma once

#include <cstddef>
#include <cstdint>

// The simd vocabulary seen from outside: one Probe per target runs each function on one vector. Bits are passed, so
// that NaN and signed zeros compare exactly.
namespace infernode::simd::test {

// Name, expression over the operands: floats fa, fb, fc, integers ia, ib.
#define INFERNODE_SIMD_OPERATIONS(X)                                  \
  X(kAdd, fa + fb)                                                    \
  X(kSub, fa - fb)                                                    \
  X(kMul, fa* fb)                                                     \
  X(kDiv, fa / fb)                                                    \
  X(kFma, fma(fa, fb, fc))                                            \
  X(kFnma, fnma(fa, fb, fc))                                          \
  X(kMin, min(fa, fb))                                                \
  X(kMax, max(fa, fb))                                                \
  X(kMinNan, min_nan(fa, fb))                                         \
  X(kMaxNan, max_nan(fa, fb))                                         \
  X(kClamp, clamp(fa, fb, fc))                                        \
  X(kNegate, -fa)                                                     \
  X(kAbs, abs(fa))                                                    \
  X(kSqrt, sqrt(fa))                                                  \
  X(kFloor, floor(fa))                                                \
  X(kCeil, ceil(fa))                                                  \
  X(kRoundEven, round_even(fa))                                       \
  X(kCopysign, copysign(fa, fb))                                      \
  X(kLess, select(fa < fb, fc, zero()))                               \
  X(kLessEqual, select(fa <= fb, fc, zero()))                         \
  X(kGreater, select(fa > fb, fc, zero()))                            \
  X(kGreaterEqual, select(fa >= fb, fc, zero()))                      \
  X(kEqual, select(fa == fb, fc, zero()))                             \
  X(kIsNan, select(is_nan(fa), fc, zero()))                           \
  X(kMaskLogic, select(((fa < fb) | (fb < fc)) & ~(fa < fc), fa, fb)) \
  X(kIntAdd, ia + ib)                                                 \
  X(kIntSub, ia - ib)                                                 \
  X(kIntMul, ia* ib)                                                  \
  X(kIntMin, min(ia, ib))                                             \
  X(kIntMax, max(ia, ib))                                             \
  X(kIntAnd, ia& ib)                                                  \
  X(kIntOr, ia | ib)                                                  \
  X(kIntXor, ia ^ ib)                                                 \
  X(kIntAndNot, andnot(ia, ib))                                       \
  X(kIntGreater, select(ia > ib, ia, set(7)))                         \
  X(kIntEqual, select(ia == ib, ia, set(7)))                          \
  X(kShiftLeft, shift_left<5>(ia))                                    \
  X(kShiftRight, shift_right<5>(ia))                                  \
  X(kShiftArithmetic, shift_right_arithmetic<5>(ia))                  \
  X(kToInt, to_int(fa))                                               \
  X(kToFloat, to_float(ia))                                           \
  X(kIota, iota())                                                    \
  X(kDotPairs, dot_pairs(ia, ib))

enum class Operation {
#define INFERNODE_SIMD_ENUMERATOR(name, expression) name,
  INFERNODE_SIMD_OPERATIONS(INFERNODE_SIMD_ENUMERATOR)
#undef INFERNODE_SIMD_ENUMERATOR
      kCount
};

struct Reductions {
  float add, max, min;
  std::int32_t int_add;
  bool any_less, all_less;  // of a < b
};

struct Probe {
  const char* name;
  std::size_t lanes;
  void (*run)(Operation operation, const std::uint32_t* a, const std::uint32_t* b, const std::uint32_t* c,
              std::uint32_t* out);
  Reductions (*reduce)(const float* a, const float* b, const std::int32_t* i);
  // out = x through load_partial and store_partial of n elements.
  void (*copy_partial)(const float* x, float* out, std::size_t n);
  void (*copy_partial_int)(const std::int32_t* x, std::int32_t* out, std::size_t n);
  void (*load_stride2)(const float* x, float* out);
  void (*load_stride3)(const float* x, float* out);
  void (*load_stride4)(const float* x, float* out);
  void (*load_narrow)(const std::uint8_t* bytes, const std::uint16_t* words, std::int32_t* u8, std::int32_t* s8,
                      std::int32_t* u16, std::int32_t* pairs);
  void (*store_narrow)(const std::int32_t* x, std::uint8_t* u8, std::int8_t* s8, std::uint16_t* u16);
  void (*halves)(const std::uint16_t* f16, const std::uint16_t* bf16, std::uint16_t* f16_back, std::uint16_t* bf16_back,
                 float* f32, float* bf32);
  void (*transpose4)(const float* x, std::size_t ld_x, float* y, std::size_t ld_y);
  void (*zip)(const float* a, const float* b, float* out);  // two vectors
  // out = lanes [from, to) of x; of lanes 1, 2, ... of a and lane 0 of b; of `parts` vectors parted.
  void (*load_between)(const float* x, std::ptrdiff_t from, std::ptrdiff_t to, float* out);
  void (*next)(const float* a, const float* b, float* out);
  void (*part)(const float* x, std::size_t parts, float* out);
};

extern const Probe probe_scalar;
#if defined(__x86_64__) || defined(_M_X64)
extern const Probe probe_sse42, probe_avx2, probe_avx512;
#elif defined(__aarch64__) || defined(_M_ARM64)
extern const Probe probe_neon;
#endif

}  // namespace infernode::simd::test
