#include "providers/cuda/kernels/device/epilogue.cuh"
#include "providers/cuda/kernels/params/depthwise.h"

namespace infernode::cuda {
namespace {

/// Where a thread works.
struct Spot {
  int channel, x, y, image, count;  ///< x: its first output column; count: channels that exist
  bool exists;

  __device__ __forceinline__ Spot(const DepthwiseParams& p, int width) {
    std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    const std::uint32_t chunks = p.chunks, columns = p.columns, rows = p.out_h;
    std::uint32_t next = i / chunks;
    channel = static_cast<int>(i - next * chunks) * 8;
    i = next;
    next = i / columns;
    x = static_cast<int>(i - next * columns) * width;
    image = static_cast<int>(next / rows);
    y = static_cast<int>(next - image * rows);
    exists = image < p.images;
    count = min(8, p.channels - channel);
  }
};

__device__ __forceinline__ void load_weights(float (&w)[8], const DepthwiseParams& p, int tap, int channel) {
  const float4* from =
      reinterpret_cast<const float4*>(reinterpret_cast<const float*>(p.weights) + tap * p.weights_row + channel);
  const float4 a = __ldg(from), b = __ldg(from + 1);
  w[0] = a.x, w[1] = a.y, w[2] = a.z, w[3] = a.w, w[4] = b.x, w[5] = b.y, w[6] = b.z, w[7] = b.w;
}

template <int W>
__device__ __forceinline__ void finish(float (&sums)[W][8], const DepthwiseParams& p, const Spot& s,
                                       const Columns& columns) {
  const EpilogueBatch batch(p.e, 0, 0);
#pragma unroll 1
  for (int i = 0; i < W; i++) {
    if (s.x + i >= p.out_w) break;
    const int row = (s.image * p.out_h + s.y) * p.out_w + s.x + i;
    Raw8 residual;
    load_residual(residual, p.e, batch, row, s.channel, s.count);
    finish8(sums[0], p.e, batch, columns, residual, row, s.channel, s.count);
#pragma unroll
    for (int j = 0; j + 1 < W; j++) {
#pragma unroll
      for (int c = 0; c < 8; c++) sums[j][c] = sums[j + 1][c];
    }
  }
}

/// K x K kernels of stride S without dilation over 16-bit pixels that allow 16-byte loads: W output pixels share what
/// they read, a row of the kernel at a time.
template <int K, int S, int W>
__device__ __forceinline__ void depthwise_square(const DepthwiseParams& p) {
  constexpr int kColumns = (W - 1) * S + K, kAhead = 3;
  let_next_start();
  const Spot s(p, W);
  Columns columns;
  if (!(p.e.flags & kEpilogueColumnsConstant)) wait_for_previous();
  float weights[K][8] = {};
  if (s.exists) {
    columns.load(p.e, s.channel, s.count, 0);
#pragma unroll
    for (int kx = 0; kx < K; kx++) load_weights(weights[kx], p, kx, s.channel);
  }
  const int x0 = s.x * S - p.pad_w, y0 = s.y * S - p.pad_h;
  const char* image =
      reinterpret_cast<const char*>(p.in) + ((std::int64_t{s.image} * p.in_h * p.in_w + x0) * p.pixel + s.channel) * 2;
  wait_for_previous();
  if (!s.exists) return;
  float sums[W][8] = {};
  uint4 rows[kAhead][kColumns];  // of the input, under way
  const auto load = [&](uint4(&raw)[kColumns], int ky) {
    const int y = y0 + ky;
    const bool row = ky < K && static_cast<unsigned>(y) < static_cast<unsigned>(p.in_h);
    const char* from = image + std::int64_t{y} * p.in_w * p.pixel * 2;
#pragma unroll
    for (int i = 0; i < kColumns; i++) {
      raw[i] = load16_if(from + i * p.pixel * 2, row && static_cast<unsigned>(x0 + i) < static_cast<unsigned>(p.in_w));
    }
  };
#pragma unroll
  for (int i = 0; i < kAhead; i++) load(rows[i], i);
#pragma unroll
  for (int ky = 0; ky < K; ky++) {
    uint4(&row)[kColumns] = rows[ky % kAhead];
#pragma unroll
    for (int column = 0; column < kColumns; column++) {
      float v[8];
      const std::uint32_t u[4] = {row[column].x, row[column].y, row[column].z, row[column].w};
#pragma unroll
      for (int c = 0; c < 4; c++) {
        const float2 f = p.type == Element::f16 ? unpack_f16(u[c]) : unpack_bf16(u[c]);
        v[2 * c] = f.x, v[2 * c + 1] = f.y;
      }
#pragma unroll
      for (int i = 0; i < W; i++) {
        const int kx = column - i * S;
        if (kx < 0 || kx >= K) continue;
#pragma unroll
        for (int c = 0; c < 8; c++) sums[i][c] = fmaf(v[c], weights[kx][c], sums[i][c]);
      }
    }
    if (ky + kAhead < K) load(row, ky + kAhead);
#pragma unroll
    for (int kx = 0; kx < K && ky + 1 < K; kx++) load_weights(weights[kx], p, (ky + 1) * K + kx, s.channel);
  }
  finish<W>(sums, p, s, columns);
}

/// Eight channels of an input pixel; zeros outside of the image.
__device__ __forceinline__ void load_pixel(float (&v)[8], const DepthwiseParams& p, const Spot& s, int y, int x) {
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = 0;
  if (static_cast<unsigned>(y) >= static_cast<unsigned>(p.in_h) ||
      static_cast<unsigned>(x) >= static_cast<unsigned>(p.in_w)) {
    return;
  }
  Raw8 raw;
  raw.load(p.in, p.type, ((std::int64_t{s.image} * p.in_h + y) * p.in_w + x) * p.pixel + s.channel, s.count, p.vector);
  raw.add_to(v, p.type);
}

}  // namespace
}  // namespace infernode::cuda

#define DEPTHWISE(K, S, W)                                                                     \
  extern "C" __global__ void __launch_bounds__(128)                                            \
      depthwise_##K##x##K##_s##S(const __grid_constant__ infernode::cuda::DepthwiseParams p) { \
    infernode::cuda::depthwise_square<K, S, W>(p);                                             \
  }
DEPTHWISE(3, 1, 2)
DEPTHWISE(3, 2, 2)
DEPTHWISE(5, 1, 2)
DEPTHWISE(5, 2, 2)
DEPTHWISE(7, 1, 1)

/// Any kernel, stride and dilation.
extern "C" __global__ void __launch_bounds__(128)
    depthwise_any(const __grid_constant__ infernode::cuda::DepthwiseParams p) {
  using namespace infernode::cuda;
  let_next_start();
  wait_for_previous();
  const Spot s(p, 1);
  if (!s.exists) return;
  Columns columns;
  columns.load(p.e, s.channel, s.count, 0);
  float sums[1][8] = {};
#pragma unroll 1
  for (int ky = 0; ky < p.kernel_h; ky++) {
#pragma unroll 1
    for (int kx = 0; kx < p.kernel_w; kx++) {
      float v[8], w[8];
      load_weights(w, p, ky * p.kernel_w + kx, s.channel);
      load_pixel(v, p, s, s.y * p.stride_h - p.pad_h + ky * p.dilation_h,
                 s.x * p.stride_w - p.pad_w + kx * p.dilation_w);
#pragma unroll
      for (int c = 0; c < 8; c++) sums[0][c] = fmaf(v[c], w[c], sums[0][c]);
    }
  }
  finish<1>(sums, p, s, columns);
}
