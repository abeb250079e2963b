#include <algorithm>
#include <limits>
#include <tuple>

#include "base/checked.h"
#include "base/error.h"
#include "graph/building.h"

namespace infernode::graph {
namespace {

constexpr size_t kMaxInlinedNodes = 1'000'000;
constexpr size_t kMaxCallDepth = 64;

/// What nodes take: `bytes` is a guess that errs on the small side. Sums end at the largest number.
struct Size {
  size_t nodes = 0, bytes = 0;
  Size& operator+=(const Size& more) {
    if (add_overflows(nodes, more.nodes, nodes)) nodes = std::numeric_limits<size_t>::max();
    if (add_overflows(bytes, more.bytes, bytes)) bytes = std::numeric_limits<size_t>::max();
    return *this;
  }
};

/// What a copy of the value takes outside of itself: the elements of lists and strings, and what those hold.
template <class T>
size_t held_bytes(const T& value) {
  if constexpr (requires { value.data(), value.size(); }) {
    size_t bytes = value.size() * sizeof *value.data();
    if constexpr (!std::is_same_v<T, std::string>) {
      for (const auto& item : value) bytes += held_bytes(item);
    }
    return bytes;
  } else {
    return 0;
  }
}

/// Tensors and graphs of attributes are shared, all else is copied.
size_t copied_bytes(const Attribute& attribute) {
  return std::visit([](const auto& value) { return held_bytes(value); }, attribute);
}

class Inliner {
 public:
  Inliner(const std::vector<FunctionDef>& functions, size_t max_bytes, FunctionRef<void()> checkpoint)
      : max_bytes_(max_bytes), checkpoint_(checkpoint) {
    for (const FunctionDef& f : functions) {
      const auto [at, added] = functions_.emplace(Key(normal_domain(f.domain), f.name, f.overload), &f);
      INFERNODE_CHECK(added, ErrorCode::InvalidModel, "function '", f.name, "' of domain '", f.domain,
                      "' is defined more than once");
    }
  }

  /// Throws InvalidModel where the graph would become too large. What attributes of calls become in bodies is counted
  /// by expand().
  void check_size(const Graph& graph) { refuse_beyond(size_of(graph)); }

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
      if (checkpoint_) checkpoint_();
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
      passed_on_ += passed_on(f.body, node.attributes, f.defaults);
      refuse_beyond(passed_on_);
      const std::vector<NodeId> added = inline_function(graph, id, f);
      calls_.push_back(&f);
      expand(graph, added);
      calls_.pop_back();
    }
  }

  void refuse_beyond(const Size& size) const {
    INFERNODE_CHECK(size.nodes <= kMaxInlinedNodes && size.bytes <= max_bytes_, ErrorCode::InvalidModel,
                    "the model's functions expand to more than ", kMaxInlinedNodes, " nodes, or ", max_bytes_,
                    " bytes of them");
  }

  /// What nodes of a body copy of the attributes that its call gives.
  static Size passed_on(const GraphDef& body, const Attributes& given, const Attributes& defaults) {
    Size size;
    for (const NodeDef& node : body.nodes) {
      for (const AttributeRef& ref : node.attribute_refs) {
        const Attribute* value = given.find(ref.source);
        if (value == nullptr) value = defaults.find(ref.source);
        if (value != nullptr) size += {0, copied_bytes(*value)};
      }
      for (const GraphAttribute& attribute : node.graphs) {
        for (const auto& graph : attribute.graphs) size += passed_on(*graph, given, defaults);
      }
    }
    return size;
  }

  const FunctionDef* find(std::string_view domain, const std::string& name, const std::string& overload) const {
    const auto at = functions_.find(Key(domain, name, overload));
    return at == functions_.end() ? nullptr : at->second;
  }

  /// What a call of the function adds. Nothing for one that is being counted: it calls itself, which expand() refuses.
  Size size_of(const FunctionDef& function) {
    const auto [at, fresh] = sizes_.emplace(&function, Size{});
    if (!fresh) return at->second;
    const Size size = size_of(function.body);
    return sizes_[&function] = size;
  }

  Size size_of(const GraphDef& graph) {
    Size size;
    for (const NodeDef& node : graph.nodes) {
      size += size_of_node(node.attributes);
      if (const FunctionDef* callee = find(normal_domain(node.domain), node.op_type, node.overload))
        size += size_of(*callee);
      for (const GraphAttribute& attribute : node.graphs) {
        for (const auto& body : attribute.graphs) size += size_of(*body);
      }
    }
    return size;
  }

  Size size_of(const Graph& graph) {
    Size size;
    for (NodeId id = 0; id < static_cast<NodeId>(graph.node_count()); ++id) {
      const Node& node = graph.node(id);
      if (const FunctionDef* callee = find(node.domain, node.op_type, node.overload)) size += size_of(*callee);
      for (const auto& body : subgraphs(node)) size += size_of(*body);
    }
    return size;
  }

  static Size size_of_node(const Attributes& attributes) {
    Size size{1, sizeof(Node) + sizeof(ValueInfo)};
    for (const auto& [name, attribute] : attributes) size.bytes += copied_bytes(attribute);
    return size;
  }

  const size_t max_bytes_;
  const FunctionRef<void()> checkpoint_;
  Size passed_on_;
  std::map<Key, const FunctionDef*> functions_;
  std::map<const FunctionDef*, Size> sizes_;
  std::vector<const FunctionDef*> calls_;
};

}  // namespace

void inline_functions(Graph& graph, const std::vector<FunctionDef>& functions) {
  constexpr size_t kMaxInlinedBytes = size_t{256} << 20;
  inline_functions(graph, functions, kMaxInlinedBytes);
}

void inline_functions(Graph& graph, const std::vector<FunctionDef>& functions, size_t max_bytes,
                      FunctionRef<void()> checkpoint) {
  if (functions.empty()) return;
  Inliner inliner(functions, max_bytes, checkpoint);
  inliner.check_size(graph);
  inliner.expand(graph);
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
