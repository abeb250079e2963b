#pragma once
// How long loops along columns of a matrix take, for looks at whether a run is to end.

#include <algorithm>
#include <cstddef>

namespace infernode::ops {

/// The most nanoseconds that the next element of a column takes, `bytes` behind the one before: it waits for its line,
/// and in a page of its own for the page, which may be new.
inline double step_ns(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  constexpr double kBytesPerNs = 4;
  return 1 + static_cast<double>(std::min(bytes, kPage)) / kBytesPerNs;
}

}  // namespace infernode::ops
