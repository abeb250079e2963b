#include "runtime/shapes/signature.h"

#include <charconv>
#include <map>

namespace infernode::runtime {

namespace {

using graph::Dim;
using graph::ValueType;

/// `visit(value, declared type)` for each value fed.
template <class Visit>
void for_each(const graph::Graph& graph, const Feeds& feeds, const Visit& visit) {
  for (std::size_t i = 0; i < feeds.inputs.size(); ++i) {
    visit(feeds.inputs[i], graph.value(graph.inputs()[i]).type);
  }
  for (std::size_t i = 0; i < feeds.captures.size(); ++i) {
    visit(feeds.captures[i], graph.value(graph.captures()[i].inner).type);
  }
}

constexpr std::string_view kPrefix = "\x1f";

bool is_tensor(const tensor::Value* value) { return value != nullptr && value->is_tensor(); }

void append(Signature& signature, const tensor::Value* value) {
  if (!is_tensor(value)) {
    signature.push_back(-1 - static_cast<std::int64_t>(value != nullptr && !value->empty()));
    return;
  }
  const tensor::Tensor& t = value->tensor();
  signature.push_back(static_cast<std::int64_t>(t.dtype()));
  signature.push_back(static_cast<std::int64_t>(t.rank()));
  for (const std::int64_t dim : t.shape()) signature.push_back(dim);
}

ValueType type_of(const tensor::Value* value, const ValueType& declared) {
  if (!is_tensor(value)) return declared;
  return ValueType::tensor(value->tensor().dtype(), graph::to_sym(value->tensor().shape()));
}

}  // namespace

Signature signature_of(const Feeds& feeds) {
  Signature signature;
  signature.reserve(6 * (feeds.inputs.size() + feeds.captures.size()));
  for (const tensor::Value* value : feeds.inputs) append(signature, value);
  for (const tensor::Value* value : feeds.captures) append(signature, value);
  return signature;
}

std::vector<ValueType> types_of(const graph::Graph& graph, const Feeds& feeds) {
  std::vector<ValueType> types;
  types.reserve(feeds.inputs.size() + feeds.captures.size());
  for_each(graph, feeds,
           [&](const tensor::Value* value, const ValueType& declared) { types.push_back(type_of(value, declared)); });
  return types;
}

std::string symbol_name(std::size_t index) { return std::string(kPrefix) + std::to_string(index); }

std::size_t symbol_index(std::string_view name) {
  if (!name.starts_with(kPrefix)) return SIZE_MAX;
  name.remove_prefix(kPrefix.size());
  std::size_t index = SIZE_MAX;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  return error == std::errc() && end == name.data() + name.size() ? index : SIZE_MAX;
}

SymbolicSignature::SymbolicSignature(const graph::Graph& graph, const Feeds& feeds, Declared sizes)
    : declared_(sizes), signature_(signature_of(feeds)) {
  std::map<std::pair<std::string, std::int64_t>, std::int32_t> declared_alike;
  const auto new_symbol = [&](std::int64_t size) {
    first_.push_back(size);
    return static_cast<std::int32_t>(first_.size() - 1);
  };
  for_each(graph, feeds, [&](const tensor::Value* value, const ValueType& declared) {
    ValueType type = type_of(value, declared);
    symbols_.push_back(-1);
    if (is_tensor(value)) symbols_.push_back(-1);
    for (std::size_t d = 0; is_tensor(value) && d < type.shape->size(); ++d) {
      const std::int64_t size = (*type.shape)[d].value();
      const bool is_declared = declared.is_tensor() && declared.shape && d < declared.shape->size();
      std::int32_t symbol = -1;
      const bool is_fixed = sizes == Declared::Fixed && is_declared && (*declared.shape)[d].known();
      if (size != 0 && !is_fixed) {
        const std::string name = is_declared ? (*declared.shape)[d].symbol_name() : std::string();
        if (name.empty()) {
          symbol = new_symbol(size);
        } else {
          const auto [at, is_new] = declared_alike.try_emplace({name, size}, -1);
          if (is_new) at->second = new_symbol(size);
          symbol = at->second;
        }
        (*type.shape)[d] = Dim::symbol(symbol_name(static_cast<std::size_t>(symbol)));
      }
      symbols_.push_back(symbol);
    }
    types_.push_back(std::move(type));
  });
}

std::optional<std::vector<std::int64_t>> SymbolicSignature::bind(const Signature& signature) const {
  if (signature.size() != signature_.size()) return std::nullopt;
  std::vector<std::int64_t> sizes(first_.size(), 0);
  for (std::size_t i = 0; i < signature.size(); ++i) {
    if (symbols_[i] < 0) {
      if (signature[i] != signature_[i]) return std::nullopt;
      continue;
    }
    std::int64_t& size = sizes[static_cast<std::size_t>(symbols_[i])];
    if (signature[i] <= 0 || (size != 0 && size != signature[i])) return std::nullopt;
    size = signature[i];
  }
  return sizes;
}

}  // namespace infernode::runtime
