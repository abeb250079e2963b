#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace infernode::kernel {

/// The system's number of the calling thread.
std::uint64_t thread_id();
/// The processor that the calling thread is on; -1 where the system does not say.
int current_core();

/// Receives the events of a run's trace. Thread-safe.
class ProfileSink {
 public:
  using Clock = std::chrono::steady_clock;
  /// A value beginning with { or [ is JSON, any other a string.
  using Argument = std::pair<std::string_view, std::string>;

  virtual ~ProfileSink() = default;
  virtual void add(std::string_view category, std::string_view name, Clock::time_point begin, Clock::time_point end,
                   std::span<const Argument> arguments = {}) = 0;
};

/// How the loops of one node were shared among threads. A loop within a loop counts as part of the outer one.
/// Thread-safe.
class LoopProfile {
 public:
  LoopProfile();

  /// Times one loop, begun on the node's own thread.
  class Loop {
   public:
    explicit Loop(LoopProfile& profile);
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

   private:
    friend class LoopProfile;
    LoopProfile& profile_;
    const bool outermost_;
    const ProfileSink::Clock::time_point begin_;
  };
  /// Times one block of a loop, on the thread that computes it.
  class Block {
   public:
    Block(const Loop& loop, std::size_t items);
    ~Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

   private:
    const Loop& loop_;
    const std::size_t items_;
    const ProfileSink::Clock::time_point begin_;
  };

  /// Somebody looked whether the run is to end.
  void looked() { looks_.fetch_add(1, std::memory_order_relaxed); }
  std::size_t looks() const { return looks_.load(std::memory_order_relaxed); }

  /// The JSON object that onnxruntime's traces call thread_scheduling_stats; times in microseconds.
  std::string json() const;

 private:
  struct Helper {
    std::uint64_t thread;
    std::size_t blocks;
    int core;
  };

  const std::uint64_t main_thread_;
  std::atomic<bool> in_loop_ = false;
  std::atomic<std::size_t> looks_ = 0;
  mutable std::mutex mutex_;
  ProfileSink::Clock::duration distribution_{}, run_{}, total_{};
  bool main_took_part_ = false;           ///< in the loop under way
  std::vector<std::size_t> block_sizes_;  ///< of the main thread, each once, at most kMostSizes
  std::vector<Helper> helpers_;           ///< at most kMostHelpers
  // Room for so many is made beforehand: a block is noted while an exception may be on its way.
  static constexpr std::size_t kMostSizes = 16;
  static constexpr std::size_t kMostHelpers = 128;
};

}  // namespace infernode::kernel
