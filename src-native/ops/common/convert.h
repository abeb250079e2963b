#pragma once
// Conversion between element types as Cast defines it.

#include "kernel/run_context.h"
#include "microkernels/convert/convert.h"
#include "tensor/tensor.h"

namespace infernode::ops {

struct ConvertOptions {
  bool saturate = true;  ///< 8-bit floats: out of range gives the largest finite value
  E8M0Rounding e8m0_rounding = E8M0Rounding::Up;
};

/// to[i] = from[i] converted; any two types but complex ones. Floats to integers go toward zero, and what does not fit
/// keeps the low bits of the (saturated) 64-bit integer; NaN counts as the lowest one. Strings are read as numbers
/// (InvalidArgument for other text) and written as "%.8g", "NaN", "-INF".
void convert_elements(const kernel::RunContext& run, const microkernels::ConvertTable& table,
                      const tensor::Tensor& from, const tensor::Tensor& to, const ConvertOptions& options = {});

}  // namespace infernode::ops
