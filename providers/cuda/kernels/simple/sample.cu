#include "providers/cuda/kernels/device/any.cuh"
#include "providers/cuda/kernels/device/ptx.cuh"
#include "providers/cuda/kernels/params/sample.h"

// Images read at places that data names, and rows of tables.
namespace infernode::cuda {

/// One axis of a sampled image.
struct SampledAxis {
  std::int64_t length, stride;
  float low, high;  ///< between which reflection folds
  SamplePadding padding;

  __device__ __forceinline__ float reflect(float v) const {
    const float range = high - low;
    if (range <= 0) return low;
    const float past = v < low ? low - v : v > high ? v - high : 0.0f;
    if (past == 0) return v;
    const float folds = floorf(past / range), rest = past - folds * range;
    const bool even = fmodf(folds, 2.0f) == 0;
    return (v < low) == even ? low + rest : high - rest;
  }
  /// The place after padding, inside the range of integers.
  __device__ __forceinline__ float settle(float v) const {
    if (padding == SamplePadding::border) return v != v ? 0.0f : fminf(fmaxf(v, -4.0f), static_cast<float>(length + 3));
    if (!(fabsf(v) < 1e9f)) return padding == SamplePadding::zeros ? -1e9f : 0.0f;
    return padding == SamplePadding::reflection ? reflect(v) : v;
  }
  /// Whether element i counts; `i` becomes the element to read in any case.
  __device__ __forceinline__ bool resolve(std::int64_t& i) const {
    if (i >= 0 && i < length) return true;
    if (padding == SamplePadding::reflection) i = static_cast<std::int64_t>(reflect(static_cast<float>(i)));
    i = i < 0 ? 0 : i >= length ? length - 1 : i;
    return padding != SamplePadding::zeros;
  }
};

/// Elements along an axis and their weights. Of places that are outside altogether there are none.
struct AxisTaps {
  std::int64_t offset[4] = {};
  float weight[4] = {};
  bool any = false;
};

__device__ __forceinline__ AxisTaps axis_taps(const SampledAxis& axis, float place, int count) {
  constexpr float kCubic = -0.75f;
  AxisTaps taps;
  const float base = floorf(place), x = place - base;
  std::int64_t first = static_cast<std::int64_t>(base);
  if (count == 1) {
    taps.weight[0] = 1;
  } else if (count == 2) {
    taps.weight[0] = 1 - x, taps.weight[1] = x;
  } else {
    first -= 1;
    const auto near = [](float t) { return ((kCubic + 2) * t - (kCubic + 3)) * t * t + 1; };
    const auto far = [](float t) { return ((kCubic * t - 5 * kCubic) * t + 8 * kCubic) * t - 4 * kCubic; };
    taps.weight[0] = far(x + 1), taps.weight[1] = near(x);
    taps.weight[2] = near(1 - x), taps.weight[3] = far(2 - x);
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k >= count) break;
    std::int64_t i = first + k;
    if (axis.resolve(i)) {
      taps.any = true;
    } else {
      taps.weight[k] = 0;
    }
    taps.offset[k] = i * axis.stride;
  }
  return taps;
}

template <class T>
__device__ __forceinline__ void grid_sample(const GridSampleParams& p) {
  const std::int64_t e = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (e >= p.count) return;
  const std::int64_t matrix = e / p.places, place = matrix / p.channels * p.places + e % p.places;
  AxisTaps taps[kSampledAxes];
  bool inside = true;
#pragma unroll
  for (int d = 0; d < kSampledAxes; ++d) {
    taps[d].weight[0] = 1;
    if (d >= p.axes) continue;
    const float end = static_cast<float>(p.length[d] - 1);
    const SampledAxis axis{p.length[d], p.stride[d], p.align_corners ? 0.0f : -0.5f, p.align_corners ? end : end + 0.5f,
                           p.padding};
    const float n = single(load_any(p.grid, p.grid_type, place * p.axes + p.axes - 1 - d));
    float at = p.align_corners ? (n + 1) / 2 * end : ((n + 1) * (end + 1) - 1) / 2;
    if (p.taps == 1) at = rintf(at);
    taps[d] = axis_taps(axis, axis.settle(at), p.taps);
    inside = inside && taps[d].any;
  }
  const T* const from = reinterpret_cast<const T*>(p.in) + matrix * p.plane;
  const int outer = p.taps, middle = p.axes > 1 ? p.taps : 1, inner = p.axes > 2 ? p.taps : 1;
  float sum = 0;
  for (int i = 0; inside && i < outer; ++i) {
    for (int j = 0; j < middle; ++j) {
      for (int k = 0; k < inner; ++k) {
        const float weight = taps[0].weight[i] * taps[1].weight[j] * taps[2].weight[k];
        sum += weight * to_float(from[taps[0].offset[i] + taps[1].offset[j] + taps[2].offset[k]]);
      }
    }
  }
  reinterpret_cast<T*>(p.out)[e] = from_float<T>(sum);
}

