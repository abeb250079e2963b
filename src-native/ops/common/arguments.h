#pragma once
// Lists of integers that operators take: axes, shapes, pads. Older versions hold them in attributes, newer ones in
// inputs.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "base/inline_vector.h"
#include "kernel/infer_context.h"
#include "kernel/kernel.h"

namespace infernode::ops {

using Ints = InlineVector<std::int64_t, 8>;

/// Elements of an int32 or int64 tensor of rank 0 or 1.
Ints read_ints(const tensor::Tensor& tensor);

/// Axes mapped to [0, rank), in the order given. Throws InvalidArgument for one out of range or given twice.
Ints normalize_axes(std::span<const std::int64_t> axes, std::size_t rank, const char* what = "axis");

/// A list in the attribute `name` where the node has it, in input `input` otherwise.
class IntsArgument {
 public:
  IntsArgument(kernel::KernelInfo& info, std::string_view name, std::size_t input);
  /// nullopt where the node has neither.
  std::optional<Ints> read(const kernel::KernelContext& ctx) const;
  /// Throws InvalidModel naming the list where the node has neither.
  Ints required(const kernel::KernelContext& ctx, const char* what) const;

 private:
  std::size_t input_;
  std::optional<Ints> fixed_;  ///< from the attribute or a constant input
};

/// The same for inference. `given` is false where the node has neither; `values` is empty where they are not known yet.
struct InferredInts {
  bool given = false;
  std::optional<Ints> values;
  bool unknown() const { return given && !values; }
};
InferredInts infer_ints(const kernel::InferContext& ctx, std::string_view attribute, std::size_t input);
inline constexpr std::size_t kNoInput = std::numeric_limits<std::size_t>::max();

/// A shape of `rank` dims that nothing is known of.
graph::SymShape unknown_shape(std::size_t rank);

/// What two views of one dim say together; throws ShapeMismatch where both are known and differ.
graph::Dim merge_dims(const graph::Dim& a, const graph::Dim& b, const char* what);

/// Passes on the contents of small integer tensors where the operator only changes their dims.
void infer_same_contents(kernel::InferContext& ctx);

}  // namespace infernode::ops
