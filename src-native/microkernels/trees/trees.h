#pragma once

#include <cstddef>
#include <cstdint>

// Decision trees whose nodes all ask the same question, x <= t (or x < t): eight walks at a time, without branches.
namespace infernode::microkernels {

inline constexpr std::size_t kTreeLanes = 8;

// The children of node i are i + next (no) and i + next + 1 (yes). A leaf has next 0 and reads a column of NaN, so that
// a walk stays there; `threshold` is then the caller's to use. `feature` is the column times kTreeLanes; with the top
// bit set a NaN in that column goes to yes, otherwise to no.
struct TreeNode32 {
  float threshold;
  std::uint16_t feature, next;
  static constexpr std::uint32_t kMissingBit = 0x8000;
};
struct TreeNode64 {
  double threshold;
  std::uint32_t feature, next;
  static constexpr std::uint32_t kMissingBit = 0x80000000;
};

struct TreeRoot {
  std::uint32_t node;
  std::uint32_t depth;  // of the leaf nearest to the root
};

template <class Node, class T>
struct TreeLoops {
  // Rows stand in groups of kTreeLanes, column by column: element c of row r is x[r / 8 * group_stride + c * 8 + r %
  // 8]. leaves[t * groups * 8 + r] becomes the index of the leaf that row r reaches in tree t.
  void (*rows)(const Node* nodes, const TreeRoot* roots, std::size_t trees, const T* x, std::size_t group_stride,
               std::size_t groups, std::uint32_t* leaves) noexcept;
  // One row, the first of a group: leaves[t] becomes the index of the leaf that it reaches in tree t.
  void (*trees)(const Node* nodes, const TreeRoot* roots, std::size_t trees, const T* x,
                std::uint32_t* leaves) noexcept;
};

struct TreesTable {
  const char* name;
  // By question and missing values: [less][missing]; less: x < t instead of x <= t; missing: some node has kMissingBit.
  TreeLoops<TreeNode32, float> f32[2][2];
  TreeLoops<TreeNode64, double> f64[2][2];
};

}  // namespace infernode::microkernels
