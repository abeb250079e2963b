#pragma once

#include <cstddef>

#include "kernel/watch.h"
#include "microkernels/convert/convert.h"
#include "microkernels/elementwise/elementwise.h"
#include "microkernels/kernel_set.h"
#include "tensor/dtype.h"

namespace infernode::ops {

/// Softmax of float16 or bfloat16 rows held as float32, as the standard defines it by other operators: each step (less
/// the maximum, exp, sum, quotient) rounds to the 16-bit type.
class Softmax16 {
 public:
  Softmax16(const microkernels::KernelSet& kernels, tensor::DType type)
      : type_(type), convert_(kernels.convert), elementwise_(kernels.elementwise) {}
  void operator()(kernel::Watch& watch, float* row, std::size_t n) const;
  /// To the nearest value of the type.
  void round(float* x, std::size_t n) const;

 private:
  float sum(kernel::Watch& watch, const float* x, std::size_t n) const;
  tensor::DType type_;
  const microkernels::ConvertTable& convert_;
  const microkernels::ElementwiseTable& elementwise_;
};

}  // namespace infernode::ops
