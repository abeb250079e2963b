#pragma once

#include <atomic>
#include <memory>

#include "tensor/buffer.h"

namespace infernode::runtime {

/// Bytes that a step takes. Measured by runs that have a profile: the most that one of them saw.
struct StepMemory {
  std::size_t estimated = 0;  ///< its outputs, by the shapes that were asked for last; 0 where they are not known
  std::size_t outputs = 0;
  std::size_t scratch = 0;  ///< at once, beside its outputs; nodes with bodies: what those took
  bool measured = false;
};

/// Makes `most` no less than `bytes`.
inline void keep_most(std::atomic<std::size_t>& most, std::size_t bytes) {
  std::size_t seen = most.load(std::memory_order_relaxed);
  while (seen < bytes && !most.compare_exchange_weak(seen, bytes, std::memory_order_relaxed)) {
  }
}

/// What runs measured of one step. Runs may write it at the same time.
class MeasuredMemory {
 public:
  void add(std::size_t outputs, std::size_t scratch) {
    keep_most(outputs_, outputs);
    keep_most(scratch_, scratch);
    measured_.store(true, std::memory_order_release);
  }
  void read(StepMemory& memory) const {
    memory.measured = measured_.load(std::memory_order_acquire);
    memory.outputs = outputs_.load(std::memory_order_relaxed);
    memory.scratch = scratch_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::size_t> outputs_ = 0, scratch_ = 0;
  std::atomic<bool> measured_ = false;
};

/// Passes requests on and keeps count of what its blocks hold. They may outlive it. Thread-safe where `inner` is.
class CountingAllocator final : public tensor::Allocator {
 public:
  explicit CountingAllocator(tensor::Allocator& inner) : inner_(inner), count_(std::make_shared<Count>()) {}
  tensor::Buffer allocate(std::size_t bytes) override {
    auto block = std::make_shared<Block>(count_, inner_.allocate(bytes));
    std::byte* const data = block->buffer.data();
    return {data, bytes, std::move(block)};
  }
  tensor::Device device() const override { return inner_.device(); }
  std::size_t most() const { return count_->most.load(std::memory_order_relaxed); }

 private:
  struct Count {
    std::atomic<std::size_t> held = 0, most = 0;
  };
  struct Block {
    Block(std::shared_ptr<Count> c, tensor::Buffer b) : count(std::move(c)), buffer(std::move(b)) {
      keep_most(count->most, count->held.fetch_add(buffer.size(), std::memory_order_relaxed) + buffer.size());
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block() { count->held.fetch_sub(buffer.size(), std::memory_order_relaxed); }
    std::shared_ptr<Count> count;
    tensor::Buffer buffer;
  };

  tensor::Allocator& inner_;
  std::shared_ptr<Count> count_;
};

}  // namespace infernode::runtime
