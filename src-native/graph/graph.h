#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "graph/attributes.h"
#include "graph/value_type.h"
#include "tensor/value.h"

namespace infernode::graph {

/// Index into Graph::values(). kNoValue marks an absent optional input or output.
using ValueId = std::int32_t;
using NodeId = std::int32_t;
inline constexpr ValueId kNoValue = -1;
inline constexpr NodeId kNoNode = -1;

/// An edge: who makes it, what is known of it.
struct ValueInfo {
  std::string name;  ///< unique in its graph; never empty
  ValueType type;    ///< declared, then inferred
  NodeId producer = kNoNode;
  tensor::Value constant;  ///< initializer, or a folded value; empty otherwise
  bool is_input = false;   ///< a graph input (an initializer that is also an input can be overridden by feeding it)
  bool has_constant() const { return !constant.empty(); }
  /// A constant that no feed can override: what folding and packing may rely on.
  bool is_constant() const { return has_constant() && !is_input; }
};

struct Node {
  std::string name;  ///< may be empty
  std::string op_type;
  std::string domain;      ///< "" is ai.onnx
  std::int64_t opset = 0;  ///< version of `domain` in force where the node was written
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
  std::vector<std::string> provenance;  ///< names of the nodes it was made from, when it is not in the file as such
  std::string provider;                 ///< the provider that claimed it; "" before partitioning
  std::string overload;                 ///< of a model-local function
  bool removed = false;                 ///< a removed node keeps its id until compact()
};

/// A value of the enclosing graph that a subgraph reads: inside it is `inner`, outside `outer`.
struct Capture {
  ValueId inner;
  ValueId outer;
};

/// Nodes and edges in vectors; everything refers by id. Edited through GraphPatch; a loaded model keeps its graph,
/// which says what values are called, typed and made by and holds the constants that steps read. A subgraph (attribute
/// of If, Loop, Scan, ...) is a Graph whose free names are listed as captures.
class Graph {
 public:
  std::string name;
  std::string doc;

  ValueId add_value(std::string name, ValueType type = {});
  ValueId add_constant(std::string name, tensor::Value value);
  /// Adds the node at the end; sets the producers of its outputs.
  NodeId add_node(Node node);
  void add_input(ValueId value);
  void add_output(ValueId value);
  void add_capture(Capture capture);

  const std::vector<ValueInfo>& values() const { return values_; }
  const ValueInfo& value(ValueId id) const { return values_.at(static_cast<std::size_t>(id)); }
  ValueInfo& value(ValueId id) { return values_.at(static_cast<std::size_t>(id)); }
  std::size_t node_count() const { return nodes_.size(); }  ///< removed ones included
  const Node& node(NodeId id) const { return nodes_.at(static_cast<std::size_t>(id)); }
  Node& node(NodeId id) { return nodes_.at(static_cast<std::size_t>(id)); }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  std::vector<ValueId>& mutable_inputs() { return inputs_; }
  const std::vector<Capture>& captures() const { return captures_; }
  std::vector<Capture>& mutable_captures() { return captures_; }

  ValueId find_value(std::string_view name) const;  ///< kNoValue where there is none
  /// A name that no value has yet, beginning with `hint`.
  std::string unique_name(std::string_view hint) const;

  /// Live nodes, producers before consumers (subgraph captures count as uses). Throws InvalidModel naming a node on a
  /// cycle.
  std::vector<NodeId> topological_order() const;
  /// Live nodes that read each value, indexed by ValueId; a node appears once per use, subgraph captures included.
  std::vector<std::vector<NodeId>> consumers() const;
  bool is_output(ValueId id) const;
  /// Renumbers away removed nodes and unused values. Invalidates ids.
  void compact();
  /// Deep copy; subgraphs too. Tensors are shared.
  std::shared_ptr<Graph> clone() const;

 private:
  std::vector<ValueInfo> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> inputs_, outputs_;
  std::vector<Capture> captures_;
  std::map<std::string, ValueId, std::less<>> by_name_;
  friend class GraphPatch;
};

/// The graphs in a node's attributes, in attribute order.
std::vector<std::shared_ptr<Graph>> subgraphs(const Node& node);
/// Outer ids that a node's subgraphs capture, in the order of subgraphs() and of their captures; duplicates kept.
std::vector<ValueId> implicit_inputs(const Node& node);
/// "Conv 'conv1'", or "Conv producing 'y'" for an unnamed node: how messages speak of a node.
std::string describe(const Graph& graph, const Node& node);

/// What a model file says besides its graph.
struct ModelInfo {
  std::int64_t ir_version = 0;
  std::map<std::string, std::int64_t> opsets;  ///< domain ("" is ai.onnx) -> version
  std::string producer_name, producer_version, domain, doc, graph_name;
  std::int64_t model_version = 0;
  std::vector<std::pair<std::string, std::string>> metadata;  ///< custom properties, file order
};

struct Model {
  ModelInfo info;
  std::shared_ptr<Graph> graph;
  std::vector<FileIdentity> files;  ///< the model's file and those of its external data; empty for a model in memory
};

}  // namespace infernode::graph
