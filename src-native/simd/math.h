#pragma once

#include <utility>

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

// Several vectors that go through a function step by step side by side: the steps of one wait for each other, and a
// processor does not look far enough ahead to begin with the next one meanwhile. The same results as one by one.
template <std::size_t kCount>
struct Several {
  VecF v[kCount];
};
inline constexpr std::size_t kSideBySide = INFERNODE_SIMD_ID == 3 ? 4 : 2;  // that fit the registers

template <typename Fn, std::size_t... kIndex>
INFERNODE_SIMD Several<sizeof...(kIndex)> each_of(Fn fn, std::index_sequence<kIndex...>) {
  return {{fn(kIndex)...}};
}
template <std::size_t kCount, typename Fn>
INFERNODE_SIMD Several<kCount> each(Fn fn) {
  return each_of(fn, std::make_index_sequence<kCount>());
}
template <std::size_t kCount>
INFERNODE_SIMD Several<kCount> polynomial(const Several<kCount>&, float c0) {
  return each<kCount>([&](std::size_t) { return set(c0); });
}
template <std::size_t kCount, typename... C>
INFERNODE_SIMD Several<kCount> polynomial(const Several<kCount>& x, float c0, C... c) {
  const Several<kCount> rest = polynomial(x, c...);
  return each<kCount>([&](std::size_t i) { return fma(rest.v[i], x.v[i], set(c0)); });
}

// x = n * ln 2 + r with |r| <= ln 2 / 2; returns exp(r) - 1.
template <std::size_t kCount>
INFERNODE_SIMD Several<kCount> exp_reduced(const Several<kCount>& x, Several<kCount>& n) {
  n = each<kCount>([&](std::size_t i) { return round_even(x.v[i] * set(0x1.715476p+0f)); });
  const auto high = each<kCount>([&](std::size_t i) { return fnma(n.v[i], set(0x1.62e4p-1f), x.v[i]); });
  const auto r = each<kCount>([&](std::size_t i) { return fnma(n.v[i], set(0x1.7f7d1cp-20f), high.v[i]); });
  const auto q = polynomial(r, 0x1.fffffcp-2f, 0x1.55548cp-3f, 0x1.5558b8p-5f, 0x1.123e58p-7f, 0x1.6a4d6ep-10f);
  return each<kCount>([&](std::size_t i) { return fma(r.v[i] * r.v[i], q.v[i], r.v[i]); });
}
INFERNODE_SIMD VecF exp_reduced(VecF x, VecF& n) {
  Several<1> whole;
  const VecF p = exp_reduced(Several<1>{{x}}, whole).v[0];
  n = whole.v[0];
  return p;
}

INFERNODE_SIMD VecF exp(VecF x) {
  VecF n;
  const VecF p = exp_reduced(clamp(x, set(-104.0f), set(89.0f)), n);
  return scale_far(p + set(1.0f), n);
}

// exp for x <= 0; results below the normal range are 0.
template <std::size_t kCount>
INFERNODE_SIMD Several<kCount> exp_nonpositive(const Several<kCount>& x) {
  const VecF low = set(-87.0f);
  const auto bounded = each<kCount>([&](std::size_t i) { return max(low, x.v[i]); });
  Several<kCount> n;
  const auto p = exp_reduced(bounded, n);
  const auto power = each<kCount>([&](std::size_t i) { return scale(p.v[i] + set(1.0f), n.v[i]); });
  return each<kCount>([&](std::size_t i) { return select(x.v[i] < low, zero(), power.v[i]); });
}
INFERNODE_SIMD VecF exp_nonpositive(VecF x) { return exp_nonpositive(Several<1>{{x}}).v[0]; }

