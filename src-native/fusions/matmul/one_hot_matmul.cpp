// A product of one-hot rows, written as comparisons with 0, 1, 2, ..., with a table is a look-up of the table's rows;
// what equals none of them gives zeros.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

bool counts_up(const Tensor& numbers) {
  if (numbers.rank() == 0 || numbers.numel() != numbers.dim(numbers.rank() - 1)) return false;
  const std::vector<std::int64_t> values = tensor::to_int64_vector(numbers);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

bool guard(const Match& match) {
  const Tensor &numbers = *match.constant("c_n"), &table = *match.constant("c_w");
  constexpr std::int64_t kNegativeAxes = 13;  // Clip takes whole numbers, Squeeze its axes as an input
  const auto& shape = match.type("x").shape;
  const DType type = match.type("x").elem;
  if (match.last().opset < kNegativeAxes || (type != DType::Int32 && type != DType::Int64) || !shape ||
      shape->size() < 2 || !shape->back().is(1) || numbers.rank() > shape->size() || table.dtype() != DType::Float32 ||
      table.rank() != 2 || table.numel() == 0 || table.dim(0) != numbers.numel() ||
      match.maker("f").attributes.get_int("to", 0) != 1 || !counts_up(numbers))
    return false;
  const std::span<const float> all{table.data<float>(), static_cast<std::size_t>(table.numel())};
  return std::all_of(all.begin(), all.end(), [](float w) { return std::isfinite(w); });
}

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch) {
  const Tensor& table = *match.constant("c_w");
  const std::int64_t rows = table.dim(0);
  const DType type = match.type("x").elem;
  // A row of zeros before the table and one behind it.
  const Tensor wide = Tensor::make(DType::Float32, Shape{rows + 2, table.dim(1)});
  const auto width = static_cast<std::size_t>(table.dim(1)), count = static_cast<std::size_t>(table.numel());
  auto* to = wide.mutable_data<float>();
  std::fill_n(to, width, 0.0f);
  std::copy_n(table.data<float>(), count, to + width);
  std::fill_n(to + width + count, width, 0.0f);

  const auto number = [&](const char* hint, std::int64_t value) {
    const Tensor t = Tensor::make(type, Shape{});
    if (type == DType::Int32)
      *t.mutable_data<std::int32_t>() = static_cast<std::int32_t>(value);
    else
      *t.mutable_data<std::int64_t>() = value;
    return patch.add_constant(hint, t);
  };
  const auto step = [&](const char* op, std::vector<graph::ValueId> inputs) {
    graph::Node node = make_node(match, "", op, std::move(inputs));
    const graph::ValueId value = patch.add_value("places", graph::ValueType::tensor(type));
    node.outputs = {value};
    patch.add_node(std::move(node), match.nodes());
    return value;
  };
  const std::int64_t last_axis[] = {-1};
  graph::ValueId places = step("Clip", {match.value("x"), number("before", -1), number("behind", rows)});
  places = step("Add", {places, number("one", 1)});
  places =
      step("Squeeze", {places, patch.add_constant("axes", Tensor::of<std::int64_t>(Shape{1}, std::span(last_axis)))});
  graph::Node gather = make_node(
      match, "", "Gather", {patch.add_constant(match.graph().value(match.value("c_w")).name + "_rows", wide), places});
  return put(match, patch, std::move(gather));
}

}  // namespace

void register_one_hot_matmul(FusionRegistry& registry) {
  registry.describe(
      {"OneHotMatMulFusion"},
      "the product of one-hot rows, made by Equal with 0, 1, 2, ..., and a table becomes a Gather of its rows",
      "numbers that are not finite; before opset 13");
  registry.add({"OneHotMatMulFusion", 1, "(x, c_n, c_w) => (y) { e = Equal(x, c_n)  f = Cast(e)  y = MatMul(f, c_w) }",
                guard, replace});
}

}  // namespace infernode::fusions
