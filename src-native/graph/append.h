#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace infernode::graph {

/// Adds to a graph's values or nodes, which ends references to the others. Where the vector has room they stay good by
/// luck: under AddressSanitizer that of a graph of common size never has, so that who holds one too long is found out.
template <class T>
void append(std::vector<T>& to, T item) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr std::size_t kCommon = 256;  // moving all at each addition is quadratic
  if (to.size() < kCommon) {
    to.shrink_to_fit();
    to.reserve(to.size() + 1);
  }
#endif
  to.push_back(std::move(item));
}

}  // namespace infernode::graph
