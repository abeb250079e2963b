#include "base/cpu_features.h"
#include "base/error.h"
#include "graph/verifier.h"
#include "kernel/inference.h"
#include "kernel/node_inference.h"

namespace infernode::kernel {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using graph::ValueType;
using tensor::Buffer;
using tensor::DType;
using tensor::Tensor;
using tensor::Value;

class UnsharedPacker final : public WeightPacker {
 public:
  explicit UnsharedPacker(const Graph& graph) : graph_(graph) {}
  Buffer pack(const Node& node, std::size_t input, std::string_view, FunctionRef<Buffer(const Tensor&)> make) override {
    return make(graph_.value(node.inputs.at(input)).constant.tensor());
  }

 private:
  const Graph& graph_;
};

class AllocatingSink final : public OutputSink {
 public:
  explicit AllocatingSink(tensor::Allocator& allocator) : allocator_(allocator) {}
  Tensor allocate_output(std::size_t, DType dtype, const tensor::Shape& shape) override {
    return Tensor::make(dtype, shape, allocator_);
  }

 private:
  tensor::Allocator& allocator_;
};

/// Runs a subgraph of a node by evaluate_graph; its captures begin at `first_capture` of the node's implicit inputs.
class EvaluatedSubgraph final : public SubgraphRunner {
 public:
  EvaluatedSubgraph(std::shared_ptr<const Graph> graph, const Registry& registry, std::size_t first_capture)
      : graph_(std::move(graph)), registry_(registry), first_capture_(first_capture) {}
  std::size_t input_count() const override { return graph_->inputs().size(); }
  std::size_t output_count() const override { return graph_->outputs().size(); }
  const ValueType& output_type(std::size_t o) const override { return graph_->value(graph_->outputs().at(o)).type; }
  std::vector<Value> run(KernelContext& ctx, std::vector<Value> inputs) const override {
    RunContext inner = ctx.run();
    if (++inner.depth > graph::kMaxSubgraphDepth) fail(ErrorCode::InvalidModel, "subgraphs are nested too deeply");
    return evaluate_graph(*graph_, inputs, captured(ctx), registry_, inner);
  }
  std::vector<ValueType> output_types(KernelContext& ctx, std::span<const ValueType> inputs) const override {
    std::vector<ValueType> types;
    for (const Value& value : captured(ctx)) types.push_back(type_of(value));
    return infer_outputs(*graph_, graph_->topological_order(), inputs, types, registry_);
  }

 private:
  std::vector<Value> captured(const KernelContext& ctx) const {
    std::vector<Value> values;
    for (std::size_t i = 0; i < graph_->captures().size(); ++i) {
      const Value* value =
          first_capture_ + i < ctx.implicit_inputs().size() ? ctx.implicit_inputs()[first_capture_ + i] : nullptr;
      values.push_back(value ? *value : Value{});
    }
    return values;
  }

  std::shared_ptr<const Graph> graph_;
  const Registry& registry_;
  std::size_t first_capture_;
};

class NodeInfo final : public KernelInfo {
 public:
  NodeInfo(const Graph& graph, const Node& node, const OpSchema& schema, const Registry& registry,
           std::vector<ValueType> inputs)
      : graph_(graph), node_(node), schema_(schema), registry_(registry), inputs_(std::move(inputs)), packer_(graph) {}

  void set_outputs(std::vector<ValueType> outputs) { outputs_ = std::move(outputs); }
  const std::vector<ValueType>& inputs() const { return inputs_; }
  const std::vector<ValueType>& outputs() const { return outputs_; }

  const Node& node() const override { return node_; }
  std::int64_t since_version() const override { return schema_.since_version; }
  const ValueType& input_type(std::size_t i) const override { return i < inputs_.size() ? inputs_[i] : unknown_; }
  const ValueType& output_type(std::size_t o) const override { return o < outputs_.size() ? outputs_[o] : unknown_; }
  const Tensor* constant(std::size_t i) const override {
    if (!has_input(i)) return nullptr;
    const graph::ValueInfo& value = graph_.value(node_.inputs[i]);
    return value.has_constant() && value.constant.is_tensor() && !value.is_input ? &value.constant.tensor() : nullptr;
  }
  void release_constant(std::size_t) override {}
  WeightPacker& packer() override { return packer_; }
  const microkernels::KernelSet& kernels() const override {
    if (kernels_ == nullptr) kernels_ = &microkernels::kernel_set(infernode::cpu_rung());
    return *kernels_;
  }
  std::unique_ptr<SubgraphRunner> subgraph(std::string_view name) override {
    const std::shared_ptr<Graph> wanted = node_.attributes.get_graph(name);
    if (!wanted) fail(ErrorCode::InvalidModel, cat(graph::describe(graph_, node_), " has no subgraph '", name, "'"));
    std::size_t first = 0;
    for (const auto& child : graph::subgraphs(node_)) {
      if (child == wanted) break;
      first += child->captures().size();
    }
    return std::make_unique<EvaluatedSubgraph>(wanted, registry_, first);
  }

