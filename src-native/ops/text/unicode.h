#pragma once
// UTF-8 and the few properties of Unicode characters that string operators need, the same on every platform and in
// every locale.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/common/long_text.h"

namespace infernode::ops::text {

inline constexpr char32_t kMaxCodePoint = 0x10FFFF;
/// What `next_code_point` gives for a byte that belongs to no valid sequence.
inline constexpr char32_t kInvalid = 0xFFFFFFFF;

/// Reads one character at `at` (below text.size()) and moves behind it; a byte of an invalid sequence (overlong forms,
/// surrogates, values beyond Unicode and truncated sequences too) is consumed alone and gives kInvalid.
char32_t next_code_point(std::string_view text, std::size_t& at);
void append_utf8(std::string& out, char32_t code_point);

/// Simple (one to one) case mappings.
char32_t to_upper(char32_t c);
char32_t to_lower(char32_t c);
/// Equal for characters that differ by case only.
inline char32_t fold_case(char32_t c) { return to_lower(to_upper(c)); }
/// Whitespace as Python's str.isspace has it.
bool is_space(char32_t c);

/// Maps every character. Throws InvalidArgument naming the byte where `text` is no UTF-8.
std::string map_characters(std::string_view text, char32_t (*map)(char32_t), Look look);

struct CodeRange {
  char32_t first, last;  ///< both included
};
/// Characters of a general category ("L", "Lu", "Any") or a script ("Greek"), ascending; empty where the name is
/// unknown.
std::vector<CodeRange> property_ranges(std::string_view name);

/// Unicode's data, generated.
namespace tables {
/// first, first + step, ..., last map to themselves + delta.
struct CaseRange {
  char32_t first, last;
  std::uint8_t step;
  std::int32_t delta;
};
std::span<const CaseRange> upper();
std::span<const CaseRange> lower();
/// Runs of equal values from code point 0 on: first code point << 8 | index of the name.
std::span<const std::uint32_t> category_runs();
std::span<const std::string_view> category_names();
std::span<const std::uint32_t> script_runs();
std::span<const std::string_view> script_names();
}  // namespace tables

}  // namespace infernode::ops::text
