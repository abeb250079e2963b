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

/// Joins what the blocks of a cluster, which are those along z, have of a channel; the first one has all then.
template <class F>
__device__ __forceinline__ void join_in_cluster(float& total, int parts, const F& join) {
  __shared__ float totals[kPack];
  const int thread = threadIdx.x;
  if (thread < kPack) totals[thread] = total;
  clusters_meet();
  if (blockIdx.z == 0 && thread < kPack) {
    for (int i = 1; i < parts; ++i) total = join(total, load_from_block(&totals[thread], i));
  }
  clusters_meet();  // nobody leaves while it is read
}

template <class T>
__device__ __forceinline__ void global_pool(const GlobalPoolParams& p) {
  constexpr int kAhead = 4;  // pixels of a thread that are on their way at once
  using Word = Pack<T, kPack>;
  __shared__ float parts[8][kPack];
  const int thread = threadIdx.x, channel = blockIdx.x * kPack;
  const int share = (p.pixels + p.parts - 1) / p.parts, begin = blockIdx.z * share;
  const int end = min(p.pixels, begin + share);
  const T* in = reinterpret_cast<const T*>(p.in) + blockIdx.y * std::int64_t{p.pixels} * p.in_pitch + channel;
  const auto join = [&](float x, float y) { return p.average ? x + y : larger(x, y); };
  bring_near(p);
  wait_and_let_next_start();
  float sum[kPack];
#pragma unroll
  for (int j = 0; j < kPack; ++j) sum[j] = p.average ? 0.0f : -INFINITY;
#pragma unroll 1
  for (int first = begin + thread; first < end; first += 256 * kAhead) {
    Word all[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (first + i * 256 < end) all[i] = *reinterpret_cast<const Word*>(in + (first + i * 256) * p.in_pitch);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (first + i * 256 >= end) break;
#pragma unroll
      for (int j = 0; j < kPack; ++j) sum[j] = join(to_float(all[i].of[j]), sum[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    sum[j] = p.average ? warp_sum(sum[j]) : warp_largest(sum[j]);
    if (thread % 32 == 0) parts[thread / 32][j] = sum[j];
  }
  __syncthreads();
  float total = thread < kPack ? parts[0][thread] : 0.0f;
  for (int w = 1; w < 8 && thread < kPack; ++w) total = join(total, parts[w][thread]);
  if (p.parts > 1) join_in_cluster(total, p.parts, join);
  if (blockIdx.z > 0 || thread >= kPack || channel + thread >= p.channels) return;
  T* out = reinterpret_cast<T*>(p.out) + blockIdx.y * p.out_pitch + channel;
  out[thread] = from_float<T>(p.average ? total / p.pixels : total);
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
