#include <algorithm>
#include <map>
#include <memory>

#include "base/error.h"
#include "graph/verifier.h"
#include "graph/walks.h"
#include "kernel/inference.h"
#include "kernel/node_inference.h"
#include "tensor/texts.h"

namespace infernode::kernel {
namespace {

using graph::Dim;
using graph::Graph;
using graph::Node;
using graph::ValueId;
using graph::ValueType;
using tensor::DType;
using tensor::Tensor;
using tensor::Value;

/// Dims of a node's output; a chain of Unsqueeze nodes would otherwise take memory with the square of its length.
constexpr std::size_t kMaxRank = 64;

/// An unknown value without a name: it says less than any declaration.
bool is_anonymous(const Dim& dim) { return !dim.known() && dim.to_string() == "?"; }

/// What a declaration adds to what is inferred: it fills gaps. In bodies of loops a number that is declared also
/// outranks a symbol, for nothing else is left to say it where the body never runs.
enum class Declared : std::uint8_t { FillsGaps, GivesNumbers };

/// `type` completed by `declared`; otherwise what is inferred outranks what is declared. False where the two
/// contradict.
bool merge(ValueType& type, const ValueType& declared, Declared how) {
  if (declared.kind == ValueType::Kind::Unknown) return true;
  if (type.kind == ValueType::Kind::Unknown) {
    type = declared;
    return true;
  }
  if (type.kind != declared.kind) return false;
  if (type.elem == DType::Undefined) type.elem = declared.elem;
  if (declared.elem != DType::Undefined && type.elem != declared.elem) return false;
  if (declared.inner) {
    ValueType inner = type.inner ? *type.inner : ValueType{};
    const bool fits = merge(inner, *declared.inner, how);
    type.inner = std::make_shared<const ValueType>(std::move(inner));
    return fits;
  }
  if (!declared.shape) return true;
  if (!type.shape) {
    type.shape = declared.shape;
    return true;
  }
  if (type.shape->size() != declared.shape->size()) return false;
  bool fits = true;
  for (std::size_t i = 0; i < type.shape->size(); ++i) {
    Dim& dim = (*type.shape)[i];
    const Dim& other = (*declared.shape)[i];
    if (dim.known() && other.known() && dim.value() != other.value()) fits = false;
    const bool number = how == Declared::GivesNumbers && !dim.known() && other.known();
    if (number || is_anonymous(dim)) dim = other;
  }
  return fits;
}

std::string shown(const ValueType& type) {
  return cat(type.to_string(), type.shape ? graph::to_string(*type.shape) : "");
}

/// False where arithmetic on the elements left the range of an integer type: they wrap when the graph runs.
bool fits(const std::vector<Dim>& contents, DType type) {
  const std::size_t bits = tensor::bit_size(type);
  if (!tensor::is_integer(type) || bits >= 64) return true;
  const bool is_signed = tensor::is_signed_integer(type);
  const std::int64_t low = is_signed ? -(std::int64_t{1} << (bits - 1)) : 0;
  const std::int64_t high = low + (std::int64_t{1} << bits) - 1;
  return std::ranges::all_of(contents,
                             [&](const Dim& d) { return !d.known() || (d.value() >= low && d.value() <= high); });
}

struct Settings {
  const Registry& registry;
  const Logger* logger;
  bool whole;  ///< check nodes and infer every subgraph; else only what is not known yet
  const RunContext* load = nullptr;
};

class GraphInference final : SubgraphInference {
 public:
  GraphInference(const Graph& graph, const Settings& settings, int depth, Declared declared = Declared::FillsGaps)
      : graph_(graph), settings_(settings), depth_(depth), declared_(declared), inference_(this) {
    const std::size_t count = graph.values().size();
    result_.contents.resize(count);
    result_.known.resize(count);
    result_.types.reserve(count);
    for (const graph::ValueInfo& value : graph.values()) {
      const bool tensor = value.has_constant() && value.constant.is_tensor();
      if (tensor && (!value.is_input || value.type.kind == ValueType::Kind::Unknown)) {
        const Tensor& t = value.constant.tensor();
        result_.types.push_back(ValueType::tensor(t.dtype(), graph::to_sym(t.shape())));
      } else {
        result_.types.push_back(value.type);
      }
    }
  }

