#pragma once

#include "providers/cuda/kernels/device/epilogue.cuh"
#include "providers/cuda/kernels/device/exact_sum.cuh"
#include "providers/cuda/kernels/device/mma.cuh"
#include "providers/cuda/kernels/device/split_mma.cuh"
#include "providers/cuda/kernels/params/gemm.h"

// The product for every GPU with tensor cores: cp.async into a ring of stages, ldmatrix, mma.sync.
namespace infernode::cuda {

/// pieces > 1: A is float32 and is split on the way, B lies in that many bfloat16 pieces.
template <MmaKind kind, int pieces, int BM, int BN, int WM, int WN, int ST, bool conv>
struct MmaTile {
  static constexpr MmaKind kKind = kind;
  static constexpr int kPieces = pieces, kM = BM, kN = BN, kWarpM = WM, kWarpN = WN, kStages = ST;
  static constexpr bool kConv = conv;
  static constexpr int kThreads = BM / WM * (BN / WN) * 32, kPitch = BN + 8;
  static constexpr int kBoxes = pieces > 1 ? 2 : 1;
  static constexpr int kSizeA = pieces > 1 || kind == MmaKind::tf32 ? 4 : 2, kSizeB = kind == MmaKind::tf32 ? 4 : 2;
  static constexpr int kStep = kBoxes * 128 / kSizeA;  ///< elements of K
  static constexpr int kBytesA = BM * 128 * kBoxes, kBytesB = BN * 128 * pieces;
  static constexpr int kShared = ST * (kBytesA + kBytesB) > BM* kPitch * 4 ? ST*(kBytesA + kBytesB) : BM* kPitch * 4;
  static constexpr int kRowsA = BM * 8 / kThreads, kRowsB = (BN * 8 + kThreads - 1) / kThreads;
};

/// The copies of a thread: one 16-byte column of every kThreads / 8-th row.
template <class T>
struct MmaCopies {
  const GemmMmaParams& p;
  const int chunk = threadIdx.x & 7, row = threadIdx.x >> 3;
  const char *a, *b;
  Pixel pixels[T::kConv ? T::kRowsA : 1];
  int m0, n0;

  __device__ __forceinline__ MmaCopies(const GemmMmaParams& params, int m, int n, int batch0, int batch1)
      : p(params), m0(m), n0(n) {
    a = reinterpret_cast<const char*>(p.a) + (batch0 * p.a_batch[0] + batch1 * p.a_batch[1]) * T::kSizeA;
    b = reinterpret_cast<const char*>(p.b) + (batch0 * p.b_batch[0] + batch1 * p.b_batch[1]) * T::kSizeB;
    if constexpr (T::kConv) {
#pragma unroll
      for (int i = 0; i < T::kRowsA; i++) pixels[i].find(p.conv, m0 + row + i * (T::kThreads / 8), p.m);
    }
  }

  __device__ __forceinline__ static int tail(int elements, int size) { return max(0, min(16, elements * size)); }

  __device__ __forceinline__ void load_b(std::uint32_t to, int step) const {
    const int k = step * (128 / T::kSizeB) + chunk * (16 / T::kSizeB), bytes = tail(p.k - k, T::kSizeB);
#pragma unroll
    for (int i = 0; i < T::kRowsB; i++) {
      const int r = row + i * (T::kThreads / 8);
      if (T::kN * 8 % T::kThreads != 0 && r >= T::kN) break;
      const bool valid = n0 + r < p.n && bytes > 0;
      const char* from = valid ? b + ((n0 + r) * p.b_row + k) * T::kSizeB : b;
#pragma unroll
      for (int q = 0; q < T::kPieces; q++) {
        copy16(to + q * T::kN * 128 + swizzled(r, chunk), from + q * p.b_plane * T::kSizeB, valid ? bytes : 0);
      }
    }
  }

