#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "kernel/run_context.h"
#include "tensor/tensor.h"

namespace infernode::transform {

/// Codes of a whole tensor, or of each index of an axis, as onnxruntime's quantizers choose them: value = (code - zero)
/// * scale, over the range of the elements and 0.
struct TensorFormat {
  tensor::DType type = tensor::DType::Int8;  ///< or UInt8, Int16, UInt16, Int4, UInt4
  bool symmetric = true;                     ///< the range is as long on both sides of 0
  bool reduced = false;                      ///< a bit less: sums of products of pairs of 8 bits then fit 16 bits
  std::optional<std::size_t> axis{};         ///< each index has a range of its own
  float least_length = 0;                    ///< of a range: shorter ones are made longer
};

/// 0 is always within.
struct Range {
  float least = 0, largest = 0;
};

struct Scale {
  float scale = 1;
  int zero = 0;
};

Scale scale_of(Range range, const TensorFormat& format);
/// The scale of unsigned codes whose zero is the least code where the range has no negative numbers, and else that in
/// the middle.
Scale restricted_scale_of(Range range, const TensorFormat& format);

/// Of a tensor of float32, or of each index of an axis. Throws InvalidModel for elements that are no finite numbers;
/// Aborted.
std::vector<Range> ranges_of(const tensor::Tensor& tensor, std::optional<std::size_t> axis,
                             const kernel::RunContext& run);

struct TensorCodes {
  tensor::Tensor codes;
  tensor::Tensor scale, zero;  ///< scalars, or one of each index of the axis
};

/// Of a tensor of float32 by these scales: one, or one of each index of the format's axis. Throws Aborted.
TensorCodes encode(const tensor::Tensor& tensor, const TensorFormat& format, const std::vector<Scale>& scales,
                   const kernel::RunContext& run);

/// Of a tensor of float32 by its own ranges. Throws as ranges_of does.
TensorCodes make_tensor_codes(const tensor::Tensor& tensor, const TensorFormat& format, const kernel::RunContext& run);

/// A scalar of a type of codes, or a vector of them.
tensor::Tensor codes_tensor(tensor::DType type, const tensor::Shape& shape, const std::vector<int>& codes);

}  // namespace infernode::transform
