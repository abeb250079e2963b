#include "providers/cuda/kernels/device/number.cuh"
#include "providers/cuda/kernels/device/ptx.cuh"
#include "providers/cuda/kernels/params/rotary.h"

// Rotary position embedding.
namespace infernode::cuda {

template <class T>
__device__ __forceinline__ void rotary(const RotaryParams& p) {
  const std::int64_t e = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (e >= p.count) return;
  const std::int64_t row = e / p.head, rows = std::int64_t{p.heads} * p.length;
  const int i = static_cast<int>(e % p.head), half = p.rotated / 2;
  const T* const x = reinterpret_cast<const T*>(p.x) + row * p.head;
  T* const y = reinterpret_cast<T*>(p.y) + e;
  const std::int64_t batch = row / rows, place = p.flat ? row / p.heads % p.length : row % p.length;
  const int head = static_cast<int>(p.flat ? row % p.heads : row / p.length % p.heads);
  std::int64_t position = batch * p.length + place;
  if (p.last != 0) {
    position = max(reinterpret_cast<const int*>(p.last)[batch] + 1 - p.length, 0) + place;
  } else if (p.positions != 0) {
    const auto* const given = reinterpret_cast<const std::int64_t*>(p.positions);
    position = p.first_alone ? given[0] + place : given[position];
  }
  if (i >= p.rotated || head >= p.turned_heads || position < 0 || position >= p.limit) {
    *y = x[i];
    return;
  }
  const int pair = p.interleaved ? i / 2 : i % half;
  const bool second = p.interleaved ? i % 2 != 0 : i >= half;
  const int other = p.interleaved ? i ^ 1 : second ? i - half : i + half;
  const float own = to_float(x[i]) * p.scale, partner = to_float(x[other]) * p.scale;
  const float cos = to_float(reinterpret_cast<const T*>(p.cos)[position * half + pair]);
  const float sin = to_float(reinterpret_cast<const T*>(p.sin)[position * half + pair]);
  *y = from_float<T>(second ? sin * partner + cos * own : cos * own - sin * partner);
}

#define ROTARY(name, type) \
  extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ RotaryParams p) { rotary<type>(p); }
ROTARY(rotary_f32, float)
ROTARY(rotary_f16, __half)
ROTARY(rotary_bf16, __nv_bfloat16)

}  // namespace infernode::cuda
