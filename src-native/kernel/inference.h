#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernel/registry.h"

namespace infernode::kernel {

/// What inference found of each value of a graph, indexed by ValueId.
struct InferredGraph {
  std::vector<graph::ValueType> types;
  /// Elements of small integer values (rank 0 or 1, at most 64 elements) where something is known.
  std::vector<std::optional<std::vector<graph::Dim>>> contents;
  /// Small values of any type whose every element is known because all inputs of their nodes are; constants of the
  /// graph excluded. Empty otherwise.
  std::vector<tensor::Tensor> known;
};

/// Infers over the nodes of `order` (topological) without touching the graph. `inputs` are the types of graph.inputs(),
/// `captured` those of graph.captures(); an empty span means: as declared in the graph. The runtime calls it with
/// concrete dims for every new signature of input shapes, so it is fast: no string building, no schema look-up where
/// `schemas` (by NodeId) is given, subgraphs inferred only where their outputs' types are unknown. `load` is asked at
/// each node whether to go on.
InferredGraph infer_values(const graph::Graph& graph, std::span<const graph::NodeId> order,
                           std::span<const graph::ValueType> inputs, std::span<const graph::ValueType> captured,
                           const Registry& registry, std::span<const OpSchema* const> schemas = {},
                           const Logger* logger = nullptr, const RunContext* load = nullptr);

/// Types of the outputs of a body for inputs and captures of these types. What inference leaves open, or all where the
/// body cannot run with them, is as the body declares it, its symbols bound by what comes in.
std::vector<graph::ValueType> infer_outputs(const graph::Graph& body, std::span<const graph::NodeId> order,
                                            std::span<const graph::ValueType> inputs,
                                            std::span<const graph::ValueType> captured, const Registry& registry,
                                            std::span<const OpSchema* const> schemas = {});

/// The type that a value has by itself, its dims known.
graph::ValueType type_of(const tensor::Value& value);

/// The value as a tensor where inference knows every element: from `known`, or an int32 or int64 one from `contents`.
/// An empty tensor otherwise.
tensor::Tensor known_tensor(const InferredGraph& inferred, graph::ValueId id);

/// Arity and types of a node against its schema. Throws InvalidModel; unknown types pass.
void check_node(const graph::Graph& graph, const graph::Node& node, const OpSchema& schema);

/// Infers types, shapes and small integer contents over a whole graph, in place (Graph::value(i).type), declared types
/// refined, subgraphs included. Contents of integer tensors are followed through shape arithmetic. Throws as the
/// operators' infer functions do, with node and op type in the error's context; a declared output shape that
/// contradicts the inferred one is logged and replaced. Nodes without a schema are left alone.
void infer_graph(graph::Graph& graph, const Registry& registry, const Logger* logger = nullptr,
                 const RunContext* load = nullptr);

/// Replaces each node whose operator is a function of the standard (OpSchema::function_body) and for whose types no CPU
/// kernel is registered by that definition, in subgraphs too. Types must be inferred before, and again where the count
/// of replaced nodes that it returns is not 0.
std::size_t expand_functions(graph::Graph& graph, const Registry& registry, const RunContext* load = nullptr);

/// Runs one node's kernel outside a session: constant folding and shape-tensor evaluation. All inputs present; no
/// subgraphs. Throws as the kernel does.
std::vector<tensor::Value> evaluate_node(const graph::Graph& graph, const graph::Node& node,
                                         std::span<const tensor::Value* const> inputs, const Registry& registry,
                                         RunContext& run);

/// Runs a whole graph node by node, subgraphs included: the reference that tests and folding of subgraphs use. `inputs`
/// are the values of graph.inputs(), an empty Value where an initializer stands in; `captured` those of
/// graph.captures(). Names the node in errors.
std::vector<tensor::Value> evaluate_graph(const graph::Graph& graph, std::span<const tensor::Value> inputs,
                                          std::span<const tensor::Value> captured, const Registry& registry,
                                          RunContext& run);

}  // namespace infernode::kernel
