#pragma once

#include <algorithm>
#include <optional>

#include "graph/graph.h"

namespace infernode::cuda {

/// A node as can_run sees it: types and ranks, and what is known of its inputs before any data is there.
class NodeView {
 public:
  /// `known`, by ValueId: contents follow from constants and shapes alone.
  NodeView(const graph::Graph& graph, const graph::Node& node, const std::vector<bool>& known)
      : graph_(graph), node_(node), known_(known) {}

  const graph::Node& node() const { return node_; }
  const graph::Attributes& attributes() const { return node_.attributes; }
  bool has_input(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != graph::kNoValue; }
  bool has_output(std::size_t o) const { return o < node_.outputs.size() && node_.outputs[o] != graph::kNoValue; }
  /// Undefined where absent or no tensor.
  tensor::DType input_dtype(std::size_t i) const { return has_input(i) ? dtype(node_.inputs[i]) : kNone; }
  tensor::DType output_dtype(std::size_t o) const { return has_output(o) ? dtype(node_.outputs[o]) : kNone; }
  std::optional<std::size_t> input_rank(std::size_t i) const {
    if (!has_input(i)) return std::nullopt;
    const graph::ValueType& type = graph_.value(node_.inputs[i]).type;
    return type.shape ? std::optional(type.shape->size()) : std::nullopt;
  }
  /// A dim is known to be 0.
  bool is_empty(std::size_t i) const {
    if (!has_input(i)) return false;
    const graph::ValueType& type = graph_.value(node_.inputs[i]).type;
    return type.shape && std::any_of(type.shape->begin(), type.shape->end(),
                                     [](const graph::Dim& dim) { return dim.known() && dim.value() == 0; });
  }
  /// The input is absent, or its contents are known when a plan is made.
  bool is_known(std::size_t i) const { return !has_input(i) || known_[static_cast<std::size_t>(node_.inputs[i])]; }
  /// Every input that is there, and every output, is of one of these types.
  bool all_of(tensor::TypeSet types) const {
    for (const auto* side : {&node_.inputs, &node_.outputs}) {
      for (const graph::ValueId id : *side) {
        if (id != graph::kNoValue && !types.contains(dtype(id))) return false;
      }
    }
    return true;
  }

 private:
  static constexpr tensor::DType kNone = tensor::DType::Undefined;
  tensor::DType dtype(graph::ValueId id) const {
    const graph::ValueType& type = graph_.value(id).type;
    return type.is_tensor() ? type.elem : kNone;
  }
  const graph::Graph& graph_;
  const graph::Node& node_;
  const std::vector<bool>& known_;
};

}  // namespace infernode::cuda
