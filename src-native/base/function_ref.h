#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace infernode {

/// Non-owning reference to a callable: two pointers, never allocates. The callable must outlive every call,
/// so use it for parameters, not for members. A null FunctionRef must not be called.
template <class Signature>
class FunctionRef;

template <class R, class... A>
class FunctionRef<R(A...)> {
 public:
  FunctionRef() noexcept = default;
  FunctionRef(std::nullptr_t) noexcept {}

  template <class F, class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
                                              std::is_invocable_r_v<R, F&, A...>>>
  FunctionRef(F&& callable) noexcept {
    using Callable = std::remove_reference_t<F>;
    if constexpr (std::is_function_v<Callable>) {
      object_.function = reinterpret_cast<void (*)()>(&callable);
      call_ = [](Object object, A... args) -> R {
        return reinterpret_cast<Callable*>(object.function)(std::forward<A>(args)...);
      };
    } else {
      object_.pointer = const_cast<void*>(static_cast<const void*>(std::addressof(callable)));
      call_ = [](Object object, A... args) -> R {
        return (*static_cast<Callable*>(object.pointer))(std::forward<A>(args)...);
      };
    }
  }

  R operator()(A... args) const { return call_(object_, std::forward<A>(args)...); }
  explicit operator bool() const noexcept { return call_ != nullptr; }

 private:
  union Object {
    void* pointer;
    void (*function)();
  };
  Object object_{};
  R (*call_)(Object, A...) = nullptr;
};

}  // namespace infernode
