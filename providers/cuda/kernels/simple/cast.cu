#include "providers/cuda/kernels/device/any.cuh"
#include "providers/cuda/kernels/device/ptx.cuh"

// Conversions between all types of numbers: one kernel, as what it costs is memory.
namespace infernode::cuda {

extern "C" __global__ void __launch_bounds__(256) cast(const __grid_constant__ CastParams p) {
  const std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (i < p.count) store_any(p.out, p.to, i, load_any(p.in, p.from, i));
}

}  // namespace infernode::cuda