 private:
  const Graph& graph_;
  const Node& node_;
  const OpSchema& schema_;
  const Registry& registry_;
  std::vector<ValueType> inputs_, outputs_;
  UnsharedPacker packer_;
  mutable const microkernels::KernelSet* kernels_ = nullptr;  ///< once asked for
  ValueType unknown_;
};

/// Types of the node's outputs from the values it is given; subgraphs speak through the types recorded in the graph.
class RecordedSubgraphs final : public SubgraphInference {
 public:
  std::vector<ValueType> infer_subgraph(const Node& node, std::string_view attribute,
                                        std::span<const ValueType>) override {
    std::vector<ValueType> out;
    if (const auto child = node.attributes.get_graph(attribute)) {
      for (ValueId id : child->outputs()) out.push_back(child->value(id).type);
    }
    return out;
  }
};

std::vector<Value> evaluate(const Graph& graph, const Node& node, std::span<const Value* const> inputs,
                            std::span<const Value* const> implicit, const Registry& registry, RunContext& run) {
  const OpSchema& schema = schema_of(graph, node, registry);
  std::vector<ValueType> types(node.inputs.size());
  std::vector<const ValueType*> present(node.inputs.size(), nullptr);
  RecordedSubgraphs recorded;
  NodeInference inference(&recorded);
  inference.reset(node, schema);
  for (std::size_t i = 0; i < types.size() && i < inputs.size(); ++i) {
    if (!inputs[i] || inputs[i]->empty()) continue;
    types[i] = type_of(*inputs[i]);
    present[i] = &types[i];
    inference.input(i) = {&types[i], inputs[i]->is_tensor() ? &inputs[i]->tensor() : nullptr, nullptr};
  }
  check_signature(graph, node, schema, present);
  inference.infer();

  std::vector<ValueType> outputs(node.outputs.size());
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    outputs[o] = inference.result(o);
    if (outputs[o].kind == ValueType::Kind::Unknown && node.outputs[o] != graph::kNoValue)
      outputs[o] = graph.value(node.outputs[o]).type;
  }
  const KernelDef* def = registry.find_kernel("cpu", schema, types, outputs);
  if (!def) {
    std::string given;
    for (const ValueType& type : types) given += cat(given.empty() ? "" : ", ", type.to_string());
    fail(ErrorCode::UnsupportedOperator, cat(graph::describe(graph, node), " has no kernel for (", given, ")"));
  }
  NodeInfo info(graph, node, schema, registry, std::move(types));
  info.set_outputs(std::move(outputs));
  const std::unique_ptr<Kernel> kernel = def->make(info);

  const std::size_t count = node.outputs.size();
  std::vector<Value> results(count);
  std::vector<DType> dtypes(count, DType::Undefined);
  const auto wanted = std::make_unique<bool[]>(count);
  for (std::size_t o = 0; o < count; ++o) {
    dtypes[o] = info.outputs()[o].is_tensor() ? info.outputs()[o].elem : DType::Undefined;
    wanted[o] = node.outputs[o] != graph::kNoValue;
  }
  AllocatingSink sink(*run.allocator);
  KernelContext ctx(run, inputs, implicit, results, dtypes, {wanted.get(), count}, sink);
  run.check();
  kernel->run(ctx);
  for (std::size_t o = 0; o < count; ++o) {
    if (wanted[o] && results[o].empty())
      fail(ErrorCode::Internal, cat(graph::describe(graph, node), " did not make its output ", o));
  }
  return results;
}

}  // namespace

ValueType type_of(const Value& value) {
  if (value.is_tensor()) return ValueType::tensor(value.tensor().dtype(), graph::to_sym(value.tensor().shape()));
  if (value.is_sequence()) {
    const tensor::Sequence& sequence = value.sequence();
    if (sequence.elem != DType::Undefined) return ValueType::sequence(ValueType::tensor(sequence.elem));
    return ValueType::sequence(sequence.items.empty() ? ValueType{} : type_of(sequence.items.front()));
  }
  if (value.is_optional())
    return ValueType::optional(value.optional().item ? type_of(*value.optional().item) : ValueType{});
  if (value.is_map()) {
    const tensor::Map& map = value.map();
    return ValueType::map(map.keys.dtype(), map.values.empty() ? ValueType{} : type_of(map.values.front()));
  }
  if (value.is_sparse()) {
    ValueType type = ValueType::tensor(value.sparse().values.dtype(), graph::to_sym(value.sparse().shape));
    type.kind = ValueType::Kind::SparseTensor;
    return type;
  }
  return {};
}

std::vector<Value> evaluate_node(const Graph& graph, const Node& node, std::span<const Value* const> inputs,
                                 const Registry& registry, RunContext& run) {
  return evaluate(graph, node, inputs, {}, registry, run);
}

std::vector<Value> evaluate_graph(const Graph& graph, std::span<const Value> inputs, std::span<const Value> captured,
                                  const Registry& registry, RunContext& run) {
  std::vector<Value> values(graph.values().size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = graph.values()[i].constant;
  for (std::size_t i = 0; i < inputs.size() && i < graph.inputs().size(); ++i) {
    if (!inputs[i].empty()) values[static_cast<std::size_t>(graph.inputs()[i])] = inputs[i];
  }
  for (std::size_t i = 0; i < captured.size() && i < graph.captures().size(); ++i)
    values[static_cast<std::size_t>(graph.captures()[i].inner)] = captured[i];

  const auto value_at = [&](ValueId id) -> const Value* {
    return id == graph::kNoValue ? nullptr : &values.at(static_cast<std::size_t>(id));
  };
  for (graph::NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    try {
      std::vector<const Value*> given, implicit;
      for (ValueId input : node.inputs) given.push_back(value_at(input));
      for (ValueId input : graph::implicit_inputs(node)) implicit.push_back(value_at(input));
      std::vector<Value> results = evaluate(graph, node, given, implicit, registry, run);
      for (std::size_t o = 0; o < results.size(); ++o) {
        if (node.outputs[o] != graph::kNoValue)
          values[static_cast<std::size_t>(node.outputs[o])] = std::move(results[o]);
      }
    } catch (Error& error) {
      add_node_context(error, graph, node);
      throw;
    }
  }
  std::vector<Value> out;
  for (ValueId id : graph.outputs()) out.push_back(values.at(static_cast<std::size_t>(id)));
  return out;
}

}  // namespace infernode::kernel
