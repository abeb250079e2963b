#pragma once
// How transformations are tested: a model in text form, whose weights have exact codes, before and after.

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fusions/graph_test.h"
#include "graph/captures.h"
#include "transform/transformation.h"

namespace infernode::test {

/// Quarters from -2 to 1.75: any 16 that follow each other in a row or column have all 16 values, which makes 4-bit
/// codes of blocks of 16 exact.
inline Tensor quarters(const Shape& shape, std::int64_t shift = 0) {
  const Tensor t = Tensor::make(DType::Float32, shape);
  const std::int64_t columns = shape.back();
  std::int64_t i = shift * columns;
  for (float& v : t.mutable_span<float>()) {
    v = static_cast<float>((i / columns * 7 + i % columns * 3) % 16 - 8) / 4;
    ++i;
  }
  return t;
}

using Weights = std::map<std::string, Tensor>;

/// Values that the text names, and `weights` has, become constants.
inline graph::Model model_with(std::string_view text, const Weights& weights, std::int64_t opset = 17) {
  graph::Model model = graph::parse_model(text, opset);
  graph::Graph& graph = *model.graph;
  for (const auto& [name, tensor] : weights) {
    const graph::ValueId id = graph.find_value(name);
    if (id == graph::kNoValue) continue;
    graph.value(id).constant = Value(tensor);
    graph.value(id).is_input = false;
    graph.value(id).type = graph::ValueType::tensor(tensor.dtype(), graph::to_sym(tensor.shape()));
    std::erase(graph.mutable_inputs(), id);
  }
  return model;
}

/// Settings with some of them changed.
inline transform::Settings changed(transform::Settings settings,
                                   std::initializer_list<std::pair<const std::string, transform::Setting>> changes) {
  for (const auto& [name, value] : changes) settings.set(name, value);
  return settings;
}

using Texts = std::vector<std::string>;

/// Transforms the model, as transform_file does between reading and writing.
inline transform::Report transform_model(std::string_view name, graph::Model& model,
                                         const transform::Settings& settings) {
  const kernel::RunContext run;
  transform::Report report;
  transform::find_transformation(name).apply(model, settings, {.run = run, .registry = registry()}, report);
  model.graph->compact();
  graph::verify(*model.graph);
  return report;
}

/// The model's nodes after; its answers are within the tolerance of those before.
inline std::string check_transformed(std::string_view name, std::string_view text, const Weights& weights,
                                     const transform::Settings& settings, double tolerance) {
  CAPTURE(text);
  graph::Model before = model_with(text, weights), after = model_with(text, weights);
  graph::adopt_constants(*after.graph);
  transform_model(name, after, settings);
  kernel::infer_graph(*before.graph, registry());
  kernel::infer_graph(*after.graph, registry());
  const std::vector<Value> inputs = feeds(*before.graph);
  check_same(evaluate(*after.graph, inputs), evaluate(*before.graph, inputs), tolerance);
  return nodes(*after.graph);
}

}  // namespace infernode::test
