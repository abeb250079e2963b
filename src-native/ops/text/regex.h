#pragma once
// Regular expressions in RE2's syntax, matched in time linear in the text: patterns come from model files, so none may
// make a run hang. A pattern becomes an automaton over characters; where that has few states, a table of its subsets is
// made at once, else the set of states is followed character by character.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/text/unicode.h"

namespace infernode::ops::text {

/// Zero-width conditions, and the flags they are tested against.
enum class Assertion : std::uint8_t { kBeginText, kEndText, kBeginLine, kEndLine, kWordBoundary, kNoWordBoundary };

/// One instruction of the automaton.
struct RegexInstruction {
  enum class Kind : std::uint8_t { kCharacter, kSplit, kAssert, kMatch } kind = Kind::kMatch;
  Assertion assertion = Assertion::kBeginText;
  std::uint32_t next = 0;
  std::uint32_t other = 0;  ///< kSplit: second way; kCharacter: index of the set of characters
};

/// An automaton without captures: `start` is the first instruction.
struct RegexProgram {
  std::vector<RegexInstruction> code;
  std::vector<std::vector<CodeRange>> sets;  ///< ascending, disjoint
  std::uint32_t start = 0;
};

/// Throws InvalidModel with the position and the reason where `pattern` is not of RE2's syntax, and where it needs more
/// than a fixed number of instructions.
RegexProgram compile_regex(std::string_view pattern);

/// Immutable; matches from many threads at once.
class Regex {
 public:
  explicit Regex(std::string_view pattern);
  /// Whether the whole text matches. Bytes that are no UTF-8 match nothing.
  bool full_match(std::string_view text, Look look) const;
  /// Whether the table of subsets could be made.
  bool has_table() const { return !table_.empty(); }

 private:
  class StateSet;
  struct Around {
    std::optional<char32_t> before, after;
  };

  void close(std::uint32_t first, const Around& around, StateSet& set, std::vector<std::uint32_t>& stack) const;
  bool simulate(std::string_view text, Look look) const;
  void build_table();
  std::size_t class_of(char32_t c) const;

  RegexProgram program_;
  std::vector<char32_t> class_begins_;  ///< first character of each class of characters that no set tells apart
  std::array<std::uint16_t, 128> ascii_class_{};
  std::vector<std::uint16_t> table_;  ///< [state][class]: next state; state 0 is the start, kDead has no way out
  std::vector<std::uint8_t> accepts_;
};

}  // namespace infernode::ops::text
