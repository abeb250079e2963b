// Functions of each element by itself.

#include <limits>

#include "base/error.h"
#include "providers/cuda/lowering/parts/elements.h"

namespace infernode::cuda {
namespace {

bool can_floats(const NodeView& node) { return node.all_of(kAllFloats); }
bool can_numbers(const NodeView& node) { return node.all_of(kAllNumbers); }
bool can_whole(const NodeView& node) { return node.all_of(tensor::types::kInts); }
bool can_bools(const NodeView& node) { return node.all_of(kBool); }
bool can_test(const NodeView& node) { return kAllFloats.contains(node.input_dtype(0)); }

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
    case UnaryOp::shrink:
      return {"lambd", 0.5f, "bias", 0};
    case UnaryOp::is_inf:
      return {"detect_positive", 1, "detect_negative", 1};
    default:
      return {"alpha", 1.0f, "", 0};
  }
}
template <UnaryOp op>
void lower_parametric(Builder& b) {
  const Parameters p = parameters_of<op>();
  lower_unary(b, op, b.attributes().get_float(p.name_a, p.a), b.attributes().get_float(p.name_b, p.b));
}
/// Selu has shorter constants before version 6.
bool can_selu(const NodeView& node) { return can_floats(node) && node.node().opset >= 6; }
void lower_swish(Builder& b) { lower_unary(b, UnaryOp::quick_gelu, b.attributes().get_float("alpha", 1)); }
void lower_is_inf(Builder& b) {
  lower_unary(b, UnaryOp::is_inf, static_cast<float>(b.attributes().get_int("detect_positive", 1)),
              static_cast<float>(b.attributes().get_int("detect_negative", 1)));
}

bool can_gelu(const NodeView& node) {
  const std::string way = node.attributes().get_string("approximate", "none");
  return can_floats(node) && (way == "none" || way == "tanh");
}
void lower_gelu(Builder& b) {
  const bool tanh = b.attributes().get_string("approximate", "none") == "tanh";
  lower_unary(b, tanh ? UnaryOp::gelu_tanh : UnaryOp::gelu);
}
/// com.microsoft's: of the sum with a bias along the last axis, where there is one.
bool can_biased_gelu(const NodeView& node) {
  return can_floats(node) && node.input_rank(0).value_or(9) <= kElementwiseRank && node.input_rank(0) != 0 &&
         (!node.has_input(1) || node.input_rank(1) == 1);
}
template <UnaryOp op>
void lower_biased_gelu(Builder& b) {
  if (!b.has_input(1)) return lower_unary(b, op);
  const DeviceTensor x = b.input_strided(0), bias = b.input(1), y = b.output(0);
  if (bias.numel() != x.shape.back()) {
    fail(ErrorCode::ShapeMismatch,
         cat("a bias of shape ", bias.shape.to_string(), " does not fit ", x.shape.to_string()));
  }
  launch_binary(b, BinaryOp::add, x, bias, y);
  launch_unary(b, op, y, y);
}

