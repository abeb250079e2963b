#pragma once

#include "providers/cuda/kernels/launch.h"
#include "providers/cuda/kernels/params/rows.h"
#include "providers/cuda/plan/device_tensor.h"

namespace infernode::cuda {

/// Kernels with a warp for each row; `dtype` is float32, float16 or bfloat16 (reductions: int64 and int32, too).
Launch plan_normalize(const Target& target, tensor::DType dtype, NormalizeParams problem);
Launch plan_softmax(const Target& target, tensor::DType dtype, const SoftmaxParams& problem);
Launch plan_reduce(const Target& target, tensor::DType dtype, const ReduceParams& problem);
/// Any type that has a kernel suffix, but bool.
Launch plan_scan(const Target& target, tensor::DType dtype, const ScanParams& problem);

}  // namespace infernode::cuda
