#include "providers/cuda/kernels/device/epilogue.cuh"
#include "providers/cuda/kernels/params/depthwise.h"

namespace infernode::cuda {
namespace {

/// Of eight channels, from shared memory or the caches.
__device__ __forceinline__ void load_weights(float (&w)[8], const float* row) {
  const float4 a = reinterpret_cast<const float4*>(row)[0], b = reinterpret_cast<const float4*>(row)[1];
  w[0] = a.x, w[1] = a.y, w[2] = a.z, w[3] = a.w, w[4] = b.x, w[5] = b.y, w[6] = b.z, w[7] = b.w;
}

template <Element type>
__device__ __forceinline__ void unpack8(float (&v)[8], uint4 raw) {
  const std::uint32_t u[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int c = 0; c < 4; c++) {
    const float2 f = type == Element::f16 ? unpack_f16(u[c]) : unpack_bf16(u[c]);
    v[2 * c] = f.x, v[2 * c + 1] = f.y;
  }
}

/// Where a thread of depthwise_tile works. Neighbours have the channels of a pixel, then rows.
struct TileSpot {
  int chunk, channel, count;  ///< chunk of the block; first channel, those that exist
  int row, strip;             ///< of the tile; strips of the tile end before those of the last threads
  int y0, x0;                 ///< the tile's first output

