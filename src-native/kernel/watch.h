#pragma once

#include <algorithm>
#include <cstddef>

#include "kernel/run_context.h"

namespace infernode::kernel {

/// About how long a thread computes between two looks at whether its run is to end, in nanoseconds.
inline constexpr double kLookEveryNs = 2e6;

/// Looks whether a run is to end, once in so much work, for loops that run long without parallel_for: within one of its
/// items, in a sort's comparisons. One to a thread.
class Watch {
 public:
  explicit Watch(const RunContext& run) : run_(run) {}

  /// `ns`: rough time of what has been done since the last call. Throws Aborted.
  void did(double ns) {
    left_ns_ -= ns;
    if (left_ns_ < 0) look();
  }

 private:
  void look() {
    run_.check();
    left_ns_ = kLookEveryNs;
  }

  const RunContext& run_;
  double left_ns_ = kLookEveryNs;
};

// One long line (a row, a sum, a run of elements) goes by in pieces, with a look between two.

/// Most elements of a piece; of those that take more than a nanosecond it has fewer.
inline constexpr std::size_t kPiece = std::size_t{1} << 16;

/// Calls f(begin, end) for the pieces of [0, count), in order. `ns`: rough time of one element.
template <class F>
void in_pieces(Watch& watch, std::size_t count, double ns, F&& f) {
  const auto piece = static_cast<std::size_t>(std::max(1.0, static_cast<double>(kPiece) / std::max(1.0, ns)));
  for (std::size_t begin = 0; begin < count;) {
    const std::size_t end = begin + std::min(piece, count - begin);
    f(begin, end);
    watch.did(static_cast<double>(end - begin) * ns);
    begin = end;
  }
}

/// The same for each element: f(i).
template <class F>
void each_in_pieces(Watch& watch, std::size_t count, double ns, F&& f) {
  in_pieces(watch, count, ns, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) f(i);
  });
}

/// The sum of f(i), added in order.
template <class T, class F>
T sum_in_pieces(Watch& watch, std::size_t count, double ns, F&& f) {
  T total = 0;
  in_pieces(watch, count, ns, [&](std::size_t begin, std::size_t end) {
    T sum = total;
    for (std::size_t i = begin; i < end; ++i) sum += f(i);
    total = sum;
  });
  return total;
}

}  // namespace infernode::kernel
