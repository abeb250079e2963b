#pragma once
// A short row that a long run reads over and over (BroadcastPlan::repeating), laid out so that loops of vectors take
// it.

#include <algorithm>
#include <cstddef>

namespace infernode::ops {

/// f(i, rows, count) for elements [i, i + count) of a run of n that starts with the row's first of `length` elements:
/// rows[0 .. count) is what they read.
template <class T, class F>
void for_repeated_row(const T* row, std::size_t length, std::size_t n, F&& f) {
  constexpr std::size_t kElements = 1024;
  alignas(64) T rows[kElements];
  const std::size_t whole = std::min(n, kElements / length * length);
  for (std::size_t i = 0; i < whole; i += length) std::copy_n(row, length, rows + i);
  for (std::size_t i = 0; i < n; i += whole) f(i, static_cast<const T*>(rows), std::min(whole, n - i));
}

}  // namespace infernode::ops
