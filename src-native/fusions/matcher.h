#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "fusions/fusion.h"

namespace infernode::fusions {

/// A pattern parsed once: nodes in topological order, the last one makes the first output and is where matching begins.
class Pattern {
 public:
  /// Throws Internal on text that does not parse or whose nodes do not all lead to the outputs. `operators` outlives
  /// it.
  Pattern(std::string_view text, const kernel::Registry& operators);
  const kernel::Registry& operators() const { return operators_; }
  const graph::Graph& graph() const { return *graph_; }
  const std::vector<graph::NodeId>& order() const { return order_; }
  graph::NodeId root() const { return root_; }
  /// Whether others than the match may read a value that is made inside.
  bool has_shared() const { return has_shared_; }
  /// Whether a node of the pattern has two inputs that may change places.
  bool is_commutative(graph::NodeId node) const { return commutative_[static_cast<std::size_t>(node)]; }
  static bool is_shared(const graph::ValueInfo& value) { return value.name.starts_with("s_"); }

 private:
  const kernel::Registry& operators_;
  std::shared_ptr<graph::Graph> graph_;
  std::vector<bool> commutative_;
  std::vector<graph::NodeId> order_;
  graph::NodeId root_;
  bool has_shared_ = false;
};

/// The match whose root is `node`; nullopt where the pattern does not fit there. Commutative operators are tried both
/// ways round. `consumers` are the graph's.
std::optional<Match> match_at(const Pattern& pattern, const graph::Graph& graph, graph::NodeId node,
                              const std::vector<std::vector<graph::NodeId>>& consumers);

}  // namespace infernode::fusions
