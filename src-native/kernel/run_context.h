#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/function_ref.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "tensor/buffer.h"

namespace infernode::kernel {

class LoopProfile;
class ProfileSink;

/// Set from any thread to end a run at its next check.
class CancelToken {
 public:
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_{false};
};

/// Bytes that a run (or a load) may hold at once; reserve() is called before memory is asked of the system.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t limit = SIZE_MAX) : limit_(limit) {}
  /// Throws OutOfMemory with what was asked for, what is in use and the limit.
  void reserve(std::size_t bytes);
  void release(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  std::size_t limit() const { return limit_; }

 private:
  std::size_t limit_;
  std::atomic<std::size_t> used_{0};
};

/// What every kernel and every loop that can run long sees of the run it belongs to. Owned by the caller of the run;
/// outlives it.
struct RunContext {
  ThreadPool* pool = nullptr;  ///< null: everything on the calling thread
  std::size_t max_threads = 1;
  std::size_t dynamic_block_base = 0;
  const CancelToken* cancel = nullptr;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  MemoryBudget* budget = nullptr;
  const Logger* logger = nullptr;
  ProfileSink* profile = nullptr;          ///< where the nodes' times go; null: nobody wants them
  LoopProfile* loops = nullptr;            ///< of the node that is running, where there is a profile
  tensor::Allocator* allocator = nullptr;  ///< host memory for outputs and scratch; never null in a run
  double expected_us = -1;                 ///< what the run takes by earlier ones of these shapes; negative: unknown
  bool brief = false;                      ///< ends as Aborted before it enters what may take long
  int depth = 0;                           ///< nesting of control flow, bounded

  /// Throws Aborted where the run was cancelled or is past its deadline. Cheap: call it per node and per loop
  /// iteration.
  void check() const;
  /// Splits [0, count) over the pool. `cost_ns`: rough time of one item; fn(begin, end, slot), slot < max_threads names
  /// scratch memory.
  void parallel_for(std::size_t count, double cost_ns,
                    FunctionRef<void(std::size_t, std::size_t, std::size_t)> fn) const;
};

}  // namespace infernode::kernel
