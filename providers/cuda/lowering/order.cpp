// Operators that say which elements of a row come first.

#include "providers/cuda/kernels/params/order.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "providers/cuda/lowering/parts/elements.h"

namespace infernode::cuda {
namespace {

using tensor::Shape;

std::int64_t axis_of(const NodeView& node, std::int64_t none) { return node.attributes().get_int("axis", none); }

bool can_arg(const NodeView& node) {
  return kAllNumbers.contains(node.input_dtype(0)) && node.input_rank(0).value_or(0) > 0;
}

/// Four rows a block, or one that a whole block looks through.
void launch_arg(Builder& b, ArgParams p) {
  if (p.rows == 0) return;
  if (p.columns == 0) fail(ErrorCode::InvalidArgument, "an axis has no elements to choose from");
  constexpr std::int64_t kLong = 1024;
  p.warps = p.columns >= kLong ? 32 : 1;
  const bool small = p.warps == 1;
  b.launch(launch_of_blocks("arg", p.rows, small ? 4 : 1, small ? 128 : 1024, param_bytes(p)));
}

template <bool smallest>
void lower_arg(Builder& b) {
  const DeviceTensor x = b.input(0);
  const std::size_t axis = tensor::normalize_axis(b.attributes().get_int("axis", 0), x.shape.rank());
  const std::int64_t inner = x.shape.numel(axis + 1, x.shape.rank());
  launch_arg(b, {.in = x.at,
                 .out = b.output(0).at,
                 .rows = x.shape.numel(0, axis) * inner,
                 .columns = x.shape[axis],
                 .inner = inner,
                 .type = number_of(x.dtype).value(),
                 .smallest = smallest,
                 .last = b.attributes().get_int("select_last_index", 0) != 0,
                 .one_hot = 0,
                 .warps = 1});
}

bool can_hardmax(const NodeView& node) { return node.all_of(kAllFloats) && node.input_rank(0).value_or(0) > 0; }
void lower_hardmax(Builder& b) {
  const DeviceTensor x = b.input(0);
  const bool flattens = b.node().opset < 13;  // all axes from the given one on
  const std::size_t axis = tensor::normalize_axis(b.attributes().get_int("axis", flattens ? 1 : -1), x.shape.rank());
  const std::size_t end = flattens ? x.shape.rank() : axis + 1;
  const std::int64_t inner = x.shape.numel(end, x.shape.rank());
  const DeviceTensor y = b.output(0);
  if (x.numel() == 0) return;
  launch_arg(b, {.in = x.at,
                 .out = y.at,
                 .rows = x.shape.numel(0, axis) * inner,
                 .columns = x.shape.numel(axis, end),
                 .inner = inner,
                 .type = number_of(x.dtype).value(),
                 .smallest = 0,
                 .last = 0,
                 .one_hot = 1,
                 .warps = 1});
}

/// Before version 10 k is an attribute; since, its shape follows from it where it is known.
bool can_top_k(const NodeView& node) {
  const bool known = node.node().opset < 10 || (node.has_input(1) && node.is_known(1));
  return known && can_arg(node) && axis_of(node, -1) >= -static_cast<std::int64_t>(node.input_rank(0).value_or(0));
}
void lower_top_k(Builder& b) {
  const DeviceTensor x = b.input(0);
  const std::size_t axis = tensor::normalize_axis(b.attributes().get_int("axis", -1), x.shape.rank());
  const std::int64_t k = b.node().opset < 10 ? b.attributes().get_int("k", 0) : tensor::to_int64_scalar(*b.known(1));
  if (k < 0 || k > x.shape[axis]) {
    fail(ErrorCode::InvalidArgument, cat("k argument [", k,
                                         "] should not be negative, nor greater than specified axis "
                                         "dim value [",
                                         x.shape[axis], "]"));
  }
  const std::int64_t inner = x.shape.numel(axis + 1, x.shape.rank()), rows = x.shape.numel(0, axis) * inner;
  const auto place = [&](std::size_t o, tensor::DType dtype) {
    Shape shape = x.shape;
    shape[axis] = k;
    return b.wants_output(o) ? b.output(o).at : scratch_tensor(b, dtype, shape).at;
  };
  TopKParams p{.in = x.at,
               .values = place(0, x.dtype),
               .indices = place(1, tensor::DType::Int64),
               .chosen_key = 0,
               .chosen = 0,
               .columns = x.shape[axis],
               .inner = inner,
               .k = static_cast<std::int32_t>(k),
               .type = number_of(x.dtype).value(),
               .smallest = b.attributes().get_int("largest", 1) == 0,
               .sorted = b.attributes().get_int("sorted", 1) != 0};
  if (rows == 0 || k == 0) return;
  if (rows > INT32_MAX || p.columns > INT32_MAX)
    fail(ErrorCode::Internal, "cuda: rows of TopK are too many or too long");
  p.chosen_key = b.scratch(static_cast<std::size_t>(rows * k) * sizeof(std::uint64_t));
  p.chosen = b.scratch(static_cast<std::size_t>(rows * k) * sizeof(std::int32_t));
  const auto threads = std::clamp<std::uint64_t>(std::bit_ceil(static_cast<std::uint64_t>(p.columns)), 32, 1024);
  b.launch(launch_of_blocks("top_k", rows, 1, static_cast<std::uint32_t>(threads), param_bytes(p)));
}

}  // namespace

void register_order(Lowerings& lowerings) {
  lowerings.push_back({"", "ArgMax", can_arg, lower_arg<false>});
  lowerings.push_back({"", "ArgMin", can_arg, lower_arg<true>});
  lowerings.push_back({"", "Hardmax", can_hardmax, lower_hardmax});
  lowerings.push_back({"", "TopK", can_top_k, lower_top_k});
}

}  // namespace infernode::cuda
