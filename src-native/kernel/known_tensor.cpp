#include <algorithm>

#include "kernel/inference.h"

namespace infernode::kernel {

using tensor::DType;
using tensor::Tensor;

Tensor known_tensor(const InferredGraph& inferred, graph::ValueId id) {
  const auto index = static_cast<std::size_t>(id);
  if (index < inferred.known.size() && inferred.known[index]) return inferred.known[index];
  const auto& contents = inferred.contents[index];
  const graph::ValueType& type = inferred.types[index];
  const bool integers = type.elem == DType::Int64 || type.elem == DType::Int32;
  if (!contents || !integers || !type.is_tensor() || !type.shape) return {};
  if (!std::all_of(contents->begin(), contents->end(), [](const graph::Dim& d) { return d.known(); })) return {};
  const auto shape = graph::to_known(*type.shape);
  if (!shape || shape->numel() != static_cast<std::int64_t>(contents->size())) return {};
  Tensor out = Tensor::make(type.elem, *shape);
  for (std::size_t i = 0; i < contents->size(); ++i) {
    if (type.elem == DType::Int64) {
      out.mutable_data<std::int64_t>()[i] = (*contents)[i].value();
    } else {
      out.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>((*contents)[i].value());
    }
  }
  return out;
}

}  // namespace infernode::kernel
