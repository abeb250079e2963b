#include "providers/cuda/kernels/device/epilogue.cuh"
#include "providers/cuda/kernels/device/number.cuh"
#include "providers/cuda/kernels/params/channel_gate.h"

namespace infernode::cuda {

/// A block's shared memory.
template <class T>
struct GateShared {
  T *first, *second;      ///< weights [hidden][slice], [slice][hidden_row]
  float* scratch;         ///< [kGateThreads]
  float *means, *bias;    ///< [slice]; the second layer's bias
  float *parts, *hidden;  ///< [blocks][hidden_row]: of each block's channels; [hidden_row]: of all, activated

  __device__ __forceinline__ GateShared(char* raw, const ChannelGateParams& p)
      : first(reinterpret_cast<T*>(raw)),
        second(first + p.hidden * p.slice),
        scratch(reinterpret_cast<float*>(second + p.slice * p.hidden_row)),
        means(scratch + kGateThreads),
        bias(means + p.slice),
        parts(bias + p.slice),
        hidden(parts + p.blocks * p.hidden_row) {}
};

/// The sum of eight products.
template <class T>
__device__ __forceinline__ float dot8(const T* weights, const float* x) {
  const auto w = *reinterpret_cast<const Pack<T, 8>*>(weights);
  const float4 a = reinterpret_cast<const float4*>(x)[0], b = reinterpret_cast<const float4*>(x)[1];
  const float low = fmaf(to_float(w.of[0]), a.x, fmaf(to_float(w.of[1]), a.y, to_float(w.of[2]) * a.z));
  const float high = fmaf(to_float(w.of[4]), b.x, fmaf(to_float(w.of[5]), b.y, to_float(w.of[6]) * b.z));
  return fmaf(to_float(w.of[3]), a.w, low) + fmaf(to_float(w.of[7]), b.w, high);
}

/// Rows of weights, in words of eight, of which `words` exist; `pitch` elements between rows that are made.
template <class T>
__device__ __forceinline__ void bring_rows(T* to, int pitch, const T* from, int row, int rows, int words) {
  const int all = pitch / 8;
#pragma unroll 1
  for (int i = threadIdx.x; i < rows * all; i += kGateThreads) {
    const int r = i / all, w = i - r * all;
    const bool exists = w < words;
    copy16(to + i * 8, from + (exists ? std::int64_t{r} * row + w * 8 : 0), exists ? 16 : 0);
  }
}

/// Constants, before the wait: `first` is the block's first channel, `count` of them exist.
template <class T>
__device__ __forceinline__ void bring_layers(const GateShared<T>& s, const ChannelGateParams& p, int first, int count) {
  const T* w1 = reinterpret_cast<const T*>(p.first.weights);
  const T* w2 = reinterpret_cast<const T*>(p.second.weights);
  bring_rows(s.first, p.slice, w1 + first, p.first.row, p.hidden, (count + 7) / 8);
  bring_rows(s.second, p.hidden_row, w2 + std::int64_t{first} * p.second.row, p.second.row, count, p.hidden_row / 8);
  copies_commit();
  const float* bias = reinterpret_cast<const float*>(p.second.bias);
  for (int c = threadIdx.x; c < count; c += kGateThreads) s.bias[c] = bias != nullptr ? __ldg(bias + first + c) : 0.f;
}

/// The sum of every `groups`-th part of a channel from part `part` on, several of them under way at once.
__device__ __forceinline__ float sum_parts(const ChannelGateParams& p, const float* sums, int part) {
  constexpr int kAtOnce = 8;
  float sum = 0;
#pragma unroll 1
  for (; part < p.parts; part += kAtOnce * p.groups) {
    std::uint32_t v[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; i++) {
      const int at = part + i * p.groups;
      v[i] = load4_if(sums + std::int64_t{at} * p.sums_row, at < p.parts);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; i++) sum += __uint_as_float(v[i]);
  }
  return sum;
}

/// Of the block's channels, of which the first `count` exist.
template <class T>
__device__ __forceinline__ void find_means(const GateShared<T>& s, const ChannelGateParams& p, int first, int count) {
  const int group = p.groups > 1 ? static_cast<int>(threadIdx.x) / p.slice : 0;
  const float* sums = reinterpret_cast<const float*>(p.sums) + std::int64_t{blockIdx.y} * p.parts * p.sums_row + first;
  float* const to = p.groups > 1 ? s.scratch + group * p.slice : s.means;
#pragma unroll 1
  for (int c = threadIdx.x - group * p.slice; c < p.slice && group < p.groups; c += kGateThreads) {
    to[c] = c < count ? sum_parts(p, sums + c, group) * p.per_pixel : 0.f;
  }
  __syncthreads();
  if (p.groups == 1) return;
  if (static_cast<int>(threadIdx.x) < p.slice) {
    float sum = 0;
#pragma unroll 4
    for (int i = 0; i < p.groups; i++) sum += s.scratch[i * p.slice + threadIdx.x];
    s.means[threadIdx.x] = sum;
  }
  __syncthreads();
}

/// The sum over kLanes neighbours, in each of them.
template <int kLanes>
__device__ __forceinline__ float lanes_sum(float x) {
#pragma unroll
  for (int step = 1; step < kLanes; step *= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

__device__ __forceinline__ float activated(float x, const GateLayer& layer) {
  float v[1] = {x};
  activate(v, layer.activation, layer.a, layer.b);
  return v[0];
}

/// Columns of the block's channels, several words of a thread under way at once.
template <class T>
__device__ __forceinline__ void scale_weights(const GateShared<T>& s, const ChannelGateParams& p, int first) {
  constexpr int kAtOnce = 4;
  const T* from = reinterpret_cast<const T*>(p.weights) + first;
  T* to = reinterpret_cast<T*>(p.scaled) + std::int64_t{blockIdx.y} * p.rows * p.weights_row + first;
  const int words = p.slice / 8, all = p.rows * words;
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < all; i += kAtOnce * kGateThreads) {
    Pack<T, 8> v[kAtOnce];
    int at[kAtOnce], channel[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; j++) {
      const int word = min(i + j * kGateThreads, all - 1), row = word / words;
      channel[j] = (word - row * words) * 8;
      at[j] = row * p.weights_row + channel[j];
      v[j] = *reinterpret_cast<const Pack<T, 8>*>(from + at[j]);
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; j++) {
#pragma unroll
      for (int c = 0; c < 8; c++) v[j].of[c] = from_float<T>(to_float(v[j].of[c]) * s.means[channel[j] + c]);
      if (i + j * kGateThreads < all) *reinterpret_cast<Pack<T, 8>*>(to + at[j]) = v[j];
    }
  }
}

template <class T>
__device__ __forceinline__ void channel_gate(const ChannelGateParams& p) {
  INFERNODE_DYNAMIC_SHARED(raw);
  let_next_start();
  if (p.blocks > 1) cluster_arrive();
  const GateShared<T> s(raw, p);
  const int thread = threadIdx.x, lane = thread % 32;
  const int first = blockIdx.x * p.slice, count = max(0, min(p.slice, p.channels - first));
  bring_layers(s, p, first, count);
  const float* first_bias = reinterpret_cast<const float*>(p.first.bias);
  const float bias = first_bias != nullptr && thread < p.hidden ? __ldg(first_bias + thread) : 0.f;
  wait_for_previous();
  find_means(s, p, first, count);
  copies_wait<0>();
  __syncthreads();
  if (p.blocks > 1) cluster_wait();       // all blocks are there
  constexpr int kFirst = 8, kSecond = 4;  // lanes of an output of the layers
#pragma unroll 2
  for (int r = thread / kFirst; r < p.hidden_row; r += kGateThreads / kFirst) {
    float sum = 0;
    for (int c = lane % kFirst * 8; c < p.slice && r < p.hidden; c += kFirst * 8) {
      sum += dot8(s.first + r * p.slice + c, s.means + c);
    }
    sum = lanes_sum<kFirst>(sum);
    // Each lane tells a block.
    if (lane % kFirst < p.blocks) store_to_block(s.parts + blockIdx.x * p.hidden_row + r, sum, lane % kFirst);
  }
  if (p.blocks > 1) {
    clusters_meet();
  } else {
    __syncthreads();
  }
  if (thread < p.hidden_row) {
    float sum = bias;
#pragma unroll 8
    for (int i = 0; i < p.blocks; i++) sum += s.parts[i * p.hidden_row + thread];
    s.hidden[thread] = thread < p.hidden ? activated(sum, p.first) : 0.f;
  }
  __syncthreads();
#pragma unroll 2
  for (int c = thread / kSecond; c < p.slice; c += kGateThreads / kSecond) {
    float sum = 0;
    for (int h = lane % kSecond * 8; h < p.hidden_row && c < count; h += kSecond * 8) {
      sum += dot8(s.second + c * p.hidden_row + h, s.hidden + h);
    }
    sum = lanes_sum<kSecond>(sum);
    if (lane % kSecond > 0) continue;
    const float gate = c < count ? activated(sum + s.bias[c], p.second) : 0.f;
    if (!p.out) {
      s.means[c] = gate;  // which nobody reads any more
    } else if (c < count) {
      reinterpret_cast<T*>(p.out)[std::int64_t{blockIdx.y} * p.out_row + first + c] = from_float<T>(gate);
    }
  }
  if (!p.out) scale_weights(s, p, first);
}

template <class T>
__device__ __forceinline__ void pixel_means(const PixelMeansParams& p) {
  const std::int64_t thread = blockIdx.x * std::int64_t{256} + threadIdx.x, image = thread / p.channels;
  const int channel = static_cast<int>(thread - image * p.channels);
  const float* sums = reinterpret_cast<const float*>(p.sums) + image * p.parts * p.sums_row + channel;
  wait_and_let_next_start();
  if (thread >= p.threads) return;
  float sum = 0;
#pragma unroll 8
  for (int i = 0; i < p.parts; i++) sum += load_f32(sums + i * p.sums_row);
  reinterpret_cast<T*>(p.out)[image * p.out_row + channel] = from_float<T>(sum * p.per_pixel);
}

#define KERNEL(type, suffix)                                                                                           \
  extern "C" __global__ void __launch_bounds__(kGateThreads)                                                           \
      channel_gate_##suffix(const __grid_constant__ ChannelGateParams p) {                                             \
    channel_gate<type>(p);                                                                                             \
  }                                                                                                                    \
  extern "C" __global__ void __launch_bounds__(256) pixel_means_##suffix(const __grid_constant__ PixelMeansParams p) { \
    pixel_means<type>(p);                                                                                              \
  }
KERNEL(__half, f16)
KERNEL(__nv_bfloat16, bf16)

}  // namespace infernode::cuda
