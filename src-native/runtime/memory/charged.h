#pragma once

#include <memory>

#include "kernel/run_context.h"
#include "tensor/value.h"

namespace infernode::runtime {

/// A block and what was charged for it, until it ends.
struct Charged {
  std::shared_ptr<kernel::MemoryBudget> budget;
  std::size_t bytes;
  tensor::Buffer block;
  /// Throws OutOfMemory where the budget has no more.
  Charged(std::shared_ptr<kernel::MemoryBudget> b, std::size_t n);
  Charged(const Charged&) = delete;
  Charged& operator=(const Charged&) = delete;
  ~Charged();
};

/// Charges the budget for text that lies outside of the block of a tensor that nobody else holds, until the tensor
/// ends. Throws Aborted where the run is to end.
void charge_texts(tensor::Value& value, const std::shared_ptr<kernel::MemoryBudget>& budget,
                  const kernel::RunContext& run);

}  // namespace infernode::runtime