  __device__ __forceinline__ void load_a(std::uint32_t to, int step) const {
#pragma unroll
    for (int box = 0; box < T::kBoxes; box++) {
      const int k = step * T::kStep + box * (T::kStep / T::kBoxes) + chunk * (16 / T::kSizeA);
      if constexpr (T::kConv) {
        const Tap tap(p.conv, k);
        const int bytes = tail(p.conv.channels - tap.channel, T::kSizeA);
#pragma unroll
        for (int i = 0; i < T::kRowsA; i++) {
          const int r = row + i * (T::kThreads / 8), at = input_pixel(p.conv, pixels[i], tap);
          const bool valid = at >= 0 && bytes > 0;
          copy16(to + box * T::kM * 128 + swizzled(r, chunk),
                 valid ? a + (at * p.conv.pixel + tap.channel) * T::kSizeA : a, valid ? bytes : 0);
        }
      } else {
        const int bytes = tail(p.k - k, T::kSizeA);
#pragma unroll
        for (int i = 0; i < T::kRowsA; i++) {
          const int r = row + i * (T::kThreads / 8);
          const bool valid = m0 + r < p.m && bytes > 0;
          copy16(to + box * T::kM * 128 + swizzled(r, chunk), valid ? a + ((m0 + r) * p.a_row + k) * T::kSizeA : a,
                 valid ? bytes : 0);
        }
      }
    }
  }
};

/// The products of one stage for a warp whose corner of A and B is (row, column).
template <class T>
__device__ __forceinline__ void mma_stage(float (&sums)[T::kWarpM / 16][T::kWarpN / 8][4], std::uint32_t a,
                                          std::uint32_t b, int row, int column, int lane) {
  constexpr int MI = T::kWarpM / 16, NI = T::kWarpN / 16;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    std::uint32_t fa[MI][4];
#pragma unroll
    for (int i = 0; i < MI; i++) load_matrix4(fa[i], a + swizzled(row + i * 16 + (lane & 15), k * 2 + (lane >> 4)));
#pragma unroll
    for (int j = 0; j < NI; j++) {
      std::uint32_t fb[4];
      load_matrix4(fb, b + swizzled(column + j * 16 + (lane & 7) + (lane >> 4) * 8, k * 2 + (lane >> 3 & 1)));
#pragma unroll
      for (int i = 0; i < MI; i++) {
        mma<T::kKind>(sums[i][2 * j], fa[i], fb[0], fb[1]);
        mma<T::kKind>(sums[i][2 * j + 1], fa[i], fb[2], fb[3]);
      }
    }
  }
}

__device__ __forceinline__ FloatOperands float_operands(const GemmMmaParams& p) {
  return {p.a,
          p.b,
          p.a_row,
          p.b_row,
          {p.a_batch[0], p.a_batch[1]},
          {p.b_batch[0], p.b_batch[1]},
          static_cast<std::int32_t>(p.b_plane),
          p.k};
}

/// Finishes the tile's sums of steps [first, last) of K, which lie in shared memory, or stores them as a part of K.
template <class T>
__device__ __forceinline__ void mma_finish(const GemmMmaParams& p, float* staged, int m0, int n0, int batch0,
                                           int batch1, int first, int last) {
  constexpr int kChunks = T::kN / 8;
  static_assert(T::kThreads % kChunks == 0);
  const int c = threadIdx.x % kChunks * 8, column = n0 + c, count = min(8, p.n - column);
  if (count <= 0) return;
  const EpilogueBatch batch(p.e, batch0, batch1);
  Columns columns;
  if (!p.partial) columns.load(p.e, column, count, batch0);
  const int pitch = (p.n + 7) / 8 * 8;
#pragma unroll 1
  for (int r = threadIdx.x / kChunks; r < T::kM && m0 + r < p.m; r += T::kThreads / kChunks) {
    float* const own = staged + r * T::kPitch + c;
    if constexpr (T::kPieces > 1) {
      const FloatOperands floats = float_operands(p);
      ExactSum<T::kPieces>(floats, p.conv, p.m, batch0, batch1)
          .mend(own, m0 + r, column, count, first * T::kStep, last * T::kStep);
    }
    const float4* s = reinterpret_cast<const float4*>(own);
    if (p.partial) {
      const std::int64_t part = std::int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
      float4* to =
          reinterpret_cast<float4*>(reinterpret_cast<float*>(p.partial) + (part * p.m + m0 + r) * pitch + column);
      to[0] = s[0];
      to[1] = s[1];
      continue;
    }
    Raw8 residual;
    load_residual(residual, p.e, batch, m0 + r, column, count);
    float v[8] = {s[0].x, s[0].y, s[0].z, s[0].w, s[1].x, s[1].y, s[1].z, s[1].w};
    finish8(v, p.e, batch, columns, residual, m0 + r, column, count);
  }
}

