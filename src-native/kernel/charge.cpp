#include "kernel/charge.h"

#include "base/system.h"

namespace infernode::kernel {

Charge::Charge(const RunContext& run, std::size_t bytes) : budget_(run.budget), bytes_(bytes) {
  expect_available(bytes);
  if (budget_ != nullptr) budget_->reserve(bytes);
}

Charge::~Charge() {
  if (budget_ != nullptr) budget_->release(bytes_);
}

}  // namespace infernode::kernel
