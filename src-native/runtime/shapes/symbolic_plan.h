#pragma once

#include <memory>
#include <vector>

#include "runtime/memory/arena_layout.h"
#include "runtime/shapes/signature.h"
#include "runtime/shapes/symbolic_shapes.h"

namespace infernode::runtime {

struct ShapePlan;

/// Puts each block where blocks alive at the same step do not overlap, `bytes` by block.
void place_blocks(const ArenaLayout& layout, std::span<const std::size_t> bytes, ShapePlan& plan);

/// A ShapePlan over the symbols of a signature, so that the plan for sizes never seen before follows by substitution.
class SymbolicPlan {
 public:
  /// `outline` is a plan for the signature's first sizes, without memory; which steps it skips must not depend on them.
  /// `layout` is over SymbolicShapes::bytes_index. Without `shapes` there is no plan to be had.
  SymbolicPlan(SymbolicSignature signature, std::unique_ptr<const SymbolicShapes> shapes,
               std::shared_ptr<const ShapePlan> outline, ArenaLayout layout, std::span<const graph::ValueId> outputs,
               std::size_t value_count);

  /// Sizes of the symbols, where this plan is for such signatures.
  std::optional<std::vector<std::int64_t>> bind(const Signature& signature) const { return signature_.bind(signature); }
  /// Null where inference has to look at these sizes.
  std::shared_ptr<const ShapePlan> at(std::span<const std::int64_t> symbols) const;

 private:
  SymbolicSignature signature_;
  std::unique_ptr<const SymbolicShapes> shapes_;
  std::shared_ptr<const ShapePlan> outline_;
  ArenaLayout layout_;
  std::vector<graph::ValueId> outputs_;
  std::vector<std::size_t> varying_;  ///< which of the outline's known values
  std::size_t value_count_;
};

}  // namespace infernode::runtime
