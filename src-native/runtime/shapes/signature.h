#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "tensor/value.h"

namespace infernode::runtime {

/// Values fed to a plan: of graph.inputs(), then of graph.captures(). Null or empty where absent.
struct Feeds {
  std::span<const tensor::Value*const> inputs{}, captures{};
};

/// Dtype and dims of each value, so that equal signatures give equal plans.
using Signature = std::vector<std::int64_t>;
Signature signature_of(const Feeds& feeds);

/// Types of the values as far as a plan may rely on them: those of the tensors, else as declared.
std::vector<graph::ValueType> types_of(const graph::Graph& graph, const Feeds& feeds);

/// Name of a symbol by its index, unlike what a model calls a dim.
std::string symbol_name(std::size_t index);
/// Index of the symbol of that name, or SIZE_MAX.
std::size_t symbol_index(std::string_view name);

/// A signature in which symbols stand for sizes above 0: a known size where the graph declares one or where it is 0,
/// one symbol for dims that are declared alike and were equal, and one for every other dim.
class SymbolicSignature {
 public:
  enum class Declared : std::uint8_t { Fixed, Free };
  /// With `Free`, sizes that the graph declares have symbols too.
  SymbolicSignature(const graph::Graph& graph, const Feeds& feeds, Declared sizes = Declared::Fixed);

  Declared declared() const { return declared_; }
  /// Types over symbols that are named as symbol_name() says.
  const std::vector<graph::ValueType>& types() const { return types_; }
  /// Sizes of the symbols in the signature that it was made from.
  std::span<const std::int64_t> first() const { return first_; }
  /// Sizes of the symbols where the signature is this one but for them.
  std::optional<std::vector<std::int64_t>> bind(const Signature& signature) const;

 private:
  Declared declared_;
  std::vector<graph::ValueType> types_;
  std::vector<std::int64_t> first_;
  Signature signature_;                ///< of the values that it was made from
  std::vector<std::int32_t> symbols_;  ///< parallel: index of a symbol, or -1
};

}  // namespace infernode::runtime
