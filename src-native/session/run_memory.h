#pragma once

#include <memory>
#include <optional>

#include "runtime/memory/frame_allocator.h"
#include "runtime/run/frame_pool.h"

namespace infernode::session {

/// Results: large ones from the frame, to which they return once nobody holds them, so that their pages are not made
/// anew at each run.
class ResultAllocator final : public tensor::Allocator {
 public:
  explicit ResultAllocator(tensor::Allocator& frame) : frame_(frame) {}
  tensor::Buffer allocate(std::size_t bytes) override {
    constexpr std::size_t kLarge = std::size_t{1} << 20;
    return (bytes >= kLarge ? frame_ : tensor::host_allocator()).allocate(bytes);
  }
  tensor::Device device() const override { return {}; }

 private:
  tensor::Allocator& frame_;
};

/// Where a run's memory comes from: the frame and the system, and through the budget where there is a limit.
class RunMemory {
 public:
  RunMemory(runtime::Frame& frame, std::size_t limit) : frame_(frame), results_(frame.allocator) {
    if (limit == SIZE_MAX) return;
    budget_ = std::make_shared<kernel::MemoryBudget>(limit);
    scratch_.emplace(frame.allocator, budget_);
    outputs_.emplace(results_, budget_);
  }
  const std::shared_ptr<kernel::MemoryBudget>& budget() const { return budget_; }  ///< null: no limit
  tensor::Allocator& scratch() { return scratch_ ? static_cast<tensor::Allocator&>(*scratch_) : frame_.allocator; }
  tensor::Allocator& outputs() { return outputs_ ? static_cast<tensor::Allocator&>(*outputs_) : results_; }

 private:
  runtime::Frame& frame_;
  ResultAllocator results_;
  std::shared_ptr<kernel::MemoryBudget> budget_;
  std::optional<runtime::BudgetAllocator> scratch_, outputs_;
};

}  // namespace infernode::session
