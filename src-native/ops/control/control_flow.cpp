#include "ops/control/control_flow.h"

#include <algorithm>

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

bool says_as_much(const ValueType& a, const ValueType& b) {
  if (!a.shape || !b.shape) return !a.shape && !b.shape;
  return std::ranges::equal(*a.shape, *b.shape, [](const Dim& x, const Dim& y) {
    return x == y || (x.to_string() == "?" && y.to_string() == "?");
  });
}

ValueType with_leading_dim(ValueType type, const Dim& dim, std::size_t axis) {
  if (type.shape && axis <= type.shape->size()) {
    type.shape->insert(type.shape->begin() + static_cast<std::ptrdiff_t>(axis), dim);
  } else {
    type.shape.reset();
  }
  return type;
}

tensor::Shape dims_of_none(const ValueType& one) {
  INFERNODE_CHECK(one.is_tensor() && one.elem != tensor::DType::Undefined, ErrorCode::InvalidModel,
                  "a body that never ran would give ", one.to_string(),
                  " to be stacked, which is no tensor of known type");
  tensor::Shape dims;
  if (one.shape) {
    for (const Dim& dim : *one.shape) dims.push_back(dim.known() ? dim.value() : 0);
  }
  return dims;
}

void give_none(kernel::KernelContext& ctx, std::size_t o, const ValueType& one, std::int64_t axis) {
  const tensor::Shape dims = dims_of_none(one);
  const std::size_t place = tensor::normalize_axis(axis, dims.rank() + 1, "scan_output_axes");
  tensor::Shape whole(dims.dims().first(place));
  whole.push_back(0);
  for (std::size_t d = place; d < dims.rank(); ++d) whole.push_back(dims[d]);
  ctx.output(o, one.elem, whole);
}

}  // namespace infernode::ops
