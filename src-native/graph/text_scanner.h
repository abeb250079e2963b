#pragma once
// Characters and tokens of ONNX's textual syntax.

#include <cstdint>
#include <string>
#include <string_view>

namespace infernode::graph {

/// Reads a text from its beginning to its end; blanks and comments between tokens are skipped. What is not as expected
/// ends in InvalidModel with line and column.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(std::string_view what) const;

  /// Next character after blanks and comments; '\0' at the end.
  char peek();
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c);
  void expect_arrow();

  bool at_identifier();
  /// Letters, digits, '_' and '.', beginning with a letter or '_'.
  std::string_view identifier(const char* what = "a name");
  std::string_view peek_identifier();
  /// An identifier, or any text in quotes.
  std::string name(const char* what = "a name") { return peek() == '"' ? string() : std::string(identifier(what)); }
  /// A text in quotes.
  std::string string();

  bool at_number();
  /// Text of a number: digits, or inf and nan, with a sign.
  std::string_view number();
  /// The value of such a text; T is one of the arithmetic types that tensors and attributes hold.
  template <class T>
  T parse_number(std::string_view text);
  std::int64_t integer() { return parse_number<std::int64_t>(number()); }

  std::size_t position() const { return at_; }
  void rewind(std::size_t position) { at_ = position; }

 private:
  std::string found();

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace infernode::graph
