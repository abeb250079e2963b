#pragma once
// Floating operators in all their types: float64 kernels are plain loops, so they serve as the reference for the
// blocked float32 ones and for those of 16 bits.

#include <string_view>
#include <vector>

#include "ops/op_test.h"

namespace infernode::test {

/// The elements as another floating type.
Tensor as_type(const Tensor& t, DType type);

/// Runs the graph with its float32 `inputs` as float64 and holds float32 and the `narrow` types against that; other
/// inputs stay as they are. Types are left out of `text`: "(X, W) => (Y) { Y = Conv(X, W) }".
void check_float_types(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs,
                       std::initializer_list<DType> narrow = {DType::Float16, DType::BFloat16},
                       double tolerance = kTolerance);

/// One thread and three give the same bits, whether all inputs but the first are constant or not.
void check_threads(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs);

}  // namespace infernode::test
