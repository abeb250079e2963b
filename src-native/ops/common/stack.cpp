#include "ops/common/stack.h"
#include "base/checked.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {

void join_parts(kernel::KernelContext& ctx, std::size_t o, std::span<const tensor::Tensor> parts, std::size_t axis,
                bool stacked, const char* what) {
  using tensor::Shape;
  const Shape& first = parts[0].shape();
  Shape dims;
  for (std::size_t d = 0; d < axis; ++d) dims.push_back(first[d]);
  dims.push_back(0);
  for (std::size_t d = axis + (stacked ? 0 : 1); d < first.rank(); ++d) dims.push_back(first[d]);
  for (const tensor::Tensor& part : parts) {
    bool fits = part.rank() == first.rank() && part.dtype() == parts[0].dtype();
    for (std::size_t d = 0; fits && d < first.rank(); ++d) fits = part.dim(d) == first[d] || (!stacked && d == axis);
    INFERNODE_CHECK(fits, ErrorCode::ShapeMismatch, what, ": ", part.to_string(), " does not join ",
                    parts[0].to_string());
    dims[axis] = checked_add(dims[axis], stacked ? 1 : part.dim(axis));
  }
  const tensor::Tensor out = ctx.output(o, parts[0].dtype(), dims);
  const std::int64_t outer = dims.numel(0, axis), inner = dims.numel(axis + 1, dims.rank());
  std::int64_t at = 0;
  for (const tensor::Tensor& part : parts) {
    const std::int64_t run = (stacked ? 1 : part.dim(axis)) * inner;
    strided_copy(ctx.run(), Shape{outer, run}, {part, 0, Shape{run, 1}}, {out, at, Shape{dims[axis] * inner, 1}});
    at += run;
  }
}

}  // namespace infernode::ops
