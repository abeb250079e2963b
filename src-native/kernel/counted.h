#pragma once

#include <memory>
#include <vector>

#include "base/checked.h"
#include "base/system.h"
#include "kernel/charge.h"

namespace infernode::kernel {

/// Memory of containers whose size nobody knows beforehand: it counts against the run's memoryLimit while it is held.
/// Those of one run may be moved into each other. The run outlives them.
template <class T>
class CountedAllocator {
 public:
  using value_type = T;
  CountedAllocator(const RunContext& run)
      : budget_(run.budget) {}  // NOLINT(google-explicit-constructor): as a container's
  template <class U>
  CountedAllocator(const CountedAllocator<U>& other)
      : budget_(other.budget()) {}  // NOLINT(google-explicit-constructor)

  /// Throws OutOfMemory where the run, or the system, has no more so many bytes.
  T* allocate(std::size_t count) {
    const std::size_t bytes = checked_mul(count, sizeof(T));
    take_memory(budget_, bytes);
    try {
      T* const memory = std::allocator<T>().allocate(count);
      if (bytes >= 2 * kHugePage) prefer_huge_pages(memory, bytes);  // an abort waits for their return
      return memory;
    } catch (...) {
      give_memory(budget_, bytes);
      throw;
    }
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    std::allocator<T>().deallocate(memory, count);
    give_memory(budget_, count * sizeof(T));
  }
  MemoryBudget* budget() const { return budget_; }
  bool operator==(const CountedAllocator& other) const { return budget_ == other.budget_; }

 private:
  MemoryBudget* budget_;
};

/// `CountedVector<T> list(ctx.run());`
template <class T>
using CountedVector = std::vector<T, CountedAllocator<T>>;

}  // namespace infernode::kernel
