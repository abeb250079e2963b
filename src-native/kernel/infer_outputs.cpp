#include <map>

#include "base/error.h"
#include "kernel/inference.h"

namespace infernode::kernel {
namespace {

using graph::Dim;
using graph::Graph;
using graph::ValueType;

/// Sizes of the symbols by which values are declared.
class Symbols {
 public:
  void bind(const ValueType& declared, const ValueType& actual) {
    if (!declared.shape || !actual.shape || declared.shape->size() != actual.shape->size()) return;
    for (std::size_t d = 0; d < declared.shape->size(); ++d) {
      const std::string name = (*declared.shape)[d].symbol_name();
      if (!name.empty() && (*actual.shape)[d].known()) sizes_.emplace(name, (*actual.shape)[d].value());
    }
  }

  std::optional<std::int64_t> size_of(const Dim& dim) const {
    return dim.evaluate([this](std::string_view name) -> std::optional<std::int64_t> {
      const auto found = sizes_.find(name);
      return found == sizes_.end() ? std::nullopt : std::optional(found->second);
    });
  }

 private:
  std::map<std::string, std::int64_t, std::less<>> sizes_;
};

/// The dims that are open in `type`, from what is declared.
void complete(ValueType& type, const ValueType& declared, const Symbols& symbols) {
  if (!type.is_tensor() || !type.shape) return;
  const bool same_rank = declared.shape && declared.shape->size() == type.shape->size();
  for (std::size_t d = 0; d < type.shape->size(); ++d) {
    Dim& dim = (*type.shape)[d];
    if (dim.known()) continue;
    if (same_rank && (*declared.shape)[d].known()) {
      dim = (*declared.shape)[d];
    } else if (const auto inferred = symbols.size_of(dim)) {
      dim = *inferred;
    } else if (const auto named = same_rank ? symbols.size_of((*declared.shape)[d]) : std::nullopt) {
      dim = *named;
    }
  }
}

}  // namespace

std::vector<ValueType> infer_outputs(const Graph& body, std::span<const graph::NodeId> order,
                                     std::span<const ValueType> inputs, std::span<const ValueType> captured,
                                     const Registry& registry, std::span<const OpSchema* const> schemas) {
  Symbols symbols;
  for (std::size_t i = 0; i < inputs.size() && i < body.inputs().size(); ++i)
    symbols.bind(body.value(body.inputs()[i]).type, inputs[i]);
  for (std::size_t i = 0; i < captured.size() && i < body.captures().size(); ++i)
    symbols.bind(body.value(body.captures()[i].inner).type, captured[i]);
  InferredGraph inferred;
  try {
    inferred = infer_values(body, order, inputs, captured, registry, schemas);
  } catch (const Error&) {
    // The body cannot run with these; what it declares is left.
  }
  std::vector<ValueType> types;
  for (const graph::ValueId id : body.outputs()) {
    const ValueType& declared = body.value(id).type;
    ValueType type = inferred.types.empty() ? declared : inferred.types[static_cast<std::size_t>(id)];
    complete(type, declared, symbols);
    types.push_back(std::move(type));
  }
  return types;
}

}  // namespace infernode::kernel
