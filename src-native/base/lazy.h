#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

namespace infernode {

/// An object that the thread which first needs it makes, while others wait. Where making it throws, the next to need it
/// tries again: what std::call_once promises, too, but glibc's ends the process instead where a library has a C++
/// runtime of its own, as the addon has.
template <class T>
class Lazy {
 public:
  /// make() gives a std::unique_ptr<const T>.
  template <class Make>
  const T& get(Make&& make) {
    if (const T* const there = made_.load(std::memory_order_acquire)) return *there;
    const std::lock_guard lock(mutex_);
    if (!owner_) {
      owner_ = std::forward<Make>(make)();
      made_.store(owner_.get(), std::memory_order_release);
    }
    return *owner_;
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<const T> owner_;
  std::atomic<const T*> made_{nullptr};
};

}  // namespace infernode
