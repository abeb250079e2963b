#pragma once

#include <map>
#include <string>
#include <vector>

#include "session/session.h"

namespace infernode::bench {

/// A tensor of random numbers for an input: floats in [-1, 1], token numbers below `vocabulary`, masks of ones. Dims
/// that the model leaves open are those of `sizes`, by the input's name and axis ("input_ids:1") or by symbol.
tensor::Tensor make_feed(const session::ValueMetadata& input, const std::map<std::string, std::int64_t>& sizes,
                         std::uint32_t seed);

/// The element (as float) furthest apart, relative to the largest of the reference, and the relative error in the
/// 2-norm.
struct Difference {
  double worst = 0, norm = 0;
};
Difference compare(const tensor::Tensor& result, const tensor::Tensor& reference);

/// The tensor's numbers in another floating type.
tensor::Tensor convert(const tensor::Tensor& from, tensor::DType to);

}  // namespace infernode::bench
