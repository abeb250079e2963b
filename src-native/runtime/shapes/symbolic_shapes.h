#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernel/inference.h"
#include "runtime/shapes/signature.h"

namespace infernode::runtime {

/// A copy without what the graph says of the sizes of values that it makes: a model may declare wrong ones, or ones
/// that hold for the declared sizes of inputs only. `deep`: in subgraphs too.
std::shared_ptr<const graph::Graph> without_sizes(const graph::Graph& graph, bool deep);

/// Types and contents of a graph's values over the symbols of its inputs' dims, inferred once, so that those for sizes
/// never seen before follow by substitution instead of another inference.
class SymbolicShapes {
 public:
  /// Values of the expressions among the dims, contents and byte counts.
  using Sizes = std::vector<std::int64_t>;
  static constexpr std::size_t kNoSize = SIZE_MAX;

  /// `needed` are the values that will be asked about. Null where inference fails, or where there are more different
  /// expressions than are worth it.
  static std::unique_ptr<const SymbolicShapes> infer(const graph::Graph& graph, std::span<const graph::NodeId> order,
                                                     std::span<const graph::ValueId> needed,
                                                     const SymbolicSignature& signature,
                                                     const kernel::Registry& registry,
                                                     std::span<const kernel::OpSchema* const> schemas);

  /// For these sizes of the symbols; nullopt where another expression than a symbol gives a size of 0 or what its type
  /// cannot hold: that is for inference to judge.
  std::optional<Sizes> at(std::span<const std::int64_t> symbols) const;

  /// A needed value's type, in which dims stay unknown that data decides.
  graph::ValueType type(graph::ValueId id, const Sizes& sizes) const;
  /// What kernel::known_tensor gives, and whether it depends on the sizes.
  tensor::Tensor known_tensor(graph::ValueId id, const Sizes& sizes) const;
  bool known_varies(graph::ValueId id) const;
  /// Values of the same index take equally many bytes whatever the sizes; kNoSize where not known or none.
  std::size_t bytes_index(graph::ValueId id) const { return entry(id).bytes; }
  std::size_t bytes(std::size_t bytes_index, const Sizes& sizes) const;
  std::size_t bytes_count() const { return byte_counts_.size(); }
  /// All that inference over inputs of these sizes gives for the needed values.
  kernel::InferredGraph inferred(const Sizes& sizes) const;

 private:
  static constexpr std::size_t kUnknown = SIZE_MAX;
  struct Expression {
    graph::Dim value;
    std::int64_t low, high;  ///< what it must lie in
  };
  struct Entry {
    std::optional<std::vector<std::size_t>> dims;      ///< indices of expressions, kUnknown where data decides
    std::optional<std::vector<std::size_t>> contents;  ///< where all are known or follow from the sizes
    std::size_t bytes = kNoSize;
  };
  struct ByteCount {
    tensor::DType type;
    std::size_t elements;  ///< index of an expression
    bool operator==(const ByteCount&) const = default;
  };

  void add(graph::ValueId id, std::span<const std::int64_t> trial);
  std::size_t bytes_of(const graph::ValueType& type, std::span<const std::int64_t> trial);
  std::size_t index_of(const graph::Dim& value, std::int64_t low, std::int64_t high);
  const Entry& entry(graph::ValueId id) const { return entries_[entry_of_[static_cast<std::size_t>(id)]]; }

  kernel::InferredGraph inferred_;
  std::vector<Expression> expressions_;  ///< different ones
  std::vector<ByteCount> byte_counts_;   ///< different ones
  std::vector<Entry> entries_;
  std::vector<std::size_t> entry_of_;  ///< by ValueId
  std::vector<graph::ValueId> needed_;
};

}  // namespace infernode::runtime
