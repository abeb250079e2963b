#include "napi/log_queue.h"

#include <utility>

namespace infernode::napi {

LogSink LogQueue::sink(double key) {
  return [self = shared_from_this(), key](LogSeverity severity, std::string_view category, std::string_view message) {
    self->push({key, severity, std::string(category), std::string(message)});
  };
}

void LogQueue::push(Message message) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  if (messages_.size() >= kMost) {
    ++lost_;
    return;
  }
  messages_.push_back(std::move(message));
  if (messages_.size() == 1) napi_call_threadsafe_function(wake_, nullptr, napi_tsfn_nonblocking);
}

std::vector<LogQueue::Message> LogQueue::take() {
  const std::lock_guard lock(mutex_);
  if (const std::size_t lost = std::exchange(lost_, 0); lost > 0) {
    messages_.push_back({messages_.back().key, LogSeverity::Warning, "log", cat(lost, " messages were lost")});
  }
  return std::exchange(messages_, {});
}

void LogQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  messages_.clear();
}

}  // namespace infernode::napi
