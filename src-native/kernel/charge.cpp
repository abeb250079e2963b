#include "kernel/charge.h"

#include "base/system.h"

namespace infernode::kernel {

void take_memory(MemoryBudget* budget, std::size_t bytes) {
  expect_available(bytes);
  if (budget != nullptr) budget->reserve(bytes);
}

void give_memory(MemoryBudget* budget, std::size_t bytes) noexcept {
  if (budget != nullptr) budget->release(bytes);
}

Charge::Charge(const RunContext& run, std::size_t bytes) : budget_(run.budget), bytes_(bytes) {
  take_memory(budget_, bytes_);
}

Charge::~Charge() { give_memory(budget_, bytes_); }

}  // namespace infernode::kernel
