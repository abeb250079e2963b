#pragma once

#include "providers/cuda/kernels/device/mma.cuh"
#include "providers/cuda/kernels/params/gemv.h"

namespace infernode::cuda {

template <MmaKind kind>
__device__ __forceinline__ float2 unpack(std::uint32_t v) {
  return kind == MmaKind::f16 ? unpack_f16(v) : unpack_bf16(v);
}

/// Rows of A, normalized, in shared memory: a warp a row. Numbers are summed less the row's first one, so that a large
/// mean costs no digits. Memory: scale and bias, then rows with 16 bytes between them.
template <MmaKind kind>
struct NormalizedRows {
  static constexpr int kPacks = kGemvMostNormalized / 256;  ///< of eight numbers a lane
  const GemvParams& p;
  char* const memory;

  __device__ __forceinline__ NormalizedRows(const GemvParams& params, char* at) : p(params), memory(at) {}

  /// Asks for scale and bias, as one group of copies.
  __device__ __forceinline__ void fetch_columns() const {
    const std::uint32_t to = shared_address(memory);
#pragma unroll 1
    for (int i = threadIdx.x * 16; i < p.k * 2; i += blockDim.x * 16) {
      copy16(to + i, reinterpret_cast<const char*>(p.norm_scale) + i, 16);
      if (p.norm_bias) copy16(to + p.k * 2 + i, reinterpret_cast<const char*>(p.norm_bias) + i, 16);
    }
    copies_commit();
  }

  /// Rows from element `first` of A on, when scale and bias have arrived for all threads.
  __device__ __forceinline__ void normalize(std::int64_t first) const {
    const char* a = reinterpret_cast<const char*>(p.a) + first * 2;
    const int lane = threadIdx.x & 31, packs = p.k / 8;
#pragma unroll 1
    for (int row = threadIdx.x >> 5; row < p.m; row += blockDim.x >> 5) {
      uint4 x[kPacks];
#pragma unroll
      for (int i = 0; i < kPacks; i++) {
        if (i * 32 + lane < packs) x[i] = load16(a + row * p.a_row * 2 + (i * 32 + lane) * 16);
      }
      const float front = unpack<kind>(__shfl_sync(~0u, x[0].x, 0)).x, shift = p.norm_no_mean ? 0.f : front;
      float sum = 0, squares = 0;
#pragma unroll
      for (int i = 0; i < kPacks; i++) {
        if (i * 32 + lane >= packs) break;
        each_pair(x[i], [&](float2 v) {
          v.x -= shift, v.y -= shift;
          sum += v.x + v.y;
          squares = fmaf(v.x, v.x, fmaf(v.y, v.y, squares));
        });
      }
#pragma unroll
      for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(~0u, sum, step);
        squares += __shfl_xor_sync(~0u, squares, step);
      }
      const float part = 1.f / p.k, mean = p.norm_no_mean ? 0.f : sum * part;
      const float factor = rsqrtf(fmaxf(fmaf(-mean, mean, squares * part), 0.f) + p.norm_epsilon);
      const float minus = -(shift + mean) * factor;
#pragma unroll
      for (int i = 0; i < kPacks; i++) {
        if (i * 32 + lane >= packs) break;
        *reinterpret_cast<uint4*>(place(row, (i * 32 + lane) * 8)) = finished(x[i], factor, minus, i * 32 + lane);
      }
    }
  }

  /// Eight numbers of a row from element k on.
  __device__ __forceinline__ uint4 of(int row, int k) const { return *reinterpret_cast<const uint4*>(place(row, k)); }

 private:
  __device__ __forceinline__ char* place(int row, int k) const {
    return memory + p.k * 4 + row * (p.k * 2 + 16) + k * 2;
  }

  template <class F>
  static __device__ __forceinline__ void each_pair(const uint4& v, const F& f) {
    f(unpack<kind>(v.x)), f(unpack<kind>(v.y)), f(unpack<kind>(v.z)), f(unpack<kind>(v.w));
  }

  __device__ __forceinline__ uint4 finished(const uint4& v, float factor, float minus, int pack) const {
    const uint4 scale = *reinterpret_cast<const uint4*>(memory + pack * 16);
    uint4 bias = make_uint4(0, 0, 0, 0);
    if (p.norm_bias) bias = *reinterpret_cast<const uint4*>(memory + p.k * 2 + pack * 16);
    const auto one = [&](std::uint32_t x, std::uint32_t s, std::uint32_t b) {
      const float2 y = unpack<kind>(x), f = unpack<kind>(s), add = unpack<kind>(b);
      const float low = fmaf(fmaf(y.x, factor, minus), f.x, add.x), high = fmaf(fmaf(y.y, factor, minus), f.y, add.y);
      return kind == MmaKind::f16 ? pack_f16(low, high) : pack_bf16(low, high);
    };
    return make_uint4(one(v.x, scale.x, bias.x), one(v.y, scale.y, bias.y), one(v.z, scale.z, bias.z),
                      one(v.w, scale.w, bias.w));
  }
};

}  // namespace infernode::cuda
