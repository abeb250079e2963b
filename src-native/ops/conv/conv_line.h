#pragma once
// Convolutions along one axis as a product whose rows are positions: where an input's channels follow each other, what
// the kernel sees at a position is one run of numbers, and such runs overlap as they lie. For loops of products that
// are faster than those of convolutions: of bfloat16 numbers, at medium precision.

#include "ops/conv/window.h"
#include "ops/matmul/product.h"

namespace infernode::ops {

class ConvLine {
 public:
  ConvLine() = default;
  /// Takes the constant weight [out_channels, channels, points], input 1, of a convolution without groups and
  /// dilations; otherwise, or where such products are not faster, the object stays empty.
  ConvLine(kernel::KernelInfo& info, const Window& window, std::int64_t groups);
  explicit operator bool() const { return static_cast<bool>(packed_); }

  void run(kernel::KernelContext& ctx, const ConvProblem& problem, const ConvOperands& operands,
           const microkernels::ActivationArgs& activation) const;

 private:
  CpuRung rung_{};
  const microkernels::GemmTable* table_ = nullptr;
  tensor::Buffer packed_;
};

}  // namespace infernode::ops
