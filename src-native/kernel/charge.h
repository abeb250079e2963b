#pragma once

#include <cstddef>

#include "kernel/run_context.h"

namespace infernode::kernel {

/// Counts bytes against a run's memoryLimit; null: it has none. Throws OutOfMemory where the run, or the system, has no
/// more so many.
void take_memory(MemoryBudget* budget, std::size_t bytes);
/// No longer counts them.
void give_memory(MemoryBudget* budget, std::size_t bytes) noexcept;

/// Counts memory that a kernel takes otherwise than from the run's allocator, in containers of the standard library,
/// against the run's memoryLimit, for as long as it lives. Made before the memory is asked for.
class Charge {
 public:
  /// Throws OutOfMemory where the run, or the system, has no more so many bytes.
  Charge(const RunContext& run, std::size_t bytes);
  ~Charge();
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

 private:
  MemoryBudget* budget_;
  std::size_t bytes_;
};

}  // namespace infernode::kernel
