#include "ops/control/control_flow.h"

#include "base/error.h"

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

void give_none(kernel::KernelContext& ctx, std::size_t o, const ValueType& one, std::int64_t axis) {
  INFERNODE_CHECK(one.is_tensor() && one.elem != tensor::DType::Undefined, ErrorCode::InvalidModel, "output ", o,
                  " of a body that never ran would be stacked of ", one.to_string(),
                  ", which is no tensor of known type");
  tensor::Shape dims;
  if (one.shape) {
    for (const Dim& dim : *one.shape) dims.push_back(dim.known() ? dim.value() : 0);
  }
  const std::size_t place = tensor::normalize_axis(axis, dims.rank() + 1, "scan_output_axes");
  tensor::Shape whole(dims.dims().first(place));
  whole.push_back(0);
  for (std::size_t d = place; d < dims.rank(); ++d) whole.push_back(dims[d]);
  ctx.output(o, one.elem, whole);
}

}  // namespace infernode::ops
