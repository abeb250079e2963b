#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("StringConcat joins broadcast strings") {
  check_op("(string[A] X, string[B] Y) => (string[C] Z) { Z = StringConcat(X, Y) }", 20,
           {str({2}, {"abc", "né"}), str({2}, {".com", "用"})}, {str({2}, {"abc.com", "né用"})});
  check_op("(string[A,B] X, string[C] Y) => (string[D,E] Z) { Z = StringConcat(X, Y) }", 20,
           {str({2, 1}, {"a", "b"}), str({2}, {"", "x"})}, {str({2, 2}, {"a", "ax", "b", "bx"})});
  check_op("(string X, string Y) => (string Z) { Z = StringConcat(X, Y) }", 20, {str({}, {"cat"}), str({}, {"s"})},
           {str({}, {"cats"})});
  check_op("(string[A] X, string[1] Y) => (string[C] Z) { Z = StringConcat(X, Y) }", 20,
           {str({0}, {}), str({1}, {"x"})}, {str({0}, {})});
  check_op_fails("(string[A] X, string[B] Y) => (string[C] Z) { Z = StringConcat(X, Y) }", 20,
                 {str({2}, {"a", "b"}), str({3}, {"c", "d", "e"})}, ErrorCode::ShapeMismatch, "");
}

const char* const kSplit = "(string[A] X) => (string[B,C] Y, int64[D] Z) { Y, Z = StringSplit(X) }";

TEST_CASE("StringSplit splits at whitespace and pads") {
  check_op(kSplit, 20, {str({3}, {" a b  c ", "\t\n", "x"})},
           {str({3, 3}, {"a", "b", "c", "", "", "", "x", "", ""}), i64({3}, {3, 0, 1})});
  check_op(kSplit, 20, {str({2}, {"a\u2003b", "c\vd\fe"})},
           {str({2, 3}, {"a", "b", "", "c", "d", "e"}), i64({2}, {2, 3})});
  check_op("(string[A] X) => (string[B,C] Y, int64[D] Z) { Y, Z = StringSplit<maxsplit=1>(X) }", 20,
           {str({3}, {" a  b c ", " ", "x  "})}, {str({3, 2}, {"a", "b c", "", "", "x", ""}), i64({3}, {2, 0, 1})});
  check_op("(string[A] X) => (string[B,C] Y, int64[D] Z) { Y, Z = StringSplit<maxsplit=0>(X) }", 20,
           {str({2}, {" a b ", ""})}, {str({2, 1}, {"a b", ""}), i64({2}, {1, 0})});
  check_op("(string X) => (string[C] Y, int64 Z) { Y, Z = StringSplit(X) }", 20, {str({}, {"a b"})},
           {str({2}, {"a", "b"}), i64({}, {2})});
}

TEST_CASE("StringSplit splits at a delimiter, empty pieces included") {
  check_op("(string[A] X) => (string[B,C] Y, int64[D] Z) { Y, Z = StringSplit<delimiter=\"--\">(X) }", 20,
           {str({4}, {"a--b---c", "", "--", "x"})},
           {str({4, 3}, {"a", "b", "-c", "", "", "", "", "", "", "x", "", ""}), i64({4}, {3, 1, 2, 1})});
  check_op("(string[A] X) => (string[B,C] Y, int64[D] Z) { Y, Z = StringSplit<delimiter=\",\", maxsplit=1>(X) }", 20,
           {str({2}, {"a,b,c", "d"})}, {str({2, 2}, {"a", "b,c", "d", ""}), i64({2}, {2, 1})});
  check_op("(string[A] X) => (string[B,C] Y, int64[D] Z) { Y, Z = StringSplit<delimiter=\",\", maxsplit=-1>(X) }", 20,
           {str({1}, {"a,b,c"})}, {str({1, 3}, {"a", "b", "c"}), i64({1}, {3})});
}

TEST_CASE("StringSplit of nothing has no pieces") {
  check_op(kSplit, 20, {str({0}, {})}, {str({0, 0}, {}), i64({0}, {})});
  check_op(kSplit, 20, {str({1}, {"\xff \xfe"})}, {str({1, 2}, {"\xff", "\xfe"}), i64({1}, {2})});
}

