#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace infernode {

/// Owning, move-only `void()` callable, so that a task may hold promises, frames and other unique things.
class Task {
 public:
  Task() noexcept = default;
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Task> && std::is_invocable_v<std::remove_cvref_t<F>&>)
      Task(F&& callable)
      : body_(std::make_unique<Body<std::remove_cvref_t<F>>>(std::forward<F>(callable))) {}

  explicit operator bool() const noexcept { return body_ != nullptr; }
  void operator()() { body_->call(); }

 private:
  struct Callable {
    virtual ~Callable() = default;
    virtual void call() = 0;
  };
  template <class F>
  struct Body final : Callable {
    template <class G>
    explicit Body(G&& callable) : callable(std::forward<G>(callable)) {}
    void call() override { callable(); }
    F callable;
  };
  std::unique_ptr<Callable> body_;
};

}  // namespace infernode
