#include "ops/common/stack.h"

#include <algorithm>

#include "base/checked.h"
#include "ops/common/arguments.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {

using graph::Dim;
using graph::SymShape;
using tensor::Shape;
using tensor::Tensor;

namespace {

bool same_but(std::size_t axis, const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (std::size_t d = 0; d < a.rank(); ++d) {
    if (d != axis && a[d] != b[d]) return false;
  }
  return true;
}

bool has_none(const SymShape& shape) {
  return std::ranges::any_of(shape, [](const Dim& dim) { return dim.is(0); });
}

bool has_some(const SymShape& shape) {
  return std::ranges::all_of(shape, [](const Dim& dim) { return dim.known() && dim.value() > 0; });
}

/// Elements of `part` along `axis` that join `whole`, where `part` holds nothing.
Dim length_of_none(const SymShape& part, const SymShape& whole, std::size_t axis) {
  if (part.size() != whole.size() || part[axis].is(0)) return 0;
  bool fits = true;
  for (std::size_t d = 0; d < part.size(); ++d) {
    if (d == axis || part[d] == whole[d]) continue;
    if (part[d].known() && whole[d].known()) return 0;
    fits = false;
  }
  return fits ? part[axis] : Dim::unknown();
}

/// Whether the two may both have elements and be joined.
bool may_fit(const SymShape& a, const SymShape& b, std::size_t axis) {
  if (a.size() != b.size()) return false;
  for (std::size_t d = 0; d < a.size(); ++d) {
    if (d != axis && a[d].known() && b[d].known() && a[d].value() != b[d].value()) return false;
  }
  return true;
}

/// Adds a part that has elements where it may, as `whole` does.
void add_part(SymShape& whole, const SymShape& part, std::size_t axis, const char* what) {
  for (std::size_t d = 0; d < whole.size(); ++d) {
    if (d != axis) whole[d] = merge_dims(whole[d], part[d], what);
  }
  whole[axis] = whole[axis] + part[axis];
}

/// Copies what `join` takes of the parts into `out`, one behind the other.
void copy_parts(const kernel::KernelContext& ctx, std::span<const Tensor> parts, const Join& join, bool stacked,
                const Tensor& out) {
  const std::int64_t outer = join.dims.numel(0, join.axis), inner = join.dims.numel(join.axis + 1, join.dims.rank());
  std::int64_t at = 0;
  for (const Tensor& part : parts) {
    if (!stacked && !join.takes(part.shape())) continue;
    const std::int64_t run = (stacked ? 1 : part.dim(join.axis)) * inner;
    strided_copy(ctx.run(), Shape{outer, run}, {part, 0, Shape{run, 1}},
                 {out, at, Shape{join.dims[join.axis] * inner, 1}});
    at += run;
  }
}

}  // namespace

bool Join::takes(const Shape& part) const { return same_but(axis, part, dims); }

Join plan_join(std::size_t count, FunctionRef<const Shape&(std::size_t)> part, std::int64_t axis, const char* what) {
  std::size_t first = 0;
  while (first < count && part(first).numel() == 0) ++first;
  if (first == count) first = 0;
  Join join{.axis = tensor::normalize_axis(axis, part(first).rank()), .dims = part(first)};
  join.dims[join.axis] = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Shape& in = part(i);
    if (join.takes(in)) {
      join.dims[join.axis] = checked_add(join.dims[join.axis], in[join.axis]);
    } else {
      INFERNODE_CHECK(in.numel() == 0, ErrorCode::ShapeMismatch, what, ": input ", i, " has shape ", in.dims(),
                      ", which does not fit ", part(first).dims(), " along axis ", join.axis);
    }
  }
  return join;
}

std::optional<SymShape> infer_join(std::span<const SymShape* const> parts, std::int64_t axis, const char* what) {
  // One that surely has elements says most, one that surely has none the least.
  const auto rank = [](const SymShape& part) { return has_some(part) ? 2 : has_none(part) ? 0 : 1; };
  const SymShape* first = nullptr;
  std::size_t first_at = 0;
  bool all = true;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const SymShape* part = parts[i];
    all = all && part != nullptr;
    if (part == nullptr || (first != nullptr && rank(*part) <= rank(*first))) continue;
    first = part;
    first_at = i;
  }
  if (first == nullptr || (!all && has_none(*first))) return std::nullopt;
  const auto other_rank = [&](const SymShape* part) {
    return part != nullptr && !has_none(*part) && part->size() != first->size();
  };
  if (!has_some(*first) && std::ranges::any_of(parts, other_rank)) return std::nullopt;  // either has none
  SymShape out = *first;
  const std::size_t at = tensor::normalize_axis(axis, out.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const SymShape* part = parts[i];
    if (part == nullptr || i == first_at) continue;
    if (has_none(*part)) {
      out[at] = out[at] + length_of_none(*part, *first, at);
    } else if (may_fit(*first, *part, at)) {
      add_part(out, *part, at, what);
    } else if (!has_some(*first)) {
      return std::nullopt;  // either of them has none
    } else {
      INFERNODE_CHECK(!has_some(*part), ErrorCode::ShapeMismatch, what, ": inputs of shapes ", graph::to_string(*first),
                      " and ", graph::to_string(*part), " do not fit along axis ", at);
    }
  }
  if (!all) out[at] = Dim::unknown();
  return out;
}

void join_parts(kernel::KernelContext& ctx, std::size_t o, std::span<const Tensor> parts, std::int64_t axis,
                const char* what) {
  const Join join = plan_join(
      parts.size(), [&](std::size_t i) -> const Shape& { return parts[i].shape(); }, axis, what);
  for (const Tensor& part : parts) {
    INFERNODE_CHECK(part.dtype() == parts[0].dtype(), ErrorCode::ShapeMismatch, what, ": ", part.to_string(),
                    " does not join ", parts[0].to_string());
  }
  copy_parts(ctx, parts, join, false, ctx.output(o, parts[0].dtype(), join.dims));
}

void stack_parts(kernel::KernelContext& ctx, std::size_t o, std::span<const Tensor> parts, std::int64_t axis,
                 const char* what) {
  const Shape& first = parts[0].shape();
  Join join{.axis = tensor::normalize_axis(axis, first.rank() + 1), .dims = Shape(first.dims().first(0))};
  const std::size_t at = join.axis;
  for (std::size_t d = 0; d <= first.rank(); ++d) {
    join.dims.push_back(d == at ? static_cast<std::int64_t>(parts.size()) : first[d < at ? d : d - 1]);
  }
  for (const Tensor& part : parts) {
    INFERNODE_CHECK(part.shape() == first && part.dtype() == parts[0].dtype(), ErrorCode::ShapeMismatch, what, ": ",
                    part.to_string(), " does not join ", parts[0].to_string());
  }
  copy_parts(ctx, parts, join, true, ctx.output(o, parts[0].dtype(), join.dims));
}

}  // namespace infernode::ops
