// Operators on each element: functions of one number, of two with broadcasting, comparisons, choices, conversions.

#include "providers/cuda/kernels/simple/elementwise.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "providers/cuda/kernels/simple/movement.h"
#include "providers/cuda/lowering/lowering.h"

namespace infernode::cuda {
namespace {

using tensor::DType;
using tensor::TypeSet;

constexpr TypeSet kBool{DType::Bool};

/// The order in which the inputs and the output of an elementwise node lie: channels last where some input does, and
/// all others do, too, or are constants along channels.
Order common_order(Builder& b) {
  const std::size_t rank = b.output_shape(0).rank();
  bool some = false;
  for (std::size_t i = 0; i < b.input_count(); ++i) {
    if (b.has_input(i) && b.input_order(i) == Order::ChannelsLast && b.input_shape(i).rank() == rank) some = true;
  }
  return some ? Order::ChannelsLast : Order::Plain;
}

/// Whether the elements of a broadcast operand lie the same in both orders: there is at most one for each channel.
bool is_along_channels(const tensor::Shape& shape, std::size_t rank) {
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    const std::size_t axis = rank - shape.rank() + d;
    if (axis != 1 && shape[d] != 1) return false;
  }
  return true;
}

/// Input `i` for an output of this order.
DeviceTensor operand(Builder& b, std::size_t i, Order order) {
  const tensor::Shape shape = b.input_shape(i);
  const std::size_t rank = b.output_shape(0).rank();
  if (order == Order::Plain) return b.input_strided(i);
  if (shape.rank() < rank || is_along_channels(shape, rank)) return b.input(i);
  return b.input_channels_last(i);
}

void lower_elements(Builder& b, std::string_view family, std::uint32_t op, std::size_t inputs, float a = 0,
                    float parameter_b = 0) {
  const Order order = common_order(b);
  ElementwiseProblem problem{.kernel = cat(family, "_", kernel_suffix(b.input_dtype(0))),
                             .op = op,
                             .inputs = {},
                             .out = {},
                             .a = a,
                             .b = parameter_b};
  for (std::size_t i = 0; i < inputs; ++i) problem.inputs.push_back(operand(b, i, order));
  problem.out = b.output(0, order);
  if (problem.out.numel() > 0) b.launch(plan_elementwise(b.target(), problem));
}

template <UnaryOp op>
void lower_unary(Builder& b) {
  lower_elements(b, "unary", static_cast<std::uint32_t>(op), 1);
}
bool can_reals(const NodeView& node) { return node.all_of(kReals); }
bool can_reals_or_ints(const NodeView& node) { return node.all_of(kReals) || node.all_of(kInts); }
bool can_bools(const NodeView& node) { return node.all_of(kBool); }

struct Parameters {
  const char* name_a;
  float a;
  const char* name_b;
  float b;
};
/// Parameters with the attributes' names and defaults.
template <UnaryOp op>
Parameters parameters_of() {
  switch (op) {
    case UnaryOp::hard_sigmoid:
      return {"alpha", 0.2f, "beta", 0.5f};
    case UnaryOp::leaky_relu:
      return {"alpha", 0.01f, "", 0};
    case UnaryOp::selu:
      return {"alpha", 1.67326319217681884765625f, "gamma", 1.05070102214813232421875f};
    case UnaryOp::quick_gelu:
      return {"alpha", 1.702f, "", 0};
    default:
      return {"alpha", 1.0f, "", 0};
  }
}
template <UnaryOp op>
void lower_parametric(Builder& b) {
  const Parameters p = parameters_of<op>();
  lower_elements(b, "unary", static_cast<std::uint32_t>(op), 1, b.attributes().get_float(p.name_a, p.a),
                 b.attributes().get_float(p.name_b, p.b));
}

bool can_gelu(const NodeView& node) {
  const std::string way = node.attributes().get_string("approximate", "none");
  return can_reals(node) && (way == "none" || way == "tanh");
}
void lower_gelu(Builder& b) {
  const bool tanh = b.attributes().get_string("approximate", "none") == "tanh";
  lower_elements(b, "unary", static_cast<std::uint32_t>(tanh ? UnaryOp::gelu_tanh : UnaryOp::gelu), 1);
}
bool can_gelu_without_bias(const NodeView& node) { return node.all_of(kReals) && !node.has_input(1); }

bool can_clip(const NodeView& node) { return node.all_of(kReals) && node.is_known(1) && node.is_known(2); }
void lower_clip(Builder& b) {
  const auto bound = [&](std::size_t i, const char* name, float none) {
    const tensor::Tensor* given = b.known(i);
    if (given != nullptr && given->numel() != 1) {
      fail(ErrorCode::ShapeMismatch, cat("Clip: a bound must be one number, got ", given->shape().to_string()));
    }
    return given != nullptr ? tensor::to_float_scalar(*given) : b.attributes().get_float(name, none);
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  lower_elements(b, "unary", static_cast<std::uint32_t>(UnaryOp::clip), 1, bound(1, "min", -kInfinity),
                 bound(2, "max", kInfinity));
}

template <BinaryOp op>
void lower_binary(Builder& b) {
  lower_elements(b, "binary", static_cast<std::uint32_t>(op), 2);
}
template <BinaryOp op>
void lower_compare(Builder& b) {
  lower_elements(b, "compare", static_cast<std::uint32_t>(op), 2);
}
/// Broadcasts that do not merge into few axes, those along an attribute's axis (before version 7), and operands of two
/// types (Pow) are left to the CPU.
bool fits_rank(const NodeView& node) {
  return node.node().opset >= 7 && node.input_rank(0).value_or(9) <= kElementwiseRank &&
         node.input_rank(1).value_or(9) <= kElementwiseRank;
}
bool can_binary(const NodeView& node) {
  return fits_rank(node) && node.input_dtype(0) == node.input_dtype(1) && can_reals_or_ints(node);
}
bool can_compare(const NodeView& node) {
  return fits_rank(node) && node.input_dtype(0) == node.input_dtype(1) &&
         (kReals | kInts | kBool).contains(node.input_dtype(0));
}
bool can_logical(const NodeView& node) { return fits_rank(node) && can_bools(node); }
/// A slope that each of x's elements has; before version 7 a vector of slopes lay along the channels.
bool can_prelu(const NodeView& node) { return can_binary(node) && can_reals(node); }
void lower_prelu(Builder& b) {
  const tensor::Shape x = b.input_shape(0), slope = b.input_shape(1);
  if (!(tensor::broadcast(x, slope) == x)) {
    fail(ErrorCode::ShapeMismatch,
         cat("PRelu: a slope of shape ", slope.to_string(), " does not broadcast to ", x.to_string()));
  }
  lower_binary<BinaryOp::prelu>(b);
}
void lower_mod(Builder& b) {
  const bool as_c = b.attributes().get_int("fmod", 0) != 0;
  lower_elements(b, "binary", static_cast<std::uint32_t>(as_c ? BinaryOp::fmod : BinaryOp::mod), 2);
}

/// Sum, Max, Min, Mean of two.
bool can_two(const NodeView& node) { return node.node().inputs.size() == 2 && can_binary(node); }

bool can_where(const NodeView& node) {
  const std::size_t bits = tensor::bit_size(node.output_dtype(0));
  return fits_rank(node) && node.input_rank(2).value_or(9) <= kElementwiseRank && bits >= 8 && bits <= 64;
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

template <UnaryOp op>
void add_unary(Lowerings& to, const char* name, bool ints = false) {
  to.push_back({"", name, ints ? can_reals_or_ints : can_reals, lower_unary<op>});
}
template <UnaryOp op>
void add_parametric(Lowerings& to, const char* name, const char* domain = "") {
  to.push_back({domain, name, can_reals, lower_parametric<op>});
}
template <BinaryOp op>
void add_binary(Lowerings& to, const char* name) {
  to.push_back({"", name, can_binary, lower_binary<op>});
}
template <BinaryOp op>
void add_compare(Lowerings& to, const char* name) {
  to.push_back({"", name, can_compare, lower_compare<op>});
}

void add_functions(Lowerings& to) {
  add_unary<UnaryOp::abs>(to, "Abs", true);
  add_unary<UnaryOp::neg>(to, "Neg", true);
  add_unary<UnaryOp::exp>(to, "Exp");
  add_unary<UnaryOp::log>(to, "Log");
  add_unary<UnaryOp::sqrt>(to, "Sqrt");
  add_unary<UnaryOp::reciprocal>(to, "Reciprocal");
  add_unary<UnaryOp::floor>(to, "Floor");
  add_unary<UnaryOp::ceil>(to, "Ceil");
  add_unary<UnaryOp::round>(to, "Round");
  add_unary<UnaryOp::sign>(to, "Sign", true);
  add_unary<UnaryOp::erf>(to, "Erf");
  add_unary<UnaryOp::sin>(to, "Sin");
  add_unary<UnaryOp::cos>(to, "Cos");
  add_unary<UnaryOp::tan>(to, "Tan");
  add_unary<UnaryOp::tanh>(to, "Tanh");
  add_unary<UnaryOp::sigmoid>(to, "Sigmoid");
  add_unary<UnaryOp::relu>(to, "Relu", true);
  add_unary<UnaryOp::softplus>(to, "Softplus");
  add_unary<UnaryOp::softsign>(to, "Softsign");
  add_unary<UnaryOp::hard_swish>(to, "HardSwish");
  add_unary<UnaryOp::mish>(to, "Mish");
  add_parametric<UnaryOp::hard_sigmoid>(to, "HardSigmoid");
  add_parametric<UnaryOp::leaky_relu>(to, "LeakyRelu");
  add_parametric<UnaryOp::elu>(to, "Elu");
  add_parametric<UnaryOp::selu>(to, "Selu");
  add_parametric<UnaryOp::celu>(to, "Celu");
  add_parametric<UnaryOp::thresholded_relu>(to, "ThresholdedRelu");
  add_parametric<UnaryOp::quick_gelu>(to, "QuickGelu", "com.microsoft");
  to.push_back({"", "Gelu", can_gelu, lower_gelu});
  to.push_back({"com.microsoft", "Gelu", can_reals, lower_unary<UnaryOp::gelu>});
  to.push_back({"com.microsoft", "FastGelu", can_gelu_without_bias, lower_unary<UnaryOp::gelu_tanh>});
  to.push_back({"", "Clip", can_clip, lower_clip});
  to.push_back({"", "Not", can_bools, lower_unary<UnaryOp::logical_not>});
}

}  // namespace

void register_elementwise(Lowerings& lowerings) {
  add_functions(lowerings);
  add_binary<BinaryOp::add>(lowerings, "Add");
  add_binary<BinaryOp::sub>(lowerings, "Sub");
  add_binary<BinaryOp::mul>(lowerings, "Mul");
  add_binary<BinaryOp::div>(lowerings, "Div");
  add_binary<BinaryOp::pow>(lowerings, "Pow");
  lowerings.push_back({"", "PRelu", can_prelu, lower_prelu});
  add_compare<BinaryOp::equal>(lowerings, "Equal");
  add_compare<BinaryOp::less>(lowerings, "Less");
  add_compare<BinaryOp::less_equal>(lowerings, "LessOrEqual");
  add_compare<BinaryOp::greater>(lowerings, "Greater");
  add_compare<BinaryOp::greater_equal>(lowerings, "GreaterOrEqual");
  lowerings.push_back({"", "Mod", can_binary, lower_mod});
  lowerings.push_back({"", "Max", can_two, lower_binary<BinaryOp::max>});
  lowerings.push_back({"", "Min", can_two, lower_binary<BinaryOp::min>});
  lowerings.push_back({"", "Sum", can_two, lower_binary<BinaryOp::add>});
  lowerings.push_back({"", "And", can_logical, lower_compare<BinaryOp::logical_and>});
  lowerings.push_back({"", "Or", can_logical, lower_compare<BinaryOp::logical_or>});
  lowerings.push_back({"", "Xor", can_logical, lower_compare<BinaryOp::logical_xor>});
  lowerings.push_back({"", "Where", can_where, lower_where});
  lowerings.push_back({"", "Cast", can_cast, lower_cast});
}

}  // namespace infernode::cuda
