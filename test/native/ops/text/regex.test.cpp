#include "ops/text/regex.h"

#include <doctest/doctest.h>

#include <string>

#include "base/error.h"

namespace infernode::ops::text {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  return Regex(pattern).full_match(text, [] {});
}

std::string refusal(std::string_view pattern) {
  try {
    compile_regex(pattern);
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::InvalidModel);
    return e.message();
  }
  return "";
}

TEST_CASE("A regular expression matches a whole text") {
  CHECK(matches("", ""));
  CHECK_FALSE(matches("", "a"));
  CHECK(matches("a|bc|", ""));
  CHECK(matches("a|bc|", "bc"));
  CHECK_FALSE(matches("a", "ab"));
  CHECK(matches("(a*)*b?", "aaab"));
  CHECK(matches("(?:ab){2,3}", "ababab"));
  CHECK_FALSE(matches("(?:ab){2,3}", "ab"));
  CHECK(matches("a{2,}", "aaaa"));
  CHECK(matches("a{,2}", "a{,2}"));
  CHECK(matches("x*?y+?", "xxyy"));
  CHECK(matches("(?P<year>\\d{4})-(?<month>\\d\\d)", "2024-05"));
}

TEST_CASE("Classes of characters") {
  CHECK(matches("[^a-c\\d]+", "xyz\n"));
  CHECK_FALSE(matches("[^a-c\\d]+", "x1"));
  CHECK(matches("[]a-]+", "]-a"));
  CHECK(matches("[[:alpha:][:^ascii:]]+", "aé"));
  CHECK(matches("\\p{Greek}+\\pN\\P{L}", "σα1 "));
  CHECK(matches("\\p{Lu}\\p{Ll}+", "Été"));
  CHECK(matches("\\x41\\x{1F600}\\101\\Q.*\\E\\.", "A😀A.*."));
  CHECK_FALSE(matches("\\s", "\v"));
  CHECK_FALSE(matches(".", "\n"));
  CHECK(matches("(?s).", "\n"));
  CHECK_FALSE(matches(".", "\x80"));
}

TEST_CASE("Letter case is ignored in every script") {
  CHECK(matches("(?i)straSSe k", "STRAssE \u212A"));
  CHECK(matches("(?i)[α-ω]+", "ΣΑς"));
  CHECK(matches("(?i:a)b", "Ab"));
  CHECK_FALSE(matches("(?i:a)b", "AB"));
  CHECK_FALSE(matches("(?i)[^k]", "K"));
}

TEST_CASE("Assertions look at both neighbours") {
  CHECK(matches("^\\Aab$\\z", "ab"));
  CHECK_FALSE(matches("a^b", "ab"));
  CHECK(matches("(?m)a$\\n^b", "a\nb"));
  CHECK(matches("\\bfoo\\b \\Bb?", "foo "));
  CHECK_FALSE(matches("foo\\bbar", "foobar"));
}

TEST_CASE("Patterns that other engines choke on take linear time") {
  const std::string text(20'000, 'a');
  CHECK_FALSE(matches("(a+)+b", text));
  CHECK_FALSE(matches("(a|aa)+\\bx", text));
  const Regex wide("(?:a|b)*a(?:a|b){12}");  // 2^13 subsets: too many for a table with room for all its classes
  CHECK(wide.full_match(text, [] {}));
  const Regex large("(?:.*a){20}[\\pL]{1,300}x?");
  CHECK(large.full_match(text.substr(0, 300), [] {}));
}

TEST_CASE("A long match can be called off") {
  const Regex regex("(?:\\b|x|a?){200}a*");
  REQUIRE_FALSE(regex.has_table());
  struct Stop {};
  CHECK_THROWS_AS(regex.full_match(std::string(100'000, 'a'), [] { throw Stop{}; }), Stop);
}

TEST_CASE("What is not RE2's syntax is refused with its position") {
  CHECK(refusal("a)").find("at byte 1: unexpected )") != std::string::npos);
  CHECK(refusal("ab(c").find("at byte 2: missing closing )") != std::string::npos);
  CHECK(refusal("[a").find("missing closing ]") != std::string::npos);
  CHECK(refusal("*a").find("missing argument") != std::string::npos);
  CHECK(refusal("a**").find("bad repetition") != std::string::npos);
  CHECK(refusal("(a)\\1").find("backreferences") != std::string::npos);
  CHECK(refusal("a(?=b)").find("at byte 1: lookaround") != std::string::npos);
  CHECK(refusal("[b-a]").find("range") != std::string::npos);
  CHECK(refusal("\\p{Klingon}").find("Klingon") != std::string::npos);
  CHECK(refusal("a{1001}").find("repetition size") != std::string::npos);
  CHECK(refusal("\\").find("ends too early") != std::string::npos);
  CHECK(refusal("a\xff").find("at byte 1: no valid UTF-8") != std::string::npos);
}

TEST_CASE("Patterns that would need much memory or time are refused") {
  CHECK(refusal("((((a{100}){100}){100}){100})").find("too large") != std::string::npos);
  CHECK(refusal("(((((){1000}){1000}){1000}){1000})").find("too large") != std::string::npos);
  CHECK(refusal(std::string(100'000, '(')).find("too deeply") != std::string::npos);
}

}  // namespace
}  // namespace infernode::ops::text
