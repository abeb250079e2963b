#include "microkernels/trees/trees.h"

#include <limits>
#include <vector>

#include "bench.h"

namespace infernode::bench {

void bench_trees(const Bench& bench) {
  using namespace microkernels;
  constexpr std::size_t kTrees = 100, kDepth = 6, kColumns = 32, kGroups = 16;
  constexpr std::size_t kInner = (std::size_t{1} << kDepth) - 1, kNodes = 2 * kInner + 1;
  std::vector<TreeNode32> nodes;
  std::vector<TreeRoot> roots;
  for (std::size_t t = 0; t < kTrees; ++t) {
    roots.push_back({static_cast<std::uint32_t>(nodes.size()), kDepth});
    for (std::size_t i = 0; i < kNodes; ++i) {
      const std::size_t column = i < kInner ? (t + 7 * i) % kColumns : kColumns;
      nodes.push_back(
          {0.0f, static_cast<std::uint16_t>(column * kTreeLanes), static_cast<std::uint16_t>(i < kInner ? i + 1 : 0)});
    }
  }
  constexpr std::size_t kStride = (kColumns + 1) * kTreeLanes;
  std::vector<float> x(kGroups * kStride);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool last = i % kStride / kTreeLanes == kColumns;
    x[i] = last ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(i * 7919 % 201) - 100.0f;
  }
  std::vector<std::uint32_t> leaves(kTrees * kGroups * kTreeLanes);
  const auto& loops = bench.kernels.trees.f32[0][0];
  bench.run("trees 100 of depth 6, 128 rows", static_cast<double>(kTrees * kDepth * kGroups * kTreeLanes), "Gnode/s",
            [&] { loops.rows(nodes.data(), roots.data(), kTrees, x.data(), kStride, kGroups, leaves.data()); });
  bench.run("trees 100 of depth 6, one row", static_cast<double>(kTrees * kDepth), "Gnode/s",
            [&] { loops.trees(nodes.data(), roots.data(), kTrees, x.data(), leaves.data()); });
}

}  // namespace infernode::bench
