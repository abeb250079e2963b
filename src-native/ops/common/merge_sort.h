#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "kernel/run_context.h"

namespace infernode::ops {

/// Sorts `count` items, equal ones as they were, with looks in between whether the run is to end: runs that take a
/// moment, then merges of them. `before` looks too. Returns where the sorted items are: `items` or `other`, which has
/// room for as many.
template <class T, class Before>
T* merge_sort(const kernel::RunContext& run, T* items, T* other, std::size_t count, const Before& before) {
  constexpr std::size_t kRun = std::size_t{1} << 15;
  for (std::size_t i = 0; i < count; i += kRun) {
    if (i > 0) run.check();
    std::stable_sort(items + i, items + std::min(i + kRun, count), before);
  }
  for (std::size_t width = kRun; width < count; width *= 2) {
    for (std::size_t i = 0; i < count; i += 2 * width) {
      const std::size_t middle = std::min(i + width, count), end = std::min(i + 2 * width, count);
      std::merge(items + i, items + middle, items + middle, items + end, other + i, before);
    }
    std::swap(items, other);
  }
  return items;
}

}  // namespace infernode::ops
