#pragma once
// Convolutions of few output positions as a product whose rows are positions: channels then fill the vectors, which
// positions could not.

#include "ops/conv/window.h"
#include "ops/matmul/product.h"

namespace infernode::ops {

class ConvRows {
 public:
  ConvRows() = default;
  /// Takes the constant weight, input 1, of a convolution without groups whose output has few positions; otherwise the
  /// object stays empty.
  ConvRows(kernel::KernelInfo& info, std::int64_t groups);
  explicit operator bool() const { return static_cast<bool>(packed_); }

  void run(kernel::KernelContext& ctx, const ConvProblem& problem, const ConvOperands& operands,
           const microkernels::ActivationArgs& activation) const;

 private:
  CpuRung rung_{};
  const microkernels::GemmTable* table_ = nullptr;
  PackedMatrix packed_;
};

}  // namespace infernode::ops
