#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/os_thread.h"
#include "base/thread_pool.h"
#include "base/thread_pool/fault.h"

namespace infernode {

/// The compute half of ThreadPool: workers that sleep until a loop is open and then help with it.
///
/// An open loop is a record in a fixed array; records are never freed, so a worker may look at one at any time. A
/// worker enters a loop by taking one of its seats in `gate`; while somebody is inside, the caller does not return and
/// the record keeps its meaning. Callers wait only for threads inside their own loop, and those wait only for loops
/// opened later, deeper in their own calls: no cycle, so no deadlock however loops nest.
class LoopTeam {
 public:
  LoopTeam(size_t workers, uint32_t spin_us, const ThreadHooks& hooks);
  ~LoopTeam();
  LoopTeam(const LoopTeam&) = delete;
  LoopTeam& operator=(const LoopTeam&) = delete;

  size_t workers() const noexcept { return threads_.size(); }
  /// Whether workers are awake and look for work at the moment.
  bool has_searchers() const noexcept { return searching_.load(std::memory_order_relaxed) != 0; }

  /// As ThreadPool::parallel_for, with the number of participants (at least 2) and the smallest block decided.
  void run(size_t count, size_t block, size_t participants, size_t dynamic_block_base, ThreadPool::LoopBody fn);

 private:
  static constexpr size_t kLoops = 64;

  struct alignas(64) Loop {
    /// Bits 0-14: threads inside besides the caller. Bits 15-29: free seats. Bit 31: the caller sleeps on this word.
    std::atomic<uint32_t> gate{0};
    // Written by the caller before it opens the gate.
    size_t count = 0;
    size_t block = 1;
    size_t participants = 1;
    size_t dynamic_block_base = 0;
    uint64_t float_mode = 0;
    const ThreadPool::LoopBody* fn = nullptr;
    /// Written by the thread that sets `failed`, read by the caller after all have left.
    Fault error;
    std::atomic<bool> failed{false};
    alignas(64) std::atomic<size_t> next{0};
  };

  struct Worker {
    LoopTeam* team;
    size_t index;
  };

  static void worker_entry(void* worker);
  void work(size_t index);
  bool help_somewhere(size_t& last_loop);
  bool enter(Loop& loop, size_t& slot);
  void leave(Loop& loop);
  void compute(Loop& loop, size_t slot);
  bool take_block(Loop& loop, size_t& begin, size_t& end);
  void stop_entry(Loop& loop);
  void wait_until_left(Loop& loop);
  size_t reserve_loop();
  void wake(size_t wanted);

  uint64_t bit_of(const Loop& loop) const noexcept { return uint64_t{1} << (&loop - loops_.get()); }

  const std::chrono::microseconds spin_;
  std::unique_ptr<Loop[]> loops_;
  std::vector<OsThread> threads_;
  std::unique_ptr<Worker[]> workers_;
  /// Records that a caller holds, and records with free seats.
  alignas(64) std::atomic<uint64_t> reserved_{0};
  alignas(64) std::atomic<uint64_t> open_{0};
  /// Workers that look for work, and workers that sleep on wake_word_.
  alignas(64) std::atomic<uint32_t> searching_{0};
  std::atomic<uint32_t> sleeping_{0};
  std::atomic<uint32_t> wake_word_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace infernode
