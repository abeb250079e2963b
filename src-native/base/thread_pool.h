#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/function_ref.h"
#include "base/os_thread.h"
#include "base/task.h"

namespace infernode {

struct ThreadPoolOptions {
  /// How long a worker looks for more work right after it had some before it sleeps; at most 200.
  uint32_t spin_us = 200;
  /// Most threads that run submitted tasks at the same time; further tasks queue.
  size_t max_runners = 64;
  /// How long a runner thread without a task lives.
  uint32_t runner_idle_ms = 5000;
  ThreadHooks hooks{};
};

/// The Engine's threads: compute workers that share loops, and runner threads, apart from them, that execute submitted
/// tasks (session runs), so that waiting runs never starve loops. All members may be called from any thread, except
/// that the destructor must not overlap a parallel_for or a submit.
class ThreadPool {
 public:
  /// fn(begin, end, slot) computes items [begin, end).
  using LoopBody = FunctionRef<void(size_t begin, size_t end, size_t slot)>;

  /// `threads` counts the caller of parallel_for, so threads - 1 workers are started (fewer where the system refuses).
  explicit ThreadPool(size_t threads, ThreadPoolOptions options = {});
  /// Finishes the tasks submitted, then ends and joins all threads.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Most threads, the caller included, that can take part in one loop; at least 1.
  size_t size() const noexcept;

  /// Calls fn over disjoint blocks that cover [0, count); returns when all are done. The caller takes part; a loop
  /// whose cost does not repay a hand-over runs inline as one call. `cost_per_item_ns`: estimated time of one item on
  /// one core. At most min(max_threads, size()) threads take part, and `slot` is below that number and unique among the
  /// threads inside this loop at a time (an index for scratch memory; slot 0 is the caller's). Workers compute in the
  /// caller's floating-point mode. If fn throws, blocks not yet begun are skipped and the first exception is rethrown
  /// here. May be called from inside a loop body. Which thread gets which block varies: results must not depend on it.
  /// dynamic_block_base > 0: blocks shrink as the loop proceeds, each 1/(threads * base) of what remains.
  void parallel_for(size_t count, double cost_per_item_ns, size_t max_threads, LoopBody fn,
                    size_t dynamic_block_base = 0);

  /// Runs `task` soon on a runner thread. The task must not throw (what escapes it is dropped). Throws
  /// Error(OutOfMemory) if no thread can be started to run it; the task is then not run.
  void submit(Task task);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace infernode