  /// What is known of an input or a captured value.
  void seed(ValueId id, const ValueType& type, const Tensor* known = nullptr, const Contents* contents = nullptr) {
    const std::size_t i = index(id);
    refine(i, type);
    if (known) result_.known[i] = *known;
    if (contents) result_.contents[i] = *contents;
  }

  /// Symbols by which the graph declares its inputs become what these have in their place, wherever it declares them.
  void rename_symbols(std::span<const ValueType> inputs) {
    std::map<std::string, Dim> dims;
    for (std::size_t i = 0; i < inputs.size() && i < graph_.inputs().size(); ++i) {
      const auto& declared = graph_.value(graph_.inputs()[i]).type.shape;
      if (!declared || !inputs[i].shape || declared->size() != inputs[i].shape->size()) continue;
      for (std::size_t d = 0; d < declared->size(); ++d) {
        const std::string name = (*declared)[d].symbol_name();
        if (name.empty() || is_anonymous((*inputs[i].shape)[d])) continue;
        const auto [at, fresh] = dims.emplace(name, (*inputs[i].shape)[d]);
        if (!fresh && !(at->second == (*inputs[i].shape)[d])) at->second = (*declared)[d];  // one name, two sizes
      }
    }
    if (dims.empty()) return;
    for (ValueType& type : result_.types) {
      if (!type.shape) continue;
      for (Dim& dim : *type.shape) {
        if (const auto found = dims.find(dim.symbol_name()); found != dims.end()) dim = found->second;
      }
    }
  }

  void run(std::span<const graph::NodeId> order, std::span<const OpSchema* const> schemas) {
    if (depth_ > graph::kMaxSubgraphDepth) fail(ErrorCode::InvalidModel, "subgraphs are nested too deeply");
    for (graph::NodeId id : order) {
      if (settings_.load != nullptr) settings_.load->check();
      const Node& node = graph_.node(id);
      try {
        const auto i = static_cast<std::size_t>(id);
        infer_node(node, i < schemas.size() ? schemas[i]
                                            : settings_.registry.find_schema(node.domain, node.op_type, node.opset));
      } catch (Error& error) {
        add_node_context(error, graph_, node);
        throw;
      }
    }
  }

  std::vector<ValueType> output_types() const {
    std::vector<ValueType> out;
    for (ValueId id : graph_.outputs()) out.push_back(result_.types[index(id)]);
    return out;
  }

  /// Writes the types into `graph`, the one that was inferred, and into its subgraphs.
  void commit(Graph& graph) {
    for (std::size_t i = 0; i < result_.types.size(); ++i)
      graph.value(static_cast<ValueId>(i)).type = std::move(result_.types[i]);
    for (auto& [child, inference] : children_) inference->commit(*child);
  }

  InferredGraph take() { return std::move(result_); }

 private:
  std::size_t index(ValueId id) const {
    const auto i = static_cast<std::size_t>(id);
    if (id < 0 || i >= result_.types.size()) fail(ErrorCode::InvalidModel, cat("the graph has no value ", id));
    return i;
  }

  /// The value where no feed can change it.
  const Tensor* constant(std::size_t i) const {
    const graph::ValueInfo& value = graph_.values()[i];
    if (value.has_constant() && value.constant.is_tensor() && !value.is_input) return &value.constant.tensor();
    return result_.known[i] ? &result_.known[i] : nullptr;
  }

  void infer_node(const Node& node, const OpSchema* schema) {
    if (schema) {
      inference_.reset(node, *schema);
      checked_.assign(node.inputs.size(), nullptr);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == graph::kNoValue) continue;
        const std::size_t v = index(node.inputs[i]);
        checked_[i] = &result_.types[v];
        inference_.input(i) = {&result_.types[v], constant(v), result_.contents[v] ? &result_.contents[v] : nullptr};
      }
      if (settings_.whole) check_signature(graph_, node, *schema, checked_);
      if (infer_outputs(node)) evaluate(node, *schema);
    }
    if (settings_.whole) infer_remaining_children(node);
  }

