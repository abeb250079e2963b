#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

namespace infernode::runtime {

/// What earlier runs of a plan tell about the next one. Thread-safe; what runs at once write may be lost.
class RunHistory {
 public:
  /// Mean duration in microseconds, in which later runs count more; negative before the first.
  double mean_us() const { return mean_us_.load(std::memory_order_relaxed); }
  /// Whether a run that shall be brief is worth a try: after n that were given up in a row, 2^(n-1) others come first.
  bool worth_a_try() const { return pause_.load(std::memory_order_relaxed) == 0; }

  void ended(double us, bool brief) {
    const double mean = mean_us();
    mean_us_.store(mean < 0 ? us : 0.75 * mean + 0.25 * us, std::memory_order_relaxed);
    const int pause = pause_.load(std::memory_order_relaxed);
    if (brief) {
      given_up_.store(0, std::memory_order_relaxed);
    } else if (pause > 0) {
      pause_.store(pause - 1, std::memory_order_relaxed);
    }
  }
  /// A run whose end may have been noticed late: it took `us` at most.
  void ended_late(double us) { ended(mean_us() < 0 ? us : std::min(us, mean_us()), false); }
  /// Mean of what it took to put a run's work into devices' streams; infinity before the first.
  double steps_us() const { return steps_us_.load(std::memory_order_relaxed); }
  void steps_ended(double us) {
    const double mean = steps_us();
    steps_us_.store(mean < kNever ? 0.75 * mean + 0.25 * us : us, std::memory_order_relaxed);
  }
  void given_up() {
    const int times = std::min(given_up_.load(std::memory_order_relaxed) + 1, kMostTimes);
    given_up_.store(times, std::memory_order_relaxed);
    pause_.store(1 << (times - 1), std::memory_order_relaxed);
  }

 private:
  static constexpr int kMostTimes = 7;
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  std::atomic<double> mean_us_{-1}, steps_us_{kNever};
  std::atomic<int> given_up_{0}, pause_{0};
};

/// Which steps were short, and with what inputs, as a key says. A few keys a step: where two meet in one place, the
/// earlier one is forgotten. Thread-safe.
class ShortSteps {
 public:
  explicit ShortSteps(std::size_t steps) : keys_(steps * kPerStep) {}
  bool holds(std::size_t step, std::uint64_t key) const {
    return keys_[place(step, key)].load(std::memory_order_relaxed) == key;
  }
  void add(std::size_t step, std::uint64_t key) { keys_[place(step, key)].store(key, std::memory_order_relaxed); }
  void remove(std::size_t step, std::uint64_t key) {
    keys_[place(step, key)].compare_exchange_strong(key, 0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kPerStep = 4;
  static std::size_t place(std::size_t step, std::uint64_t key) { return step * kPerStep + key % kPerStep; }
  std::vector<std::atomic<std::uint64_t>> keys_;
};

}  // namespace infernode::runtime
