#include "providers/cuda/kernels/device/elementwise.cuh"
#include "providers/cuda/kernels/device/unary.cuh"

// Functions of one number.
namespace infernode::cuda {

template <class T, int kPack>
__device__ __forceinline__ void unary_floats(const ElementwiseParams& p) {
  const auto op = static_cast<UnaryOp>(p.op);
  for_each_element<T, T, 1, kPack>(p, [&](T x) { return from_float<T>(unary<float>(op, to_float(x), p.a, p.b)); });
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
      case UnaryOp::bit_not:
        return ~x;
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