// 2^x for x <= 0; results below the normal range are 0 or subnormal.
template <std::size_t kCount>
INFERNODE_SIMD Several<kCount> exp2_nonpositive(const Several<kCount>& x) {
  const VecF low = set(INFERNODE_SIMD_ID == 3 ? -200.0f : -126.0f);
  const auto bounded = each<kCount>([&](std::size_t i) { return max(low, x.v[i]); });
  const auto n = each<kCount>([&](std::size_t i) { return round_even(bounded.v[i]); });
  const auto f = each<kCount>([&](std::size_t i) { return bounded.v[i] - n.v[i]; });
  const auto p = polynomial(f, 1.0f, 0x1.62e43p-1f, 0x1.ebfbdcp-3f, 0x1.c6af7cp-5f, 0x1.3b2dep-7f, 0x1.5f082ep-10f,
                            0x1.416b5p-13f);
  return each<kCount>([&](std::size_t i) {
    const VecF power = scale(p.v[i], n.v[i]);
    return INFERNODE_SIMD_ID == 3 ? power : select(x.v[i] < low, zero(), power);
  });
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

template <std::size_t kCount>
INFERNODE_SIMD Several<kCount> erf(const Several<kCount>& x) {
  const auto a = each<kCount>([&](std::size_t i) { return min(set(4.0f), abs(x.v[i])); });
  const auto q = polynomial(a, 0x1.661c3ap-12f, 0x1.2088eap+0f, 0x1.46baf2p-1f, 0x1.a652f6p-4f, -0x1.65ca9cp-6f,
                            0x1.8258a4p-9f, -0x1.86d8a8p-13f);
  const auto power = exp_nonpositive(each<kCount>([&](std::size_t i) { return -q.v[i]; }));
  const auto outer = each<kCount>([&](std::size_t i) { return copysign(set(1.0f) - power.v[i], x.v[i]); });
  const auto x2 = each<kCount>([&](std::size_t i) { return x.v[i] * x.v[i]; });
  const auto inner = polynomial(x2, 0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2ce6p-4f, -0x1.b7f71ap-6f, 0x1.53f224p-8f,
                                -0x1.a3515ep-11f, 0x1.4771fep-14f);
  return each<kCount>(
      [&](std::size_t i) { return select(abs(x.v[i]) > set(1.0f), outer.v[i], fma(x.v[i], inner.v[i], x.v[i])); });
}
INFERNODE_SIMD VecF erf(VecF x) { return erf(Several<1>{{x}}).v[0]; }

// (exp(u) - 1) / (exp(u) + 1) of u = -2 |x|, each of the two rounded once.
INFERNODE_SIMD VecF tanh(VecF x) {
  VecF n;
  const VecF p = exp_reduced(max(set(-87.0f), set(-2.0f) * abs(x)), n);
  const VecF power = power_of_two(to_int(n));
  return copysign(fma(power, p, power - set(1.0f)) / fma(power, p, power + set(1.0f)), x);
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
// x P(X < x) of the normal distribution: max(x, 0) - |x| P(X < -|x|), whose second factor is 2^-p(|x|) of a polynomial
// p, which from 10 on says nothing.
template <std::size_t kCount>
INFERNODE_SIMD Several<kCount> gelu(const Several<kCount>& x) {
  const auto a = each<kCount>([&](std::size_t i) { return min(set(10.0f), abs(x.v[i])); });
  const auto p = polynomial(a, -1.0f, -0x1.26aee4p+0f, -0x1.d63786p-2f, -0x1.ae7176p-5f, 0x1.d4a01p-8f,
                            -0x1.c8e724p-13f, -0x1.33534ap-13f, 0x1.f21818p-16f, -0x1.00346cp-19f);
  const auto n = each<kCount>([&](std::size_t i) { return round_even(p.v[i]); });
  const auto r = each<kCount>([&](std::size_t i) { return p.v[i] - n.v[i]; });
  const auto power = polynomial(r, 1.0f, 0x1.62e43p-1f, 0x1.ebfbdcp-3f, 0x1.c6aee8p-5f, 0x1.3b2d4cp-7f, 0x1.5f3e52p-10f,
                                0x1.41fbbcp-13f);
  const auto tail = each<kCount>([&](std::size_t i) { return scale(power.v[i], n.v[i]); });
  return each<kCount>([&](std::size_t i) {
    // Below, nothing is left of x, and NaN of minus infinity.
    return select(set(-10.0f) > x.v[i], x.v[i] * zero(), fnma(a.v[i], tail.v[i], max(zero(), x.v[i])));
  });
}
INFERNODE_SIMD VecF gelu(VecF x) { return gelu(Several<1>{{x}}).v[0]; }
// x (1 + tanh(u)) / 2 = x / (1 + exp(-2 u)).
INFERNODE_SIMD VecF gelu_tanh(VecF x) {
  return x / (set(1.0f) + exp(set(-1.59576912160573071f) * fma(set(0.044715f) * x * x, x, x)));
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
