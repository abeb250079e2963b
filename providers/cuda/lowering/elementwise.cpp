// Operators on the elements of two tensors and more: arithmetic, comparisons, choices; and conversions.

#include "base/error.h"
#include "providers/cuda/lowering/parts/channel_gate.h"
#include "providers/cuda/lowering/parts/elements.h"

namespace infernode::cuda {
namespace {

using tensor::DType;

/// Broadcasts that do not merge into few axes, and those along an attribute's axis (before version 7), are left to the
/// CPU.
bool can_two(const NodeView& node, tensor::TypeSet types) {
  return node.node().opset >= 7 && can_broadcast(node, types);
}
bool can_binary(const NodeView& node) { return can_two(node, kAllNumbers); }
bool can_compare(const NodeView& node) { return can_two(node, kAllNumbers | kBool); }
bool can_logical(const NodeView& node) { return can_two(node, kBool); }
bool can_bits(const NodeView& node) { return can_two(node, tensor::types::kInts); }

/// An integer has integers as exponents.
bool can_pow(const NodeView& node) {
  const DType x = node.input_dtype(0), y = node.input_dtype(1);
  return node.node().opset >= 7 && node.input_rank(0).value_or(9) <= kElementwiseRank &&
         node.input_rank(1).value_or(9) <= kElementwiseRank && kAllNumbers.contains(x) && kAllNumbers.contains(y) &&
         (kAllFloats.contains(x) || tensor::types::kInts.contains(y));
}

/// A slope that each of x's elements has; before version 7 a vector of slopes lay along the channels.
void lower_prelu(Builder& b) {
  const tensor::Shape x = b.input_shape(0), slope = b.input_shape(1);
  if (!(tensor::broadcast(x, slope) == x)) {
    fail(ErrorCode::ShapeMismatch,
         cat("PRelu: a slope of shape ", slope.to_string(), " does not broadcast to ", x.to_string()));
  }
  lower_binary(b, BinaryOp::prelu);
}
void lower_mod(Builder& b) { lower_binary(b, b.attributes().get_int("fmod", 0) != 0 ? BinaryOp::fmod : BinaryOp::mod); }

void lower_mul(Builder& b) {
  if (!defer_gated(b)) lower_binary(b, BinaryOp::mul);
}

bool can_shift(const NodeView& node) {
  const std::string way = node.attributes().get_string("direction", "");
  return can_bits(node) && (way == "LEFT" || way == "RIGHT");
}
void lower_shift(Builder& b) {
  lower_binary(b, b.attributes().get_string("direction", "") == "LEFT" ? BinaryOp::shift_left : BinaryOp::shift_right);
}

/// The first two, then each one more with what there is. Returns the result.
DeviceTensor accumulate(Builder& b, BinaryOp op) {
  const Order order = common_order(b);
  std::vector<DeviceTensor> inputs;
  for (std::size_t i = 0; i < b.input_count(); ++i) inputs.push_back(operand(b, i, order));
  const DeviceTensor y = b.output(0, order);
  launch_binary(b, op, inputs[0], inputs[1], y);
  for (std::size_t i = 2; i < inputs.size(); ++i) launch_binary(b, op, y, inputs[i], y);
  return y;
}
void lower_one(Builder& b) {
  const DeviceTensor x = b.input_strided(0);
  return x.strides.empty() ? b.view(0, x) : b.strided_view(0, x, x.at, x.strides);
}
template <BinaryOp op>
void lower_variadic(Builder& b) {
  if (b.input_count() == 1) return lower_one(b);
  accumulate(b, op);
}
bool can_mean(const NodeView& node) { return can_two(node, kReals); }
void lower_mean(Builder& b) {
  if (b.input_count() == 1) return lower_one(b);
  const DeviceTensor y = accumulate(b, BinaryOp::add);
  launch_unary(b, UnaryOp::affine, y, y, 1.0f / static_cast<float>(b.input_count()));
}

bool can_where(const NodeView& node) {
  const std::size_t bits = tensor::bit_size(node.output_dtype(0));
  for (std::size_t i = 0; i < 3; ++i) {
    if (node.input_rank(i).value_or(9) > kElementwiseRank) return false;
  }
  return bits >= 8 && bits <= 64;
}
void lower_where(Builder& b) {
  ElementwiseProblem problem{.kernel = "", .op = 0, .inputs = {b.input(0), b.input(1), b.input(2)}, .out = {}};
  problem.out = b.output(0);
  problem.kernel = cat("where_", problem.out.element_bytes());
  if (problem.out.numel() > 0) b.launch(plan_elementwise(b.target(), problem));
}

bool can_cast(const NodeView& node) { return number_of(node.input_dtype(0)) && number_of(node.output_dtype(0)); }
void lower_cast(Builder& b) {
  const DeviceTensor in = b.input_as_it_is(0);
  if (in.dtype == b.output_dtype(0)) return b.view(0, in);
  const DeviceTensor out = b.output(0, in.order);
  const std::int64_t count = in.order == Order::Plain ? in.numel() : in.pixels() * in.pitch;
  if (count > 0) b.launch(plan_cast(b.target(), {in.at, in.dtype, out.at, out.dtype, count}));
}

template <BinaryOp op>
void add(Lowerings& to, const char* name, bool (*can)(const NodeView&)) {
  to.push_back({"", name, can, lower_binary<op>});
}

}  // namespace

void register_elementwise(Lowerings& lowerings) {
  add<BinaryOp::add>(lowerings, "Add", can_binary);
  add<BinaryOp::sub>(lowerings, "Sub", can_binary);
  lowerings.push_back({"", "Mul", can_binary, lower_mul});
  add<BinaryOp::div>(lowerings, "Div", can_binary);
  add<BinaryOp::pow>(lowerings, "Pow", can_pow);
  add<BinaryOp::equal>(lowerings, "Equal", can_compare);
  add<BinaryOp::less>(lowerings, "Less", can_compare);
  add<BinaryOp::less_equal>(lowerings, "LessOrEqual", can_compare);
  add<BinaryOp::greater>(lowerings, "Greater", can_compare);
  add<BinaryOp::greater_equal>(lowerings, "GreaterOrEqual", can_compare);
  add<BinaryOp::logical_and>(lowerings, "And", can_logical);
  add<BinaryOp::logical_or>(lowerings, "Or", can_logical);
  add<BinaryOp::logical_xor>(lowerings, "Xor", can_logical);
  add<BinaryOp::bit_and>(lowerings, "BitwiseAnd", can_bits);
  add<BinaryOp::bit_or>(lowerings, "BitwiseOr", can_bits);
  add<BinaryOp::bit_xor>(lowerings, "BitwiseXor", can_bits);
  lowerings.push_back({"", "BitShift", can_shift, lower_shift});
  lowerings.push_back({"", "PRelu", can_binary, lower_prelu});
  lowerings.push_back({"", "Mod", can_binary, lower_mod});
  lowerings.push_back({"", "Max", can_binary, lower_variadic<BinaryOp::max>});
  lowerings.push_back({"", "Min", can_binary, lower_variadic<BinaryOp::min>});
  lowerings.push_back({"", "Sum", can_binary, lower_variadic<BinaryOp::add>});
  lowerings.push_back({"", "Mean", can_mean, lower_mean});
  lowerings.push_back({"", "Where", can_where, lower_where});
  lowerings.push_back({"", "Cast", can_cast, lower_cast});
  lowerings.push_back({"", "CastLike", can_cast, lower_cast});
}

}  // namespace infernode::cuda
