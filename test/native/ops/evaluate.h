#pragma once
// Where the cases of op_test.h run. evaluate.cpp runs them with the CPU's kernels; test/native/cuda_ops has another
// file in its place, which runs them in sessions with a GPU.

#include <memory>
#include <span>

#include "graph/graph.h"
#include "tensor/value.h"

namespace infernode::test {

/// Each case runs once for each of these: inputs from so many on are initializers.
std::span<const std::size_t> first_constants();
/// The graph's outputs. Its types are inferred.
std::vector<tensor::Value> evaluate(const std::shared_ptr<graph::Graph>& graph,
                                    const std::vector<tensor::Value>& inputs);
/// Of the written cases with a changed input, each so many'th runs.
std::size_t step_of_changed_cases();
/// What a result may be off, where the CPU's may be off by `given`.
double tolerance_of(const tensor::Value& expected, double given);
/// Whether the case before, which was to end in an error, must have. Kernels of a GPU cannot complain of contents.
bool must_refuse();
/// Whether errors have the kernels' codes and words. A session finds some of them earlier.
bool errors_are_the_kernels();

/// With the CPU's kernels.
std::vector<tensor::Value> evaluate_here(const graph::Graph& graph, const std::vector<tensor::Value>& inputs);

}  // namespace infernode::test
