#pragma once

#include "providers/cuda/kernels/launch.h"
#include "providers/cuda/kernels/params/pool.h"
#include "providers/cuda/plan/device_tensor.h"

namespace infernode::cuda {

/// Channels-last tensors of float32, float16 or bfloat16, whose pitches are multiples of 8. Fills in what follows from
/// them.
Launch plan_pool(const Target& target, const DeviceTensor& in, const DeviceTensor& out, PoolParams params);
Launch plan_global_pool(const Target& target, const DeviceTensor& in, const DeviceTensor& out, bool average);

}  // namespace infernode::cuda
