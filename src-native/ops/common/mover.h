#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "kernel/watch.h"
#include "ops/common/long_text.h"

namespace infernode::ops {

/// Moves elements of any type, strings of any length among them, and looks now and then whether the run is to end. One
/// to a thread.
class Mover {
 public:
  explicit Mover(const kernel::RunContext& run) : run_(run), watch_(run) {}

  template <class T>
  void set(T& to, const T& from) {
    if constexpr (std::is_same_v<T, std::string>) {
      assign_text(to, from, [this] { run_.check(); });
      did_text(from.size());
    } else {
      to = from;
    }
  }

  void append(std::string& to, std::string_view text) {
    append_text(to, text, [this] { run_.check(); });
    did_text(text.size());
  }

  /// Returns the end of what was written.
  template <class T>
  T* copy(const T* from, std::int64_t count, T* to) {
    return in_pieces<T>(
        count, to, [&](std::int64_t first, std::int64_t n) { std::copy_n(from + first, n, to + first); },
        [&](std::int64_t i) -> const T& { return from[i]; });
  }
  template <class T>
  T* fill(T* to, std::int64_t count, const T& value) {
    return in_pieces<T>(
        count, to, [&](std::int64_t first, std::int64_t n) { std::fill_n(to + first, n, value); },
        [&](std::int64_t) -> const T& { return value; });
  }

  /// `ns`: rough time of what else has been done since the last call.
  void did(double ns) { watch_.did(ns); }

 private:
  void did_text(std::size_t bytes) {
    constexpr double kNsPerText = 50, kNsPerByte = 0.1;  // a text may ask for memory
    watch_.did(kNsPerText + kNsPerByte * static_cast<double>(bytes));
  }

  template <class T, class Move, class Each>
  T* in_pieces(std::int64_t count, T* to, const Move& move, [[maybe_unused]] const Each& each) {
    constexpr std::int64_t kPiece = (std::int64_t{1} << 20) / static_cast<std::int64_t>(sizeof(T));
    // set() counts texts; pages that are written for the first time take a nanosecond a byte and more.
    constexpr double kNsPerElement = std::is_same_v<T, std::string> ? 0.0 : 1.0 * sizeof(T);
    for (std::int64_t first = 0; first < count; first += kPiece) {
      const std::int64_t n = std::min(kPiece, count - first);
      if constexpr (std::is_same_v<T, std::string>) {
        for (std::int64_t i = first; i < first + n; ++i) set(to[i], each(i));
      } else {
        move(first, n);
      }
      watch_.did(static_cast<double>(n) * kNsPerElement);
    }
    return to + count;
  }

  const kernel::RunContext& run_;
  kernel::Watch watch_;
};

}  // namespace infernode::ops
