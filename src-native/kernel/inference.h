#pragma once

#include <unordered_map>
#include <vector>

#include "kernel/registry.h"

namespace infernode::kernel {

/// Infers types, shapes and small integer contents over a whole graph, in place (Graph::value(i).type), declared types refined, subgraphs
/// included. Contents of integer tensors are followed through shape arithmetic. Throws as the operators' infer functions do, with node and op type in
/// the error's context; a declared output shape that contradicts the inferred one is logged and replaced.
/// Nodes without a schema are left alone.
void infer_graph(graph::Graph& graph, const Registry& registry, const Logger* logger = nullptr);

/// Runs one node's kernel outside a session: constant folding and shape-tensor evaluation. All inputs present; no subgraphs. Throws as the kernel does.
std::vector<tensor::Value> evaluate_node(const graph::Graph& graph, const graph::Node& node, std::span<const tensor::Value* const> inputs,
                                         const Registry& registry, RunContext& run);

}  // namespace infernode::kernel
