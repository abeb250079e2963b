#pragma once
// Graphs as files and text spell them: edges by name. Readers make definitions, build_graph makes graphs of ids.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "graph/graph.h"

namespace infernode::graph {

struct GraphDef;

/// An attribute of a node in a function body that takes its value from the caller's attribute `source`.
struct AttributeRef {
  std::string name, source;
  int type = 0;  ///< ONNX's code of the attribute's type; 0 where not stated
};

/// An attribute that holds graphs: one, or a list.
struct GraphAttribute {
  std::string name;
  std::vector<std::shared_ptr<const GraphDef>> graphs;
  bool is_list = false;
};

struct NodeDef {
  std::string name, op_type, domain, overload;
  std::vector<std::string> inputs, outputs;  ///< "" where an optional one is absent
  Attributes attributes;                     ///< all but graphs and references
  std::vector<GraphAttribute> graphs;
  std::vector<AttributeRef> attribute_refs;
  std::int64_t opset = 0;  ///< the operator's version where the file says it node by node; 0: what the model imports
};

struct NamedType {
  std::string name;
  ValueType type;
};

struct GraphDef {
  std::string name, doc;
  std::vector<NamedType> inputs, outputs, value_info;
  std::vector<std::pair<std::string, tensor::Value>> initializers;
  std::vector<NodeDef> nodes;
};

/// A function: model-local, or the definition of a function operator. Its body is closed: it reads its inputs only.
struct FunctionDef {
  std::string name, domain, overload;
  std::vector<std::string> attributes;  ///< names without defaults
  Attributes defaults;                  ///< attributes with defaults
  std::map<std::string, std::int64_t> opsets;
  GraphDef body;  ///< inputs and outputs by name, types where stated
};

/// "ai.onnx" is written "" everywhere here.
std::string normal_domain(std::string_view domain);

/// The version of `domain` among imports. Not imported: 1.
std::int64_t opset_of(const std::map<std::string, std::int64_t>& opsets, std::string_view domain);

/// Where initializers of the graph itself share a name, the last one counts: drops the others and returns their names.
/// Nested graphs stay as they are.
std::vector<std::string> drop_replaced_initializers(GraphDef& def);

/// Makes the graph; nested graphs capture what they read from outside. Nodes may come in any order and are put into a
/// valid one. Throws InvalidModel, naming the culprit, for duplicate names, undefined inputs, cycles, outputs that
/// nothing produces and nesting beyond the limit. `checkpoint` is called now and then; what it throws ends the work.
std::shared_ptr<Graph> build_graph(const GraphDef& def, const std::map<std::string, std::int64_t>& opsets,
                                   FunctionRef<void()> checkpoint = nullptr);

/// Replaces `node` by the body of `function`: values get unique names, attribute references the node's attributes (or
/// the function's defaults; an attribute with neither is left out), and the new nodes carry the node's name in their
/// provenance. Ids of other nodes stay valid; `node` becomes a removed node. Returns the ids of the new nodes.
std::vector<NodeId> inline_function(Graph& graph, NodeId node, const FunctionDef& function);

/// Replaces every node that calls one of `functions` (by domain, name and overload), in subgraphs and in bodies too.
/// Throws InvalidModel for functions that call themselves and for expansions beyond a million nodes or 256 MiB, before
/// any is made.
void inline_functions(Graph& graph, const std::vector<FunctionDef>& functions);

/// Names of a graph's values as a file must spell them: a captured value has the name it has outside, and no local name
/// hides an outer one.
class NameTable {
 public:
  explicit NameTable(const Graph& graph, const NameTable* outer = nullptr);
  const std::string& operator[](ValueId id) const { return names_.at(static_cast<std::size_t>(id)); }

 private:
  bool visible(std::string_view name) const;
  const NameTable* outer_;
  std::vector<std::string> names_;
  std::set<std::string, std::less<>> taken_;
};

}  // namespace infernode::graph
