#pragma once

#include "providers/cuda/kernels/device/number.cuh"
#include "providers/cuda/kernels/device/ptx.cuh"
#include "providers/cuda/kernels/params/elementwise.h"

// What kernels of one operator on elements share: who does which elements.
namespace infernode::cuda {

/// Where a thread's pack begins in each tensor, in elements.
template <int kInputs>
struct Place {
  std::int64_t in[kInputs], out;
  __device__ __forceinline__ Place(const ElementwiseParams& p, std::int64_t thread) : in{}, out(0) {
#pragma unroll
    for (int d = kElementwiseRank - 1; d >= 0; --d) {
      if (d >= p.rank) continue;
      std::uint32_t index;
      if (p.threads <= 0xffffffff) {
        const auto small = static_cast<std::uint32_t>(thread);
        index = small % p.dims[d];
        thread = small / p.dims[d];
      } else {
        index = static_cast<std::uint32_t>(thread % p.dims[d]);
        thread /= p.dims[d];
      }
#pragma unroll
      for (int i = 0; i < kInputs; ++i) in[i] += index * p.stride[i][d];
      out += index * p.out_stride[d];
    }
  }
};

template <class T, int kPack>
__device__ __forceinline__ Pack<T, kPack> load_pack(const ElementwiseParams& p, int input, std::int64_t at) {
  const T* const from = reinterpret_cast<const T*>(p.in[input]) + at;
  if (kPack > 1 && (p.packed >> input & 1)) return *reinterpret_cast<const Pack<T, kPack>*>(from);
  Pack<T, kPack> all;
  const T one = *from;
#pragma unroll
  for (int j = 0; j < kPack; ++j) all.of[j] = one;
  return all;
}

/// Calls f(elements of the inputs...) for each element of the thread's pack.
template <class In, class Out, int kInputs, int kPack, class F>
__device__ __forceinline__ void for_each_element(const ElementwiseParams& p, const F& f) {
  const std::int64_t thread = blockIdx.x * std::int64_t{256} + threadIdx.x;
  const Place<kInputs> place(p, thread);
  bring_near(p);
  wait_and_let_next_start();
  if (thread >= p.threads) return;
  Pack<In, kPack> in[kInputs];
#pragma unroll
  for (int i = 0; i < kInputs; ++i) in[i] = load_pack<In, kPack>(p, i, place.in[i]);
  Pack<Out, kPack> out;
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    if constexpr (kInputs == 1) {
      out.of[j] = f(in[0].of[j]);
    } else {
      out.of[j] = f(in[0].of[j], in[1].of[j]);
    }
  }
  *reinterpret_cast<Pack<Out, kPack>*>(reinterpret_cast<Out*>(p.out) + place.out) = out;
}

}  // namespace infernode::cuda
