#pragma once
// How passes and fusions are tested: a graph in ONNX's text form before, its nodes after, and the same answers.

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "kernel/inference.h"
#include "kernel/op_registrar.h"
#include "passes/pipeline.h"

namespace infernode::test {

using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::Value;

/// All operators of ops/.
const kernel::Registry& registry();
/// A model in text form, types inferred.
graph::Model parse(std::string_view text, std::int64_t opset = 17);
/// Pseudo-random floats in [-1, 1), or small integers; the same for the same seed.
Tensor noise(DType type, const Shape& shape, std::uint32_t seed);
/// One feed for each graph input that is no initializer; symbols have the sizes given, or 3.
std::vector<Value> feeds(const graph::Graph& graph, const std::map<std::string, std::int64_t>& symbols = {},
                         std::uint32_t seed = 1);
/// The node-by-node reference.
std::vector<Value> evaluate(const graph::Graph& graph, const std::vector<Value>& inputs);
/// Empty where both agree within `tolerance` of the largest magnitude, else what differs.
std::string difference(const Value& actual, const Value& expected, double tolerance = 1e-5);
void check_same(const std::vector<Value>& actual, const std::vector<Value>& expected, double tolerance = 1e-5);
/// The statements of a graph in text form, one a line, without indentation.
std::string nodes(const graph::Graph& graph);
passes::PassOptions pass_options(int level, std::set<std::string, std::less<>> disabled = {});
std::vector<std::string> optimize(graph::Model& model, int level, std::set<std::string, std::less<>> disabled = {});
/// What becomes of a model at a level (99: all): its nodes are those expected, the interface keeps its names, and the
/// answers stay. An empty `expected`: nothing may change.
void check_optimized(std::string_view text, int level, std::string_view expected, std::int64_t opset = 17,
                     double tolerance = 1e-5, const std::map<std::string, std::int64_t>& symbols = {});
void check_unchanged(std::string_view text, int level, std::int64_t opset = 17);

}  // namespace infernode::test
