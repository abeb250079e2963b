#pragma once

#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace infernode::session {

/// Config entries: `extra` of the options, flattened. "session.intra_op.allow_spinning" -> "0".
using Config = std::map<std::string, std::string, std::less<>>;

/// What an entry says; "" where it is not given.
inline std::string_view text_of(const Config& config, std::string_view key) {
  const auto found = config.find(key);
  return found == config.end() ? std::string_view{} : std::string_view(found->second);
}

/// Whether an entry is there and switches something on.
inline bool is_on(const Config& config, std::string_view key) { return text_of(config, key) == "1"; }

inline constexpr auto kAnyNumber = [](auto) { return true; };

/// An entry that is a whole number which `valid` takes; nullopt where it is not given. Throws InvalidArgument that
/// says what is `expected`.
template <class T, class Valid>
std::optional<T> number_of(const Config& config, std::string_view key, std::string_view expected, const Valid& valid) {
  const auto found = config.find(key);
  if (found == config.end()) return std::nullopt;
  const std::string& text = found->second;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !valid(value)) {
    fail(ErrorCode::InvalidArgument, cat(key, " is '", text, "', ", expected, " is expected"),
         {.expected = std::string(expected), .actual = text});
  }
  return value;
}

}  // namespace infernode::session
