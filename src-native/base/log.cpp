#include "base/log.h"

#include <cstdio>
#include <mutex>

namespace infernode {

const char* to_string(LogSeverity severity) noexcept {
  switch (severity) {
    case LogSeverity::Verbose:
      return "verbose";
    case LogSeverity::Info:
      return "info";
    case LogSeverity::Warning:
      return "warning";
    case LogSeverity::Error:
      return "error";
    case LogSeverity::Fatal:
      return "fatal";
  }
  return "unknown";
}

struct Logger::Target {
  std::mutex mutex;
  LogSink sink;
};

Logger::Logger(LogSeverity threshold, std::string id, LogSink sink)
    : Logger(threshold, std::move(id), std::make_shared<Target>()) {
  target_->sink = std::move(sink);
}

Logger::Logger(LogSeverity threshold, std::string id, std::shared_ptr<Target> target)
    : threshold_(threshold), id_(std::move(id)), target_(std::move(target)) {}

Logger Logger::with(LogSeverity threshold, std::string id) const { return Logger(threshold, std::move(id), target_); }

void Logger::log(LogSeverity severity, std::string_view category, std::string_view message) const {
  if (!enabled(severity)) return;
  const std::lock_guard lock(target_->mutex);
  try {
    if (target_->sink) {
      target_->sink(severity, category, message);
      return;
    }
    std::string line = cat("[infernode:", to_string(severity));
    if (!id_.empty()) line += cat(", ", id_);
    if (!category.empty()) line += cat(", ", category);
    line += cat("] ", message, "\n");
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (...) {
    // Losing a message must not end the work it tells of.
  }
}

}  // namespace infernode
