#pragma once
// Which values of a graph have codes in a run, by the operators that make and read them: the rules of
// onnxruntime.quantization.quantize_static.

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/patch.h"
#include "transform/settings.h"
#include "transform/tensor_codes.h"

namespace infernode::transform {

/// What becomes of a value: it has codes.
struct Mark {
  bool weight = false;                    ///< of the type of weights
  std::optional<std::size_t> axis{};      ///< of a weight that has a scale for each index
  graph::ValueId like = graph::kNoValue;  ///< it has that value's scale
};

/// A constant that a node adds to products of codes, whose scale is theirs.
struct BiasMark {
  graph::NodeId node;
  std::size_t index;  ///< of the node's input
  graph::ValueId input, weight;
};

using ValueRanges = std::map<graph::ValueId, Range>;

/// Throws InvalidModel where nodes make codes of activations.
void check_unquantized(const graph::Graph& graph);

class StaticMarks {
 public:
  /// Adjusts `ranges`, which must outlive it as the graph must.
  StaticMarks(const graph::Graph& graph, const Settings& settings, ValueRanges& ranges);
  /// Why a node that the caller wants stays as it is; "" where it need not. Asked before the node is marked, and after
  /// all those before it.
  std::string refusal(const graph::Node& node) const;
  /// Marks a node's values; what does its work then. `patch` hears of activations that codes make superfluous.
  std::string mark(graph::NodeId id, const graph::Node& node, graph::GraphPatch& patch);

  const std::map<graph::ValueId, Mark>& values() const { return values_; }
  const std::vector<BiasMark>& biases() const { return biases_; }
  const std::vector<graph::NodeId>& nodes() const { return nodes_; }  ///< that are marked and stay

 private:
  /// The value that takes its place.
  graph::ValueId resolve(graph::ValueId id) const;
  bool can_have_codes(graph::ValueId id) const;
  bool is_marked(graph::ValueId id) const { return values_.contains(resolve(id)); }
  bool wants_output(const graph::Node& node) const { return !no_outputs_.contains(node.op_type); }

  void activation(graph::ValueId id);
  void activations(const std::vector<graph::ValueId>& ids);
  void outputs(const graph::Node& node);
  void weight(graph::ValueId id, const graph::Node& node, std::int64_t axis);
  void same(graph::ValueId output, graph::ValueId input);
  void bias(graph::NodeId id, const graph::Node& node);

  void mark_product(graph::NodeId id, const graph::Node& node, std::int64_t axis);
  void mark_matmul(const graph::Node& node);
  void mark_normalization(graph::NodeId id, const graph::Node& node);
  void mark_passing(const graph::Node& node);
  void mark_pad(const graph::Node& node);
  std::string mark_clamp(graph::NodeId id, const graph::Node& node, graph::GraphPatch& patch);
  bool is_superfluous(const graph::Node& node) const;
  void adjust_ranges(const Settings& settings);

  const graph::Graph& graph_;
  ValueRanges& ranges_;
  std::vector<std::size_t> readers_;  ///< of each value
  std::map<graph::ValueId, Mark> values_;
  std::map<graph::ValueId, graph::ValueId> instead_;
  std::vector<BiasMark> biases_;
  std::vector<graph::NodeId> nodes_;
  std::set<std::string, std::less<>> no_outputs_;
  std::map<std::string, std::int64_t, std::less<>> axes_;  ///< of weights, by operator
  bool per_channel_, symmetric_, restricted_, force_, const_b_only_, keep_, quantize_bias_;
};

}  // namespace infernode::transform
