#include "providers/cuda/kernels/device/any.cuh"
#include "providers/cuda/kernels/device/ptx.cuh"
#include "providers/cuda/kernels/params/quantize.h"

// Numbers as codes, and products of codes.
namespace infernode::cuda {

__device__ __forceinline__ float single_at(std::uint64_t base, Number type, std::int64_t i) {
  return single(load_any(base, type, i));
}
__device__ __forceinline__ float least_of(Number type) {
  return type == Number::i8 ? -128.0f : type == Number::i16 ? -32768.0f : 0.0f;
}
__device__ __forceinline__ float most_of(Number type) {
  return type == Number::i8 ? 127.0f : type == Number::u8 ? 255.0f : type == Number::i16 ? 32767.0f : 65535.0f;
}

extern "C" __global__ void __launch_bounds__(256) quantize(const __grid_constant__ QuantizeParams p) {
  const std::int64_t e = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (e >= p.count) return;
  const std::int64_t row = e / p.inner, outer = row / p.n, block = (row - outer * p.n) / p.block;
  const std::int64_t at = p.per_element ? (outer * p.blocks + block) * p.inner + e % p.inner : block;
  const float scale = single_at(p.scale, p.scale_type, at);
  const long long zero = p.zero == 0 ? 0 : whole(load_any(p.zero, p.zero_type, at));
  const Any x = load_any(p.x, p.x_type, e);
  if (p.back) {
    const float less = x.integer ? static_cast<float>(x.whole - zero) : single(x) - static_cast<float>(zero);
    store_any(p.y, p.y_type, e, of(static_cast<double>(less * scale)));
    return;
  }
  const float q = single(x) / scale;
  const float nearest = q != q ? 0.0f : rintf(q), shift = static_cast<float>(zero);
  const float low = least_of(p.y_type) - shift, high = most_of(p.y_type) - shift;
  store_any(p.y, p.y_type, e, of(static_cast<long long>(fminf(fmaxf(nearest, low), high)) + zero));
}

/// The extremes of a warp, in every lane.
__device__ __forceinline__ void meet_lanes(float& low, float& high) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    low = fminf(low, __shfl_xor_sync(~0u, low, step));
    high = fmaxf(high, __shfl_xor_sync(~0u, high, step));
  }
}

extern "C" __global__ void __launch_bounds__(256) number_range(const __grid_constant__ NumberRangeParams p) {
  __shared__ float lows[8], highs[8];
  const std::int64_t step = p.parts * std::int64_t{256};
  wait_and_let_next_start();
  float low = 0, high = 0;
  for (std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x; i < p.count; i += step) {
    const float x = reinterpret_cast<const float*>(p.in)[i];
    low = fminf(low, x);
    high = fmaxf(high, x);
  }
  meet_lanes(low, high);
  if (threadIdx.x % 32 == 0) lows[threadIdx.x / 32] = low, highs[threadIdx.x / 32] = high;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < 8; ++i) low = fminf(low, lows[i]), high = fmaxf(high, highs[i]);
  reinterpret_cast<float*>(p.low)[blockIdx.x] = low;
  reinterpret_cast<float*>(p.high)[blockIdx.x] = high;
}

extern "C" __global__ void __launch_bounds__(32) dynamic_range(const __grid_constant__ DynamicRangeParams p) {
  wait_and_let_next_start();
  float low = 0, high = 0;
  for (int i = threadIdx.x; i < p.parts; i += 32) {
    low = fminf(low, reinterpret_cast<const float*>(p.low)[i]);
    high = fmaxf(high, reinterpret_cast<const float*>(p.high)[i]);
  }
  meet_lanes(low, high);
  if (threadIdx.x != 0) return;
  const float scale = low < high ? (high - low) / 255.0f : 1.0f;
  const float zero = fminf(fmaxf(rintf(-low / scale), 0.0f), 255.0f);  // 0 where the range is not finite
  *reinterpret_cast<float*>(p.scale) = scale;
  *reinterpret_cast<unsigned char*>(p.zero) = static_cast<unsigned char>(zero);
}

__device__ __forceinline__ int byte_at(std::uint64_t base, std::int64_t i, bool is_signed) {
  return is_signed ? reinterpret_cast<const signed char*>(base)[i] : reinterpret_cast<const unsigned char*>(base)[i];
}

