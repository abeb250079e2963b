#include "graph/definition.h"

#include <algorithm>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "graph/building.h"
#include "graph/verifier.h"

namespace infernode::graph {
namespace {

/// Attributes of the call that attribute references inside a function body resolve to.
struct Caller {
  const Attributes* given = nullptr;
  const Attributes* defaults = nullptr;
  std::vector<std::string> provenance;
  std::vector<std::string> absent;  ///< inputs of the function that the call leaves out

  const Attribute* find(std::string_view name) const {
    const Attribute* found = given->find(name);
    return found ? found : defaults->find(name);
  }
};

/// Where names of a graph under construction lead: to its own values, else to captures of outer ones.
class Scope {
 public:
  Scope(Graph& graph, Scope* outer) : graph_(graph), outer_(outer) {}

  Graph& graph() { return graph_; }
  void bind(std::string name, ValueId id) { names_.insert_or_assign(std::move(name), id); }
  bool binds(const std::string& name) const { return names_.contains(name); }

  /// kNoValue where no scope knows the name.
  ValueId resolve(const std::string& name) {
    if (const auto at = names_.find(name); at != names_.end()) return at->second;
    const ValueId outside = outer_ ? outer_->resolve(name) : kNoValue;
    if (outside == kNoValue) return kNoValue;
    const ValueId inside = graph_.add_value(graph_.unique_name(name), outer_->graph_.value(outside).type);
    graph_.add_capture({inside, outside});
    names_.emplace(name, inside);
    return inside;
  }

 private:
  Graph& graph_;
  Scope* outer_;
  std::unordered_map<std::string, ValueId> names_;
};

class Builder {
 public:
  Builder(const std::map<std::string, int64_t>& opsets, const Caller* caller, FunctionRef<void()> checkpoint = nullptr)
      : opsets_(opsets), caller_(caller), checkpoint_(checkpoint) {}

  /// `Def`: a const GraphDef, whose nodes are copied, or one whose nodes may be taken.
  template <class Def>
  std::shared_ptr<Graph> build(Def& def, Scope* outer, int depth) {
    INFERNODE_CHECK(depth <= kMaxSubgraphDepth, ErrorCode::InvalidModel, "graph '", def.name,
                    "' is nested deeper than ", kMaxSubgraphDepth, " levels");
    auto graph = std::make_shared<Graph>();
    graph->name = def.name;
    graph->doc = def.doc;
    Scope scope(*graph, outer);
    for (const auto& [name, type] : def.inputs) {
      INFERNODE_CHECK(!name.empty(), ErrorCode::InvalidModel, "graph '", def.name, "' has an input without a name");
      INFERNODE_CHECK(!scope.binds(name), ErrorCode::InvalidModel, "graph '", def.name, "' has two inputs named '",
                      name, "'");
      const ValueId id = graph->add_value(name, type);
      graph->add_input(id);
      scope.bind(name, id);
    }
    for (const auto& [name, value] : def.initializers) add_initializer(def, scope, name, value);
    define_outputs(def.nodes, scope);
    for (const auto& [name, type] : def.value_info) declare(scope, name, type);
    for (const auto& [name, type] : def.outputs) declare(scope, name, type);
    for (auto& node : def.nodes) {
      if constexpr (std::is_const_v<Def>)
        add_node(node, scope, depth);
      else
        add_node(std::move(node), scope, depth);
    }
    for (const auto& [name, type] : def.outputs) {
      const ValueId id = scope.resolve(name);
      if (id == kNoValue) {
        ErrorContext context;
        context.output = name;
        fail(ErrorCode::InvalidModel, cat("output '", name, "' of graph '", def.name, "' is produced by no node"),
             std::move(context));
      }
      graph->add_output(id);
    }
    return graph;
  }

