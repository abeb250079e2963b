#include "runtime/memory/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"

namespace infernode::runtime {

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size(), 0);
  std::vector<std::uint32_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  std::vector<std::uint32_t> placed;  // by offset
  placed.reserve(order.size());
  for (const std::uint32_t index : order) {
    const Lifetime& block = lifetimes[index];
    if (block.bytes == 0) continue;
    const std::size_t bytes = align_up(block.bytes, kArenaAlignment);
    std::size_t offset = 0;
    for (const std::uint32_t other : placed) {
      const Lifetime& busy = lifetimes[other];
      if (busy.last < block.first || block.last < busy.first) continue;
      if (offset + bytes <= plan.offsets[other]) break;
      offset = std::max(offset, plan.offsets[other] + align_up(busy.bytes, kArenaAlignment));
    }
    plan.offsets[index] = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, checked_add(offset, bytes));
    const auto position = std::upper_bound(placed.begin(), placed.end(), offset,
                                           [&](std::size_t o, std::uint32_t other) { return o < plan.offsets[other]; });
    placed.insert(position, index);
  }
  return plan;
}

}  // namespace infernode::runtime
