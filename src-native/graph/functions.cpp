#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "graph/definition.h"

namespace infernode::graph {
namespace {

constexpr size_t kMaxInlinedNodes = 1'000'000;
constexpr size_t kMaxCallDepth = 64;

class Inliner {
 public:
  explicit Inliner(const std::vector<FunctionDef>& functions) {
    for (const FunctionDef& f : functions) {
      const auto [at, added] = functions_.emplace(Key(normal_domain(f.domain), f.name, f.overload), &f);
      INFERNODE_CHECK(added, ErrorCode::InvalidModel, "function '", f.name, "' of domain '", f.domain,
                      "' is defined more than once");
    }
  }

  void expand(Graph& graph) {
    std::vector<NodeId> all(graph.node_count());
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<NodeId>(i);
    expand(graph, all);
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;

  void expand(Graph& graph, const std::vector<NodeId>& nodes) {
    for (NodeId id : nodes) {
      if (graph.node(id).removed) continue;
      for (const auto& subgraph : subgraphs(graph.node(id))) expand(*subgraph);
      const Node& node = graph.node(id);
      const auto at = functions_.find(Key(node.domain, node.op_type, node.overload));
      if (at == functions_.end()) continue;
      const FunctionDef& f = *at->second;
      INFERNODE_CHECK(std::ranges::find(calls_, &f) == calls_.end(), ErrorCode::InvalidModel, "function '", f.name,
                      "' calls itself, at node ", describe(graph, node));
      INFERNODE_CHECK(calls_.size() < kMaxCallDepth, ErrorCode::InvalidModel,
                      "calls of functions are nested deeper than ", kMaxCallDepth, " levels at node ",
                      describe(graph, node));
      const std::vector<NodeId> added = inline_function(graph, id, f);
      total_ += added.size();
      INFERNODE_CHECK(total_ <= kMaxInlinedNodes, ErrorCode::InvalidModel, "the model's functions expand to more than ",
                      kMaxInlinedNodes, " nodes");
      calls_.push_back(&f);
      expand(graph, added);
      calls_.pop_back();
    }
  }

  std::map<Key, const FunctionDef*> functions_;
  std::vector<const FunctionDef*> calls_;
  size_t total_ = 0;
};

}  // namespace

void inline_functions(Graph& graph, const std::vector<FunctionDef>& functions) {
  if (!functions.empty()) Inliner(functions).expand(graph);
}

NameTable::NameTable(const Graph& graph, const NameTable* outer) : outer_(outer), names_(graph.values().size()) {
  if (outer) {
    for (const Capture& c : graph.captures()) names_[static_cast<size_t>(c.inner)] = (*outer)[c.outer];
  }
  for (size_t v = 0; v < names_.size(); ++v) {
    if (!names_[v].empty()) continue;
    const std::string& name = graph.values()[v].name;
    std::string chosen = name;
    for (size_t n = 1; visible(chosen); ++n) chosen = cat(name, "_", n);
    taken_.insert(chosen);
    names_[v] = std::move(chosen);
  }
}

bool NameTable::visible(std::string_view name) const {
  return taken_.contains(name) || (outer_ && outer_->visible(name));
}

}  // namespace infernode::graph