  __device__ __forceinline__ TileSpot(const DepthwiseTileParams& p, int width) {
    const int thread = threadIdx.x, i = thread / kTileChunks, tile_y = blockIdx.x / p.tiles_w;
    chunk = thread % kTileChunks;
    channel = blockIdx.y * kTileChannels + chunk * 8;
    count = min(8, p.channels - channel);
    strip = i / p.tile_h;
    row = i - strip * p.tile_h;
    y0 = tile_y * p.tile_h;
    x0 = (static_cast<int>(blockIdx.x) - tile_y * p.tiles_w) * p.strips * width;
  }
};

template <int K>
__device__ __forceinline__ void bring_weights(float* to, const DepthwiseTileParams& p) {
  const float* from = reinterpret_cast<const float*>(p.weights);
  const int first = blockIdx.y * kTileChannels;
#pragma unroll 1
  for (int i = threadIdx.x; i < K * K * (kTileChannels / 4); i += blockDim.x) {
    const int tap = i / (kTileChannels / 4), channel = first + i % (kTileChannels / 4) * 4;
    const bool exists = channel < p.weights_row;
    copy16(to + i * 4, from + (exists ? tap * p.weights_row + channel : 0), exists ? 16 : 0);
  }
}

/// The tile's window of the input: zeros outside of the image.
template <int S>
__device__ __forceinline__ void bring_window(char* to, const DepthwiseTileParams& p, const TileSpot& s) {
  const std::int64_t image = blockIdx.z * std::int64_t{p.in_h} * p.in_w;
  const char* from = reinterpret_cast<const char*>(p.in) + (image * p.pixel + s.channel) * 2;
  const int top = s.y0 * S - p.pad_h, left = s.x0 * S - p.pad_w;
  int y = threadIdx.x / kTileChunks / p.window_w, x = threadIdx.x / kTileChunks - y * p.window_w;
#pragma unroll 1
  while (y < p.window_h) {
    const bool inside = static_cast<unsigned>(top + y) < static_cast<unsigned>(p.in_h) &&
                        static_cast<unsigned>(left + x) < static_cast<unsigned>(p.in_w) && s.count > 0;
    const std::int64_t pixel = inside ? ((top + y) * p.in_w + left + x) * p.pixel : 0;
    copy16(to + ((y * p.pitch + x) * kTileChunks + s.chunk) * 16, from + pixel * 2, inside ? 16 : 0);
    y += p.step_h, x += p.step_w;
    if (x >= p.window_w) x -= p.window_w, y++;
  }
}

/// Adds what the block's threads have of the same channels.
__device__ __forceinline__ void store_sums(float (&totals)[8], const DepthwiseTileParams& p) {
  __shared__ float parts[kMostTileThreads / 32][kTileChannels];
  const int thread = threadIdx.x, lane = thread % 32;
#pragma unroll
  for (int c = 0; c < 8; c++) {
#pragma unroll
    for (int step = kTileChunks; step < 32; step *= 2) totals[c] += __shfl_xor_sync(~0u, totals[c], step);
    if (lane < kTileChunks) parts[thread / 32][lane * 8 + c] = totals[c];
  }
  __syncthreads();
  const int channel = blockIdx.y * kTileChannels + thread;
  if (thread >= kTileChannels || channel >= p.channels) return;
  float sum = 0;
  for (int w = 0; w < static_cast<int>(blockDim.x) / 32; w++) sum += parts[w][thread];
  const std::int64_t tile = std::int64_t{blockIdx.z} * p.tiles + blockIdx.x;
  reinterpret_cast<float*>(p.sums)[tile * p.sums_row + channel] = sum;
}

/// The output pixels of a thread, `sums`, of which the first is in output column x: through the epilogue and to memory.
/// Adds them to `totals`.
template <class E, int W>
__device__ __forceinline__ void finish_strip(float (&sums)[W][8], float (&totals)[8], const DepthwiseTileParams& p,
                                             const TileSpot& s, const Columns& columns, int y, int x) {
  const EpilogueBatch batch(p.e, 0, 0);
  const int first = (blockIdx.z * p.out_h + y) * p.out_w + x, left = p.out_w - x;
  const auto finish = [&](float(&v)[8], int row) {
    Raw8 residual;
    load_residual<E>(residual, p.e, batch, row, s.channel, s.count);
    apply8<E>(v, p.e, columns, residual);
    store8<E>(v, p.e.out, E::type(p.e.out_type), row * p.e.out_row + s.channel, s.count,
              p.e.flags & kEpilogueOutVector);
#pragma unroll
    for (int c = 0; c < 8; c++) totals[c] += v[c];
  };
  if constexpr (E::kWhole) {
#pragma unroll
    for (int i = 0; i < W; i++) {
      if (i < left) finish(sums[i], first + i);
    }
  } else {
#pragma unroll 1
    for (int i = 0; i < W && i < left; i++) {
      finish(sums[0], first + i);
#pragma unroll
      for (int j = 0; j + 1 < W; j++) {
#pragma unroll
        for (int c = 0; c < 8; c++) sums[j][c] = sums[j + 1][c];
      }
    }
  }
}

/// K x K kernels of stride S: a thread has strips of W output pixels. E: what is known of the epilogue.
template <class E, Element type, int K, int S, int W>
__device__ __forceinline__ void depthwise_tile(const DepthwiseTileParams& p) {
  constexpr int kColumns = (W - 1) * S + K;
  INFERNODE_DYNAMIC_SHARED(raw);
  const TileSpot s(p, W);
  float* const weights = reinterpret_cast<float*>(raw);
  char* const window = raw + K * K * kTileChannels * 4;
  bring_weights<K>(weights, p);
  Columns columns;
  if (!(p.e.flags & kEpilogueColumnsConstant)) wait_for_previous();
  if (s.count > 0) columns.load<E>(p.e, s.channel, s.count, 0);
  bring_near(p);
  wait_for_previous();
  bring_window<S>(window, p, s);
  copies_commit();
  copies_wait<0>();
  __syncthreads();
  let_next_start();  // no sooner: its blocks would keep some of these away
  float sums[W][8] = {};
  const bool active = s.strip < p.strips && s.count > 0;
  const char* line = window + ((s.row * S * p.pitch + s.strip * W * S) * kTileChunks + s.chunk) * 16;
#pragma unroll 1
  for (int ky = 0; ky < K && active; ky++, line += p.pitch * kTileChunks * 16) {
    float w[K][8];
#pragma unroll
    for (int kx = 0; kx < K; kx++) load_weights(w[kx], weights + (ky * K + kx) * kTileChannels + s.chunk * 8);
#pragma unroll
    for (int column = 0; column < kColumns; column++) {
      float v[8];
      unpack8<type>(v, *reinterpret_cast<const uint4*>(line + column * kTileChunks * 16));
#pragma unroll
      for (int i = 0; i < W; i++) {
        const int kx = column - i * S;
        if (kx < 0 || kx >= K) continue;
#pragma unroll
        for (int c = 0; c < 8; c++) sums[i][c] = fmaf(v[c], w[kx][c], sums[i][c]);
      }
    }
  }
  float totals[8] = {};
  const int y = s.y0 + s.row;
  if (active && y < p.out_h) finish_strip<E>(sums, totals, p, s, columns, y, s.x0 + s.strip * W);
  if (p.sums) store_sums(totals, p);
}

/// Where a thread of depthwise_any works.
struct Spot {
  int channel, x, y, image, count;  ///< count: channels that exist
  bool exists;

