#pragma once

#include <napi.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/log.h"

namespace infernode::napi {

/// Messages of sessions on their way to JavaScript. Thread-safe; sinks may outlive the environment.
class LogQueue : public std::enable_shared_from_this<LogQueue> {
 public:
  struct Message {
    double key;  ///< of the function that hears it; below 0: of the job with that number
    LogSeverity severity;
    std::string category, text;
  };

  /// `wake` has the JavaScript thread take messages; good until close().
  explicit LogQueue(napi_threadsafe_function wake) : wake_(wake) {}

  /// What a session logs to.
  LogSink sink(double key);
  void push(Message message);
  std::vector<Message> take();
  /// Later messages are lost.
  void close();

 private:
  static constexpr std::size_t kMost = 10'000;  ///< that wait; others are lost, and counted in the last
  const napi_threadsafe_function wake_;
  std::mutex mutex_;  ///< guards what follows
  std::vector<Message> messages_;
  std::size_t lost_ = 0;
  bool closed_ = false;
};

}  // namespace infernode::napi
