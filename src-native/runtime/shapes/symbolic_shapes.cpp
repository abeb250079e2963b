#include "runtime/shapes/symbolic_shapes.h"

#include <algorithm>

#include "base/error.h"

namespace infernode::runtime {

using graph::Dim;
using graph::ValueId;
using graph::ValueType;
using tensor::DType;
using tensor::Tensor;

namespace {

/// Graphs with more different expressions are not worth comparing each with all others.
constexpr std::size_t kMostExpressions = 512;

/// nullopt where data decides a part of it, or where it leaves the range of numbers.
std::optional<std::int64_t> value_of(const Dim& dim, std::span<const std::int64_t> symbols) {
  if (dim.known()) return dim.value();
  return dim.evaluate([symbols](std::string_view name) {
    const std::size_t index = symbol_index(name);
    return index < symbols.size() ? std::optional(symbols[index]) : std::nullopt;
  });
}

void forget_sizes(ValueType& type) {
  type.shape.reset();
  if (!type.inner) return;
  ValueType inner = *type.inner;
  forget_sizes(inner);
  type.inner = std::make_shared<const ValueType>(std::move(inner));
}

void forget_sizes(graph::Graph& graph, bool deep) {
  for (std::size_t i = 0; i < graph.values().size(); ++i) {
    graph::ValueInfo& value = graph.value(static_cast<ValueId>(i));
    if (value.producer != graph::kNoNode) forget_sizes(value.type);
  }
  for (std::size_t n = 0; deep && n < graph.node_count(); ++n) {
    for (const auto& child : graph::subgraphs(graph.node(static_cast<graph::NodeId>(n)))) forget_sizes(*child, true);
  }
}

/// Numbers that an integer type holds; all there are of types that hold more.
std::pair<std::int64_t, std::int64_t> range_of(DType type) {
  const std::size_t bits = tensor::bit_size(type);
  if (bits >= 64 || !tensor::is_integer(type)) return {INT64_MIN, INT64_MAX};
  const std::int64_t low = tensor::is_signed_integer(type) ? -(std::int64_t{1} << (bits - 1)) : 0;
  return {low, low + (std::int64_t{1} << bits) - 1};
}

}  // namespace

std::shared_ptr<const graph::Graph> without_sizes(const graph::Graph& graph, bool deep) {
  auto copy = deep ? graph.clone() : std::make_shared<graph::Graph>(graph);
  forget_sizes(*copy, deep);
  return copy;
}

std::unique_ptr<const SymbolicShapes> SymbolicShapes::infer(const graph::Graph& graph,
                                                            std::span<const graph::NodeId> order,
                                                            std::span<const ValueId> needed,
                                                            const SymbolicSignature& signature,
                                                            const kernel::Registry& registry,
                                                            std::span<const kernel::OpSchema* const> schemas) {
  auto made = std::make_unique<SymbolicShapes>();
  const std::span<const ValueType> types = signature.types();
  const std::size_t inputs = graph.inputs().size();
  try {
    const auto bare = without_sizes(graph, signature.declared() == SymbolicSignature::Declared::Free);
    made->inferred_ = kernel::infer_values(*bare, order, types.first(inputs), types.subspan(inputs), registry, schemas);
  } catch (const Error&) {
    return nullptr;  // inference with sizes will say what is wrong
  }
  made->entry_of_.resize(made->inferred_.types.size(), 0);
  made->entries_.emplace_back();  // of values that nobody needs
  for (const ValueId id : needed) made->add(id, signature.first());
  if (made->expressions_.size() > kMostExpressions) return nullptr;
  return made;
}

void SymbolicShapes::add(ValueId id, std::span<const std::int64_t> trial) {
  const auto i = static_cast<std::size_t>(id);
  if (entry_of_[i] != 0) return;
  entry_of_[i] = entries_.size();
  needed_.push_back(id);
  Entry entry;
  const ValueType& type = inferred_.types[i];
  const auto follows = [trial](const Dim& dim) { return value_of(dim, trial).has_value(); };
  if (type.is_tensor() && type.shape) {
    entry.dims.emplace();
    for (const Dim& dim : *type.shape) entry.dims->push_back(follows(dim) ? index_of(dim, 1, INT64_MAX) : kUnknown);
    entry.bytes = bytes_of(type, trial);
    if (const auto& contents = inferred_.contents[i]; contents && std::ranges::all_of(*contents, follows)) {
      const auto [low, high] = range_of(type.elem);
      entry.contents.emplace();
      for (const Dim& element : *contents) entry.contents->push_back(index_of(element, low, high));
    }
  }
  entries_.push_back(std::move(entry));
}

std::size_t SymbolicShapes::bytes_of(const ValueType& type, std::span<const std::int64_t> trial) {
  if (type.elem == DType::Undefined || type.elem == DType::String) return kNoSize;
  const Dim elements = graph::numel(*type.shape);
  if (!value_of(elements, trial)) return kNoSize;
  const ByteCount count{type.elem, index_of(elements, 0, INT64_MAX)};
  const auto found = std::ranges::find(byte_counts_, count);
  const auto index = static_cast<std::size_t>(found - byte_counts_.begin());
  if (found == byte_counts_.end()) byte_counts_.push_back(count);
  return index;
}

std::size_t SymbolicShapes::index_of(const Dim& value, std::int64_t low, std::int64_t high) {
  if (value.known()) low = INT64_MIN, high = INT64_MAX;
  const auto found = std::ranges::find(expressions_, value, &Expression::value);
  const auto index = static_cast<std::size_t>(found - expressions_.begin());
  if (found != expressions_.end()) {
    found->low = std::max(found->low, low);
    found->high = std::min(found->high, high);
  } else if (index <= kMostExpressions) {
    expressions_.push_back({value, low, high});
  }
  return index;
}

std::optional<SymbolicShapes::Sizes> SymbolicShapes::at(std::span<const std::int64_t> symbols) const {
  Sizes sizes;
  sizes.reserve(expressions_.size());
  for (const Expression& expression : expressions_) {
    const auto size = value_of(expression.value, symbols);
    if (!size || *size < expression.low || *size > expression.high) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

ValueType SymbolicShapes::type(ValueId id, const Sizes& sizes) const {
  const ValueType& over_symbols = inferred_.types[static_cast<std::size_t>(id)];
  const Entry& entry = this->entry(id);
  if (!entry.dims) return over_symbols;
  std::vector<Dim> dims;
  dims.reserve(entry.dims->size());
  for (const std::size_t index : *entry.dims) dims.push_back(index == kUnknown ? Dim::unknown() : Dim(sizes[index]));
  return ValueType::tensor(over_symbols.elem, std::move(dims));
}

bool SymbolicShapes::known_varies(ValueId id) const {
  const auto& contents = entry(id).contents;
  return contents &&
         std::ranges::any_of(*contents, [this](std::size_t index) { return !expressions_[index].value.known(); });
}

Tensor SymbolicShapes::known_tensor(ValueId id, const Sizes& sizes) const {
  const auto i = static_cast<std::size_t>(id);
  if (inferred_.known[i]) return inferred_.known[i];
  const Entry& entry = this->entry(id);
  const DType type = inferred_.types[i].elem;
  if (!entry.contents || (type != DType::Int64 && type != DType::Int32)) return {};
  tensor::Shape shape;
  for (const std::size_t index : *entry.dims) shape.push_back(index == kUnknown ? -1 : sizes[index]);
  if (shape.rank() > 1 || (shape.rank() == 1 ? shape[0] : 1) != static_cast<std::int64_t>(entry.contents->size())) {
    return {};
  }
  Tensor out = Tensor::make(type, shape);
  const auto fill = [&](auto* to) {
    for (const std::size_t index : *entry.contents)
      *to++ = static_cast<std::remove_pointer_t<decltype(to)>>(sizes[index]);
  };
  if (type == DType::Int64) {
    fill(out.mutable_data<std::int64_t>());
  } else {
    fill(out.mutable_data<std::int32_t>());
  }
  return out;
}

std::size_t SymbolicShapes::bytes(std::size_t bytes_index, const Sizes& sizes) const {
  const ByteCount& count = byte_counts_[bytes_index];
  return tensor::byte_size(count.type, sizes[count.elements]);
}

kernel::InferredGraph SymbolicShapes::inferred(const Sizes& sizes) const {
  kernel::InferredGraph at;
  at.types.resize(inferred_.types.size());
  at.contents.resize(inferred_.types.size());
  at.known.resize(inferred_.types.size());
  for (const ValueId id : needed_) {
    const auto i = static_cast<std::size_t>(id);
    at.types[i] = type(id, sizes);
    if (const auto& contents = entry(id).contents) {
      at.contents[i].emplace();
      for (const std::size_t index : *contents) at.contents[i]->push_back(sizes[index]);
    }
    at.known[i] = known_tensor(id, sizes);
  }
  return at;
}

}  // namespace infernode::runtime
