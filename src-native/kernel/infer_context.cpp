#include "kernel/infer_context.h"

#include "base/error.h"

namespace infernode::kernel {

using graph::Dim;
using graph::SymShape;

namespace {

/// Whether the dim follows from named symbols alone.
bool is_named(const Dim& dim) {
  return dim.evaluate([](std::string_view) { return std::optional<std::int64_t>(1); }).has_value();
}

}  // namespace

const SymShape* InferContext::input_shape(std::size_t i) const {
  if (!has_input(i)) return nullptr;
  const graph::ValueType& type = input_type(i);
  return type.is_tensor() && type.shape ? &*type.shape : nullptr;
}

void infer_same_as_first(InferContext& ctx) {
  const graph::ValueType& type = ctx.input_type(0);
  if (type.kind == graph::ValueType::Kind::Unknown) return;
  for (std::size_t o = 0; o < ctx.output_count(); ++o) {
    if (ctx.has_output(o)) ctx.set_output_type(o, type);
  }
}

SymShape broadcast_shapes(std::span<const SymShape* const> shapes) {
  std::size_t rank = 0;
  for (const SymShape* shape : shapes) rank = std::max(rank, shape->size());
  SymShape out(rank, Dim(1));
  for (std::size_t axis = 0; axis < rank; ++axis) {
    Dim& result = out[axis];
    for (const SymShape* shape : shapes) {
      if (axis + shape->size() < rank) continue;
      const Dim& dim = (*shape)[axis + shape->size() - rank];
      if (dim.is(1) || dim == result) continue;
      if (result.is(1)) {
        result = dim;
      } else if (dim.known() && result.known()) {
        std::string all;
        for (const SymShape* s : shapes) all += cat(all.empty() ? "" : " and ", graph::to_string(*s));
        fail(ErrorCode::ShapeMismatch,
             cat("shapes ", all, " do not broadcast: axis ", axis, " is both ", result.value(), " and ", dim.value()));
      } else if (dim.known()) {
        result = dim;  // the symbol stands for 1 or for the same number
      } else if (!result.known()) {
        // Equal, or one of them is 1; an unnamed one tells nothing.
        result = is_named(result) && is_named(dim) ? max(result, dim) : Dim::unknown();
      }
    }
  }
  return out;
}

void infer_broadcast(InferContext& ctx) {
  if (!ctx.has_output(0)) return;
  if (ctx.output_type(0).elem == tensor::DType::Undefined) ctx.set_output_dtype(0, ctx.input_dtype(0));
  std::vector<const SymShape*> shapes;
  for (std::size_t i = 0; i < ctx.input_count(); ++i) {
    if (!ctx.has_input(i)) continue;
    shapes.push_back(ctx.input_shape(i));
    if (!shapes.back()) return;
  }
  if (!shapes.empty()) ctx.set_output_shape(0, broadcast_shapes(shapes));
}

}  // namespace infernode::kernel