  void define_outputs(const std::vector<NodeDef>& nodes, Scope& scope) {
    Graph& graph = scope.graph();
    for (const NodeDef& node : nodes) {
      if (checkpoint_) checkpoint_();
      for (const std::string& name : node.outputs) {
        if (name.empty()) continue;
        INFERNODE_CHECK(!scope.binds(name), ErrorCode::InvalidModel, "the name '", name,
                        "' is defined more than once in graph '", graph.name, "': node ", spell(node),
                        " produces it again");
        scope.bind(name, graph.add_value(name));
      }
    }
  }

  NodeId add_node(NodeDef def, Scope& scope, int depth) {
    if (checkpoint_) checkpoint_();
    INFERNODE_CHECK(!def.op_type.empty(), ErrorCode::InvalidModel, "node '", def.name, "' has no operator");
    Node node;
    node.domain = normal_domain(def.domain);
    node.opset = def.opset != 0 ? def.opset : opset_of(opsets_, node.domain);
    for (const std::string& name : def.inputs) {
      const ValueId id = name.empty() ? kNoValue : scope.resolve(name);
      if (id == kNoValue && !name.empty() && !is_absent(name)) fail_undefined(def, name, scope);
      node.inputs.push_back(id);
    }
    while (caller_ && !node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
    for (const std::string& name : def.outputs) node.outputs.push_back(name.empty() ? kNoValue : scope.resolve(name));
    node.attributes = std::move(def.attributes);
    for (const AttributeRef& ref : def.attribute_refs) {
      INFERNODE_CHECK(caller_, ErrorCode::InvalidModel, "node ", spell(def), ": attribute '", ref.name, "' refers to '",
                      ref.source, "' outside of a function");
      if (const Attribute* value = caller_->find(ref.source)) node.attributes.set(ref.name, *value);
    }
    for (const GraphAttribute& attribute : def.graphs) {
      std::vector<std::shared_ptr<Graph>> graphs;
      for (const auto& g : attribute.graphs) graphs.push_back(build(*g, &scope, depth + 1));
      if (attribute.is_list)
        node.attributes.set(attribute.name, std::move(graphs));
      else
        node.attributes.set(attribute.name, graphs.at(0));
    }
    node.name = std::move(def.name);
    node.op_type = std::move(def.op_type);
    node.overload = std::move(def.overload);
    if (caller_) {
      node.provenance = caller_->provenance;
      if (!node.name.empty() && !caller_->provenance.empty()) node.name = caller_->provenance.back() + "/" + node.name;
    }
    return scope.graph().add_node(std::move(node));
  }

 private:
  bool is_absent(const std::string& name) const {
    return caller_ && std::ranges::find(caller_->absent, name) != caller_->absent.end();
  }

  static std::string spell(const NodeDef& def) {
    if (!def.name.empty()) return cat(def.op_type, " '", def.name, "'");
    return def.outputs.empty() ? def.op_type : cat(def.op_type, " producing '", def.outputs[0], "'");
  }

  [[noreturn]] static void fail_undefined(const NodeDef& def, const std::string& input, Scope& scope) {
    ErrorContext context;
    context.node = def.name;
    context.op_type = def.op_type;
    context.input = input;
    fail(ErrorCode::InvalidModel,
         cat("node ", spell(def), " in graph '", scope.graph().name, "': its input '", input,
             "' is not an output of any node, an initializer or a graph input"),
         std::move(context));
  }

  static void add_initializer(const GraphDef& def, Scope& scope, const std::string& name, const tensor::Value& value) {
    Graph& graph = scope.graph();
    INFERNODE_CHECK(!name.empty(), ErrorCode::InvalidModel, "graph '", def.name, "' has an initializer without a name");
    if (!scope.binds(name)) {
      scope.bind(name, graph.add_constant(name, value));
      return;
    }
    ValueInfo& info = graph.value(scope.resolve(name));
    INFERNODE_CHECK(!info.has_constant(), ErrorCode::InvalidModel, "graph '", def.name,
                    "' has two initializers named '", name, "'");
    info.constant = value;
    // The input's declared type holds for what is fed; a missing one is the initializer's.
    if (info.type.kind == ValueType::Kind::Unknown && value.is_tensor())
      info.type = ValueType::tensor(value.tensor().dtype(), to_sym(value.tensor().shape()));
  }

  /// A declared type; ignored where the graph has no such value, or knows it already.
  static void declare(Scope& scope, const std::string& name, const ValueType& type) {
    if (name.empty() || !scope.binds(name) || type.kind == ValueType::Kind::Unknown) return;
    ValueInfo& info = scope.graph().value(scope.resolve(name));
    if (!info.is_input && !info.has_constant()) info.type = type;
  }

  const std::map<std::string, int64_t>& opsets_;
  const Caller* caller_;
  const FunctionRef<void()> checkpoint_;
};

/// The same graph with its nodes in topological order, subgraphs first.
std::shared_ptr<Graph> sorted(std::shared_ptr<Graph> graph, Look look) {
  Steps steps(look);
  for (size_t n = 0; n < graph->node_count(); ++n) {
    steps.step();
    Node& node = graph->node(static_cast<NodeId>(n));
    if (subgraphs(node).empty()) continue;
    Attributes attributes = node.attributes;
    for (const auto& [name, attribute] : node.attributes) {
      if (const auto* g = std::get_if<std::shared_ptr<Graph>>(&attribute)) {
        attributes.set(name, sorted(*g, look));
      } else if (const auto* list = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute)) {
        std::vector<std::shared_ptr<Graph>> out;
        for (const auto& g : *list) out.push_back(sorted(g, look));
        attributes.set(name, std::move(out));
      }
    }
    node.attributes = std::move(attributes);
  }
  const std::vector<NodeId> order = topological_order(*graph, look);
  if (std::ranges::is_sorted(order)) return graph;
  auto out = std::make_shared<Graph>();
  out->name = graph->name;
  out->doc = graph->doc;
  for (const ValueInfo& info : graph->values()) {
    steps.step();
    const ValueId id = out->add_value(info.name, info.type);
    out->value(id).constant = info.constant;
  }
  for (ValueId v : graph->inputs()) out->add_input(v);
  for (ValueId v : graph->outputs()) out->add_output(v);
  for (const Capture& c : graph->captures()) out->add_capture(c);
  for (NodeId id : order) {
    steps.step();
    out->add_node(std::move(graph->node(id)));
  }
  return out;
}

template <class Def>
std::shared_ptr<Graph> build_any(Def& def, const std::map<std::string, int64_t>& opsets,
                                 FunctionRef<void()> checkpoint) {
  auto graph = sorted(Builder(opsets, nullptr, checkpoint).build(def, nullptr, 0), checkpoint);
  verify(*graph, checkpoint);
  return graph;
}

}  // namespace

std::string normal_domain(std::string_view domain) { return domain == "ai.onnx" ? std::string() : std::string(domain); }

int64_t opset_of(const std::map<std::string, int64_t>& opsets, std::string_view domain) {
  const auto at = opsets.find(std::string(domain));
  return at == opsets.end() ? 1 : at->second;
}

std::vector<std::string> drop_replaced_initializers(GraphDef& def) {
  std::unordered_set<std::string_view> kept;
  std::vector<std::string> dropped;
  const auto is_replaced = [&](const auto& initializer) {
    if (initializer.first.empty() || kept.insert(initializer.first).second) return false;
    dropped.push_back(initializer.first);
    return true;
  };
  std::vector<std::pair<std::string, tensor::Value>>& all = def.initializers;
  std::vector<bool> replaced(all.size());
  for (size_t i = all.size(); i-- > 0;) replaced[i] = is_replaced(all[i]);
  if (dropped.empty()) return dropped;
  std::vector<std::pair<std::string, tensor::Value>> last;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!replaced[i]) last.push_back(std::move(all[i]));
  }
  all = std::move(last);
  return dropped;
}

