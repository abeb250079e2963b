#pragma once

#include "providers/cuda/kernels/simple/elementwise.h"
#include "providers/cuda/lowering/lowering.h"

// What lowerings of operators on elements share.
namespace infernode::cuda {

inline constexpr tensor::TypeSet kBool{tensor::DType::Bool};
/// Types of numbers that kernels for rare types take, beside kReals and kInts.
inline constexpr tensor::TypeSet kRareNumbers = tensor::types::kNumeric.without(kReals | kInts);
inline constexpr tensor::TypeSet kAllNumbers = tensor::types::kNumericBf16;
inline constexpr tensor::TypeSet kAllFloats = kReals | tensor::TypeSet{tensor::DType::Float64};

/// out = op(in): by a kernel of its type, or by that for all types. Both have the same order. Nothing where there are
/// no elements.
void launch_unary(Builder& b, UnaryOp op, const DeviceTensor& in, const DeviceTensor& out, float a = 0,
                  float parameter_b = 0);
/// out = op(x, y), with numpy's broadcasting.
Launch plan_binary(Builder& b, BinaryOp op, const DeviceTensor& x, const DeviceTensor& y, const DeviceTensor& out);
void launch_binary(Builder& b, BinaryOp op, const DeviceTensor& x, const DeviceTensor& y, const DeviceTensor& out);

/// The order in which the inputs and the output of an elementwise node lie: channels last where some input does, and
/// all others do, too, or are constants along channels.
Order common_order(Builder& b);
/// Input `i` for an output of this order.
DeviceTensor operand(Builder& b, std::size_t i, Order order);

/// The node's output 0 is that of its input 0, or of its inputs 0 and 1.
void lower_unary(Builder& b, UnaryOp op, float a = 0, float parameter_b = 0);
void lower_binary(Builder& b, BinaryOp op);
template <UnaryOp op>
void lower_unary(Builder& b) {
  lower_unary(b, op);
}
template <BinaryOp op>
void lower_binary(Builder& b) {
  lower_binary(b, op);
}

/// Whether all inputs have ranks that broadcasts are merged from, and elements of one type among these.
bool can_broadcast(const NodeView& node, tensor::TypeSet types);

/// A dense tensor that this node alone uses.
DeviceTensor scratch_tensor(Builder& b, tensor::DType dtype, const tensor::Shape& shape);

}  // namespace infernode::cuda
