#include "ops/op_test.h"

namespace infernode::test {
namespace {

Tensor texts() { return str({4}, {"good day  sun", "x", "", "a-b c"}); }

std::string tokenizer(const std::string& attributes, const char* type = "string[N]") {
  return cat("(", type, " X) => (Y) { Y = com.microsoft.Tokenizer<pad_value=\"#\", ", attributes, ">(X) }");
}

TEST_CASE("Tokenizer finds what its expression matches") {
  const Tensor words = str({4, 3}, {"good", "day", "sun", "x", "#", "#", "#", "#", "#", "a", "b", "c"});
  check_op(tokenizer("mark=0, mincharnum=1, tokenexp=\"[a-z]+\""), 15, {texts()}, {words});
  check_op(tokenizer("mark=0, mincharnum=2, tokenexp=\"[a-z]+\""), 15, {texts()},
           {str({4, 3}, {"good", "day", "sun", "#", "#", "#", "#", "#", "#", "#", "#", "#"})});
  check_op(tokenizer("mark=1, mincharnum=3, tokenexp=\"\\\\bda[a-z]\""), 15, {str({2}, {"day sunday", "no"})},
           {str({2, 3}, {"\x02", "day", "\x03", "\x02", "\x03", "#"})});
  check_op(tokenizer("mark=0, mincharnum=1, tokenexp=\".\""), 15, {str({1}, {"\xc3\xa4\xc3\xb6"})},
           {str({1, 2}, {"\xc3\xa4", "\xc3\xb6"})});
  check_op(tokenizer("mark=0, mincharnum=1, tokenexp=\"a+b|a\""), 15, {str({1}, {"aaab aa"})},
           {str({1, 3}, {"aaab", "a", "a"})});
}

TEST_CASE("Tokenizer cuts at separators, one after another") {
  check_op(tokenizer("mark=0, mincharnum=1, separators=[\" \"]", "string[1,N]"), 15, {texts().reshaped({1, 4})},
           {str({1, 4, 3}, {"good", "day", "sun", "x", "#", "#", "#", "#", "#", "a-b", "c", "#"})});
  check_op(tokenizer("mark=0, mincharnum=2, separators=[\"a\", \"day\"]"), 15, {texts()},
           {str({4, 2}, {"good d", "y  sun", "#", "#", "#", "#", "-b c", "#"})});
  check_op(tokenizer("mark=0, mincharnum=1, separators=[\"\"]"), 15, {str({2}, {"ab", "c"})},
           {str({2, 2}, {"a", "b", "c", "#"})});
}

TEST_CASE("Tokenizer gives no columns where there are no tokens, and refuses what says nothing") {
  check_op(tokenizer("mark=1, mincharnum=1, tokenexp=\"[a-z]+\""), 15, {str({1}, {""})}, {str({1, 0}, {})});
  check_op(tokenizer("mark=0, mincharnum=1, tokenexp=\"z\""), 15, {str({0}, {})}, {str({0, 0}, {})});
  check_op_fails(tokenizer("mark=0, mincharnum=1"), 15, {texts()}, ErrorCode::InvalidModel, "separators and tokenexp");
  check_op_fails(tokenizer("mark=0, mincharnum=0, tokenexp=\"a\""), 15, {texts()}, ErrorCode::InvalidModel,
                 "mincharnum");
}

}  // namespace
}  // namespace infernode::test
