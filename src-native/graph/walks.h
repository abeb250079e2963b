#pragma once
// What goes over a whole graph, which may have a million nodes, with calls of `look` now and then, which may throw.

#include <vector>

#include "base/function_ref.h"
#include "graph/graph.h"

namespace infernode::graph {

/// May be null.
using Look = FunctionRef<void()>;

/// Looks once in so many nodes or values: some hundred microseconds.
class Steps {
 public:
  explicit Steps(Look look) : look_(look) {}
  void step() {
    if (--left_ > 0) return;
    left_ = kBetween;
    if (look_) look_();
  }

 private:
  static constexpr int kBetween = 1024;
  Look look_;
  int left_ = kBetween;
};

/// As Graph::topological_order().
std::vector<NodeId> topological_order(const Graph& graph, Look look);
/// As Graph::consumers().
std::vector<std::vector<NodeId>> consumers(const Graph& graph, Look look);

/// Both by load.check(), which ends a load.
template <class Load>
requires requires(const Load& load) { load.check(); }
std::vector<NodeId> topological_order(const Graph& graph, const Load& load) {
  return topological_order(graph, Look([&load] { load.check(); }));
}
template <class Load>
requires requires(const Load& load) { load.check(); }
std::vector<std::vector<NodeId>> consumers(const Graph& graph, const Load& load) {
  return consumers(graph, Look([&load] { load.check(); }));
}

}  // namespace infernode::graph