extern "C" __global__ void __launch_bounds__(256) byte_product(const __grid_constant__ ByteProductParams p) {
  constexpr int kTile = 32;
  __shared__ short a[kTile][kTile + 2], b[kTile][kTile + 2];
  const int first_row = blockIdx.y * kTile, first_column = blockIdx.x * kTile;
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;  // 32 by 8 threads, four rows each
  const std::uint64_t matrix_a = p.a + blockIdx.z * p.a_batch, matrix_b = p.b + blockIdx.z * p.b_batch;
  bring_near(p);
  wait_and_let_next_start();
  int sum[4] = {};
  for (int k = 0; k < p.k; k += kTile) {
    for (int i = y; i < kTile; i += 8) {
      const int row = first_row + i, column = first_column + x;
      int own = 0, other = 0;
      if (row < p.m && k + x < p.k) {
        own = byte_at(matrix_a, std::int64_t{row} * p.k + k + x, p.a_signed);
        if (p.a_zero != 0) own -= byte_at(p.a_zero, row * p.a_zero_step, p.a_signed);
      }
      if (k + i < p.k && column < p.n) {
        other = byte_at(matrix_b, std::int64_t{k + i} * p.n + column, p.b_signed);
        if (p.b_zero != 0) other -= byte_at(p.b_zero, column * p.b_zero_step, p.b_signed);
      }
      a[i][x] = static_cast<short>(own);
      b[i][x] = static_cast<short>(other);
    }
    __syncthreads();
#pragma unroll 8
    for (int i = 0; i < kTile; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[j] += a[y + j * 8][i] * b[i][x];
    }
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int row = first_row + y + j * 8, column = first_column + x;
    if (row >= p.m || column >= p.n) continue;
    reinterpret_cast<int*>(p.out)[(blockIdx.z * std::int64_t{p.m} + row) * p.n + column] = sum[j];
  }
}

__device__ __forceinline__ float code_at(std::uint64_t base, std::int64_t i, int bits) {
  const int per_byte = 8 / bits;
  const int byte = reinterpret_cast<const unsigned char*>(base)[i / per_byte];
  return static_cast<float>(byte >> (i % per_byte * bits) & ((1 << bits) - 1));
}

extern "C" __global__ void __launch_bounds__(256) expand_bits(const __grid_constant__ ExpandBitsParams p) {
  const std::int64_t e = blockIdx.x * std::int64_t{256} + threadIdx.x;
  wait_and_let_next_start();
  if (e >= p.count) return;
  const std::int64_t row = e / p.k, column = e - row * p.k, block = column / p.block;
  const std::int64_t row_bytes = std::int64_t{p.blocks} * p.block * p.bits / 8;
  const float code = code_at(p.codes + row * row_bytes, column, p.bits);
  float zero = static_cast<float>(1 << (p.bits - 1));
  if (p.zeros != 0 && p.zero_type == Number::u8) {
    zero = code_at(p.zeros + row * ((p.blocks * p.bits + 7) / 8), block, p.bits);
  } else if (p.zeros != 0) {
    zero = single_at(p.zeros, p.zero_type, row * p.blocks + block);
  }
  const float scale = single_at(p.scales, p.type, row * p.blocks + block);
  store_any(p.out, p.type, e, of(static_cast<double>((code - zero) * scale)));
}

extern "C" __global__ void __launch_bounds__(256) expand_codes(const __grid_constant__ ExpandCodesParams p) {
  const std::int64_t e = blockIdx.x * std::int64_t{256} + threadIdx.x;
  wait_and_let_next_start();
  if (e >= p.count) return;
  const std::int64_t at = p.rows_first ? e : e % p.k * p.rows + e / p.k;
  const int byte = reinterpret_cast<const unsigned char*>(p.codes)[at / 2];
  const float scale = single_at(p.scales, p.type, at / p.block);
  store_any(p.out, p.type, e, of(static_cast<double>(p.value[at % 2 == 0 ? byte >> 4 : byte & 15] * scale)));
}

__device__ __forceinline__ float signed_code_at(std::uint64_t base, std::int64_t i, int bits, bool is_signed) {
  const float code = code_at(base, i, bits), half = static_cast<float>(1 << (bits - 1));
  return is_signed && code >= half ? code - 2 * half : code;
}

extern "C" __global__ void __launch_bounds__(256) gather_blocks(const __grid_constant__ GatherBlocksParams p) {
  const std::int64_t e = blockIdx.x * std::int64_t{256} + threadIdx.x;
  bring_near(p);
  wait_and_let_next_start();
  if (e >= p.count) return;
  const std::int64_t slice = e / p.inner, place = slice % p.indices;
  std::int64_t index = p.index_is_64 ? reinterpret_cast<const std::int64_t*>(p.index)[place]
                                     : reinterpret_cast<const std::int32_t*>(p.index)[place];
  if (index < 0) index += p.axis;
  if (index < 0 || index >= p.axis) return store_any(p.out, p.type, e, of(0.0));
  const std::int64_t at = (slice / p.indices * p.axis + index) * p.inner + e % p.inner;
  const std::int64_t row = at / p.within, before = row / p.length, block = row % p.length / p.block;
  const std::int64_t scale_at = (before * p.blocks + block) * p.within + at % p.within;
  float zero = p.middle;
  if (p.zeros != 0) {
    const std::int64_t zero_at = p.zero_row != 0 ? before * p.zero_row + block : scale_at;
    zero = signed_code_at(p.zeros, zero_at, p.bits, p.is_signed);
  }
  const float code = signed_code_at(p.codes, at, p.bits, p.is_signed);
  store_any(p.out, p.type, e, of(static_cast<double>((code - zero) * single_at(p.scales, p.type, scale_at))));
}

}  // namespace infernode::cuda
