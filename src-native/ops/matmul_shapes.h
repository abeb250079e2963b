#pragma once

#include "kernel/infer_context.h"

namespace infernode::ops {

/// numpy.matmul's shape of inputs `a` and `b`, set on output 0: for MatMul and its integer and fused relatives.
void infer_matmul_shape(kernel::InferContext& ctx, std::size_t a, std::size_t b);
inline void infer_matmul(kernel::InferContext& ctx) { infer_matmul_shape(ctx, 0, 1); }

}  // namespace infernode::ops