  __device__ __forceinline__ explicit Spot(const DepthwiseParams& p) {
    std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    const std::uint32_t chunks = p.chunks, columns = p.out_w, rows = p.out_h;
    std::uint32_t next = i / chunks;
    channel = static_cast<int>(i - next * chunks) * 8;
    i = next;
    next = i / columns;
    x = static_cast<int>(i - next * columns);
    image = static_cast<int>(next / rows);
    y = static_cast<int>(next - image * rows);
    exists = image < p.images;
    count = min(8, p.channels - channel);
  }
};

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

/// depthwise_<type>_<K>x<K>_s<S>, with `_whole` behind it those of WholeEpilogue.
#define DEPTHWISE_OF(SUFFIX, EPILOGUE, KIND, K, S, W)                                                               \
  extern "C" __global__ void __launch_bounds__(infernode::cuda::kMostTileThreads)                                   \
      depthwise_##KIND##_##K##x##K##_s##S##SUFFIX(const __grid_constant__ infernode::cuda::DepthwiseTileParams p) { \
    using namespace infernode::cuda;                                                                                \
    depthwise_tile<EPILOGUE, Element::KIND, K, S, W>(p);                                                            \
  }
#define DEPTHWISE(KIND, K, S, W)             \
  DEPTHWISE_OF(, AnyEpilogue, KIND, K, S, W) \
  DEPTHWISE_OF(_whole, WholeEpilogue<Element::KIND>, KIND, K, S, W)
#define DEPTHWISE_KERNELS(KIND) \
  DEPTHWISE(KIND, 3, 1, 4)      \
  DEPTHWISE(KIND, 3, 2, 2)      \
  DEPTHWISE(KIND, 5, 1, 2)      \
  DEPTHWISE(KIND, 5, 2, 2)      \
  DEPTHWISE(KIND, 7, 1, 2)
DEPTHWISE_KERNELS(f16)
DEPTHWISE_KERNELS(bf16)

/// Any type, kernel, stride and dilation.
extern "C" __global__ void __launch_bounds__(128)
    depthwise_any(const __grid_constant__ infernode::cuda::DepthwiseParams p) {
  using namespace infernode::cuda;
  let_next_start();
  wait_for_previous();
  const Spot s(p);
  if (!s.exists) return;
  Columns columns;
  columns.load(p.e, s.channel, s.count, 0);
  float sums[8] = {};
#pragma unroll 1
  for (int ky = 0; ky < p.kernel_h; ky++) {
#pragma unroll 1
    for (int kx = 0; kx < p.kernel_w; kx++) {
      float v[8], w[8];
      load_weights(w, reinterpret_cast<const float*>(p.weights) + (ky * p.kernel_w + kx) * p.weights_row + s.channel);
      load_pixel(v, p, s, s.y * p.stride_h - p.pad_h + ky * p.dilation_h,
                 s.x * p.stride_w - p.pad_w + kx * p.dilation_w);
#pragma unroll
      for (int c = 0; c < 8; c++) sums[c] = fmaf(v[c], w[c], sums[c]);
    }
  }
  const EpilogueBatch batch(p.e, 0, 0);
  const int row = (s.image * p.out_h + s.y) * p.out_w + s.x;
  Raw8 residual;
  load_residual(residual, p.e, batch, row, s.channel, s.count);
  finish8(sums, p.e, batch, columns, residual, row, s.channel, s.count);
}
