#pragma once
// Weights in the forms that loops read.

#include <string_view>

#include "kernel/kernel.h"
#include "microkernels/common/packed.h"

namespace infernode::ops {

/// A weight as one packing made it: `count` operands of one form and shape, as of groups or directions.
class PackedWeight {
 public:
  PackedWeight() = default;
  /// Operands like `one`, whatever its data is, of a weight that is known in a run only: fill(i, begin, end, to) packs
  /// columns [begin, end) of operand i into their place from `to` on. `at_once`: the columns that a call packs at
  /// least; all begin at a multiple of it. Calls run in parallel, in memory of the run, and end with it.
  PackedWeight(const kernel::RunContext& run, const microkernels::PackedOperand& one, std::size_t count,
               std::size_t at_once,
               FunctionRef<void(std::size_t i, std::size_t begin, std::size_t end, std::byte* to)> fill);
  /// Those of constant `input` of the node that is being built, packed once for all who pack it so, or found in a file:
  /// fill(weight, i, to) packs operand i. `what` names how operands are taken from the
  /// weight.
  PackedWeight(kernel::KernelInfo& info, std::size_t input, std::string_view what,
               const microkernels::PackedOperand& one, std::size_t count,
               FunctionRef<void(const tensor::Tensor& weight, std::size_t i, std::byte* to)> fill);

  explicit operator bool() const { return static_cast<bool>(memory_); }
  /// Whether the packing of that name made it.
  bool made_by(std::string_view packing) const;
  /// Operand i for loops that read what that packing makes; throws Internal where another made it.
  microkernels::PackedOperand read(std::string_view packing, std::size_t i = 0) const;

 private:
  microkernels::PackedOperand one_;
  std::size_t count_ = 0;
  tensor::Buffer memory_;
};

/// Throws Internal where another packing than the one of that name made it.
void check_packing(const microkernels::PackedOperand& packed, std::string_view packing);

}  // namespace infernode::ops
