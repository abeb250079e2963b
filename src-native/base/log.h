#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace infernode {

enum class LogSeverity { Verbose = 0, Info, Warning, Error, Fatal };

const char* to_string(LogSeverity severity) noexcept;

/// Receives messages one at a time; must not log to the same logger. What it throws is dropped.
using LogSink = std::function<void(LogSeverity, std::string_view category, std::string_view message)>;

/// A cheap handle: copies share the sink and its lock. Thread-safe.
class Logger {
 public:
  /// Without a sink, messages go to stderr as one line: "[infernode:warning, id, category] message".
  explicit Logger(LogSeverity threshold = LogSeverity::Warning, std::string id = {}, LogSink sink = {});

  /// Same sink, other threshold and id (a session's logger under its environment's).
  Logger with(LogSeverity threshold, std::string id) const;

  bool enabled(LogSeverity severity) const noexcept { return severity >= threshold_; }
  LogSeverity threshold() const noexcept { return threshold_; }
  const std::string& id() const noexcept { return id_; }

  void log(LogSeverity severity, std::string_view category, std::string_view message) const;

  /// Builds the text only when it is wanted: logger.write(LogSeverity::Info, "planner", "arena of ", bytes, " bytes").
  template <class... A>
  void write(LogSeverity severity, std::string_view category, const A&... parts) const {
    if (enabled(severity)) log(severity, category, cat(parts...));
  }

 private:
  struct Target;
  Logger(LogSeverity threshold, std::string id, std::shared_ptr<Target> target);

  LogSeverity threshold_;
  std::string id_;
  std::shared_ptr<Target> target_;
};

}  // namespace infernode
