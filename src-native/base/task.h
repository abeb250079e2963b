#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace infernode {

/// Owning, move-only `void()` callable, so that a task may hold promises, frames and other unique things.
class Task {
 public:
  Task() noexcept = default;
  template <class F, class = std::enable_if_t<!std::is_same_v<F, Task> && std::is_invocable_v<F&>>>
  Task(F callable) : body_(std::make_unique<Body<F>>(std::move(callable))) {}

  explicit operator bool() const noexcept { return body_ != nullptr; }
  void operator()() { body_->call(); }

 private:
  struct Callable {
    virtual ~Callable() = default;
    virtual void call() = 0;
  };
  template <class F>
  struct Body final : Callable {
    explicit Body(F given) : callable(std::move(given)) {}
    void call() override { callable(); }
    F callable;
  };
  std::unique_ptr<Callable> body_;
};

}  // namespace infernode
