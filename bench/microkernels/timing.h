#pragma once

// How the programs of this folder take times, and what they take them on.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>
#if !defined(_WIN32)
#include <time.h>
#endif

namespace infernode::bench {

// Processor time of this thread, so that other processes disturb less.
inline double thread_seconds() {
#if defined(_WIN32)
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
#else
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
#endif
}

// Best of at least three runs, and of at most `most` that together last about `enough` seconds.
template <typename Fn>
double best_seconds(Fn fn, double enough = 0.2, int most = 1000) {
  double best = 1e9, total = 0;
  for (int i = 0; i < most && (total < enough || i < 3); ++i) {
    const double start = thread_seconds();
    fn();
    const double seconds = thread_seconds() - start;
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

class Buffer {
 public:
  explicit Buffer(std::size_t floats) : storage_(floats + 16) {
    for (std::size_t i = 0; i < storage_.size(); ++i) storage_[i] = static_cast<float>(i % 31) * 0.03f - 0.4f;
    const auto at = reinterpret_cast<std::uintptr_t>(storage_.data());
    data_ = storage_.data() + (64 - at % 64) % 64 / sizeof(float);
  }
  float* data() const { return data_; }

 private:
  std::vector<float> storage_;
  float* data_;
};

}  // namespace infernode::bench
