#include "tensor/shape.h"

#include "base/checked.h"
#include "base/error.h"

namespace infernode::tensor {

int64_t Shape::numel() const { return numel(0, rank()); }

int64_t Shape::numel(size_t from, size_t to) const {
  bool overflow = false;
  bool zero = false;
  int64_t count = 1;
  for (size_t i = from; i < to; ++i) {
    const int64_t d = dims_[i];
    INFERNODE_CHECK(d >= 0, ErrorCode::InvalidArgument, "negative dimension in shape ", dims());
    zero = zero || d == 0;
    overflow = overflow || mul_overflows(count, d, count);
  }
  if (zero) return 0;
  INFERNODE_CHECK(!overflow, ErrorCode::OutOfMemory, "shape ", dims(), " has more elements than 64 bits can count");
  return count;
}

Shape Shape::strides() const {
  Shape out;
  out.resize(rank());
  int64_t step = 1;
  for (size_t i = rank(); i-- > 0;) {
    out[i] = step;
    step = checked_mul(step, dims_[i]);
  }
  return out;
}

std::string Shape::to_string() const { return cat(dims()); }

size_t normalize_axis(int64_t axis, size_t rank, const char* what) {
  const auto r = static_cast<int64_t>(rank);
  INFERNODE_CHECK(axis >= -r && axis < r, ErrorCode::InvalidArgument, what, " ", axis, " is out of range [", -r, ", ",
                  r - 1, "] for a tensor of rank ", rank);
  return static_cast<size_t>(axis < 0 ? axis + r : axis);
}

Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape out = longer;
  const size_t offset = longer.rank() - shorter.rank();
  for (size_t i = 0; i < shorter.rank(); ++i) {
    const int64_t x = longer[offset + i], y = shorter[i];
    INFERNODE_CHECK(x == y || x == 1 || y == 1, ErrorCode::ShapeMismatch, "shapes ", a.dims(), " and ", b.dims(),
                    " do not broadcast");
    out[offset + i] = x == 1 ? y : x;
  }
  return out;
}

Shape broadcast_strides(const Shape& from, const Shape& to) {
  INFERNODE_CHECK(from.rank() <= to.rank(), ErrorCode::ShapeMismatch, "shape ", from.dims(), " does not broadcast to ",
                  to.dims());
  Shape out;
  out.resize(to.rank(), 0);
  const size_t offset = to.rank() - from.rank();
  int64_t step = 1;
  for (size_t i = from.rank(); i-- > 0;) {
    INFERNODE_CHECK(from[i] == to[offset + i] || from[i] == 1, ErrorCode::ShapeMismatch, "shape ", from.dims(),
                    " does not broadcast to ", to.dims());
    out[offset + i] = from[i] == 1 ? 0 : step;
    step = checked_mul(step, from[i]);
  }
  return out;
}

}  // namespace infernode::tensor
