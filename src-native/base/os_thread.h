#pragma once

#include <cstddef>
#include <functional>

namespace infernode {

/// A user's own way of making threads. `create` starts a thread that calls entry(argument) once and returns a handle
/// that is not null; `join` waits for that thread to end and frees the handle. Both set or both empty.
struct ThreadHooks {
  std::function<void*(void (*entry)(void*), void* argument)> create;
  std::function<void(void* handle)> join;
};

/// One thread of the operating system, or of the user's hooks. Must be joined before it is destroyed.
/// Threads of our own have a stack of kStackBytes on every system and receive no signals.
class OsThread {
 public:
  static constexpr size_t kStackBytes = size_t{4} << 20;

  OsThread() noexcept = default;
  OsThread(OsThread&& other) noexcept;
  OsThread& operator=(OsThread&& other) noexcept;
  ~OsThread() = default;

  /// Runs entry(argument) on a new thread; false when the system or the hook cannot start one. `hooks`, where there are
  /// any, must live until join.
  bool start(void (*entry)(void*), void* argument, const ThreadHooks* hooks = nullptr);
  bool started() const noexcept { return handle_ != nullptr; }
  void join();

 private:
  void* handle_ = nullptr;
  const ThreadHooks* hooks_ = nullptr;
};

}  // namespace infernode