std::shared_ptr<Graph> build_graph(const GraphDef& def, const std::map<std::string, int64_t>& opsets,
                                   FunctionRef<void()> checkpoint) {
  return build_any(def, opsets, checkpoint);
}

std::shared_ptr<Graph> build_graph(GraphDef&& def, const std::map<std::string, int64_t>& opsets,
                                   FunctionRef<void()> checkpoint) {
  return build_any(def, opsets, checkpoint);
}

std::vector<NodeId> inline_function(Graph& graph, NodeId id, const FunctionDef& function) {
  const Node call = graph.node(id);
  const GraphDef& body = function.body;
  const auto check = [&](bool ok, auto&&... what) {
    if (ok) return;
    ErrorContext context;
    context.node = call.name;
    context.op_type = call.op_type;
    fail(ErrorCode::InvalidModel, cat("node ", describe(graph, call), ": ", what...), std::move(context));
  };
  check(call.inputs.size() <= body.inputs.size(), "function ", function.name, " takes ", body.inputs.size(),
        " inputs, the node gives ", call.inputs.size());
  check(call.outputs.size() <= body.outputs.size(), "function ", function.name, " makes ", body.outputs.size(),
        " outputs, the node wants ", call.outputs.size());

  Caller caller{&call.attributes, &function.defaults, call.provenance, {}};
  if (!call.name.empty())
    caller.provenance.push_back(call.name);
  else if (caller.provenance.empty())
    caller.provenance.push_back(describe(graph, call));

  // The call's outputs pass to the nodes of the body that make them.
  graph.node(id).removed = true;
  for (ValueId v : call.outputs)
    if (v != kNoValue) graph.value(v).producer = kNoNode;

  Builder builder(function.opsets, &caller);
  Scope scope(graph, nullptr);
  // An absent input makes every use of it absent.
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    const ValueId given = i < call.inputs.size() ? call.inputs[i] : kNoValue;
    if (given == kNoValue)
      caller.absent.push_back(body.inputs[i].name);
    else
      scope.bind(body.inputs[i].name, given);
  }
  std::unordered_map<std::string, ValueId> wanted;
  std::vector<std::pair<std::string, ValueId>> copies;  // outputs that are inputs, or the same value twice
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const std::string& name = body.outputs[i].name;
    if (call.outputs[i] == kNoValue) continue;
    const bool is_input = std::ranges::any_of(body.inputs, [&](const NamedType& t) { return t.name == name; });
    if (is_input || !wanted.emplace(name, call.outputs[i]).second) copies.emplace_back(name, call.outputs[i]);
  }
  for (const auto& [name, value] : body.initializers)
    scope.bind(name, graph.add_constant(graph.unique_name(name), value));
  for (const NodeDef& node : body.nodes) {
    for (const std::string& name : node.outputs) {
      if (name.empty()) continue;
      check(!scope.binds(name), "function ", function.name, " defines '", name, "' more than once");
      const auto at = wanted.find(name);
      scope.bind(name, at != wanted.end() ? at->second : graph.add_value(graph.unique_name(name)));
    }
  }
  std::vector<NodeId> added;
  for (const NodeDef& node : body.nodes) added.push_back(builder.add_node(node, scope, 0));
  for (auto& [name, value] : copies) {
    NodeDef identity;
    identity.op_type = "Identity";
    identity.inputs = {name};
    const NodeId copy = builder.add_node(identity, scope, 0);
    graph.node(copy).outputs = {value};
    graph.value(value).producer = copy;
    added.push_back(copy);
  }
  for (ValueId v : call.outputs)
    check(v == kNoValue || graph.value(v).producer != kNoNode, "function ", function.name, " does not produce output '",
          v == kNoValue ? std::string() : graph.value(v).name, "'");
  return added;
}

}  // namespace infernode::graph
