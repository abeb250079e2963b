#include "runtime/run/end_apart.h"

#include <algorithm>
#include <cstdint>

namespace infernode::runtime {

namespace {

using tensor::Tensor;
using tensor::Value;

/// Strings or tensors that are freed in about a millisecond.
constexpr std::int64_t kMany = std::int64_t{1} << 14;

bool is_freed_slowly(const Value& value, bool pages) {
  if (value.is_sequence()) {
    const std::vector<Value>& items = value.sequence().items;
    return items.size() >= static_cast<std::size_t>(kMany) || are_freed_slowly(items, pages);
  }
  if (value.is_map()) return value.map().values.size() >= static_cast<std::size_t>(kMany);
  if (!value.is_tensor()) return false;
  const Tensor& tensor = value.tensor();
  if (!tensor.device().is_host() || !tensor.buffer().held_alone()) return false;
  if (tensor.dtype() == tensor::DType::String) return tensor.numel() >= kMany;
  return pages && tensor.buffer().size() >= kSlowBytes;
}

}  // namespace

bool are_freed_slowly(std::span<const Value> values, bool pages) {
  return std::ranges::any_of(values, [pages](const Value& value) { return is_freed_slowly(value, pages); });
}

}  // namespace infernode::runtime
