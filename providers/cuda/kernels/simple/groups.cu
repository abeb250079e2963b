#include "providers/cuda/kernels/device/warp_rows.cuh"
#include "providers/cuda/kernels/params/groups.h"

// Normalization over groups of channels, over rows of any stride, and over neighbouring channels.
namespace infernode::cuda {

constexpr int kGroupWarps = 32;

/// The sum over a block, in every thread.
__device__ __forceinline__ float block_sum(float x, float (&parts)[kGroupWarps]) {
  x = warp_sum(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  x = 0;
  for (int i = 0; i < static_cast<int>(blockDim.x) / 32; ++i) x += parts[i];
  return x;
}

/// A group of one image.
template <class T>
struct Group {
  const GroupNormParams& p;
  std::int64_t image;
  int group;

  __device__ __forceinline__ std::int64_t count() const { return p.members * p.pixels; }
  /// The channel of element i and where it lies: neighbours in memory are neighbours here.
  __device__ __forceinline__ std::int64_t place(std::int64_t i, int& channel) const {
    const bool channels_run = p.channel_stride == 1;
    const std::int64_t pixel = channels_run ? i / p.members : i % p.pixels;
    channel = group * p.members + static_cast<int>(channels_run ? i % p.members : i / p.pixels);
    return image * p.image_stride + channel * p.channel_stride + pixel * p.pixel_stride;
  }
  __device__ __forceinline__ float load(std::int64_t i) const {
    int channel;
    const std::int64_t at = place(i, channel);
    float x = to_float(reinterpret_cast<const T*>(p.in)[at]);
    const std::int64_t pixel = image * p.groups * p.members + channel;
    if (p.skip != 0) x += to_float(reinterpret_cast<const T*>(p.skip)[p.skip_is_pixel ? pixel : at]);
    if (p.skip_bias != 0) x += to_float(reinterpret_cast<const T*>(p.skip_bias)[channel]);
    return x;
  }
};

template <class T>
__device__ __forceinline__ void group_norm(const GroupNormParams& p) {
  __shared__ float parts[kGroupWarps];
  const Group<T> group{p, static_cast<std::int64_t>(blockIdx.x) / p.groups, static_cast<int>(blockIdx.x) % p.groups};
  const std::int64_t count = group.count();
  bring_near(p);
  wait_and_let_next_start();
  float mean = 0, squares = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) mean += group.load(i);
  mean = block_sum(mean, parts) / count;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    const float x = group.load(i) - mean;
    squares += x * x;
  }
  const float variance = block_sum(squares, parts) / count;
  const float factor = 1.0f / (p.plain_deviation ? sqrtf(variance) + p.epsilon : sqrtf(variance + p.epsilon));
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    int channel;
    const std::int64_t at = group.place(i, channel);
    const float x = group.load(i);
    const int entry = p.by_group ? group.group : channel;
    float y = (x - mean) * factor;
    if (p.scale != 0) y *= reinterpret_cast<const float*>(p.scale)[entry];
    if (p.bias != 0) y += reinterpret_cast<const float*>(p.bias)[entry];
    if (p.silu) y = y / (1.0f + expf(-y));
    if (p.sum != 0) reinterpret_cast<T*>(p.sum)[at] = from_float<T>(x);
    reinterpret_cast<T*>(p.out)[at] = from_float<T>(y);
  }
}

template <class T>
__device__ __forceinline__ void lp_norm(const LpNormParams& p) {
  const std::int64_t row = row_of_warp();
  const int lane = threadIdx.x % 32;
  bring_near(p);
  wait_and_let_next_start();
  if (row >= p.rows) return;
  const std::int64_t start = row / p.inner * p.columns * p.inner + row % p.inner;
  const T* const in = reinterpret_cast<const T*>(p.in) + start;
  T* const out = reinterpret_cast<T*>(p.out) + start;
  float norm = 0;
  for (std::int64_t i = lane; i < p.columns; i += 32) {
    const float x = to_float(in[i * p.inner]);
    norm += p.p == 1 ? fabsf(x) : x * x;
  }
  norm = warp_sum(norm);
  if (p.p == 2) norm = sqrtf(norm);
  for (std::int64_t i = lane; i < p.columns; i += 32) {
    out[i * p.inner] = from_float<T>(norm == 0 ? 0.0f : to_float(in[i * p.inner]) / norm);
  }
}

template <class T>
__device__ __forceinline__ void lrn(const LrnParams& p) {
  const std::int64_t i = blockIdx.x * std::int64_t{kWarps * 32} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (i >= p.count) return;
  const std::int64_t channel = i / p.pixels % p.channels;
  const std::int64_t first = channel < p.before ? -channel : -p.before;
  const std::int64_t last = channel + p.behind < p.channels ? p.behind : p.channels - 1 - channel;
  const T* const in = reinterpret_cast<const T*>(p.in) + i;
  float sum = 0;
  for (std::int64_t c = first; c <= last; ++c) {
    const float x = to_float(in[c * p.pixels]);
    sum += x * x;
  }
  reinterpret_cast<T*>(p.out)[i] = from_float<T>(to_float(*in) / powf(p.bias + p.alpha * sum, p.beta));
}

#define GROUP_KERNEL(name, type)                                                                       \
  extern "C" __global__ void __launch_bounds__(1024) name(const __grid_constant__ GroupNormParams p) { \
    group_norm<type>(p);                                                                               \
  }
GROUP_KERNEL(group_norm_f32, float)
GROUP_KERNEL(group_norm_f16, __half)
GROUP_KERNEL(group_norm_bf16, __nv_bfloat16)
ROW_KERNEL(lp_norm_f32, lp_norm, float, LpNormParams)
ROW_KERNEL(lp_norm_f16, lp_norm, __half, LpNormParams)
ROW_KERNEL(lp_norm_bf16, lp_norm, __nv_bfloat16, LpNormParams)
ROW_KERNEL(lrn_f32, lrn, float, LrnParams)
ROW_KERNEL(lrn_f16, lrn, __half, LrnParams)
ROW_KERNEL(lrn_bf16, lrn, __nv_bfloat16, LrnParams)

}  // namespace infernode::cuda
