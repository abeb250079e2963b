#include "microkernels/trees/trees.h"

#include "microkernels/common/simd_file.h"

namespace infernode::microkernels {
namespace {

// Which child of `node` the element goes to: 0 or 1.
template <bool kLess, bool kMissing, class Node, class T>
INFERNODE_SIMD std::uint32_t answer(const Node& node, const T* x) noexcept {
  const std::uint32_t feature = node.feature;
  const T value = x[kMissing ? feature & ~Node::kMissingBit : feature];
  std::uint32_t yes = kLess ? value < node.threshold : value <= node.threshold;
  if constexpr (kMissing) yes |= static_cast<std::uint32_t>(value != value) & ((feature & Node::kMissingBit) != 0);
  return yes;
}

// One step of every lane; 0 if all stood on leaves. Lane l reads x + l * kApart. Were its loop within those of walk,
// GCC would unroll those as well, 64 times.
template <bool kLess, bool kMissing, std::size_t kApart, class Node, class T>
INFERNODE_SIMD std::uint32_t step(const Node* nodes, const T* x, std::uint32_t (&at)[kTreeLanes]) noexcept {
  std::uint32_t moved = 0;
  INFERNODE_UNROLL
  for (std::size_t l = 0; l < kTreeLanes; ++l) {
    const Node& node = nodes[at[l]];
    moved |= node.next;
    at[l] += node.next + answer<kLess, kMissing>(node, x + l * kApart);
  }
  return moved;
}

// Walks until every lane stands on a leaf; the first `depth` steps cannot meet the end.
template <bool kLess, bool kMissing, std::size_t kApart, class Node, class T>
INFERNODE_SIMD void walk(const Node* nodes, const T* x, std::uint32_t depth, std::uint32_t (&at)[kTreeLanes]) noexcept {
  for (; depth > 0; --depth) step<kLess, kMissing, kApart>(nodes, x, at);
  while (step<kLess, kMissing, kApart>(nodes, x, at) != 0) {
  }
}

template <bool kLess, bool kMissing, class Node, class T>
void walk_rows(const Node* nodes, const TreeRoot* roots, std::size_t trees, const T* x, std::size_t group_stride,
               std::size_t groups, std::uint32_t* leaves) noexcept {
  for (std::size_t t = 0; t < trees; ++t) {
    for (std::size_t g = 0; g < groups; ++g, leaves += kTreeLanes) {
      std::uint32_t at[kTreeLanes];
      INFERNODE_UNROLL
      for (std::size_t l = 0; l < kTreeLanes; ++l) at[l] = roots[t].node;
      walk<kLess, kMissing, 1>(nodes, x + g * group_stride, roots[t].depth, at);
      INFERNODE_UNROLL
      for (std::size_t l = 0; l < kTreeLanes; ++l) leaves[l] = at[l];
    }
  }
}

template <bool kLess, bool kMissing, class Node, class T>
void walk_trees(const Node* nodes, const TreeRoot* roots, std::size_t trees, const T* x,
                std::uint32_t* leaves) noexcept {
  for (std::size_t t = 0; t < trees; t += kTreeLanes) {
    const std::size_t count = smaller(kTreeLanes, trees - t);
    std::uint32_t at[kTreeLanes], depth = roots[t].depth;
    for (std::size_t l = 0; l < kTreeLanes; ++l) {
      const TreeRoot& root = roots[t + (l < count ? l : 0)];
      at[l] = root.node;
      depth = smaller(depth, root.depth);
    }
    walk<kLess, kMissing, 0>(nodes, x, depth, at);
    for (std::size_t l = 0; l < count; ++l) leaves[t + l] = at[l];
  }
}

template <bool kLess, bool kMissing, class Node, class T>
constexpr TreeLoops<Node, T> loops() {
  return {walk_rows<kLess, kMissing, Node, T>, walk_trees<kLess, kMissing, Node, T>};
}

}  // namespace

INFERNODE_TABLE(TreesTable, trees) = {
    INFERNODE_TARGET_NAME(INFERNODE_TARGET),
    {{loops<false, false, TreeNode32, float>(), loops<false, true, TreeNode32, float>()},
     {loops<true, false, TreeNode32, float>(), loops<true, true, TreeNode32, float>()}},
    {{loops<false, false, TreeNode64, double>(), loops<false, true, TreeNode64, double>()},
     {loops<true, false, TreeNode64, double>(), loops<true, true, TreeNode64, double>()}},
};

}  // namespace infernode::microkernels
