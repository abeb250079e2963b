#pragma once

#include "microkernels/common/simd_file.h"

// The rest of a division, exactly.
namespace infernode::microkernels {
namespace {

// The rest of x / y where the quotient is below 2^23, NaN elsewhere. The quotient is cut to the right whole number or,
// rounded up, to the next one: x minus that number times y is then exact in float32, and so is the rest.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
INFERNODE_SIMD VecF quick_rest(VecF x, VecF y) {
  const VecF a = abs(x), b = abs(y), quotient = a / b, whole = floor(quotient);
  const VecF left = fnma(whole, b, a);
  const VecF mended = select(left < zero(), left + b, left);
  const VecF rest = select(whole == zero(), a, mended);  // a product of 0 and infinity is none
  return select(quotient < set(0x1p23f), copysign(rest, x), set(__builtin_nanf("")));
}
#else
// Without a fused product: in float64, where it is exact.
INFERNODE_SIMD VecF quick_rest(VecF x, VecF y) {
  float rest[kLanes], divisors[kLanes];
  store(rest, x);
  store(divisors, y);
  for (std::size_t i = 0; i < kLanes; ++i) {
    const double a = rest[i], b = divisors[i], quotient = a / b, whole = __builtin_trunc(quotient);
    const double left = whole == 0.0 ? a : __builtin_copysign(a - whole * b, a);
    rest[i] = __builtin_fabs(quotient) < 0x1p23 ? static_cast<float>(left) : __builtin_nanf("");
  }
  return load(rest);
}
#endif

INFERNODE_SIMD VecF exact_rest(VecF x, VecF y) {
  const VecF quick = quick_rest(x, y);
  if (!any(is_nan(quick))) return quick;
  float rest[kLanes], dividends[kLanes], divisors[kLanes];
  store(rest, quick);
  store(dividends, x);
  store(divisors, y);
  for (std::size_t i = 0; i < kLanes; ++i) {
    if (rest[i] != rest[i]) rest[i] = __builtin_fmodf(dividends[i], divisors[i]);
  }
  return load(rest);
}

template <bool kStillX, bool kStillY>
void remainder_sides(const float* x, const float* y, float* out, std::size_t n) noexcept {
  const VecF first_x = set(*x), first_y = set(*y);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(out + i, exact_rest(kStillX ? first_x : load(x + i), kStillY ? first_y : load(y + i)));
  }
  if (i == n) return;
  const std::size_t rest = n - i;
  const Mask inside = set(static_cast<std::int32_t>(rest)) > iota();
  const VecF a = kStillX ? first_x : load_partial(x + i, rest), b = kStillY ? first_y : load_partial(y + i, rest);
  store_partial(out + i, exact_rest(select(inside, a, zero()), select(inside, b, set(1.0f))), rest);
}

void remainder(const float* x, bool still_x, const float* y, bool still_y, float* out, std::size_t n) noexcept {
  if (n == 0) return;
  if (still_x) {
    (still_y ? remainder_sides<true, true> : remainder_sides<true, false>)(x, y, out, n);
  } else {
    (still_y ? remainder_sides<false, true> : remainder_sides<false, false>)(x, y, out, n);
  }
}

}  // namespace
}  // namespace infernode::microkernels
