#include "runtime/shapes/shape_check.h"

#include <algorithm>

#include "base/error.h"
#include "runtime/shapes/symbolic_shapes.h"

namespace infernode::runtime {

namespace {

using graph::Dim;
using graph::ValueId;
using graph::ValueType;
using tensor::Tensor;

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::ranges::equal(a.byte_span(), b.byte_span());
}

/// Where both say something, they say two things.
bool contradict(const kernel::InferredGraph& inferred, const kernel::InferredGraph& substituted, ValueId id) {
  const auto i = static_cast<std::size_t>(id);
  const ValueType &a = inferred.types[i], &b = substituted.types[i];
  if (a.is_tensor() && b.is_tensor() && a.shape && b.shape) {
    const auto fit = [](const Dim& x, const Dim& y) { return !x.known() || !y.known() || x == y; };
    if (a.elem != b.elem || !std::ranges::equal(*a.shape, *b.shape, fit)) return true;
  }
  const Tensor known = kernel::known_tensor(inferred, id), found = kernel::known_tensor(substituted, id);
  return known && found && !same_tensor(known, found);
}

/// Sizes that are not 0 give one of 0.
bool is_empty(const kernel::InferredGraph& inferred, ValueId id) {
  const ValueType& type = inferred.types[static_cast<std::size_t>(id)];
  return type.is_tensor() && type.shape && std::ranges::any_of(*type.shape, [](const Dim& dim) { return dim.is(0); });
}

std::string shown(const kernel::InferredGraph& inferred, ValueId id) {
  const ValueType& type = inferred.types[static_cast<std::size_t>(id)];
  return cat(type.to_string(), type.shape ? graph::to_string(*type.shape) : "");
}

/// The first sizes with one or two of them, or all, changed; with all of them small. At most a hundred.
std::vector<std::vector<std::int64_t>> variations(std::span<const std::int64_t> first) {
  constexpr std::size_t kMost = 100;
  const std::vector<std::int64_t> same(first.begin(), first.end());
  std::vector<std::vector<std::int64_t>> out;
  for (const std::int64_t size : {1, 2, 65}) out.emplace_back(first.size(), size);
  for (const std::int64_t more : {1, 3}) {
    out.push_back(same);
    for (std::int64_t& size : out.back()) size += more;
  }
  for (std::size_t i = 0; i < first.size(); ++i) {
    for (std::size_t j = 0; j <= i && out.size() < kMost; ++j) {
      for (const std::int64_t more : {1, 70}) {
        out.push_back(same);
        out.back()[i] += more;
        if (j != i) out.back()[j] += more;
      }
    }
  }
  return out;
}

std::vector<ValueType> types_at(std::vector<ValueType> types, std::span<const std::int64_t> symbols) {
  for (ValueType& type : types) {
    if (!type.is_tensor() || !type.shape) continue;
    for (Dim& dim : *type.shape) {
      if (const std::size_t index = symbol_index(dim.symbol_name()); index < symbols.size()) dim = symbols[index];
    }
  }
  return types;
}

}  // namespace

bool says_the_same(const kernel::InferredGraph& inferred, const kernel::InferredGraph& substituted, ValueId id) {
  const auto i = static_cast<std::size_t>(id);
  const ValueType &a = inferred.types[i], &b = substituted.types[i];
  if (a.is_tensor() && a.shape && b.is_tensor() && b.shape) {
    const auto same = [](const Dim& x, const Dim& y) { return x.known() == y.known() && (!x.known() || x == y); };
    if (a.elem != b.elem || !std::ranges::equal(*a.shape, *b.shape, same)) return false;
  } else if (a != b) {
    return false;
  }
  const Tensor known = kernel::known_tensor(inferred, id), found = kernel::known_tensor(substituted, id);
  return !found || (known && same_tensor(known, found));
}

std::size_t check_substitution(const graph::Graph& graph, std::span<const graph::NodeId> order,
                               std::span<const ValueId> needed, const SymbolicSignature& signature,
                               const SymbolicShapes& shapes, const kernel::Registry& registry,
                               std::span<const kernel::OpSchema* const> schemas) {
  std::size_t compared = 0;
  const bool free = signature.declared() == SymbolicSignature::Declared::Free;
  const auto bare = free ? without_sizes(graph, true) : nullptr;
  const graph::Graph& inferred_graph = free ? *bare : graph;
  for (const std::vector<std::int64_t>& symbols : variations(signature.first())) {
    const auto sizes = shapes.at(symbols);
    if (!sizes) continue;
    const std::vector<ValueType> types = types_at(signature.types(), symbols);
    const std::span<const ValueType> all = types;
    const std::size_t inputs = graph.inputs().size();
    kernel::InferredGraph inferred;
    try {
      inferred = kernel::infer_values(inferred_graph, order, all.first(inputs), all.subspan(inputs), registry, schemas);
    } catch (const Error&) {
      continue;  // inputs do not go together so
    }
    if (std::ranges::any_of(needed, [&](ValueId id) { return is_empty(inferred, id); })) continue;  // likewise
    const kernel::InferredGraph substituted = shapes.inferred(*sizes);
    for (const ValueId id : needed) {
      if (!contradict(inferred, substituted, id)) continue;
      fail(ErrorCode::Internal, cat("value '", graph.value(id).name, "' is ", shown(inferred, id), " by inference and ",
                                    shown(substituted, id), " by substitution"));
    }
    ++compared;
  }
  return compared;
}

}  // namespace infernode::runtime
