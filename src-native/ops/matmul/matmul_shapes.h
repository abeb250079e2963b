#pragma once
// numpy.matmul's rules: for MatMul and its integer and fused relatives.

#include "kernel/counted.h"
#include "kernel/infer_context.h"
#include "tensor/shape.h"

namespace infernode::ops {

/// The products that two operands of any rank make.
struct MatMulGeometry {
  explicit MatMulGeometry(const kernel::RunContext& run) : a_offsets(run), b_offsets(run) {}

  std::size_t m = 1, n = 1, k = 0;
  tensor::Shape out;
  /// By batch, in elements; empty where it is one product. Batches of A that meet one B stand under each other as one
  /// matrix.
  kernel::CountedVector<std::int64_t> a_offsets, b_offsets;
  std::size_t count = 1;  ///< of products; 0 where `out` has no elements
};

/// Throws ShapeMismatch naming `what` where the operands do not fit. Without `merge` batches of A stay apart, as they
/// must where A's matrices are stored transposed.
MatMulGeometry plan_matmul(const kernel::RunContext& run, const tensor::Shape& a, const tensor::Shape& b,
                           const char* what = "MatMul", bool merge = true);

/// For each element of a tensor of shape `to`, in order: the element of one of shape `from` that broadcasting puts
/// there, times `scale`.
kernel::CountedVector<std::int64_t> broadcast_offsets(const kernel::RunContext& run, const tensor::Shape& from,
                                                      const tensor::Shape& to, std::int64_t scale = 1);

/// The shape of numpy.matmul of inputs `a` and `b`, set on output 0.
void infer_matmul_shape(kernel::InferContext& ctx, std::size_t a, std::size_t b);
/// The same for shapes at hand; throws ShapeMismatch.
graph::SymShape matmul_shape(const graph::SymShape& a, const graph::SymShape& b, std::string_view what);
inline void infer_matmul(kernel::InferContext& ctx) { infer_matmul_shape(ctx, 0, 1); }

}  // namespace infernode::ops