template <class T>
__device__ __forceinline__ void gemm_mma(const GemmMmaParams& p) {
  constexpr int kRows = T::kWarpM / 16, kColumns = T::kWarpN / 8, kStage = T::kBytesA + T::kBytesB;
  INFERNODE_DYNAMIC_SHARED(raw);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int row = warp / (T::kN / T::kWarpN) * T::kWarpM, column = warp % (T::kN / T::kWarpN) * T::kWarpN;
  const int m0 = blockIdx.x / p.n_tiles * T::kM, n0 = blockIdx.x % p.n_tiles * T::kN;
  const int batch0 = blockIdx.y % p.batch_inner, batch1 = blockIdx.y / p.batch_inner;
  const int first = static_cast<int>(std::int64_t{p.k_blocks} * blockIdx.z / gridDim.z);
  const int last = static_cast<int>(std::int64_t{p.k_blocks} * (blockIdx.z + 1) / gridDim.z);
  const std::uint32_t base = shared_address(raw);
  let_next_start();
  const MmaCopies<T> copies(p, m0, n0, batch0, batch1);
  if (!p.b_constant) wait_for_previous();
#pragma unroll 1
  for (int s = 0; s < T::kStages - 1; s++) {
    if (first + s < last) copies.load_b(base + s * kStage + T::kBytesA, first + s);
  }
  bring_near(p.e);
  wait_for_previous();
#pragma unroll 1
  for (int s = 0; s < T::kStages - 1; s++) {
    if (first + s < last) copies.load_a(base + s * kStage, first + s);
    copies_commit();
  }
  float sums[kRows][kColumns][4] = {};
  int stage = 0;
#pragma unroll 1
  for (int step = first; step < last; step++) {
    copies_wait<T::kStages - 2>();
    __syncthreads();
    const int next = step + T::kStages - 1, to = stage == 0 ? T::kStages - 1 : stage - 1;
    if (next < last) {
      copies.load_b(base + to * kStage + T::kBytesA, next);
      copies.load_a(base + to * kStage, next);
    }
    copies_commit();
    const std::uint32_t a = base + stage * kStage;
    if constexpr (T::kPieces > 1) {
      split_mma_stage<T>(sums, a, a + T::kBytesA, row, column, lane);
    } else {
      mma_stage<T>(sums, a, a + T::kBytesA, row, column, lane);
    }
    if (++stage == T::kStages) stage = 0;
  }
  copies_wait<0>();
  __syncthreads();
  float* staged = reinterpret_cast<float*>(raw);
#pragma unroll
  for (int i = 0; i < kRows; i++) {
#pragma unroll
    for (int j = 0; j < kColumns; j++) {
      float* to = staged + (row + i * 16 + (lane >> 2)) * T::kPitch + column + j * 8 + (lane & 3) * 2;
      *reinterpret_cast<float2*>(to) = make_float2(sums[i][j][0], sums[i][j][1]);
      *reinterpret_cast<float2*>(to + 8 * T::kPitch) = make_float2(sums[i][j][2], sums[i][j][3]);
    }
  }
  __syncthreads();
  mma_finish<T>(p, staged, m0, n0, batch0, batch1, first, last);
}

}  // namespace infernode::cuda

/// gemm_mma_<name>_<rows>x<columns>, conv_mma_...
#define GEMM_MMA(PREFIX, NAME, KIND, PIECES, BM, BN, WM, WN, ST, CONV)                              \
  extern "C" __global__ void __launch_bounds__(BM / WM * (BN / WN) * 32)                            \
      PREFIX##_mma_##NAME##_##BM##x##BN(const __grid_constant__ infernode::cuda::GemmMmaParams p) { \
    using namespace infernode::cuda;                                                                \
    gemm_mma<MmaTile<MmaKind::KIND, PIECES, BM, BN, WM, WN, ST, CONV>>(p);                          \
  }
