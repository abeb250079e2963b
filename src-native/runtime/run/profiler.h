#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/profile.h"

namespace infernode::runtime {

/// Collects complete events of the Chrome trace format. Thread-safe. At most kMaxEvents are kept.
class Profiler final : public kernel::ProfileSink {
 public:
  static constexpr std::size_t kMaxEvents = 1'000'000;

  Profiler() : start_(Clock::now()) {}
  void add(std::string_view category, std::string_view name, Clock::time_point begin, Clock::time_point end,
           std::span<const Argument> arguments = {}) override;
  /// All events so far as a JSON array, one event per line: keys cat, pid, tid, dur, ts, ph, name, args; microseconds
  /// since construction.
  std::string json() const;
  /// Events that came after kMaxEvents.
  std::size_t dropped() const;
  /// "<prefix>_<YYYY-MM-DD_HH-MM-SS_mmm>.json", local time of now.
  static std::string file_name(std::string_view prefix);

 private:
  const Clock::time_point start_;
  mutable std::mutex mutex_;
  std::vector<std::string> events_;
  std::size_t dropped_ = 0;
};

}  // namespace infernode::runtime
