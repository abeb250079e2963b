#include "base/log.h"

#include <cstdio>
#include <mutex>
#include <utility>

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

namespace {

/// Those of ASCII, and of UTF-8 the second byte of others that terminals obey.
bool is_control(char before, char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f || (before == '\xc2' && byte >= 0x80 && byte < 0xa0);
}

/// Names of a model come from strangers: no byte of theirs may begin a line or steer a terminal.
std::string readable(std::string_view text) {
  std::string out;
  char before = 0;
  for (const char c : text) {
    const bool control = is_control(std::exchange(before, c), c);
    if (c == '\n') {
      out += "\\n";
    } else if (control) {
      constexpr const char* kDigits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

void Logger::log(LogSeverity severity, std::string_view category, std::string_view raw) const {
  if (!enabled(severity)) return;
  const std::lock_guard lock(target_->mutex);
  try {
    const std::string message = readable(raw);
    if (target_->sink) {
      target_->sink(severity, category, message);
      return;
    }
    std::string line = cat("[infernode:", to_string(severity));
    if (!id_.empty()) line += cat(", ", readable(id_));
    if (!category.empty()) line += cat(", ", category);
    line += cat("] ", message, "\n");
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (...) {
    // Losing a message must not end the work it tells of.
  }
}

}  // namespace infernode
