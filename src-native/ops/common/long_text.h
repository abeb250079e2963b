#pragma once
// Strings of any length: what takes long within one of them looks now and then whether the run is to end.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/function_ref.h"

namespace infernode::ops {

/// Called between two pieces of long work; may throw.
using Look = FunctionRef<void()>;

/// Bytes of text between two looks: under two milliseconds of the slowest work on them.
inline constexpr std::size_t kTextPiece = std::size_t{1} << 16;

/// Looks once in a piece of the text that a loop goes through. What it calls outlives it.
class TextWatch {
 public:
  explicit TextWatch(Look look) : look_(look) {}
  /// The loop has come to byte `at`.
  void at(std::size_t at) {
    if (at < next_) return;
    look_();
    next_ = at + kTextPiece;
  }

 private:
  Look look_;
  std::size_t next_ = kTextPiece;
};

void append_text(std::string& to, std::string_view text, Look look);
/// to = text, which may be another's.
void assign_text(std::string& to, const std::string& text, Look look);
/// Below, at or above 0 as a stands before, at or behind b.
int compare_texts(std::string_view a, std::string_view b, Look look);
/// Where `part`, which is not empty, stands first in `text`; npos.
std::size_t find_text(std::string_view text, std::string_view part, Look look);
/// Without spaces, tabs and line ends at both sides.
std::string_view trimmed_text(std::string_view text, Look look);

/// Values by text. Texts longer than all keys are not even read.
template <class T>
class TextMap {
 public:
  void reserve(std::size_t count) { values_.reserve(count); }
  std::size_t size() const { return values_.size(); }
  /// The value at the key, and whether it is this new one.
  std::pair<T*, bool> emplace(std::string key, T value) {
    longest_ = std::max(longest_, key.size());
    const auto [at, fresh] = values_.try_emplace(std::move(key), value);
    return {&at->second, fresh};
  }
  /// Null where there is none.
  const T* find(const std::string& text) const {
    if (text.size() > longest_) return nullptr;
    const auto at = values_.find(text);
    return at == values_.end() ? nullptr : &at->second;
  }

 private:
  std::unordered_map<std::string, T> values_;
  std::size_t longest_ = 0;
};

}  // namespace infernode::ops
