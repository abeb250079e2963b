#pragma once

#include <cstddef>

#include "kernel/watch.h"
#include "microkernels/elementwise/elementwise.h"
#include "microkernels/kernel_set.h"
#include "microkernels/reduce/reduce.h"

namespace infernode::ops {

/// Normalizes float32 rows of any length: one call of a microkernel for each row, or pieces of a long one, with a look
/// between two. `y` may be `x`.
class FloatRows {
 public:
  explicit FloatRows(const microkernels::KernelSet& kernels)
      : reduce_(kernels.reduce), elementwise_(kernels.elementwise) {}

  void softmax(kernel::Watch& watch, const float* x, float* y, std::size_t n) const {
    n <= kMostAtOnce ? reduce_.softmax(x, y, n) : long_softmax(watch, x, y, n);
  }
  void log_softmax(kernel::Watch& watch, const float* x, float* y, std::size_t n) const {
    n <= kMostAtOnce ? reduce_.log_softmax(x, y, n) : long_log_softmax(watch, x, y, n);
  }
  /// x = exp(scale * (x - the greatest x)), scale > 0; returns the sum.
  float exponentials(kernel::Watch& watch, float* x, std::size_t n, float scale) const {
    return n <= kMostAtOnce ? reduce_.exponentials(x, x, n, scale) : long_exponentials(watch, x, n, scale);
  }
  /// As ReduceTable has it: gamma, beta, mean and inv_std may be null.
  void layer_norm(kernel::Watch& watch, const float* x, const float* gamma, const float* beta, float* y, std::size_t n,
                  float epsilon, float* mean, float* inv_std) const {
    n <= kMostAtOnce ? reduce_.layer_norm(x, gamma, beta, y, n, epsilon, mean, inv_std)
                     : long_layer_norm(watch, x, gamma, beta, y, n, epsilon, mean, inv_std);
  }
  void rms_norm(kernel::Watch& watch, const float* x, const float* gamma, float* y, std::size_t n, float epsilon,
                float* inv_rms) const {
    n <= kMostAtOnce ? reduce_.rms_norm(x, gamma, y, n, epsilon, inv_rms)
                     : long_rms_norm(watch, x, gamma, y, n, epsilon, inv_rms);
  }

 private:
  /// Elements of rows that take less than two milliseconds.
  static constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;

  void long_softmax(kernel::Watch& watch, const float* x, float* y, std::size_t n) const;
  float long_exponentials(kernel::Watch& watch, float* x, std::size_t n, float scale) const;
  void long_log_softmax(kernel::Watch& watch, const float* x, float* y, std::size_t n) const;
  void long_layer_norm(kernel::Watch& watch, const float* x, const float* gamma, const float* beta, float* y,
                       std::size_t n, float epsilon, float* mean, float* inv_std) const;
  void long_rms_norm(kernel::Watch& watch, const float* x, const float* gamma, float* y, std::size_t n, float epsilon,
                     float* inv_rms) const;

  float greatest(kernel::Watch& watch, const float* x, std::size_t n) const;
  float reduce(microkernels::ReduceOp op, const float* x, std::size_t n) const {
    return reduce_.row[static_cast<std::size_t>(op)](x, n);
  }
  void binary(microkernels::BinaryOp op, const float* x, const float* y, float* out, std::size_t n) const {
    elementwise_.vector_vector[static_cast<std::size_t>(op)](x, y, out, n);
  }
  void with_scalar(microkernels::BinaryOp op, const float* x, float y, float* out, std::size_t n) const {
    elementwise_.vector_scalar[static_cast<std::size_t>(op)](x, &y, out, n);
  }

  const microkernels::ReduceTable& reduce_;
  const microkernels::ElementwiseTable& elementwise_;
};

}  // namespace infernode::ops