TEST_CASE("StringNormalizer changes the case of any script") {
  check_op("(string[A] X) => (string[B] Y) { Y = StringNormalizer<case_change_action=\"UPPER\">(X) }", 10,
           {str({5}, {"monday", "äöü ß", "σας", "привет", "ǆ"})},
           {str({5}, {"MONDAY", "ÄÖÜ ß", "ΣΑΣ", "ПРИВЕТ", "Ǆ"})});
  check_op("(string[A] X) => (string[B] Y) { Y = StringNormalizer<case_change_action=\"LOWER\", locale=\"tr_TR\">(X) }",
           10, {str({5}, {"MONDAY", "ÀÉ", "İI", "ΣΑΣ", "Ꭰ𐐀"})}, {str({5}, {"monday", "àé", "ii", "σασ", "ꭰ𐐨"})});
}

TEST_CASE("StringNormalizer drops stop words") {
  const Tensor days = str({4}, {"Monday", "monday", "MONDAY", "tuesday"});
  check_op("(string[A] X) => (string[B] Y) { Y = StringNormalizer<stopwords=[\"monday\"]>(X) }", 10, {days},
           {str({1}, {"tuesday"})});
  check_op(
      "(string[A] X) => (string[B] Y) { Y = StringNormalizer<stopwords=[\"monday\"], is_case_sensitive=1, "
      "case_change_action=\"UPPER\">(X) }",
      10, {days}, {str({3}, {"MONDAY", "MONDAY", "TUESDAY"})});
  check_op("(string[A,B] X) => (string[C,D] Y) { Y = StringNormalizer<stopwords=[\"ÉTÉ\"]>(X) }", 10,
           {str({1, 2}, {"été", "x"})}, {str({1, 1}, {"x"})});
}

TEST_CASE("StringNormalizer leaves one empty string where nothing remains") {
  check_op("(string[A] X) => (string[B] Y) { Y = StringNormalizer<stopwords=[\"a\"]>(X) }", 10, {str({2}, {"a", "A"})},
           {str({1}, {""})});
  check_op("(string[A,B] X) => (string[C,D] Y) { Y = StringNormalizer<stopwords=[\"a\"]>(X) }", 10,
           {str({1, 1}, {"a"})}, {str({1, 1}, {""})});
  check_op("(string[A] X) => (string[B] Y) { Y = StringNormalizer(X) }", 10, {str({0}, {})}, {str({1}, {""})});
}

TEST_CASE("StringNormalizer refuses other shapes, unknown actions and what is no UTF-8") {
  check_op_fails("(string[A,B] X) => (string[C,D] Y) { Y = StringNormalizer(X) }", 10, {str({2, 1}, {"a", "b"})},
                 ErrorCode::ShapeMismatch, "[1,C]");
  check_op_fails("(string[A] X) => (string[B] Y) { Y = StringNormalizer<case_change_action=\"TITLE\">(X) }", 10,
                 {str({1}, {"a"})}, ErrorCode::InvalidModel, "TITLE");
  check_op_fails("(string[A] X) => (string[B] Y) { Y = StringNormalizer<case_change_action=\"UPPER\">(X) }", 10,
                 {str({1}, {"a\xc3"})}, ErrorCode::InvalidArgument, "UTF-8 at byte 1");
}

TEST_CASE("RegexFullMatch matches whole strings") {
  check_op("(string[A] X) => (bool[B] Y) { Y = RegexFullMatch<pattern=\"www\\\\.[\\\\w.-]+\\\\.\\\\bcom\\\\b\">(X) }",
           20, {str({3}, {"www.google.com", "www.google.com ", "www.facebook.org"})}, {b8({3}, {true, false, false})});
  check_op("(string[A,B] X) => (bool[C,D] Y) { Y = RegexFullMatch<pattern=\"a.b\">(X) }", 20,
           {str({2, 2}, {"aéb", "a\nb",
                         "a\xff"
                         "b",
                         ""})},
           {b8({2, 2}, {true, false, false, false})});
  check_op("(string[A] X) => (bool[B] Y) { Y = RegexFullMatch<pattern=\"x\">(X) }", 20, {str({0}, {})}, {b8({0}, {})});
  check_op_fails("(string[A] X) => (bool[B] Y) { Y = RegexFullMatch<pattern=\"ab(c\">(X) }", 20, {str({1}, {"a"})},
                 ErrorCode::InvalidModel, "at byte 2: missing closing )");
}

}  // namespace
}  // namespace infernode::test
