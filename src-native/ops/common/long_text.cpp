#include "ops/common/long_text.h"

#include <algorithm>

namespace infernode::ops {

void append_text(std::string& to, std::string_view text, Look look) {
  for (; text.size() > kTextPiece; text.remove_prefix(kTextPiece)) {
    to.append(text.substr(0, kTextPiece));
    look();
  }
  to.append(text);
}

void assign_text(std::string& to, const std::string& text, Look look) {
  if (text.size() <= kTextPiece) {
    to = text;
    return;
  }
  std::string made;
  made.reserve(text.size());
  append_text(made, text, look);
  to = std::move(made);
}

int compare_texts(std::string_view a, std::string_view b, Look look) {
  while (a.size() > kTextPiece && b.size() > kTextPiece) {
    if (const int order = a.substr(0, kTextPiece).compare(b.substr(0, kTextPiece)); order != 0) return order;
    a.remove_prefix(kTextPiece);
    b.remove_prefix(kTextPiece);
    look();
  }
  return a.compare(b);
}

std::size_t find_text(std::string_view text, std::string_view part, Look look) {
  // Each place is compared with all of `part` at worst.
  const std::size_t places = std::max<std::size_t>(1, kTextPiece / part.size());
  for (std::size_t at = 0; at < text.size(); at += places) {
    const std::size_t found = text.substr(at, places + part.size() - 1).find(part);
    if (found != std::string_view::npos) return at + found;
    if (text.size() - at <= places) break;
    look();
  }
  return std::string_view::npos;
}

std::string_view trimmed_text(std::string_view text, Look look) {
  constexpr std::string_view kSpaces = " \t\n\r";
  std::size_t begin = std::string_view::npos;
  for (; !text.empty(); text.remove_prefix(kTextPiece)) {
    begin = text.substr(0, kTextPiece).find_first_not_of(kSpaces);
    if (begin != std::string_view::npos || text.size() <= kTextPiece) break;
    look();
  }
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  for (;; text.remove_suffix(kTextPiece)) {  // ends at a character that is none of these
    const std::size_t from = text.size() - std::min(text.size(), kTextPiece);
    const std::size_t last = text.substr(from).find_last_not_of(kSpaces);
    if (last != std::string_view::npos) return text.substr(0, from + last + 1);
    look();
  }
}

}  // namespace infernode::ops
