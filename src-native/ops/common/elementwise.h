#pragma once
// Loops with one input and one output of the same shape. Float32 goes through the microkernel tables; 16-bit floats are
// converted piece by piece and computed in float32.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/function_ref.h"
#include "kernel/kernel.h"
#include "microkernels/convert/convert.h"
#include "microkernels/elementwise/elementwise.h"
#include "microkernels/kernel_set.h"
#include "tensor/dispatch.h"

namespace infernode::ops {

/// Elements of a 16-bit float tensor that are computed at a time: the float copies of two inputs and an output stay in
/// the first-level cache.
inline constexpr std::size_t kHalfPiece = 1024;

/// The loops of one CPU.
struct FloatLoops {
  explicit FloatLoops(const microkernels::KernelSet& kernels)
      : elementwise(kernels.elementwise), convert(kernels.convert) {}
  const microkernels::ElementwiseTable& elementwise;
  const microkernels::ConvertTable& convert;

  void load(const Float16* x, float* y, std::size_t n) const {
    convert.f16_to_f32(reinterpret_cast<const std::uint16_t*>(x), y, n);
  }
  void load(const BFloat16* x, float* y, std::size_t n) const {
    convert.bf16_to_f32(reinterpret_cast<const std::uint16_t*>(x), y, n);
  }
  void store(const float* x, Float16* y, std::size_t n) const {
    convert.f32_to_f16(x, reinterpret_cast<std::uint16_t*>(y), n);
  }
  void store(const float* x, BFloat16* y, std::size_t n) const {
    convert.f32_to_bf16(x, reinterpret_cast<std::uint16_t*>(y), n);
  }

  /// y = f(x) in pieces of float; T is Float16 or BFloat16.
  template <class T, class F>
  void map_half(const T* x, T* y, std::size_t n, F&& f) const {
    float piece[kHalfPiece];
    for (std::size_t i = 0; i < n; i += kHalfPiece) {
      const std::size_t m = std::min(kHalfPiece, n - i);
      load(x + i, piece, m);
      f(static_cast<const float*>(piece), piece, m);
      store(piece, y + i, m);
    }
  }
};

/// y[i] = f(x[i]) over whole tensors of the C++ types X and Y, in parallel.
template <class X, class Y, class F>
void map_elements(const kernel::KernelContext& ctx, const tensor::Tensor& in, const tensor::Tensor& out, double cost_ns,
                  F f) {
  const X* x = in.data<X>();
  Y* y = out.mutable_data<Y>();
  ctx.parallel_for(static_cast<std::size_t>(in.numel()), cost_ns, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) y[i] = f(x[i]);
  });
}

/// Any of the four float types: `loop32(x, y, n)` over float32, `one64(double) -> double` for double.
template <class Loop32, class One64>
void map_floats(const kernel::KernelContext& ctx, const FloatLoops& loops, const tensor::Tensor& in,
                const tensor::Tensor& out, double cost_ns, const char* what, Loop32 loop32, One64 one64) {
  tensor::dispatch_floats(in.dtype(), what, [&]<class T>(tensor::TypeTag<T>) {
    if constexpr (std::is_same_v<T, double>) {
      map_elements<double, double>(ctx, in, out, cost_ns * 2, one64);
    } else {
      const T* x = in.data<T>();
      T* y = out.mutable_data<T>();
      ctx.parallel_for(static_cast<std::size_t>(in.numel()), cost_ns,
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         if constexpr (std::is_same_v<T, float>) {
                           loop32(x + begin, y + begin, end - begin);
                         } else {
                           loops.map_half(x + begin, y + begin, end - begin, loop32);
                         }
                       });
    }
  });
}

}  // namespace infernode::ops
