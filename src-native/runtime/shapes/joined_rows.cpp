#include "runtime/shapes/joined_rows.h"

#include <algorithm>

#include "base/error.h"
#include "runtime/shapes/signature.h"
#include "runtime/shapes/symbolic_shapes.h"

namespace infernode::runtime {

using graph::Dim;
using graph::ValueType;

namespace {

const Dim* dim_of(const ValueType& type, std::size_t axis) {
  return type.is_tensor() && type.shape && axis < type.shape->size() ? &(*type.shape)[axis] : nullptr;
}

Extent extent_of(const Dim* inferred, const Dim* declared, const Dim& rows, std::span<const Dim> names) {
  if (inferred != nullptr) {
    if (*inferred == rows) return Extent::Rows;
    const auto any = [](std::string_view) { return std::optional<std::int64_t>(1); };
    if (inferred->evaluate(any)) return Extent::Other;  // it follows from other sizes alone, or from them and the rows
  }
  return declared != nullptr && std::ranges::find(names, *declared) != names.end() ? Extent::Rows : Extent::Unknown;
}

}  // namespace

std::vector<Extent> extents(const ExecutionPlan& plan, std::span<const std::string> joined, std::size_t axis) {
  const graph::Graph& graph = plan.graph();
  const Dim rows = Dim::symbol(symbol_name(0));
  std::vector<Dim> names;
  std::vector<ValueType> inputs;
  for (const graph::ValueId id : graph.inputs()) {
    ValueType type = graph.value(id).type;
    const Dim* dim = dim_of(type, axis);
    if (dim != nullptr && std::ranges::find(joined, graph.value(id).name) != joined.end()) {
      names.push_back(*dim);
      (*type.shape)[axis] = rows;
    }
    inputs.push_back(std::move(type));
  }
  std::vector<ValueType> inferred;
  try {
    inferred = plan.infer(inputs);
  } catch (const Error&) {
    // what is declared is left
  }
  std::vector<Extent> found;
  for (const graph::ValueId id : graph.outputs()) {
    const ValueType* type = inferred.empty() ? nullptr : &inferred[static_cast<std::size_t>(id)];
    found.push_back(
        extent_of(type == nullptr ? nullptr : dim_of(*type, axis), dim_of(graph.value(id).type, axis), rows, names));
  }
  return found;
}

}  // namespace infernode::runtime
