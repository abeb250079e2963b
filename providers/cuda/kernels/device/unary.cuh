#pragma once

#include <math.h>

#include "providers/cuda/kernels/params/elementwise.h"

// Functions of one number, float or double.
namespace infernode::cuda {

template <class F>
__device__ __forceinline__ F sigmoid(F x) {
  return F(1) / (F(1) + exp(-x));
}

template <class F>
__device__ __forceinline__ F softplus(F x) {
  return fmax(x, F(0)) + log1p(exp(-fabs(x)));
}

/// NaN stays NaN.
template <class F>
__device__ __forceinline__ F clamped(F x, F low, F high) {
  return x < low ? low : x > high ? high : x;
}

template <class F>
__device__ __forceinline__ F activation(UnaryOp op, F x, F a, F b) {
  switch (op) {
    case UnaryOp::sigmoid:
      return sigmoid(x);
    case UnaryOp::relu:
      return x < 0 ? F(0) : x;
    case UnaryOp::softplus:
      return softplus(x);
    case UnaryOp::softsign:
      return isinf(x) ? copysign(F(1), x) : x / (F(1) + fabs(x));
    case UnaryOp::gelu:
      return F(0.5) * x * (F(1) + erf(x * F(0.70710678118654752)));
    case UnaryOp::gelu_tanh:
      return F(0.5) * x * (F(1) + tanh(F(0.7978845608028654) * (x + F(0.044715) * x * x * x)));
    case UnaryOp::quick_gelu:
      return x * sigmoid(a * x);
    case UnaryOp::silu:
      return x * sigmoid(x);
    case UnaryOp::hard_sigmoid:
      return clamped(a * x + b, F(0), F(1));
    case UnaryOp::hard_swish:
      return x * clamped(x / F(6) + F(0.5), F(0), F(1));
    case UnaryOp::leaky_relu:
      return x < 0 ? a * x : x;
    case UnaryOp::elu:
      return x < 0 ? a * expm1(x) : x;
    case UnaryOp::selu:
      return b * (x > 0 ? x : a * expm1(x));
    case UnaryOp::celu:
      return x != x ? x : fmax(x, F(0)) + fmin(a * expm1(x / a), F(0));
    case UnaryOp::clip:
      return x != x ? x : fmin(fmax(x, a), b);
    case UnaryOp::mish:
      return x * tanh(softplus(x));
    case UnaryOp::thresholded_relu:
      return x > a ? x : F(0);
    case UnaryOp::shrink:
      return x < -a ? x + b : x > a ? x - b : F(0);
    case UnaryOp::affine:
      return a * x + b;
    default:
      return x;
  }
}

/// One copy of all of them: what calls it waits for memory anyway.
template <class F>
__device__ __noinline__ F unary(UnaryOp op, F x, F a, F b) {
  switch (op) {
    case UnaryOp::abs:
      return fabs(x);
    case UnaryOp::neg:
      return -x;
    case UnaryOp::exp:
      return exp(x);
    case UnaryOp::log:
      return log(x);
    case UnaryOp::sqrt:
      return sqrt(x);
    case UnaryOp::reciprocal:
      return F(1) / x;
    case UnaryOp::rsqrt:
      return rsqrt(x);
    case UnaryOp::square:
      return x * x;
    case UnaryOp::floor:
      return floor(x);
    case UnaryOp::ceil:
      return ceil(x);
    case UnaryOp::round:
      return rint(x);
    case UnaryOp::sign:
      return x > 0 ? F(1) : x < 0 ? -F(1) : x;
    case UnaryOp::erf:
      return erf(x);
    case UnaryOp::sin:
      return sin(x);
    case UnaryOp::cos:
      return cos(x);
    case UnaryOp::tan:
      return tan(x);
    case UnaryOp::tanh:
      return tanh(x);
    case UnaryOp::asin:
      return asin(x);
    case UnaryOp::acos:
      return acos(x);
    case UnaryOp::atan:
      return atan(x);
    case UnaryOp::sinh:
      return sinh(x);
    case UnaryOp::cosh:
      return cosh(x);
    case UnaryOp::asinh:
      return asinh(x);
    case UnaryOp::acosh:
      return acosh(x);
    case UnaryOp::atanh:
      return atanh(x);
    default:
      return activation<F>(op, x, a, b);
  }
}

}  // namespace infernode::cuda
