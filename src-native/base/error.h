#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace infernode {

/// Stable codes; `to_string` gives the name that JavaScript sees ("INVALID_MODEL").
enum class ErrorCode {
  InvalidModel,
  UnsupportedOperator,
  InvalidArgument,
  ShapeMismatch,
  ProviderUnavailable,
  Aborted,
  Disposed,
  OutOfMemory,
  Io,
  Internal,
};

const char* to_string(ErrorCode code) noexcept;

/// Fields that apply to some errors; an empty string means "does not apply".
/// `details` lists several causes reported at once (ten unsupported operators: ten entries).
struct ErrorContext {
  std::string input{};
  std::string output{};
  std::string node{};
  std::string op_type{};
  std::string expected{};
  std::string actual{};
  std::string path{};
  std::vector<std::string> details{};
};

/// The only exception the core throws on purpose (std::bad_alloc may also pass through).
/// The message says what was wrong, where, and what would fix it.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message, ErrorContext context = {})
      : code_(code), message_(std::move(message)), context_(std::move(context)) {}

  ErrorCode code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }
  const ErrorContext& context() const noexcept { return context_; }
  /// For callers up the stack that know more: `catch (Error& e) { e.context().node = ...; throw; }`.
  ErrorContext& context() noexcept { return context_; }
  /// Puts text before the message, e.g. the name of the node that was running.
  void prepend(std::string_view text) { message_.insert(0, text); }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
  ErrorContext context_;
};

[[noreturn]] void fail(ErrorCode code, std::string message, ErrorContext context = {});

template <class R>
concept IntegerSequence = std::integral<std::remove_cvref_t<decltype(*std::declval<const R&>().data())>> &&
    std::convertible_to<decltype(std::declval<const R&>().size()), size_t> &&
    !std::convertible_to<const R&, std::string_view>;

/// One argument of `cat`: a view of text, a number, or a span of integers. Lives within one expression.
class CatPart {
 public:
  CatPart(std::string_view text) : kind_(Kind::Text), size_(text.size()) { value_.pointer = text.data(); }
  CatPart(const char* text) : CatPart(text ? std::string_view(text) : std::string_view("(null)")) {}
  CatPart(const std::string& text) : CatPart(std::string_view(text)) {}
  CatPart(bool value) : CatPart(std::string_view(value ? "true" : "false")) {}
  CatPart(char value) : kind_(Kind::Char), size_(1) { value_.character = value; }
  template <std::signed_integral T>
  CatPart(T value) : kind_(Kind::Signed) {
    value_.integer = value;
  }
  template <std::unsigned_integral T>
  CatPart(T value) : kind_(Kind::Unsigned) {
    value_.natural = value;
  }
  CatPart(float value) : kind_(Kind::Float) { value_.real = value; }
  CatPart(double value) : kind_(Kind::Double) { value_.real = value; }
  /// Any contiguous sequence of integers prints as "[1,2,3]".
  template <IntegerSequence R>
  CatPart(const R& range) : kind_(Kind::Integers), size_(range.size()) {
    using T = std::remove_cvref_t<decltype(*range.data())>;
    value_.pointer = range.data();
    element_bytes_ = sizeof(T);
    element_signed_ = std::is_signed_v<T>;
  }

  void append_to(std::string& out) const;

 private:
  enum class Kind : uint8_t { Text, Char, Signed, Unsigned, Float, Double, Integers };
  Kind kind_;
  uint8_t element_bytes_ = 0;
  bool element_signed_ = false;
  union {
    const void* pointer;
    int64_t integer;
    uint64_t natural;
    double real;
    char character;
  } value_;
  size_t size_ = 0;
};

std::string cat_parts(std::initializer_list<CatPart> parts);

/// Builds a string from text, numbers, bools and integer sequences: cat("expected ", shape, " but got ", 3).
template <class... A>
std::string cat(const A&... parts) {
  return cat_parts({CatPart(parts)...});
}

/// Throws Error(code, cat(parts...)) unless cond holds; the message is built only then.
#define INFERNODE_CHECK(cond, code, ...)                      \
  do {                                                        \
    if (!(cond)) [[unlikely]]                                 \
      ::infernode::fail(code, ::infernode::cat(__VA_ARGS__)); \
  } while (false)

}  // namespace infernode