  /// False where the node of a body contradicts its inputs. That is for the run to say, if it gets there: a branch that
  /// is never taken may be wrong. Errors that name a node come from a body within and are none of inference.
  bool infer_outputs(const Node& node) {
    try {
      inference_.infer();
    } catch (const Error& error) {
      if (depth_ == 0 || !error.context().op_type.empty()) throw;
      if (settings_.logger)
        settings_.logger->write(LogSeverity::Info, "inference", graph::describe(graph_, node),
                                " cannot run as it is: ", error.message());
      for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        ValueType type = inference_.result(o);
        type.shape.reset();
        if (node.outputs[o] != graph::kNoValue) refine(index(node.outputs[o]), type);
      }
      return false;
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] == graph::kNoValue) continue;
      const std::size_t v = index(node.outputs[o]);
      const ValueType& type = inference_.result(o);
      if (type.shape && type.shape->size() > kMaxRank)
        fail(ErrorCode::InvalidModel, cat("output ", o, " has ", type.shape->size(), " dims, more than ", kMaxRank));
      refine(v, type);
      if (auto& contents = inference_.contents(o); contents && fits(*contents, result_.types[v].elem)) {
        result_.known[v] = tensor_of(*contents, result_.types[v]);
        result_.contents[v] = std::move(contents);
      }
    }
    return true;
  }

  /// Graphs that the operator's own inference did not ask about.
  void infer_remaining_children(const Node& node) {
    for (const auto& entry : node.attributes) {
      if (const auto* child = std::get_if<std::shared_ptr<Graph>>(&entry.second)) infer_once(*child);
      if (const auto* list = std::get_if<std::vector<std::shared_ptr<Graph>>>(&entry.second)) {
        for (const auto& child : *list) infer_once(child);
      }
    }
  }

  void infer_once(const std::shared_ptr<Graph>& child) {
    if (child && !children_.contains(child.get())) infer_child(*child, {});
  }

  std::vector<ValueType> infer_subgraph(const Node& node, std::string_view attribute,
                                        std::span<const ValueType> inputs) override {
    const std::shared_ptr<Graph> child = node.attributes.get_graph(attribute);
    if (!child) return {};
    if (!settings_.whole) {
      std::vector<ValueType> known;
      for (ValueId id : child->outputs()) known.push_back(child->value(id).type);
      const bool complete = std::all_of(known.begin(), known.end(), [](const ValueType& type) {
        return type.kind != ValueType::Kind::Unknown && (!type.is_tensor() || type.elem != DType::Undefined);
      });
      if (complete) return known;
    }
    return infer_child(*child, inputs);
  }

  std::vector<ValueType> infer_child(Graph& child, std::span<const ValueType> inputs) {
    const Declared declared = child.inputs().empty() ? Declared::FillsGaps : Declared::GivesNumbers;
    auto inference = std::make_unique<GraphInference>(child, settings_, depth_ + 1, declared);
    for (const graph::Capture& capture : child.captures()) {
      const std::size_t outer = index(capture.outer);
      inference->seed(capture.inner, result_.types[outer], constant(outer),
                      result_.contents[outer] ? &result_.contents[outer] : nullptr);
    }
    for (std::size_t i = 0; i < inputs.size() && i < child.inputs().size(); ++i)
      inference->seed(child.inputs()[i], inputs[i]);
    inference->rename_symbols(inputs);
    inference->run(child.topological_order(), {});
    std::vector<ValueType> types = inference->output_types();
    if (settings_.whole) children_[&child] = std::move(inference);
    return types;
  }

  /// Bytes of the longest text that a node is run on: what joins texts may double them at each node.
  static constexpr std::size_t kMaxText = 4096;

  /// A node whose inputs are all small and known is run, whatever its operator.
  void evaluate(const Node& node, const OpSchema& schema) {
    if (!schema.deterministic) return;
    for (ValueId id : node.inputs) {
      if (id == graph::kNoValue) continue;
      const Tensor* tensor = constant(index(id));
      if (!tensor || tensor->numel() > kMaxContents || tensor::longest_text(*tensor) > kMaxText) return;
    }
    bool wanted = false;
    for (ValueId id : node.outputs) {
      if (id == graph::kNoValue) continue;
      const std::size_t v = index(id);
      const ValueType& type = result_.types[v];
      if (!type.is_tensor() || !type.shape) return;
      const auto shape = graph::to_known(*type.shape);
      if (!shape || shape->numel() > kMaxContents) return;
      wanted = wanted || !result_.known[v];
    }
    if (!wanted || !graph::subgraphs(node).empty()) return;

    std::vector<Value> values(node.inputs.size());
    std::vector<const Value*> inputs(node.inputs.size(), nullptr);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (node.inputs[i] == graph::kNoValue) continue;
      values[i] = *constant(index(node.inputs[i]));
      inputs[i] = &values[i];
    }
    RunContext run;
    run.allocator = &tensor::host_allocator();
    std::vector<Value> outputs;
    try {
      outputs = evaluate_node(graph_, node, inputs, settings_.registry, run);
    } catch (const Error&) {
      return;  // the run will meet it, if it gets there
    }
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (node.outputs[o] == graph::kNoValue || !outputs[o].is_tensor()) continue;
      const std::size_t v = index(node.outputs[o]);
      const Tensor& tensor = outputs[o].tensor();
      result_.known[v] = tensor;
      result_.contents[v] = contents_of(tensor);
      refine(v, ValueType::tensor(tensor.dtype(), graph::to_sym(tensor.shape())));
    }
  }

  void refine(std::size_t v, const ValueType& inferred) {
    if (inferred.kind == ValueType::Kind::Unknown) return;
    ValueType merged = inferred;
    const bool fits = merge(merged, result_.types[v], declared_);
    if (!fits) check_output(v, inferred);
    if (!fits && settings_.logger)
      settings_.logger->write(LogSeverity::Warning, "inference", "value '", graph_.values()[v].name,
                              "' is declared as ", shown(result_.types[v]), " but is ", shown(inferred));
    result_.types[v] = std::move(merged);
  }

  /// Throws InvalidModel where the model gives another type of elements than it promises.
  void check_output(std::size_t v, const ValueType& inferred) const {
    const ValueType& declared = result_.types[v];
    if (depth_ > 0 || !inferred.is_tensor() || !declared.is_tensor() || inferred.elem == declared.elem) return;
    if (inferred.elem == DType::Undefined || declared.elem == DType::Undefined) return;
    if (std::ranges::none_of(graph_.outputs(), [&](ValueId id) { return index(id) == v; })) return;
    const std::string& name = graph_.values()[v].name;
    fail(ErrorCode::InvalidModel,
         cat("Type Error: Type (", declared.to_string(), ") of output arg (", name, ") does not match expected type (",
             inferred.to_string(), "): the model declares its output '", name, "' with another type than it computes"),
         {.output = name, .expected = inferred.to_string(), .actual = declared.to_string()});
  }

  const Graph& graph_;
  const Settings& settings_;
  int depth_;
  Declared declared_;
  InferredGraph result_;
  NodeInference inference_;
  std::vector<const ValueType*> checked_;
  std::map<Graph*, std::unique_ptr<GraphInference>> children_;  ///< the last inference of each subgraph
};

}  // namespace

