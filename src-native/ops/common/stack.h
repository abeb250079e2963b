#pragma once
// Joining tensors along an axis: Concat, sequences, scan outputs.

#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "kernel/kernel.h"
#include "tensor/value.h"

namespace infernode::ops {

/// Where parts are joined along an axis that they have, and what comes of it. A part without elements whose other dims,
/// or whose rank, do not fit adds nothing: it was made where nothing was known of it.
struct Join {
  std::size_t axis = 0;
  tensor::Shape dims;  ///< of the whole
  /// Whether a part of this shape lies in the whole.
  bool takes(const tensor::Shape& part) const;
};

/// The first part with elements, or the first where none has any, says what fits. `part(i)` is the shape of one of
/// `count` parts. Throws ShapeMismatch naming `what`.
Join plan_join(std::size_t count, FunctionRef<const tensor::Shape&(std::size_t)> part, std::int64_t axis,
               const char* what);

/// The same of shapes that may be symbolic, or null where not known; nullopt where nothing follows.
std::optional<graph::SymShape> infer_join(std::span<const graph::SymShape* const> parts, std::int64_t axis,
                                          const char* what);

/// Output `o` = the parts joined along `axis`, as plan_join says.
void join_parts(kernel::KernelContext& ctx, std::size_t o, std::span<const tensor::Tensor> parts, std::int64_t axis,
                const char* what);

/// Output `o` = the parts, all of one shape, on a new axis. Throws ShapeMismatch naming `what`.
void stack_parts(kernel::KernelContext& ctx, std::size_t o, std::span<const tensor::Tensor> parts, std::int64_t axis,
                 const char* what);

}  // namespace infernode::ops
