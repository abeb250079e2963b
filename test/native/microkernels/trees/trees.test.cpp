#include "microkernels/trees/trees.h"

#include <cmath>
#include <vector>

#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

template <class Node>
struct Forest {
  std::vector<Node> nodes;
  std::vector<TreeRoot> roots;
};

/// Random trees: complete to `depth`, or a chain of `depth` questions with a leaf beside each.
template <class Node, class T>
Forest<Node> grow(std::size_t trees, std::uint32_t depth, bool chain, std::size_t columns, bool missing,
                  Random& random) {
  using Feature = decltype(Node::feature);
  Forest<Node> forest;
  const Node leaf{T(1), static_cast<Feature>(columns * kTreeLanes), 0};
  for (std::size_t t = 0; t < trees; ++t) {
    const auto root = static_cast<std::uint32_t>(forest.nodes.size());
    forest.roots.push_back({root, chain ? std::min(depth, 1u) : depth});
    forest.nodes.push_back(leaf);
    std::vector<std::uint32_t> level{root};
    for (std::uint32_t d = 0; d < depth; ++d) {
      std::vector<std::uint32_t> below;
      for (std::size_t i = 0; i < (chain ? 1 : level.size()); ++i) {
        const auto pair = static_cast<std::uint32_t>(forest.nodes.size());
        forest.nodes.resize(pair + 2, leaf);
        Node& node = forest.nodes[level[i]];
        node.threshold = static_cast<T>(random.uniform(-1, 1));
        const auto column = static_cast<std::size_t>(random.uniform(0, 1) * static_cast<float>(columns)) % columns;
        const bool marked = missing && random.uniform(0, 1) < 0.5f;
        node.feature = static_cast<Feature>(column * kTreeLanes | (marked ? Node::kMissingBit : 0));
        node.next = static_cast<decltype(Node::next)>(pair - level[i]);
        below.insert(below.end(), {pair, pair + 1});
      }
      level = below;
    }
  }
  return forest;
}

template <class Node, class T>
std::uint32_t walk(const Forest<Node>& forest, std::size_t tree, const T* x, bool less) {
  std::uint32_t at = forest.roots[tree].node;
  while (forest.nodes[at].next != 0) {
    const Node& node = forest.nodes[at];
    const T value = x[node.feature & ~Node::kMissingBit];
    bool yes = less ? value < node.threshold : value <= node.threshold;
    if (std::isnan(value)) yes = (node.feature & Node::kMissingBit) != 0;
    at += node.next + (yes ? 1 : 0);
  }
  return at;
}

template <class Node, class T>
void check_walks(const TreeLoops<Node, T>& loops, bool less, bool missing) {
  Random random(less ? 3 : 4);
  for (const bool chain : {false, true}) {
    for (const std::uint32_t depth : {0u, 1u, 5u}) {
      CAPTURE(chain);
      CAPTURE(depth);
      const std::size_t trees = 11, columns = 7, groups = 3, stride = (columns + 1) * kTreeLanes;
      const Forest<Node> forest = grow<Node, T>(trees, depth, chain, columns, missing, random);
      Guarded<T> x(groups * stride);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const bool nan = i % stride >= columns * kTreeLanes || random.uniform(0, 1) < 0.1f;
        // Some elements equal a split.
        const float pick = random.uniform(0, 1) * static_cast<float>(forest.nodes.size());
        const T split = forest.nodes[static_cast<std::size_t>(pick) % forest.nodes.size()].threshold;
        x[i] = nan ? static_cast<T>(NAN) : random.uniform(0, 1) < 0.3f ? split : static_cast<T>(random.uniform(-1, 1));
      }
      Guarded<std::uint32_t> leaves(trees * groups * kTreeLanes), one(trees);
      loops.rows(forest.nodes.data(), forest.roots.data(), trees, x.data(), stride, groups, leaves.data());
      loops.trees(forest.nodes.data(), forest.roots.data(), trees, x.data(), one.data());
      std::size_t wrong = 0;
      for (std::size_t t = 0; t < trees; ++t) {
        for (std::size_t r = 0; r < groups * kTreeLanes; ++r) {
          const T* row = x.data() + r / kTreeLanes * stride + r % kTreeLanes;
          const std::uint32_t expected = walk(forest, t, row, less);
          if (leaves[t * groups * kTreeLanes + r] != expected) ++wrong;
          if (r == 0 && one[t] != expected) ++wrong;
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("walks end at the leaves that the questions lead to, whatever NaN and equal values meet") {
  for_each_target([](CpuRung rung) {
    const TreesTable& table = kernel_set(rung).trees;
    for (const bool less : {false, true}) {
      for (const bool missing : {false, true}) {
        CAPTURE(less);
        CAPTURE(missing);
        check_walks(table.f32[less][missing], less, missing);
        check_walks(table.f64[less][missing], less, missing);
      }
    }
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
