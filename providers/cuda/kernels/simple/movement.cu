#include "providers/cuda/kernels/device/ptx.cuh"
#include "providers/cuda/kernels/params/movement.h"

// Moving elements: what they are does not matter, only their size.
namespace infernode::cuda {

template <class T>
__device__ __forceinline__ T element_of(std::uint64_t bits) {
  return static_cast<T>(bits);
}
template <>
__device__ __forceinline__ uint4 element_of<uint4>(std::uint64_t bits) {
  const auto low = static_cast<unsigned>(bits), high = static_cast<unsigned>(bits >> 32);
  return {low, high, low, high};
}

template <class T>
__device__ __forceinline__ void copy(const CopyParams& all) {
  const CopyPart& p = all.part[blockIdx.y];
  const std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x;
  std::int64_t rest = i, from = 0, to = 0;
#pragma unroll
  for (int d = kCopyRank - 1; d >= 0; --d) {
    if (d >= p.rank) continue;
    std::uint32_t index;
    if (p.count <= 0xffffffff) {
      const auto small = static_cast<std::uint32_t>(rest);
      index = small % p.dims[d];
      rest = small / p.dims[d];
    } else {
      index = static_cast<std::uint32_t>(rest % p.dims[d]);
      rest /= p.dims[d];
    }
    from += index * p.from_stride[d];
    to += index * p.to_stride[d];
  }
  const std::uint64_t source = p.from, fill = p.fill;
  wait_and_let_next_start();
  if (i >= p.count) return;
  T* const out = reinterpret_cast<T*>(p.to) + to;
  *out = source == 0 ? element_of<T>(fill) : reinterpret_cast<const T*>(source)[from];
}

template <class T>
__device__ __forceinline__ void transpose(const TransposeParams& p) {
  __shared__ T tile[32][33];
  const int across = (p.columns + 31) / 32;
  const int row = blockIdx.x / across * 32, column = blockIdx.x % across * 32;
  const T* const from = reinterpret_cast<const T*>(p.from) + blockIdx.z * p.from_batch;
  T* const to = reinterpret_cast<T*>(p.to) + blockIdx.z * p.to_batch;
  wait_and_let_next_start();
#pragma unroll
  for (int i = threadIdx.y; i < 32; i += 8) {
    const int r = row + i, c = column + threadIdx.x;
    if (r < p.rows && c < p.columns) tile[i][threadIdx.x] = from[r * p.from_row + c];
  }
  __syncthreads();
#pragma unroll
  for (int i = threadIdx.y; i < 32; i += 8) {
    const int r = row + threadIdx.x, c = column + i;
    if (r < p.rows && c < p.columns) to[c * p.to_row + r] = tile[threadIdx.x][i];
  }
}

template <class T>
__device__ __forceinline__ void pixels(const PixelsParams& p) {
  const std::uint32_t i = blockIdx.x * 256 + threadIdx.x, image = i / p.plane;
  const T* const from = reinterpret_cast<const T*>(p.from) + image * std::int64_t{p.channels} * p.plane + i % p.plane;
  wait_and_let_next_start();
  if (i >= p.pixels) return;
  struct alignas(16) {
    T of[kPixelChannels];
  } pixel;
#pragma unroll
  for (int c = 0; c < kPixelChannels; ++c) pixel.of[c] = c < p.channels ? from[c * std::int64_t{p.plane}] : T{0};
  *reinterpret_cast<decltype(pixel)*>(reinterpret_cast<T*>(p.to) + std::int64_t{i} * kPixelChannels) = pixel;
}

template <class T>
__device__ __forceinline__ void gather(const GatherParams& p) {
  const std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x;
  const std::int64_t row = i / p.inner, inner = i - row * p.inner;
  const std::int64_t outer = row / p.indices, k = row - outer * p.indices;
  bring_near(p);
  wait_and_let_next_start();
  if (i >= p.count) return;
  std::int64_t index = p.index_is_64 ? reinterpret_cast<const std::int64_t*>(p.index)[k]
                                     : reinterpret_cast<const std::int32_t*>(p.index)[k];
  if (index < 0) index += p.axis;
  const bool inside = index >= 0 && index < p.axis;
  const T* const from = reinterpret_cast<const T*>(p.from) + (outer * p.axis + index) * p.inner + inner;
  reinterpret_cast<T*>(p.to)[i] = inside ? *from : element_of<T>(0);
}

#define MOVEMENT(bytes, type)                                                                                \
  extern "C" __global__ void __launch_bounds__(256) copy_##bytes(const __grid_constant__ CopyParams p) {     \
    copy<type>(p);                                                                                           \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(256) gather_##bytes(const __grid_constant__ GatherParams p) { \
    gather<type>(p);                                                                                         \
  }
MOVEMENT(1, std::uint8_t)
MOVEMENT(2, std::uint16_t)
MOVEMENT(4, std::uint32_t)
MOVEMENT(8, std::uint64_t)
MOVEMENT(16, uint4)

#define PIXELS(bytes, type)                                                                                  \
  extern "C" __global__ void __launch_bounds__(256) pixels_##bytes(const __grid_constant__ PixelsParams p) { \
    pixels<type>(p);                                                                                         \
  }
PIXELS(2, std::uint16_t)
PIXELS(4, std::uint32_t)

#define TRANSPOSE(bytes, type)                                                                                     \
  extern "C" __global__ void __launch_bounds__(256) transpose_##bytes(const __grid_constant__ TransposeParams p) { \
    transpose<type>(p);                                                                                            \
  }
TRANSPOSE(1, std::uint8_t)
TRANSPOSE(2, std::uint16_t)
TRANSPOSE(4, std::uint32_t)
TRANSPOSE(8, std::uint64_t)

}  // namespace infernode::cuda
