#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kernel/run_context.h"
#include "tensor/buffer.h"

namespace infernode::runtime {

/// Bytes whose pages take about as long to go back to the system as an ended run may take to answer.
inline constexpr std::size_t kSlowBytes = std::size_t{16} << 20;

/// Host memory of one frame for what no plan lays out beforehand, and for scratch: keeps freed blocks by size class for
/// the next request, so loops and repeated runs do not go to the system each time. Blocks may outlive the allocator.
/// Thread-safe.
class FrameAllocator final : public tensor::Allocator {
 public:
  /// Keeps at most `keep_bytes` of freed memory; 0 keeps none. `source` gives host memory.
  explicit FrameAllocator(std::size_t keep_bytes, tensor::Allocator& source = tensor::host_allocator());
  ~FrameAllocator() override;

  tensor::Buffer allocate(std::size_t bytes) override;
  tensor::Device device() const override { return {}; }
  /// Bytes of freed blocks kept.
  std::size_t kept_bytes() const;
  /// Returns all kept blocks to the system.
  void trim();
  /// What exceptions have left: some blocks of kSlowBytes that are not kept, for another thread to free.
  std::vector<tensor::Buffer> take_left();

 private:
  struct Pool;
  std::shared_ptr<Pool> pool_;
  tensor::Allocator& source_;
};

/// Charges a MemoryBudget for what passes through it; each charge ends with its buffer.
class BudgetAllocator final : public tensor::Allocator {
 public:
  /// What a block of few bytes takes with all that is kept about it: a loop may gather millions.
  static constexpr std::size_t kLeastCost = 512;
  BudgetAllocator(tensor::Allocator& inner, std::shared_ptr<kernel::MemoryBudget> budget)
      : inner_(inner), budget_(std::move(budget)) {}
  tensor::Buffer allocate(std::size_t bytes) override;
  tensor::Device device() const override { return inner_.device(); }

 private:
  tensor::Allocator& inner_;
  std::shared_ptr<kernel::MemoryBudget> budget_;
};

}  // namespace infernode::runtime
