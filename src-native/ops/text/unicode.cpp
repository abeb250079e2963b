#include <algorithm>

#include "base/error.h"
#include "ops/text/unicode.h"

namespace infernode::ops::text {
namespace {

char32_t mapped(std::span<const tables::CaseRange> ranges, char32_t c) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), c,
                                      [](char32_t x, const tables::CaseRange& r) { return x < r.first; });
  if (after == ranges.begin()) return c;
  const tables::CaseRange& r = *(after - 1);
  if (c > r.last || (c - r.first) % r.step != 0) return c;
  return static_cast<char32_t>(static_cast<std::int32_t>(c) + r.delta);
}

void append_runs(std::span<const std::uint32_t> runs, std::span<const std::string_view> names, std::string_view prefix,
                 bool whole, std::vector<CodeRange>& out) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string_view name = names[runs[i] & 0xFF];
    if (whole ? name != prefix : !name.starts_with(prefix)) continue;
    const char32_t first = runs[i] >> 8, last = i + 1 < runs.size() ? (runs[i + 1] >> 8) - 1 : kMaxCodePoint;
    if (!out.empty() && out.back().last + 1 == first)
      out.back().last = last;
    else
      out.push_back({first, last});
  }
}

}  // namespace

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return text[at++] & 0x7F;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < length) {
    ++at;
    return kInvalid;
  }
  char32_t c = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const unsigned char next = byte(at + i);
    if ((next & 0xC0) != 0x80) {
      ++at;
      return kInvalid;
    }
    c = c << 6 | (next & 0x3Fu);
  }
  const bool overlong = (length == 3 && c < 0x800) || (length == 4 && c < 0x10000);
  if (overlong || c > kMaxCodePoint || (c >= 0xD800 && c <= 0xDFFF)) {
    ++at;
    return kInvalid;
  }
  at += length;
  return c;
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      out += static_cast<char>(0xE0 | c >> 12);
    } else {
      out += static_cast<char>(0xF0 | c >> 18);
      out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    }
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
  }
  out += static_cast<char>(0x80 | (c & 0x3F));
}

char32_t to_upper(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  return mapped(tables::upper(), c);
}

char32_t to_lower(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  return mapped(tables::lower(), c);
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string map_characters(std::string_view text, char32_t (*map)(char32_t), Look look) {
  std::string out;
  out.reserve(text.size());
  TextWatch watch(look);
  for (std::size_t at = 0; at < text.size();) {
    watch.at(at);
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    if (c == kInvalid) fail(ErrorCode::InvalidArgument, cat("a string is no valid UTF-8 at byte ", begin));
    append_utf8(out, map(c));
  }
  return out;
}

std::vector<CodeRange> property_ranges(std::string_view name) {
  if (name == "Any") return {{0, kMaxCodePoint}};
  std::vector<CodeRange> out;
  if (name.empty()) return out;
  // Categories have two letters, the first of which names their group; RE2 has no unassigned (Cn) characters in C.
  if (name.size() <= 2) {
    if (name == "C") {
      for (const std::string_view part : {"Cc", "Cf", "Co", "Cs"}) {
        append_runs(tables::category_runs(), tables::category_names(), part, true, out);
      }
      std::sort(out.begin(), out.end(), [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
      return out;
    }
    if (name != "Cn") append_runs(tables::category_runs(), tables::category_names(), name, name.size() == 2, out);
    return out;
  }
  append_runs(tables::script_runs(), tables::script_names(), name, true, out);
  return out;
}

}  // namespace infernode::ops::text
