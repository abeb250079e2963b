#pragma once
// What transformations share: the constants that nodes read, who else reads them, and which nodes a caller means.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/patch.h"
#include "transform/transformation.h"

namespace infernode::transform {

/// The constant tensor of a value, be it an initializer or the value of a Constant; null where it is none.
const tensor::Tensor* constant_of(const graph::Graph& graph, graph::ValueId id);

/// Counts the readers of a graph's constants while nodes are replaced, and lets go of those that have none left.
class WeightUses {
 public:
  WeightUses(graph::Graph& graph, const Context& context);
  /// A node that read the constant is being replaced by one that does not.
  void drop(graph::ValueId id, graph::GraphPatch& patch);

 private:
  graph::Graph& graph_;
  const Context& context_;
  std::vector<std::size_t> uses_;
};

/// The nodes that the settings opTypesToQuantize, nodesToExclude and the list `include` mean.
class NodeChoice {
 public:
  /// Throws InvalidArgument where a name is none of a node, here or in a body.
  NodeChoice(const graph::Graph& graph, const Settings& settings, std::string_view include);
  bool has_type(const graph::Node& node) const;
  /// Why the caller does not want it; "" where it does.
  std::string_view refusal(const graph::Node& node) const;

 private:
  std::set<std::string, std::less<>> types_, excluded_, included_;
};

/// Goes over the nodes that a caller means, and reports what became of each.
class NodeVisits {
 public:
  /// Throws as NodeChoice does.
  NodeVisits(const graph::Graph& graph, const Settings& settings, std::string_view include, const Context& context,
             Report& report);
  /// Visits a graph's nodes. `refusal` says why one that the caller wants stays as it is, "" where it need not;
  /// `replace` puts another in its place and returns that one's operator. `body` is called for each body of a node,
  /// before it.
  void visit(graph::Graph& graph, FunctionRef<void(graph::Graph&)> body,
             FunctionRef<std::string(const graph::Node&)> refusal,
             FunctionRef<std::string(graph::NodeId, const graph::Node&)> replace);

 private:
  NodeChoice choice_;
  const Context& context_;
  Report& report_;
  std::size_t done_ = 0, total_ = 0;
};

bool has_bias(const graph::Node& node);  ///< of Gemm and Conv
/// Why a Gemm is more than a product and a bias; "" where it is not.
std::string_view refusal_of_gemm(const graph::Node& node);

/// Calls `make`, and has an error of a weight's elements say which they are, and of which node.
void naming_weight(const graph::Graph& graph, const graph::Node& node, graph::ValueId weight, FunctionRef<void()> make);

/// Throws InvalidModel where nothing became of any node: `what` says what was looked for, and `made` are the operators
/// that a model has of an earlier transformation.
void check_changed(const graph::Graph& graph, const Report& report, std::string_view what,
                   std::initializer_list<std::string_view> made);

}  // namespace infernode::transform
