#include "providers/cuda/kernels/device/elementwise.cuh"

// Functions of one number.
namespace infernode::cuda {

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

__device__ __forceinline__ float softplus(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }

/// NaN stays NaN.
__device__ __forceinline__ float clamped(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

/// One copy of all of them: what calls it waits for memory anyway.
__device__ __noinline__ float unary(UnaryOp op, float x, float a, float b) {
  switch (op) {
    case UnaryOp::abs:
      return fabsf(x);
    case UnaryOp::neg:
      return -x;
    case UnaryOp::exp:
      return expf(x);
    case UnaryOp::log:
      return logf(x);
    case UnaryOp::sqrt:
      return sqrtf(x);
    case UnaryOp::reciprocal:
      return 1.0f / x;
    case UnaryOp::rsqrt:
      return rsqrtf(x);
    case UnaryOp::square:
      return x * x;
    case UnaryOp::floor:
      return floorf(x);
    case UnaryOp::ceil:
      return ceilf(x);
    case UnaryOp::round:
      return rintf(x);
    case UnaryOp::sign:
      return x > 0 ? 1.0f : x < 0 ? -1.0f : x;
    case UnaryOp::erf:
      return erff(x);
    case UnaryOp::sin:
      return sinf(x);
    case UnaryOp::cos:
      return cosf(x);
    case UnaryOp::tan:
      return tanf(x);
    case UnaryOp::tanh:
      return tanhf(x);
    case UnaryOp::sigmoid:
      return sigmoid(x);
    case UnaryOp::relu:
      return x < 0 ? 0.0f : x;
    case UnaryOp::softplus:
      return softplus(x);
    case UnaryOp::softsign:
      return isinf(x) ? copysignf(1.0f, x) : x / (1.0f + fabsf(x));
    case UnaryOp::gelu:
      return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    case UnaryOp::gelu_tanh:
      return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
    case UnaryOp::quick_gelu:
      return x * sigmoid(a * x);
    case UnaryOp::silu:
      return x * sigmoid(x);
    case UnaryOp::hard_sigmoid:
      return clamped(a * x + b, 0.0f, 1.0f);
    case UnaryOp::hard_swish:
      return x * clamped(x / 6.0f + 0.5f, 0.0f, 1.0f);
    case UnaryOp::leaky_relu:
      return x < 0 ? a * x : x;
    case UnaryOp::elu:
      return x < 0 ? a * expm1f(x) : x;
    case UnaryOp::selu:
      return b * (x > 0 ? x : a * expm1f(x));
    case UnaryOp::celu:
      return x != x ? x : fmaxf(x, 0.0f) + fminf(a * expm1f(x / a), 0.0f);
    case UnaryOp::clip:
      return x != x ? x : fminf(fmaxf(x, a), b);
    case UnaryOp::mish:
      return x * tanhf(softplus(x));
    case UnaryOp::thresholded_relu:
      return x > a ? x : 0.0f;
    case UnaryOp::affine:
      return a * x + b;
    default:
      return x;
  }
}

template <class T, int kPack>
__device__ __forceinline__ void unary_floats(const ElementwiseParams& p) {
  const auto op = static_cast<UnaryOp>(p.op);
  for_each_element<T, T, 1, kPack>(p, [&](T x) { return from_float<T>(unary(op, to_float(x), p.a, p.b)); });
}

template <class T, int kPack>
__device__ __forceinline__ void unary_ints(const ElementwiseParams& p) {
  const auto op = static_cast<UnaryOp>(p.op);
  for_each_element<T, T, 1, kPack>(p, [&](T x) -> T {
    switch (op) {
      case UnaryOp::abs:
        return x < 0 ? -x : x;
      case UnaryOp::neg:
        return -x;
      case UnaryOp::square:
        return x * x;
      case UnaryOp::sign:
        return (x > 0) - (x < 0);
      case UnaryOp::relu:
        return x < 0 ? 0 : x;
      default:
        return x;
    }
  });
}

template <class T, int kPack>
__device__ __forceinline__ void negate_bytes(const ElementwiseParams& p) {
  for_each_element<T, T, 1, kPack>(p, [](T x) -> T { return !x; });
}

/// Questions about a number: the answer is a byte.
template <class T, int kPack>
__device__ __forceinline__ void test_floats(const ElementwiseParams& p) {
  const auto op = static_cast<UnaryOp>(p.op);
  for_each_element<T, std::uint8_t, 1, kPack>(p, [&](T x) -> std::uint8_t {
    const float v = to_float(x);
    return op == UnaryOp::is_nan ? v != v : isinf(v) && (v > 0 ? p.a != 0 : p.b != 0);
  });
}

#define KERNEL(name, function, type)                                                                        \
  extern "C" __global__ void __launch_bounds__(256) name##_1(const __grid_constant__ ElementwiseParams p) { \
    function<type, 1>(p);                                                                                   \
  }                                                                                                         \
  extern "C" __global__ void __launch_bounds__(256) name##_4(const __grid_constant__ ElementwiseParams p) { \
    function<type, 4>(p);                                                                                   \
  }
KERNEL(unary_f32, unary_floats, float)
KERNEL(unary_f16, unary_floats, __half)
KERNEL(unary_bf16, unary_floats, __nv_bfloat16)
KERNEL(unary_i64, unary_ints, long long)
KERNEL(unary_i32, unary_ints, int)
KERNEL(unary_u8, negate_bytes, unsigned char)
KERNEL(test_f32, test_floats, float)
KERNEL(test_f16, test_floats, __half)
KERNEL(test_bf16, test_floats, __nv_bfloat16)

}  // namespace infernode::cuda
