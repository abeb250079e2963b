#pragma once

#include <cstddef>
#include <type_traits>

#include "base/checked.h"
#include "kernel/run_context.h"

namespace infernode::kernel {

/// Memory of a run for `count` elements, nothing in it yet. It counts against memoryLimit, and nobody waits until it is
/// filled with zeros.
template <class T>
class Scratch {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  Scratch() = default;  ///< of no elements
  /// Throws OutOfMemory where the run, or the system, has no more so many bytes.
  Scratch(const RunContext& run, std::size_t count)
      : memory_(run.allocator->allocate(checked_mul(count, sizeof(T)))), count_(count) {}

  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  T& operator[](std::size_t i) const { return data()[i]; }
  T* begin() const { return data(); }
  T* end() const { return data() + count_; }

 private:
  tensor::Buffer memory_;
  std::size_t count_ = 0;
};

}  // namespace infernode::kernel
