#include "providers/cuda/kernels/device/number.cuh"
#include "providers/cuda/kernels/device/ptx.cuh"
#include "providers/cuda/kernels/params/pool.h"

// Pooling over images with channels last; a thread has 8 channels.
namespace infernode::cuda {

constexpr int kPack = 8;

/// The taps of a window, which begins at `first`, that lie within [0, size): [begin, end).
struct Taps {
  int begin, end;
  __device__ __forceinline__ Taps(int first, int taps, int dilation, int size)
      : begin(first < 0 ? (dilation - 1 - first) / dilation : 0),
        end(first < size ? min(taps, (size - first + dilation - 1) / dilation) : 0) {}
};

/// NaN is larger than all numbers.
__device__ __forceinline__ float larger(float x, float y) { return x != x || x > y ? x : y; }
__device__ __forceinline__ float warp_largest(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = larger(x, __shfl_xor_sync(~0u, x, step));
  return x;
}

template <class T>
__device__ __forceinline__ void pool(const PoolParams& p) {
  const std::int64_t thread = blockIdx.x * std::int64_t{256} + threadIdx.x;
  const std::int64_t pixel = thread / p.packs;
  const int channel = static_cast<int>(thread % p.packs) * kPack;
  const int x = static_cast<int>(pixel % p.out_w), y = static_cast<int>(pixel / p.out_w % p.out_h);
  const std::int64_t image = pixel / p.out_w / p.out_h * p.in_h * p.in_w;
  const int top = y * p.stride_h - p.pad_h, left = x * p.stride_w - p.pad_w;
  const Taps rows(top, p.kernel_h, p.dilation_h, p.in_h), columns(left, p.kernel_w, p.dilation_w, p.in_w);
  bring_near(p);
  wait_and_let_next_start();
  if (thread >= p.threads) return;
  float sum[kPack];
#pragma unroll
  for (int j = 0; j < kPack; ++j) sum[j] = p.average ? 0.0f : -INFINITY;
  int inside = 0;
  for (int i = rows.begin; i < rows.end; ++i) {
    const int row = top + i * p.dilation_h;
    for (int j = columns.begin; j < columns.end; ++j) {
      const int column = left + j * p.dilation_w;
      ++inside;
      const T* from = reinterpret_cast<const T*>(p.in) + (image + row * p.in_w + column) * p.in_pitch + channel;
      const auto all = *reinterpret_cast<const Pack<T, kPack>*>(from);
#pragma unroll
      for (int c = 0; c < kPack; ++c) {
        const float v = to_float(all.of[c]);
        sum[c] = p.average ? sum[c] + v : larger(v, sum[c]);
      }
    }
  }
  if (p.count_padding) {  // what lies in the padded image
    const auto span = [](int first, int taps, int dilation, int size, int pad_end) {
      return Taps(first, taps, dilation, size + pad_end).end;
    };
    inside = span(top, p.kernel_h, p.dilation_h, p.in_h, p.pad_end_h) *
             span(left, p.kernel_w, p.dilation_w, p.in_w, p.pad_end_w);
  }
  Pack<T, kPack> out;
#pragma unroll
  for (int c = 0; c < kPack; ++c) out.of[c] = from_float<T>(p.average ? sum[c] / inside : sum[c]);
  *reinterpret_cast<Pack<T, kPack>*>(reinterpret_cast<T*>(p.out) + pixel * p.out_pitch + channel) = out;
}

template <class T>
__device__ __forceinline__ void global_pool(const GlobalPoolParams& p) {
  __shared__ float parts[8][kPack];
  const int channel = blockIdx.x * kPack;
  const T* in = reinterpret_cast<const T*>(p.in) + blockIdx.y * std::int64_t{p.pixels} * p.in_pitch + channel;
  bring_near(p);
  wait_and_let_next_start();
  float sum[kPack];
#pragma unroll
  for (int j = 0; j < kPack; ++j) sum[j] = p.average ? 0.0f : -INFINITY;
  for (int i = threadIdx.x; i < p.pixels; i += 256) {
    const auto all = *reinterpret_cast<const Pack<T, kPack>*>(in + i * p.in_pitch);
#pragma unroll
    for (int j = 0; j < kPack; ++j)
      sum[j] = p.average ? sum[j] + to_float(all.of[j]) : larger(to_float(all.of[j]), sum[j]);
  }
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    sum[j] = p.average ? warp_sum(sum[j]) : warp_largest(sum[j]);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32][j] = sum[j];
  }
  __syncthreads();
  if (threadIdx.x >= kPack || channel + static_cast<int>(threadIdx.x) >= p.channels) return;
  float total = parts[0][threadIdx.x];
  for (int w = 1; w < 8; ++w) {
    const float other = parts[w][threadIdx.x];
    total = p.average ? total + other : larger(total, other);
  }
  T* out = reinterpret_cast<T*>(p.out) + blockIdx.y * p.out_pitch + channel;
  out[threadIdx.x] = from_float<T>(p.average ? total / p.pixels : total);
}

#define KERNEL(type, suffix)                                                                                           \
  extern "C" __global__ void __launch_bounds__(256) pool_##suffix(const __grid_constant__ PoolParams p) {              \
    pool<type>(p);                                                                                                     \
  }                                                                                                                    \
  extern "C" __global__ void __launch_bounds__(256) global_pool_##suffix(const __grid_constant__ GlobalPoolParams p) { \
    global_pool<type>(p);                                                                                              \
  }
KERNEL(float, f32)
KERNEL(__half, f16)
KERNEL(__nv_bfloat16, bf16)

}  // namespace infernode::cuda
