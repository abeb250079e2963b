#include "providers/cuda/kernels/device/binary.cuh"
#include "providers/cuda/kernels/device/elementwise.cuh"

// Functions of two tensors, and choices between two.
namespace infernode::cuda {

template <class T, int kPack>
__device__ __forceinline__ void binary_floats(const ElementwiseParams& p) {
  const auto op = static_cast<BinaryOp>(p.op);
  for_each_element<T, T, 2, kPack>(
      p, [&](T x, T y) { return from_float<T>(binary<float>(op, to_float(x), to_float(y))); });
}
template <class T, int kPack>
__device__ __forceinline__ void binary_ints(const ElementwiseParams& p) {
  const auto op = static_cast<BinaryOp>(p.op);
  for_each_element<T, T, 2, kPack>(p, [&](T x, T y) { return integer<T>(op, x, y); });
}
template <class T, int kPack>
__device__ __forceinline__ void compare_floats(const ElementwiseParams& p) {
  const auto op = static_cast<BinaryOp>(p.op);
  for_each_element<T, std::uint8_t, 2, kPack>(
      p, [&](T x, T y) -> std::uint8_t { return compares(op, to_float(x), to_float(y)); });
}
template <class T, int kPack>
__device__ __forceinline__ void compare_ints(const ElementwiseParams& p) {
  const auto op = static_cast<BinaryOp>(p.op);
  for_each_element<T, std::uint8_t, 2, kPack>(p, [&](T x, T y) -> std::uint8_t { return compares(op, x, y); });
}

/// out = condition ? x : y; inputs 0 (bytes), 1 and 2.
template <class T, int kPack>
__device__ __forceinline__ void where(const ElementwiseParams& p) {
  const std::int64_t thread = blockIdx.x * std::int64_t{256} + threadIdx.x;
  const Place<3> place(p, thread);
  bring_near(p);
  wait_and_let_next_start();
  if (thread >= p.threads) return;
  const auto condition = load_pack<std::uint8_t, kPack>(p, 0, place.in[0]);
  const auto x = load_pack<T, kPack>(p, 1, place.in[1]), y = load_pack<T, kPack>(p, 2, place.in[2]);
  Pack<T, kPack> out;
#pragma unroll
  for (int j = 0; j < kPack; ++j) out.of[j] = condition.of[j] ? x.of[j] : y.of[j];
  *reinterpret_cast<Pack<T, kPack>*>(reinterpret_cast<T*>(p.out) + place.out) = out;
}

#define KERNEL(name, function, type)                                                                        \
  extern "C" __global__ void __launch_bounds__(256) name##_1(const __grid_constant__ ElementwiseParams p) { \
    function<type, 1>(p);                                                                                   \
  }                                                                                                         \
  extern "C" __global__ void __launch_bounds__(256) name##_4(const __grid_constant__ ElementwiseParams p) { \
    function<type, 4>(p);                                                                                   \
  }
KERNEL(binary_f32, binary_floats, float)
KERNEL(binary_f16, binary_floats, __half)
KERNEL(binary_bf16, binary_floats, __nv_bfloat16)
KERNEL(binary_i64, binary_ints, long long)
KERNEL(binary_i32, binary_ints, int)
KERNEL(compare_f32, compare_floats, float)
KERNEL(compare_f16, compare_floats, __half)
KERNEL(compare_bf16, compare_floats, __nv_bfloat16)
KERNEL(compare_i64, compare_ints, long long)
KERNEL(compare_i32, compare_ints, int)
KERNEL(compare_u8, compare_ints, unsigned char)
KERNEL(where_1, where, std::uint8_t)
KERNEL(where_2, where, std::uint16_t)
KERNEL(where_4, where, std::uint32_t)
KERNEL(where_8, where, unsigned long long)

}  // namespace infernode::cuda
