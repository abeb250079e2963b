#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace infernode::runtime {

/// Collects complete events of the Chrome trace format. Thread-safe. At most kMaxEvents are kept.
class Profiler {
 public:
  using Clock = std::chrono::steady_clock;
  using Argument = std::pair<std::string_view,
                             std::string>;  ///< a value beginning with { or [ is written as JSON, others as strings
  static constexpr std::size_t kMaxEvents = 1'000'000;

  Profiler() : start_(Clock::now()) {}
  void add(std::string_view category, std::string_view name, Clock::time_point begin, Clock::time_point end,
           const std::vector<Argument>& arguments = {});
  /// All events so far as a JSON array, one event per line: keys cat, pid, tid, dur, ts, ph, name, args; microseconds
  /// since construction.
  std::string json() const;
  /// "<prefix>_<YYYY-MM-DD_HH-MM-SS_mmm>.json", local time of now.
  static std::string file_name(std::string_view prefix);

 private:
  const Clock::time_point start_;
  mutable std::mutex mutex_;
  std::vector<std::string> events_;
};

}  // namespace infernode::runtime
