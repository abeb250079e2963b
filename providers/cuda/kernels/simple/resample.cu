#include "providers/cuda/kernels/device/number.cuh"
#include "providers/cuda/kernels/device/ptx.cuh"
#include "providers/cuda/kernels/params/resample.h"

// Weighted sums along one axis.
namespace infernode::cuda {

template <class T>
__device__ __forceinline__ void resample(const ResampleParams& p) {
  const std::int64_t e = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (e >= p.count) return;
  const std::int64_t row = e / p.inner, k = e - row * p.inner, outer = row / p.out_size, i = row - outer * p.out_size;
  const T* const in = reinterpret_cast<const T*>(p.in) + outer * p.in_size * p.inner + k;
  const auto* const index = reinterpret_cast<const std::int64_t*>(p.index) + i * p.taps;
  const auto* const weight = reinterpret_cast<const float*>(p.weight) + i * p.taps;
  float sum = 0;
  for (int t = 0; t < p.taps; ++t) sum += weight[t] * to_float(in[index[t] * p.inner]);
  reinterpret_cast<T*>(p.out)[e] = from_float<T>(sum);
}

#define RESAMPLE(name, type)                                                                         \
  extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ ResampleParams p) { \
    resample<type>(p);                                                                               \
  }
RESAMPLE(resample_f32, float)
RESAMPLE(resample_f16, __half)
RESAMPLE(resample_bf16, __nv_bfloat16)

}  // namespace infernode::cuda
