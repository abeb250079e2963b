#include "providers/cuda/plan/arena.h"

#include <algorithm>
#include <numeric>

namespace infernode::cuda {

ArenaLayout lay_out(const std::vector<Lifetime>& lifetimes) {
  constexpr std::size_t kAlignment = 256;
  const auto aligned = [](std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; };
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  ArenaLayout layout{std::vector<std::size_t>(lifetimes.size()), 0};
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t i : order) {
    const Lifetime& own = lifetimes[i];
    std::size_t at = 0;
    for (const std::size_t other : placed) {
      const bool together = lifetimes[other].first <= own.last && own.first <= lifetimes[other].last;
      if (!together) continue;
      if (layout.offsets[other] >= at + aligned(own.bytes)) break;
      at = std::max(at, layout.offsets[other] + aligned(lifetimes[other].bytes));
    }
    layout.offsets[i] = at;
    layout.bytes = std::max(layout.bytes, at + aligned(own.bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](std::size_t a, std::size_t b) { return layout.offsets[a] < layout.offsets[b]; }),
                  i);
  }
  return layout;
}

}  // namespace infernode::cuda
