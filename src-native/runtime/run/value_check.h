#pragma once

#include "graph/graph.h"
#include "tensor/value.h"

namespace infernode::runtime {

/// Throws InvalidModel where `value` is of another kind or element type than `expected`, for which the plan's kernels
/// were chosen: a model can contradict itself in ways that only a run shows (branches that give different types,
/// declarations where nothing can be inferred). What is not known of `expected` is not compared.
void expect_type(const graph::ValueInfo& expected, const tensor::Value& value);

}  // namespace infernode::runtime