bool can_clip(const NodeView& node) { return node.all_of(kAllNumbers); }
void check_bound(Builder& b, std::size_t i) {
  if (!b.has_input(i) || b.input_shape(i).numel() == 1) return;
  fail(ErrorCode::ShapeMismatch, cat("Clip: a bound must be one number, got ", b.input_shape(i).to_string()));
}
/// Bounds that are data, or of types that parameters of kernels are not: the larger, then the smaller one of two.
void clip_by_inputs(Builder& b) {
  const Order order = common_order(b);
  DeviceTensor x = operand(b, 0, order);
  if (!b.has_input(1) && !b.has_input(2))
    return x.strides.empty() ? b.view(0, x) : b.strided_view(0, x, x.at, x.strides);
  const DeviceTensor low = b.input(1), high = b.input(2), y = b.output(0, order);
  for (const auto& [bound, op] : {std::pair(low, BinaryOp::max), std::pair(high, BinaryOp::min)}) {
    if (!bound) continue;
    DeviceTensor number = bound;
    number.shape = {};
    launch_binary(b, op, x, number, y);
    x = y;
  }
}
void lower_clip(Builder& b) {
  check_bound(b, 1);
  check_bound(b, 2);
  const bool known = (!b.has_input(1) || b.known(1) != nullptr) && (!b.has_input(2) || b.known(2) != nullptr);
  const bool inputs = b.has_input(1) || b.has_input(2);
  if (inputs && (!known || !kReals.contains(b.input_dtype(0)))) return clip_by_inputs(b);
  const auto bound = [&](std::size_t i, const char* name, float none) {
    return b.has_input(i) ? tensor::to_float_scalar(*b.known(i)) : b.attributes().get_float(name, none);
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  lower_unary(b, UnaryOp::clip, bound(1, "min", -kInfinity), bound(2, "max", kInfinity));
}

template <UnaryOp op>
void add(Lowerings& to, const char* name) {
  to.push_back({"", name, can_floats, lower_unary<op>});
}
template <UnaryOp op>
void add_of_numbers(Lowerings& to, const char* name) {
  to.push_back({"", name, can_numbers, lower_unary<op>});
}
template <UnaryOp op>
void add_parametric(Lowerings& to, const char* name, const char* domain = "") {
  to.push_back({domain, name, can_floats, lower_parametric<op>});
}

void add_activations(Lowerings& to) {
  add<UnaryOp::sigmoid>(to, "Sigmoid");
  add<UnaryOp::softplus>(to, "Softplus");
  add<UnaryOp::softsign>(to, "Softsign");
  add<UnaryOp::hard_swish>(to, "HardSwish");
  add<UnaryOp::mish>(to, "Mish");
  add_of_numbers<UnaryOp::relu>(to, "Relu");
  add_parametric<UnaryOp::hard_sigmoid>(to, "HardSigmoid");
  add_parametric<UnaryOp::leaky_relu>(to, "LeakyRelu");
  add_parametric<UnaryOp::elu>(to, "Elu");
  to.push_back({"", "Selu", can_selu, lower_parametric<UnaryOp::selu>});
  add_parametric<UnaryOp::celu>(to, "Celu");
  add_parametric<UnaryOp::thresholded_relu>(to, "ThresholdedRelu");
  add_parametric<UnaryOp::shrink>(to, "Shrink");
  add_parametric<UnaryOp::quick_gelu>(to, "QuickGelu", graph::kMicrosoft);
  to.push_back({"", "Swish", can_floats, lower_swish});
  to.push_back({"", "Gelu", can_gelu, lower_gelu});
  to.push_back({graph::kMicrosoft, "Gelu", can_floats, lower_unary<UnaryOp::gelu>});
  to.push_back({graph::kMicrosoft, "BiasGelu", can_biased_gelu, lower_biased_gelu<UnaryOp::gelu>});
  to.push_back({graph::kMicrosoft, "FastGelu", can_biased_gelu, lower_biased_gelu<UnaryOp::gelu_tanh>});
  to.push_back({"", "Clip", can_clip, lower_clip});
}

}  // namespace

void register_functions(Lowerings& lowerings) {
  add_of_numbers<UnaryOp::abs>(lowerings, "Abs");
  add_of_numbers<UnaryOp::neg>(lowerings, "Neg");
  add_of_numbers<UnaryOp::sign>(lowerings, "Sign");
  add<UnaryOp::exp>(lowerings, "Exp");
  add<UnaryOp::log>(lowerings, "Log");
  add<UnaryOp::sqrt>(lowerings, "Sqrt");
  add<UnaryOp::reciprocal>(lowerings, "Reciprocal");
  add<UnaryOp::floor>(lowerings, "Floor");
  add<UnaryOp::ceil>(lowerings, "Ceil");
  add<UnaryOp::round>(lowerings, "Round");
  add<UnaryOp::erf>(lowerings, "Erf");
  add<UnaryOp::sin>(lowerings, "Sin");
  add<UnaryOp::cos>(lowerings, "Cos");
  add<UnaryOp::tan>(lowerings, "Tan");
  add<UnaryOp::asin>(lowerings, "Asin");
  add<UnaryOp::acos>(lowerings, "Acos");
  add<UnaryOp::atan>(lowerings, "Atan");
  add<UnaryOp::sinh>(lowerings, "Sinh");
  add<UnaryOp::cosh>(lowerings, "Cosh");
  add<UnaryOp::tanh>(lowerings, "Tanh");
  add<UnaryOp::asinh>(lowerings, "Asinh");
  add<UnaryOp::acosh>(lowerings, "Acosh");
  add<UnaryOp::atanh>(lowerings, "Atanh");
  add_activations(lowerings);
  lowerings.push_back({"", "IsNaN", can_test, lower_unary<UnaryOp::is_nan>});
  lowerings.push_back({"", "IsInf", can_test, lower_is_inf});
  lowerings.push_back({"", "Not", can_bools, lower_unary<UnaryOp::logical_not>});
  lowerings.push_back({"", "BitwiseNot", can_whole, lower_unary<UnaryOp::bit_not>});
}

}  // namespace infernode::cuda
