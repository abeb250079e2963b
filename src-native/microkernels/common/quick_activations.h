#pragma once

// Included by *.bf16.cpp and *.amx.cpp only: exponentials and activations beside products of bfloat16, some 1e-4 off at
// most, which is a small part of what those are off.

#include <immintrin.h>

#include "microkernels/common/activate.simd.h"

namespace infernode::microkernels {
namespace {

// 2^x, off by 1.1e-4 of it at most; 0 for x <= -200. NaN stays. The polynomial meets 2^f at the roots of Chebyshev's
// for [0, 1].
INFERNODE_SIMD VecF power_of_2(VecF x) noexcept {
  x = max(set(-200.0f), x);
  const VecF f{_mm512_reduce_ps(x.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
  const VecF p = fma(fma(fma(set(0.078967257f), f, set(0.22469316f)), f, set(0.69632477f)), f, set(0.99990029f));
  return {_mm512_scalef_ps(p.v, x.v)};  // rounds x down
}

constexpr float kLog2OfE = 1.44269504f;

// 1 / (1 + 2^x).
INFERNODE_SIMD VecF quick_share(VecF x) noexcept { return {_mm512_rcp14_ps((set(1.0f) + power_of_2(x)).v)}; }

INFERNODE_SIMD VecF quick_sigmoid(VecF x) noexcept { return quick_share(x * set(-kLog2OfE)); }
INFERNODE_SIMD VecF quick_silu(VecF x) noexcept { return x * quick_sigmoid(x); }
// x times the normal distribution, of which the logarithm of the odds is nearly x times a polynomial of x^2.
INFERNODE_SIMD VecF quick_gelu(VecF x) noexcept {
  const VecF x2 = min(set(49.0f), x * x);
  const VecF odds =
      fma(fma(set(kLog2OfE * 0.00070304649f), x2, set(-kLog2OfE * 0.07401138f)), x2, set(-kLog2OfE * 1.59501566f));
  return x * quick_share(x * odds);
}
// With tanh the odds are exact: (1 + tanh t) / 2 is the sigmoid of 2 t, for t = sqrt(2 / pi) x (1 + 0.044715 x^2).
INFERNODE_SIMD VecF quick_gelu_tanh(VecF x) noexcept {
  constexpr float kSlope = 1.59576912f;
  const VecF x2 = min(set(49.0f), x * x);
  const VecF odds = fma(set(-kLog2OfE * kSlope * 0.044715f), x2, set(-kLog2OfE * kSlope));
  return x * quick_share(x * odds);
}

INFERNODE_SIMD bool is_quick(const ActivationArgs& activation) noexcept {
  return activation.kind == Activation::kSigmoid || activation.kind == Activation::kSilu ||
         activation.kind == Activation::kGelu || activation.kind == Activation::kGeluTanh;
}

// One of those activations of kCount vectors.
template <std::size_t kCount>
INFERNODE_SIMD void activate_quickly(const ActivationArgs& activation, VecF* x) noexcept {
  if (activation.kind == Activation::kSilu) {
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < kCount; ++i) x[i] = quick_silu(x[i]);
  } else if (activation.kind == Activation::kGelu) {
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < kCount; ++i) x[i] = quick_gelu(x[i]);
  } else if (activation.kind == Activation::kGeluTanh) {
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < kCount; ++i) x[i] = quick_gelu_tanh(x[i]);
  } else {
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < kCount; ++i) x[i] = quick_sigmoid(x[i]);
  }
}

}  // namespace
}  // namespace infernode::microkernels
