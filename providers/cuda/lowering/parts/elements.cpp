#include "providers/cuda/lowering/parts/elements.h"

#include "base/error.h"

namespace infernode::cuda {

namespace {

using tensor::DType;

/// Whether the elements of a broadcast operand lie the same in both orders: there is at most one for each channel.
bool is_along_channels(const tensor::Shape& shape, std::size_t rank) {
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    const std::size_t axis = rank - shape.rank() + d;
    if (axis != 1 && shape[d] != 1) return false;
  }
  return true;
}

bool is_test(UnaryOp op) { return op == UnaryOp::is_nan || op == UnaryOp::is_inf; }
bool is_comparison(BinaryOp op) { return op >= BinaryOp::equal && op <= BinaryOp::logical_xor; }

/// Whether kernels of this type compute the operator: those of 32 and 64 bit integers and of bool have a few.
bool has_kernel(DType dtype, UnaryOp op) {
  switch (op) {
    case UnaryOp::logical_not:
      return dtype == DType::Bool;
    case UnaryOp::abs:
    case UnaryOp::neg:
    case UnaryOp::sign:
    case UnaryOp::relu:
      return (kReals | kInts).contains(dtype);
    case UnaryOp::bit_not:
      return kInts.contains(dtype);
    default:
      return kReals.contains(dtype);
  }
}
bool has_kernel(DType dtype, BinaryOp op) {
  if (is_comparison(op)) return (kReals | kInts | kBool).contains(dtype);
  if (op == BinaryOp::shift_left || op == BinaryOp::shift_right) return false;
  return kReals.contains(dtype) || (kInts.contains(dtype) && op != BinaryOp::prelu);
}

}  // namespace

void launch_unary(Builder& b, UnaryOp op, const DeviceTensor& in, const DeviceTensor& out, float a, float parameter_b) {
  if (out.numel() == 0) return;
  const ElementwiseProblem problem{.kernel = cat(is_test(op) ? "test_" : "unary_", kernel_suffix(in.dtype)),
                                   .op = static_cast<std::uint32_t>(op),
                                   .inputs = {in},
                                   .out = out,
                                   .a = a,
                                   .b = parameter_b};
  b.launch(has_kernel(in.dtype, op) ? plan_elementwise(b.target(), problem) : plan_wide(b.target(), problem));
}

Launch plan_binary(Builder& b, BinaryOp op, const DeviceTensor& x, const DeviceTensor& y, const DeviceTensor& out) {
  const ElementwiseProblem problem{.kernel = cat(is_comparison(op) ? "compare_" : "binary_", kernel_suffix(x.dtype)),
                                   .op = static_cast<std::uint32_t>(op),
                                   .inputs = {x, y},
                                   .out = out};
  const bool own = x.dtype == y.dtype && has_kernel(x.dtype, op);
  return own ? plan_elementwise(b.target(), problem) : plan_wide(b.target(), problem);
}
void launch_binary(Builder& b, BinaryOp op, const DeviceTensor& x, const DeviceTensor& y, const DeviceTensor& out) {
  if (out.numel() > 0) b.launch(plan_binary(b, op, x, y, out));
}

Order common_order(Builder& b) {
  const std::size_t rank = b.output_shape(0).rank();
  bool some = false;
  for (std::size_t i = 0; i < b.input_count(); ++i) {
    if (b.has_input(i) && b.input_order(i) == Order::ChannelsLast && b.input_shape(i).rank() == rank) some = true;
  }
  return some ? Order::ChannelsLast : Order::Plain;
}

DeviceTensor operand(Builder& b, std::size_t i, Order order) {
  const tensor::Shape shape = b.input_shape(i);
  const std::size_t rank = b.output_shape(0).rank();
  if (order == Order::Plain) return b.input_strided(i);
  if (shape.rank() < rank || is_along_channels(shape, rank)) return b.input(i);
  return b.input_channels_last(i);
}

void lower_unary(Builder& b, UnaryOp op, float a, float parameter_b) {
  const Order order = common_order(b);
  const DeviceTensor x = operand(b, 0, order);
  launch_unary(b, op, x, b.output(0, order), a, parameter_b);
}

void lower_binary(Builder& b, BinaryOp op) {
  const Order order = common_order(b);
  const DeviceTensor x = operand(b, 0, order), y = operand(b, 1, order);
  launch_binary(b, op, x, y, b.output(0, order));
}

bool can_broadcast(const NodeView& node, tensor::TypeSet types) {
  const DType dtype = node.input_dtype(0);
  for (std::size_t i = 0; i < node.node().inputs.size(); ++i) {
    if (node.input_rank(i).value_or(9) > kElementwiseRank || node.input_dtype(i) != dtype) return false;
  }
  return types.contains(dtype);
}

DeviceTensor scratch_tensor(Builder& b, DType dtype, const tensor::Shape& shape) {
  return {
      .dtype = dtype, .shape = shape, .at = b.scratch(tensor::byte_size(dtype, shape.numel())), .storage = SIZE_MAX};
}

}  // namespace infernode::cuda
