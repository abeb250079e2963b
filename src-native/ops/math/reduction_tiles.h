#pragma once

#include <algorithm>
#include <cstdint>

#include "base/checked.h"
#include "kernel/watch.h"
#include "ops/math/reduction.h"

namespace infernode::ops {

inline constexpr std::int64_t kReduceColumns = 128;  ///< columns of one unit of work

/// Calls f(outer index, first column, columns, watch of the thread) for tiles of at most `width` columns of the layout,
/// in parallel.
template <class F>
void for_each_tile(const kernel::RunContext& run, const ReduceLayout& l, std::int64_t width, double ns_per_element,
                   F&& f) {
  const std::int64_t tiles = ceil_div(l.inner, width);
  const double cost =
      5.0 + ns_per_element * static_cast<double>(std::max<std::int64_t>(1, l.reduced) * std::min(l.inner, width));
  run.parallel_for(
      static_cast<std::size_t>(l.outer * tiles), cost, [&](std::size_t begin, std::size_t end, std::size_t) {
        kernel::Watch watch(run);
        for (std::size_t i = begin; i < end; ++i) {
          const std::int64_t o = static_cast<std::int64_t>(i) / tiles, c = static_cast<std::int64_t>(i) % tiles * width;
          f(o, c, std::min(width, l.inner - c), watch);
        }
      });
}

}  // namespace infernode::ops
