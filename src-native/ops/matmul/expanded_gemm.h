#pragma once
// Products with a weight that is stored compressed and expanded to float32 some columns of the result at a time.

#include "base/function_ref.h"
#include "kernel/infer_context.h"
#include "kernel/kernel.h"
#include "microkernels/gemm/gemm.h"

namespace infernode::ops {

/// y[m, n] = a[m, k] * w' (+ bias[n]); expand(j, row) writes row j of w [n, k]. `bias` may be null. In parallel.
void multiply_expanded(kernel::KernelContext& ctx, const microkernels::GemmTable& table, std::size_t m, std::size_t n,
                       std::size_t k, const float* a, const float* bias, float* y,
                       FunctionRef<void(std::size_t, float*)> expand);

/// Output 0 has input 0's type and shape, but for its last dim, attribute N.
void infer_expanded_gemm(kernel::InferContext& ctx);

}  // namespace infernode::ops
