#pragma once

#include "providers/cuda/kernels/device/rows.cuh"

// Sums that pieces of bfloat16 cannot give: those of infinities, of NaN and of numbers beyond bfloat16's largest come
// out as NaN or infinite, and are computed again in float32.
namespace infernode::cuda {

/// A is float32, B lies in `pieces` planes of bfloat16.
template <int pieces>
struct ExactSum {
  const FloatOperands& o;
  const ConvParams& conv;
  const int rows;  ///< of A
  const float* a;
  const std::uint16_t* b;

  __device__ __forceinline__ ExactSum(const FloatOperands& operands, const ConvParams& c, int m, int batch0, int batch1)
      : o(operands),
        conv(c),
        rows(m),
        a(reinterpret_cast<const float*>(o.a) + batch0 * o.a_batch[0] + batch1 * o.a_batch[1]),
        b(reinterpret_cast<const std::uint16_t*>(o.b) + batch0 * o.b_batch[0] + batch1 * o.b_batch[1]) {}

  __device__ __forceinline__ float weight(int n, int k) const {
    float sum = 0;
#pragma unroll
    for (int q = pieces - 1; q >= 0; q--) {
      sum += unpack_bf16(load_u16(b + n * o.b_row + k + q * std::int64_t{o.b_plane})).x;
    }
    return sum;
  }

  /// Of row m of A and row n of B over K in [first, last).
  __device__ __forceinline__ float of(int m, int n, int first, int last) const {
    float sum = 0;
    Pixel pixel;
    if (conv.taps) pixel.find(conv, m, rows);
#pragma unroll 1
    for (int k = first; k < min(last, o.k); k++) {
      std::int64_t at = m * o.a_row + k;
      if (conv.taps) {
        const Tap tap(conv, k);
        const int from = tap.channel < conv.channels ? input_pixel(conv, pixel, tap) : -1;
        if (from < 0) continue;
        at = from * conv.pixel + tap.channel;
      }
      sum = fmaf(load_f32(a + at), weight(n, k), sum);
    }
    return sum;
  }

  /// Mends the sums of row m and `count` columns from n on.
  __device__ __forceinline__ void mend(float* sums, int m, int n, int count, int first, int last) const {
    float zero = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) zero = fmaf(sums[i], 0.f, zero);
    if (zero == 0) return;
#pragma unroll 1
    for (int i = 0; i < count; i++) {
      if (!(fabsf(sums[i]) < INFINITY)) sums[i] = of(m, n + i, first, last);
    }
  }
};

}  // namespace infernode::cuda
