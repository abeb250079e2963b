#pragma once
// What the operators that address elements by index share: checked indices and the loops over them.

#include <cstdint>
#include <string_view>

#include "base/inline_vector.h"
#include "kernel/kernel.h"
#include "ops/common/mover.h"
#include "ops/common/walk.h"
#include "tensor/tensor.h"

namespace infernode::ops {

[[noreturn]] void fail_index(std::int64_t index, std::int64_t bound, std::size_t axis);

/// An index of an axis with `bound` elements, negative ones counted from its end. Throws InvalidArgument outside.
inline std::int64_t checked_index(std::int64_t index, std::int64_t bound, std::size_t axis) {
  const std::int64_t at = index < 0 ? index + bound : index;
  if (static_cast<std::uint64_t>(at) >= static_cast<std::uint64_t>(bound)) [[unlikely]]
    fail_index(index, bound, axis);
  return at;
}

/// An int32 or int64 tensor as int64; a copy only where it is int32.
tensor::Tensor indices_as_int64(const kernel::RunContext& run, const tensor::Tensor& indices);

/// The loop nest of GatherElements and ScatterElements: rows along the last axis of `indices`, each with the offset in
/// `data` that its elements start from. Element j of a row lies at base + index * axis_stride + j * last_stride.
struct ElementRows {
  ElementRows(const tensor::Shape& data, const tensor::Shape& indices, std::size_t axis);
  std::int64_t rows = 1, columns = 1;
  std::int64_t outer = 1;  ///< rows come in this many groups that touch different elements of `data`
  std::int64_t axis_stride = 1, last_stride = 0;
  InlineVector<WalkAxis, 8> axes;  ///< from: offsets in data, to: offsets in indices
};

/// Where the index tuples of GatherND and ScatterND point: rows of `depth` indices, each naming a slice of `slice`
/// elements.
struct IndexTuples {
  /// Throws ShapeMismatch where the shapes do not fit.
  IndexTuples(const tensor::Shape& data, const tensor::Shape& indices, std::int64_t batch_dims);
  std::size_t batch_dims = 0, depth = 0;
  std::int64_t batches = 1, rows_per_batch = 1, slice = 1, batch_stride = 1;
  tensor::Shape bounds, strides;  ///< of the `depth` axes that indices address
  /// Offset in data, within the batch, of the slice that the tuple names.
  std::int64_t offset(const std::int64_t* tuple) const {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < depth; ++d) at += checked_index(tuple[d], bounds[d], batch_dims + d) * strides[d];
    return at;
  }
};

/// How an update joins the element it falls on.
enum class Reduction : std::uint8_t { None, Add, Mul, Min, Max };
/// Throws InvalidModel for an unknown name.
Reduction parse_reduction(std::string_view name);

/// The two loops of the scatter operators for one element type and reduction; pointers are to elements of that type.
struct ScatterLoops {
  /// to[offsets[i]] = to[offsets[i]] (op) updates[i]
  void (*at)(Mover& mover, void* to, const std::int64_t* offsets, const void* updates, std::size_t n);
  /// to[i] = to[i] (op) updates[i]
  void (*run)(Mover& mover, void* to, const void* updates, std::size_t n);
};
/// Throws UnsupportedOperator where the type has no such reduction.
ScatterLoops scatter_loops(tensor::DType dtype, Reduction reduction);

}  // namespace infernode::ops
