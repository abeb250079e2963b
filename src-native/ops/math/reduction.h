#pragma once
// How reductions see their input: axes collapsed to [outer, reduced, inner].

#include <cstdint>
#include <span>

#include "kernel/infer_context.h"
#include "kernel/run_context.h"
#include "ops/common/arguments.h"
#include "tensor/tensor.h"

namespace infernode::ops {

/// Where reduced axes do not lie together, `dims` and `strides` say how to copy the input so that they do: kept axes,
/// reduced axes, and the innermost axis last where it is kept.
struct ReduceLayout {
  std::int64_t outer = 1, reduced = 1, inner = 1;
  bool gather = false;
  tensor::Shape dims, strides;
};

/// `axes` lie in [0, rank).
ReduceLayout reduce_layout(const tensor::Shape& in, std::span<const std::int64_t> axes);
tensor::Shape reduced_shape(const tensor::Shape& in, std::span<const std::int64_t> axes, bool keep_dims);
graph::SymShape reduced_shape(const graph::SymShape& in, std::span<const std::int64_t> axes, bool keep_dims);

/// The input in the order of the layout: itself, or a copy.
tensor::Tensor arranged(const kernel::RunContext& run, const tensor::Tensor& in, const ReduceLayout& layout);

enum class ReduceKind : std::uint8_t { Sum, Mean, Max, Min, Prod, L1, L2, SumSquare, LogSum, LogSumExp };

/// Reduces `axes`, which lie in [0, rank), of `in` (any numeric type or bool) into `out`, of the same type. Long sums
/// are cut at fixed places, so that the result does not depend on the number of threads.
void reduce(const kernel::RunContext& run, const microkernels::KernelSet& kernels, ReduceKind kind,
            std::span<const std::int64_t> axes, const tensor::Tensor& in, const tensor::Tensor& out);

/// The part of it for float32 and, through float32 and rounded once, 16-bit floats; `out` is not empty.
void reduce_floats(const kernel::RunContext& run, const microkernels::KernelSet& kernels, ReduceKind kind,
                   std::span<const std::int64_t> axes, const tensor::Tensor& in, const tensor::Tensor& out);

}  // namespace infernode::ops
