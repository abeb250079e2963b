#pragma once

#include "simd/simd.h"

// Elementary functions on VecF, within about two units in the last place (three without fused multiply-add); NaN stays
// NaN. Polynomials are minimax fits for the interval that the range reduction leaves, rounded one coefficient at a
// time.
namespace infernode::simd::INFERNODE_TARGET {

INFERNODE_SIMD VecF polynomial(VecF, float c0) { return set(c0); }
// c0 + c1 * x + c2 * x^2 + ...
template <typename... C>
INFERNODE_SIMD VecF polynomial(VecF x, float c0, C... c) {
  return fma(polynomial(x, c...), x, set(c0));
}

// 2^n for n in [-126, 127].
INFERNODE_SIMD VecF power_of_two(VecI n) { return as_float(shift_left<23>(n + set(127))); }

// p * 2^n for whole n: `scale` for n in [-126, 127], `scale_far` for all n in [-252, 254].
#if INFERNODE_SIMD_ID == 3
INFERNODE_SIMD VecF scale(VecF p, VecF n) { return {_mm512_scalef_ps(p.v, n.v)}; }
INFERNODE_SIMD VecF scale_far(VecF p, VecF n) { return scale(p, n); }
#else
INFERNODE_SIMD VecF scale(VecF p, VecF n) { return p * power_of_two(to_int(n)); }
INFERNODE_SIMD VecF scale_far(VecF p, VecF n) {
  const VecI i = to_int(n), half = shift_right_arithmetic<1>(i);
  return p * power_of_two(half) * power_of_two(i - half);
}
#endif

// x = n * ln 2 + r with |r| <= ln 2 / 2; returns exp(r) - 1.
INFERNODE_SIMD VecF exp_reduced(VecF x, VecF& n) {
  n = round_even(x * set(0x1.715476p+0f));
  const VecF r = fnma(n, set(0x1.7f7d1cp-20f), fnma(n, set(0x1.62e4p-1f), x));
  const VecF q = polynomial(r, 0x1.fffffcp-2f, 0x1.55548cp-3f, 0x1.5558b8p-5f, 0x1.123e58p-7f, 0x1.6a4d6ep-10f);
  return fma(r * r, q, r);
}

INFERNODE_SIMD VecF exp(VecF x) {
  VecF n;
  const VecF p = exp_reduced(clamp(x, set(-104.0f), set(89.0f)), n);
  return scale_far(p + set(1.0f), n);
}

// exp for x <= 0; results below the normal range are 0.
INFERNODE_SIMD VecF exp_nonpositive(VecF x) {
  VecF n;
  const VecF low = set(-87.0f);
  const VecF p = exp_reduced(max(low, x), n);
  return select(x < low, zero(), scale(p + set(1.0f), n));
}

// exp(x) - 1 for x <= 0, accurate near 0.
INFERNODE_SIMD VecF expm1_nonpositive(VecF x) {
  VecF n;
  const VecF p = exp_reduced(max(set(-87.0f), x), n);
  const VecF power = power_of_two(to_int(n));
  return fma(power, p, power - set(1.0f));
}

INFERNODE_SIMD VecF log(VecF x) {
  const VecF infinity = set(__builtin_inff());
  const Mask tiny = x < set(0x1p-126f);
  const VecF scaled = select(tiny, x * set(0x1p+23f), x);
  const VecI base = set(std::int32_t{0x3f3504f3});  // sqrt(1/2)
  const VecI offset = as_int(scaled) - base;
  const VecF e = to_float(shift_right_arithmetic<23>(offset) - select(tiny, set(23), set(0)));
  const VecF f = as_float((offset & set(0x7fffff)) + base) - set(1.0f);
  const VecF p = polynomial(f, 0x1.555548p-2f, -0x1.000006p-2f, 0x1.99a476p-3f, -0x1.555c44p-3f, 0x1.233ba4p-3f,
                            -0x1.fc28dep-4f, 0x1.e6bff2p-4f, -0x1.de00e4p-4f, 0x1.147204p-4f);
  const VecF f2 = f * f;
  VecF y = fma(e, set(0x1.7f7d1cp-20f), f2 * f * p);
  y = fma(e, set(0x1.62e4p-1f), f + fnma(set(0.5f), f2, y));
  y = select(x == infinity, infinity, y);
  y = select(x == zero(), -infinity, y);
  return select((x < zero()) | is_nan(x), set(__builtin_nanf("")), y);
}

// log(1 + x) for x in [0, 1].
INFERNODE_SIMD VecF log1p_unit(VecF x) {
  const VecF w = x + set(1.0f);
  return log(w) + (x - (w - set(1.0f))) / w;
}

INFERNODE_SIMD VecF erf(VecF x) {
  const VecF a = min(set(4.0f), abs(x));
  const VecF x2 = x * x;
  const VecF inner = polynomial(x2, 0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2ce6p-4f, -0x1.b7f71ap-6f, 0x1.53f224p-8f,
                                -0x1.a3515ep-11f, 0x1.4771fep-14f);
  const VecF q = polynomial(a, 0x1.661c3ap-12f, 0x1.2088eap+0f, 0x1.46baf2p-1f, 0x1.a652f6p-4f, -0x1.65ca9cp-6f,
                            0x1.8258a4p-9f, -0x1.86d8a8p-13f);
  const VecF outer = copysign(set(1.0f) - exp_nonpositive(-q), x);
  return select(abs(x) > set(1.0f), outer, fma(x, inner, x));
}

INFERNODE_SIMD VecF tanh(VecF x) {
  const VecF t = expm1_nonpositive(set(-2.0f) * abs(x));
  return copysign(t / (t + set(2.0f)), x);
}

INFERNODE_SIMD VecF sigmoid(VecF x) { return set(1.0f) / (set(1.0f) + exp(-x)); }
INFERNODE_SIMD VecF silu(VecF x) { return x / (set(1.0f) + exp(-x)); }
INFERNODE_SIMD VecF softplus(VecF x) { return max_nan(x, zero()) + log1p_unit(exp_nonpositive(-abs(x))); }
// x * tanh(softplus(x)), from tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2).
INFERNODE_SIMD VecF mish(VecF x) {
  const VecF e = exp(min(set(20.0f), x));
  const VecF t = e * (e + set(2.0f));
  return select(x > set(20.0f), x, max(set(-200.0f), x) * (t / (t + set(2.0f))));
}
INFERNODE_SIMD VecF gelu(VecF x) { return set(0.5f) * x * (set(1.0f) + erf(x * set(0.70710678118654752f))); }
INFERNODE_SIMD VecF gelu_tanh(VecF x) {
  const VecF inner = set(0.79788456080286536f) * fma(set(0.044715f) * x * x, x, x);
  return set(0.5f) * x * (set(1.0f) + tanh(inner));
}
INFERNODE_SIMD VecF hard_sigmoid(VecF x, VecF alpha, VecF beta) {
  return clamp(fma(x, alpha, beta), zero(), set(1.0f));
}
INFERNODE_SIMD VecF hard_swish(VecF x) { return x * hard_sigmoid(x, set(1.0f / 6.0f), set(0.5f)); }

// Greatest magnitude for which sincos_reduced keeps its accuracy: the quotient has 13 bits and the parts of pi/2 have
// 11, so products are exact without fused multiply-add too.
inline constexpr float kTrigLimit = 8192.0f;

// sin(x) for quarter = 0, cos(x) for quarter = 1; |x| <= kTrigLimit.
INFERNODE_SIMD VecF sincos_reduced(VecF x, std::int32_t quarter) {
  const VecF n = round_even(x * set(0x1.45f306p-1f));
  VecF r = fnma(n, set(0x1.92p+0f), x);
  r = fnma(n, set(0x1.fb4p-12f), r);
  r = fnma(n, set(0x1.444p-24f), r);
  r = fnma(n, set(0x1.68c234p-39f), r);
  const VecF r2 = r * r;
  const VecF s = fma(r * r2, polynomial(r2, -0x1.555544p-3f, 0x1.1106c8p-7f, -0x1.991d2cp-13f), r);
  const VecF c =
      fma(r2 * r2, polynomial(r2, 0x1.55554ap-5f, -0x1.6c0c14p-10f, 0x1.99de6ep-16f), fnma(set(0.5f), r2, set(1.0f)));
  const VecI q = to_int(n) + set(quarter);
  const VecF value = select((q & set(1)) == set(0), s, c);
  return as_float(as_int(value) ^ shift_left<30>(q & set(2)));
}

}  // namespace infernode::simd::INFERNODE_TARGET
