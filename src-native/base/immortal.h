#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace infernode {

/// An object whose destructor never runs. What is static is one: process.exit() runs the destructors of static objects
/// while threads of the engine still work.
template <class T>
class Immortal {
 public:
  template <class... Args>
  explicit Immortal(Args&&... args) {
    ::new (static_cast<void*>(storage_)) T(std::forward<Args>(args)...);
  }
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;

  T& operator*() { return *std::launder(reinterpret_cast<T*>(storage_)); }
  const T& operator*() const { return *std::launder(reinterpret_cast<const T*>(storage_)); }

 private:
  alignas(T) std::byte storage_[sizeof(T)];
};

}  // namespace infernode
