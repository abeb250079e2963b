#include "runtime/run/profiler.h"

#include <ctime>

#include "base/error.h"
#include "base/text/json.h"

#ifdef _WIN32
#include <process.h>
#else
#include <unistd.h>
#endif

namespace infernode::runtime {

namespace {

long process_id() {
#ifdef _WIN32
  return _getpid();
#else
  return getpid();
#endif
}

std::string pad(long value, std::size_t width) {
  std::string text = std::to_string(value);
  return std::string(width > text.size() ? width - text.size() : 0, '0') + text;
}

}  // namespace

void Profiler::add(std::string_view category, std::string_view name, Clock::time_point begin, Clock::time_point end,
                   std::span<const Argument> arguments) {
  const auto us = [](Clock::duration d) { return std::chrono::duration_cast<std::chrono::microseconds>(d).count(); };
  std::string event = cat("{\"cat\":", json_string(category), ",\"pid\":", process_id(),
                          ",\"tid\":", kernel::thread_id(), ",\"dur\":", us(end - begin),
                          ",\"ts\":", us(begin - start_), ",\"ph\":\"X\",\"name\":", json_string(name), ",\"args\":{");
  bool first = true;
  for (const auto& [key, value] : arguments) {
    const bool raw = !value.empty() && (value[0] == '{' || value[0] == '[');
    event += cat(first ? "" : ",", json_string(key), ":", raw ? value : json_string(value));
    first = false;
  }
  event += "}}";
  const std::lock_guard lock(mutex_);
  if (events_.size() < kMaxEvents) {
    events_.push_back(std::move(event));
  } else {
    ++dropped_;
  }
}

std::string Profiler::json() const {
  const std::lock_guard lock(mutex_);
  std::string text = "[\n";
  for (std::size_t i = 0; i < events_.size(); ++i) {
    text += events_[i];
    text += i + 1 < events_.size() ? ",\n" : "\n";
  }
  return text + "]\n";
}

std::size_t Profiler::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

std::string Profiler::file_name(std::string_view prefix) {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm local{};
#ifdef _WIN32
  localtime_s(&local, &seconds);
#else
  localtime_r(&seconds, &local);
#endif
  return cat(prefix, "_", local.tm_year + 1900, "-", pad(local.tm_mon + 1, 2), "-", pad(local.tm_mday, 2), "_",
             pad(local.tm_hour, 2), "-", pad(local.tm_min, 2), "-", pad(local.tm_sec, 2), "_",
             pad(static_cast<long>(ms), 3), ".json");
}

}  // namespace infernode::runtime
