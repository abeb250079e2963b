#pragma once
// Binary operators whose inputs and output have one type: float32 through the microkernel tables, 16-bit floats through
// float32, others by their own arithmetic. An operator is a struct with
//   static constexpr microkernels::BinaryOp kLoop;    its float32 loop
//   static constexpr double kCost;                    nanoseconds of one element
//   template <class T> static T apply(T a, T b);      for double and integers

#include <type_traits>

#include "ops/common/arithmetic.h"
#include "ops/common/broadcast.h"
#include "ops/common/elementwise.h"
#include "ops/common/repeated_row.h"

namespace infernode::ops {

template <class T>
constexpr T wrap_subtract(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  else
    return a - b;
}

/// Integers: toward zero; by zero: 0; the lowest number by -1 stays as it is.
template <class T>
constexpr T safe_divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return wrap_subtract<T>(0, a);
    }
  }
  return static_cast<T>(a / b);
}

inline void float_run(const microkernels::ElementwiseTable& table, microkernels::BinaryOp op, const float* a,
                      const float* b, float* out, std::size_t n, bool a_still, bool b_still) {
  const auto i = static_cast<std::size_t>(op);
  if (a_still && b_still) {
    table.vector_vector[i](a, b, out, 1);
    std::fill(out + 1, out + n, out[0]);
  } else {
    (a_still ? table.scalar_vector : b_still ? table.vector_scalar : table.vector_vector)[i](a, b, out, n);
  }
}

/// Runs of `plan` in which one input, the first or the second, is a row of `length` elements over and over.
template <bool kFirst>
void float_repeating(const kernel::RunContext& run, const microkernels::ElementwiseTable& table, double cost,
                     microkernels::BinaryOp op, const BroadcastPlan& plan, std::size_t length, const float* a,
                     const float* b, float* out) {
  plan.for_each_run(run, cost, [&](std::size_t o, const std::size_t* in, std::size_t n) {
    const microkernels::BinaryLoop loop = table.vector_vector[static_cast<std::size_t>(op)];
    for_repeated_row(kFirst ? a + in[0] : b + in[1], length, n,
                     [&](std::size_t i, const float* rows, std::size_t count) {
                       loop(kFirst ? rows : a + in[0] + i, kFirst ? b + in[1] + i : rows, out + o + i, count);
                     });
  });
}

/// f(i, x, y, count) for pieces of a run of 16-bit floats, as float32; a still side is one element.
template <class T, class F>
void half_pieces(const FloatLoops& loops, const T* a, bool a_still, const T* b, bool b_still, std::size_t n, F&& f) {
  float x[kHalfPiece], y[kHalfPiece];
  for (std::size_t i = 0; i < n; i += kHalfPiece) {
    const std::size_t m = std::min(kHalfPiece, n - i);
    if (!a_still || i == 0) loops.load(a + (a_still ? 0 : i), x, a_still ? 1 : m);
    if (!b_still || i == 0) loops.load(b + (b_still ? 0 : i), y, b_still ? 1 : m);
    f(i, static_cast<const float*>(x), static_cast<const float*>(y), m);
  }
}

/// float_run for 16-bit floats, piece by piece.
template <class T>
void half_run(const FloatLoops& loops, microkernels::BinaryOp op, const T* a, const T* b, T* out, std::size_t n,
              bool a_still, bool b_still) {
  half_pieces(loops, a, a_still, b, b_still, n, [&](std::size_t i, const float* x, const float* y, std::size_t m) {
    float result[kHalfPiece];
    float_run(loops.elementwise, op, x, y, result, m, a_still, b_still);
    loops.store(result, out + i, m);
  });
}

template <class Op>
void binary_numeric(const kernel::RunContext& run, const FloatLoops& loops, const BroadcastPlan& plan,
                    const tensor::Tensor& a, const tensor::Tensor& b, const tensor::Tensor& out, const char* what) {
  tensor::dispatch_numeric(out.dtype(), what, [&]<class T>(tensor::TypeTag<T>) {
    const T *x = a.data<T>(), *y = b.data<T>();
    T* z = out.mutable_data<T>();
    if constexpr (std::is_same_v<T, float>) {
      const auto length = static_cast<std::size_t>(plan.run_length());
      if (const auto longer = plan.repeating(0))
        return float_repeating<true>(run, loops.elementwise, Op::kCost, Op::kLoop, *longer, length, x, y, z);
      if (const auto longer = plan.repeating(1))
        return float_repeating<false>(run, loops.elementwise, Op::kCost, Op::kLoop, *longer, length, x, y, z);
      plan.for_each_run(run, Op::kCost, [&](std::size_t o, const std::size_t* in, std::size_t n) {
        float_run(loops.elementwise, Op::kLoop, x + in[0], y + in[1], z + o, n, plan.still(0), plan.still(1));
      });
    } else if constexpr (std::is_same_v<tensor::ComputeTypeOf<T>, float>) {
      plan.for_each_run(run, Op::kCost * 2, [&](std::size_t o, const std::size_t* in, std::size_t n) {
        half_run(loops, Op::kLoop, x + in[0], y + in[1], z + o, n, plan.still(0), plan.still(1));
      });
    } else {
      binary_map(run, plan, x, y, z, Op::kCost * 2, [](T p, T q) { return Op::apply(p, q); });
    }
  });
}

}  // namespace infernode::ops
