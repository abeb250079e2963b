#pragma once
// What one thread caught and another is to throw.

#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "base/error.h"

namespace infernode {

/// An Error is taken out of its exception, and std::bad_alloc is a mark. A std::exception_ptr would keep the exception
/// itself, which where memory has run out lies in a small reserve of the C++ runtime, and would need more of it to
/// throw it again.
class Fault {
 public:
  /// In a handler: takes what was caught, unless there is a fault already.
  void note() noexcept {
    if (*this) return;
    try {
      throw;
    } catch (const std::bad_alloc&) {
      out_of_memory_ = true;
    } catch (Error& error) {
      error_.emplace(std::move(error));
    } catch (...) {
      other_ = std::current_exception();
    }
  }

  explicit operator bool() const noexcept { return out_of_memory_ || error_ || other_; }
  bool is_out_of_memory() const noexcept { return out_of_memory_; }
  /// Null where it is none.
  const Error* error() const noexcept { return error_ ? &*error_ : nullptr; }

  [[noreturn]] void rethrow() && {
    if (out_of_memory_) throw std::bad_alloc();
    if (error_) throw Error(std::move(*error_));
    std::rethrow_exception(std::move(other_));
  }

 private:
  bool out_of_memory_ = false;
  std::optional<Error> error_;
  std::exception_ptr other_;
};

}  // namespace infernode
