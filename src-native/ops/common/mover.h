#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
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
    } else {
      to = from;
    }
  }

  void append(std::string& to, const std::string& text) {
    append_text(to, text, [this] { run_.check(); });
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
  template <class T, class Move, class Each>
  T* in_pieces(std::int64_t count, T* to, const Move& move, [[maybe_unused]] const Each& each) {
    constexpr std::int64_t kPiece = (std::int64_t{1} << 20) / static_cast<std::int64_t>(sizeof(T));
    constexpr double kNsPerElement = 0.2 * sizeof(T) + (std::is_trivially_copyable_v<T> ? 0.0 : 20.0);
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