/// The two pixels around a place on an axis, and the share of the second.
__device__ __forceinline__ float between(float v, int length, int& low, int& high) {
  v = fmaxf(v, 0.0f);
  low = static_cast<int>(v);
  if (low >= length - 1) {
    low = high = length - 1;
    return 0;
  }
  high = low + 1;
  return v - static_cast<float>(low);
}

template <class T>
__device__ __forceinline__ void roi_align(const RoiAlignParams& p) {
  const std::int64_t e = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (e >= p.count) return;
  const int column = static_cast<int>(e % p.out_width), row = static_cast<int>(e / p.out_width % p.out_height);
  const std::int64_t matrix = e / p.out_width / p.out_height, region = matrix / p.channels;
  const std::int64_t image = reinterpret_cast<const std::int64_t*>(p.batches)[region];
  const T* const corners = reinterpret_cast<const T*>(p.regions) + region * 4;
  const float shift = p.half_pixel ? 0.5f : 0.0f;
  const float x0 = to_float(corners[0]) * p.scale - shift, y0 = to_float(corners[1]) * p.scale - shift;
  float width = to_float(corners[2]) * p.scale - shift - x0, height = to_float(corners[3]) * p.scale - shift - y0;
  if (!p.half_pixel) width = fmaxf(width, 1.0f), height = fmaxf(height, 1.0f);
  const float bin_h = height / static_cast<float>(p.out_height), bin_w = width / static_cast<float>(p.out_width);
  const auto samples = [&](float bin) {
    return p.samples > 0 ? p.samples : bin > 0 ? static_cast<int>(fminf(ceilf(bin), kMostSamples)) : 0;
  };
  const int rows = samples(bin_h), columns = samples(bin_w);
  const bool known = image >= 0 && image < p.images;
  const T* const plane =
      reinterpret_cast<const T*>(p.in) + (image * p.channels + matrix % p.channels) * p.height * p.width;
  float sum = 0, greatest = -INFINITY;
  for (int i = 0; known && i < rows; ++i) {
    const float y = y0 + row * bin_h + (i + 0.5f) * bin_h / rows;
    for (int j = 0; j < columns; ++j) {
      const float x = x0 + column * bin_w + (j + 0.5f) * bin_w / columns;
      float values[4] = {};
      if (y >= -1 && y <= p.height && x >= -1 && x <= p.width) {
        int low_y, high_y, low_x, high_x;
        const float v = between(y, p.height, low_y, high_y), u = between(x, p.width, low_x, high_x);
        values[0] = (1 - v) * (1 - u) * to_float(plane[low_y * p.width + low_x]);
        values[1] = (1 - v) * u * to_float(plane[low_y * p.width + high_x]);
        values[2] = v * (1 - u) * to_float(plane[high_y * p.width + low_x]);
        values[3] = v * u * to_float(plane[high_y * p.width + high_x]);
      } else {
        for (float& value : values) value = 0 * to_float(plane[0]);
      }
      for (const float value : values) sum += value, greatest = fmaxf(greatest, value);
    }
  }
  const bool some = known && rows * columns > 0;
  const float mean = sum / (static_cast<float>(rows) * static_cast<float>(columns));
  reinterpret_cast<T*>(p.out)[e] = from_float<T>(some ? (p.greatest ? greatest : mean) : 0.0f);
}

template <class T>
__device__ __forceinline__ void embed(const EmbedParams& p) {
  const std::int64_t e = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (e >= p.count) return;
  const std::int64_t token = e / p.width, column = e % p.width;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    if (p.table[i] == 0) continue;
    std::int64_t row = token % p.period[i];
    if (p.ids[i] != 0) row = reinterpret_cast<const int*>(p.ids[i])[row];
    if (row >= 0 && row < p.rows[i]) sum += to_float(reinterpret_cast<const T*>(p.table[i])[row * p.width + column]);
  }
  reinterpret_cast<T*>(p.out)[e] = from_float<T>(sum);
}

#define SAMPLE(suffix, type)                                                                                           \
  extern "C" __global__ void __launch_bounds__(256) grid_sample_##suffix(const __grid_constant__ GridSampleParams p) { \
    grid_sample<type>(p);                                                                                              \
  }                                                                                                                    \
  extern "C" __global__ void __launch_bounds__(256) roi_align_##suffix(const __grid_constant__ RoiAlignParams p) {     \
    roi_align<type>(p);                                                                                                \
  }                                                                                                                    \
  extern "C" __global__ void __launch_bounds__(256) embed_##suffix(const __grid_constant__ EmbedParams p) {            \
    embed<type>(p);                                                                                                    \
  }
SAMPLE(f32, float)
SAMPLE(f16, __half)
SAMPLE(bf16, __nv_bfloat16)

}  // namespace infernode::cuda
