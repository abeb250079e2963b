#include "graph/text_scanner.h"

#include <charconv>
#include <cstdlib>
#include <type_traits>

#include "base/error.h"

namespace infernode::graph {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

template <class T>
std::from_chars_result read_number(std::string_view text, T& value) {
  const char* const end = text.data() + text.size();
#if !defined(__cpp_lib_to_chars)  // a C++ library that reads integers only
  if constexpr (std::is_floating_point_v<T>) {
    const std::string copy(text);
    char* stop = nullptr;
    value = static_cast<T>(std::strtod(copy.c_str(), &stop));
    return {text.data() + (stop - copy.c_str()), copy.empty() ? std::errc::invalid_argument : std::errc()};
  } else
#endif
    return std::from_chars(text.data(), end, value);
}

}  // namespace

void Scanner::fail(std::string_view what) const {
  size_t line = 1, column = 1;
  for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
    if (text_[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  infernode::fail(ErrorCode::InvalidModel, cat("model text, line ", line, ", column ", column, ": ", what));
}

char Scanner::peek() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#')
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    else if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
      ++at_;
    else
      return c;
  }
  return '\0';
}

std::string Scanner::found() {
  if (peek() == '\0') return " but the text ends";
  return cat(" but found '", text_.substr(at_, 12), "'");
}

void Scanner::expect(char c) {
  if (!accept(c)) fail(cat("expected '", c, "'", found()));
}

void Scanner::expect_arrow() {
  if (peek() != '=' || !text_.substr(at_).starts_with("=>")) fail(cat("expected '=>'", found()));
  at_ += 2;
}

bool Scanner::at_identifier() { return is_letter(peek()); }

std::string_view Scanner::identifier(const char* what) {
  if (!at_identifier()) fail(cat("expected ", what, found()));
  const size_t begin = at_;
  while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
  return text_.substr(begin, at_ - begin);
}

std::string_view Scanner::peek_identifier() {
  const size_t begin = at_;
  const std::string_view name = at_identifier() ? identifier() : std::string_view();
  at_ = begin;
  return name;
}

std::string Scanner::string() {
  expect('"');
  std::string out;
  for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
    char c = text_[at_];
    if (c == '\\') {
      if (++at_ == text_.size()) break;
      c = text_[at_];
      if (c == 'n') c = '\n';
      if (c == 't') c = '\t';
    }
    out += c;
  }
  if (at_ >= text_.size()) fail("a string is not closed");
  ++at_;
  return out;
}

bool Scanner::at_number() {
  const char c = peek();
  if (is_digit(c) || c == '-' || c == '+' || c == '.') return true;
  const std::string_view word = peek_identifier();
  return word == "inf" || word == "infinity" || word == "nan" || word == "true" || word == "false";
}

std::string_view Scanner::number() {
  peek();
  const size_t begin = at_;
  if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const bool sign = (c == '-' || c == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
    if (!is_digit(c) && !is_letter(c) && c != '.' && !sign) break;
    ++at_;
  }
  if (begin == at_) fail(cat("expected a number", found()));
  std::string_view out = text_.substr(begin, at_ - begin);
  if (out.front() == '+') out.remove_prefix(1);
  return out;
}

template <class T>
T Scanner::parse_number(std::string_view text) {
  if (text == "true") text = "1";
  if (text == "false") text = "0";
  T value{};
  const auto [end, error] = read_number(text, value);
  if (error == std::errc::result_out_of_range) fail(cat("the number ", text, " is out of range"));
  if (error != std::errc() || end != text.data() + text.size()) fail(cat("'", text, "' is not a number of this type"));
  return value;
}

template float Scanner::parse_number(std::string_view);
template double Scanner::parse_number(std::string_view);
template std::int8_t Scanner::parse_number(std::string_view);
template std::int16_t Scanner::parse_number(std::string_view);
template std::int32_t Scanner::parse_number(std::string_view);
template std::int64_t Scanner::parse_number(std::string_view);
template std::uint8_t Scanner::parse_number(std::string_view);
template std::uint16_t Scanner::parse_number(std::string_view);
template std::uint32_t Scanner::parse_number(std::string_view);
template std::uint64_t Scanner::parse_number(std::string_view);

}  // namespace infernode::graph
