#pragma once

#include <vector>

#include "kernel/run_context.h"
#include "tensor/tensor.h"

namespace infernode::transform {

/// 8-bit codes of a whole tensor, or of each index of its last axis, as onnxruntime's quantizers choose them: value =
/// (code - zero) * scale, over the range of the elements and 0.
struct TensorFormat {
  tensor::DType type = tensor::DType::Int8;  ///< or UInt8
  bool symmetric = true;                     ///< the range is as long on both sides of 0
  bool reduced = false;                      ///< 7 bits: sums of products of pairs then fit 16 bits
  bool per_channel = false;
};

struct TensorCodes {
  tensor::Tensor codes;
  tensor::Tensor scale, zero;  ///< scalars, or one of each channel
};

/// Of a tensor of float32. Throws InvalidModel for elements that are no finite numbers; Aborted.
TensorCodes make_tensor_codes(const tensor::Tensor& tensor, const TensorFormat& format, const kernel::RunContext& run);

}  // namespace infernode::transform
