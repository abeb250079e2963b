#include "ops/control_flow.h"

namespace infernode::ops {

using graph::Dim;
using graph::ValueType;

ValueType merge_types(const ValueType& a, const ValueType& b) {
  if (a.kind == ValueType::Kind::Unknown) return b;
  if (b.kind == ValueType::Kind::Unknown || a.kind != b.kind) return a;
  ValueType out = a;
  if (a.inner && b.inner) out.inner = std::make_shared<const ValueType>(merge_types(*a.inner, *b.inner));
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) {
    out.shape.reset();
    return out;
  }
  for (std::size_t i = 0; i < a.shape->size(); ++i) {
    if (!((*a.shape)[i] == (*b.shape)[i])) (*out.shape)[i] = Dim::unknown();
  }
  return out;
}

ValueType with_unknown_dims(ValueType type) {
  if (type.shape) {
    for (Dim& dim : *type.shape) dim = Dim::unknown();
  }
  if (type.inner) type.inner = std::make_shared<const ValueType>(with_unknown_dims(*type.inner));
  return type;
}

ValueType with_leading_dim(ValueType type, const Dim& dim, std::size_t axis) {
  if (type.shape && axis <= type.shape->size()) {
    type.shape->insert(type.shape->begin() + static_cast<std::ptrdiff_t>(axis), dim);
  } else {
    type.shape.reset();
  }
  return type;
}

}  // namespace infernode::ops
