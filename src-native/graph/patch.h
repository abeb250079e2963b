#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "graph/graph.h"

namespace infernode::graph {

/// Live nodes that read each value, by id, as Graph::consumers() gives them.
using Consumers = std::vector<std::vector<NodeId>>;

/// A set of edits collected against one graph and applied at once: the only way passes change a graph. Ids handed out
/// by the patch are valid right away for use inside it.
class GraphPatch {
 public:
  explicit GraphPatch(Graph& graph) : graph_(graph) {}

  ValueId add_value(std::string_view name_hint, ValueType type = {});
  ValueId add_constant(std::string_view name_hint, tensor::Value value);
  /// Adds a node; `from` names the nodes it replaces: their names (or their provenance) become its provenance.
  NodeId add_node(Node node, std::span<const NodeId> from = {});
  void remove_node(NodeId id);
  /// Every use of `from` reads `to` instead: node inputs, captures, and graph outputs. A graph output's name, and
  /// lengths that are known of it alone, move to `to` where that is made by a node and is no graph input or output;
  /// otherwise an Identity node keeps the name.
  void replace_uses(ValueId from, ValueId to);
  /// Input `index` of `node` becomes `to`.
  void set_input(NodeId node, std::size_t index, ValueId to);
  /// Gives the value a constant, removing it as an output of its producer.
  void fold(ValueId value, tensor::Value constant);
  bool empty() const { return edits_ == 0; }
  /// Applies all edits and leaves the graph consistent (producers, names). Called once.
  void apply() { apply(nullptr); }
  /// For callers that apply many patches: keeps `consumers`, the graph's, up to date, so that the time taken is that of
  /// what the patch touches, not of the graph.
  void apply(Consumers& consumers) { apply(&consumers); }

  /// As Graph::compact(), with calls of `look` now and then. Where it throws the graph is good for nothing any more.
  static void compact(Graph& graph, FunctionRef<void()> look);
  /// As Graph::clone(), likewise.
  static std::shared_ptr<Graph> clone(const Graph& graph, FunctionRef<void()> look);

 private:
  struct Replacement {
    ValueId from, to;
  };
  struct InputEdit {
    NodeId node;
    std::size_t index;
    ValueId to;
  };
  struct Fold {
    ValueId value;
    tensor::Value constant;
  };
  void apply(Consumers* consumers);
  /// The node's inputs and captures enter or leave the consumers.
  void enter(NodeId id);
  void leave(NodeId id);
  /// Makes `value` a value without producer; a node left without outputs goes.
  void detach(ValueId value);
  void apply_fold(ValueId value, tensor::Value constant);
  void apply_replacements();
  void replace_output(ValueId from, ValueId to);

  Graph& graph_;
  std::size_t edits_ = 0;
  std::vector<NodeId> added_;
  std::vector<NodeId> removed_;
  std::vector<Replacement> replacements_;
  std::vector<InputEdit> input_edits_;
  std::vector<Fold> folds_;
  Consumers* consumers_ = nullptr;  ///< kept while the patch is applied
};

}  // namespace infernode::graph