void check_node(const Graph& graph, const Node& node, const OpSchema& schema) {
  std::vector<const ValueType*> types(node.inputs.size(), nullptr);
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (node.inputs[i] != graph::kNoValue) types[i] = &graph.value(node.inputs[i]).type;
  }
  check_signature(graph, node, schema, types);
}

InferredGraph infer_values(const Graph& graph, std::span<const graph::NodeId> order, std::span<const ValueType> inputs,
                           std::span<const ValueType> captured, const Registry& registry,
                           std::span<const OpSchema* const> schemas, const Logger* logger, const RunContext* load) {
  const Settings settings{registry, logger, false, load};
  GraphInference inference(graph, settings, 0);
  for (std::size_t i = 0; i < inputs.size() && i < graph.inputs().size(); ++i)
    inference.seed(graph.inputs()[i], inputs[i]);
  for (std::size_t i = 0; i < captured.size() && i < graph.captures().size(); ++i)
    inference.seed(graph.captures()[i].inner, captured[i]);
  inference.run(order, schemas);
  return inference.take();
}

void infer_graph(Graph& graph, const Registry& registry, const Logger* logger, const RunContext* load) {
  const Settings settings{registry, logger, true, load};
  GraphInference inference(graph, settings, 0);
  const auto look = [load] {
    if (load != nullptr) load->check();
  };
  inference.run(graph::topological_order(graph, look), {});
  inference.commit(graph);
}

}  // namespace infernode::kernel
