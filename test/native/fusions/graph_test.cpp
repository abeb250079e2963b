#include "fusions/graph_test.h"

#include <algorithm>
#include <cmath>

#include "all_operators.h"

namespace infernode::test {

const kernel::Registry& registry() {
  static const kernel::Registry all = all_operators();
  return all;
}

graph::Model parse(std::string_view text, std::int64_t opset) {
  graph::Model model = graph::parse_model(text, opset);
  kernel::infer_graph(*model.graph, registry());
  return model;
}

Tensor noise(DType type, const Shape& shape, std::uint32_t seed) {
  const Tensor t = Tensor::make(type, shape);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    const double unit = static_cast<double>(state >> 8) / (1 << 23) - 1;
    if (type == DType::Float32)
      t.mutable_data<float>()[i] = static_cast<float>(unit);
    else if (type == DType::Float64)
      t.mutable_data<double>()[i] = unit;
    else if (type == DType::Int64)
      t.mutable_data<std::int64_t>()[i] = static_cast<std::int64_t>(3 * unit);
    else if (type == DType::Int32)
      t.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(3 * unit);
    else if (type == DType::UInt8)
      t.mutable_data<std::uint8_t>()[i] = static_cast<std::uint8_t>(128 * (unit + 1));
    else if (type == DType::Bool)
      t.mutable_data<bool>()[i] = unit > 0;
    else
      FAIL("no noise of this type");
  }
  return t;
}

std::vector<Value> feeds(const graph::Graph& graph, const std::map<std::string, std::int64_t>& symbols,
                         std::uint32_t seed) {
  std::vector<Value> out;
  for (const graph::ValueId id : graph.inputs()) {
    const graph::ValueInfo& value = graph.value(id);
    if (value.has_constant()) {
      out.emplace_back();
      continue;
    }
    Shape shape;
    for (const graph::Dim& dim : *value.type.shape) {
      const auto at = symbols.find(dim.symbol_name());
      shape.push_back(dim.known() ? dim.value() : at != symbols.end() ? at->second : 3);
    }
    out.emplace_back(noise(value.type.elem, shape, seed++));
  }
  return out;
}

std::vector<Value> evaluate(const graph::Graph& graph, const std::vector<Value>& inputs) {
  kernel::RunContext run;
  run.allocator = &tensor::host_allocator();
  return kernel::evaluate_graph(graph, inputs, {}, registry(), run);
}

std::string difference(const Value& actual, const Value& expected, double tolerance) {
  if (!actual.is_tensor() || !expected.is_tensor())
    return actual.to_string() == expected.to_string() ? "" : actual.to_string() + " instead of " + expected.to_string();
  const Tensor &a = actual.tensor(), &e = expected.tensor();
  if (a.to_string() != e.to_string()) return a.to_string() + " instead of " + e.to_string();
  const std::vector<float> x = tensor::to_float_vector(a), y = tensor::to_float_vector(e);
  double most = 0, wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) != std::isnan(y[i])) return "NaN";
    most = std::max(most, std::abs(static_cast<double>(y[i])));
    wrong = std::max(wrong, std::abs(static_cast<double>(x[i]) - y[i]));
  }
  return wrong <= tolerance * std::max(most, 1e-3) ? "" : "off by " + std::to_string(wrong);
}

void check_same(const std::vector<Value>& actual, const std::vector<Value>& expected, double tolerance) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const std::string different = difference(actual[i], expected[i], tolerance);
    CHECK_MESSAGE(different.empty(), "output ", i, ": ", different);
  }
}

std::string nodes(const graph::Graph& graph) {
  const std::string text = graph::to_text(graph);
  const std::size_t begin = text.find("\n{") + 2, end = text.rfind('}');
  std::string out;
  bool line_start = true;
  for (std::size_t i = begin; i < end; ++i) {
    if (line_start && (text[i] == ' ' || text[i] == '\n')) continue;
    line_start = text[i] == '\n';
    out += text[i];
  }
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  return out;
}

passes::PassOptions pass_options(int level, std::set<std::string, std::less<>> disabled) {
  return {.level = static_cast<passes::Level>(level),
          .registry = &registry(),
          .logger = nullptr,
          .allocator = &tensor::host_allocator(),
          .disabled = std::move(disabled)};
}

std::vector<std::string> optimize(graph::Model& model, int level, std::set<std::string, std::less<>> disabled) {
  const passes::PassOptions options = pass_options(level, std::move(disabled));
  std::vector<std::string> applied;
  if (level >= 1) applied = passes::run_basic(model, options);
  if (level >= 2) {
    for (std::string& name : passes::run_extended(model, "", options)) applied.push_back(std::move(name));
  }
  graph::verify(*model.graph);
  return applied;
}

void check_optimized(std::string_view text, int level, std::string_view expected, std::int64_t opset, double tolerance,
                     const std::map<std::string, std::int64_t>& symbols) {
  CAPTURE(text);
  const graph::Model before = parse(text, opset);
  graph::Model after = parse(text, opset);
  optimize(after, level);
  const std::string unchanged = nodes(*before.graph);
  CHECK(nodes(*after.graph) == (expected.empty() ? std::string_view(unchanged) : expected));
  REQUIRE(after.graph->outputs().size() == before.graph->outputs().size());
  for (std::size_t o = 0; o < after.graph->outputs().size(); ++o) {
    CHECK(after.graph->value(after.graph->outputs()[o]).name == before.graph->value(before.graph->outputs()[o]).name);
  }
  const std::vector<Value> inputs = feeds(*before.graph, symbols);
  check_same(evaluate(*after.graph, inputs), evaluate(*before.graph, inputs), tolerance);
}

void check_unchanged(std::string_view text, int level, std::int64_t opset) { check_optimized(text, level, "", opset); }

}  // namespace infernode::test
