// Which nodes can work in any order of axes, and how.

#include <algorithm>
#include <iterator>
#include <limits>

#include "passes/transposes/turning.h"

namespace infernode::passes::transposes {

namespace {

constexpr std::int64_t kNow = std::numeric_limits<std::int64_t>::max();

constexpr Rule kRules[] = {
    {"Abs", 1, kNow, turn_elementwise},
    {"Acos", 1, kNow, turn_elementwise},
    {"Acosh", 1, kNow, turn_elementwise},
    {"Asin", 1, kNow, turn_elementwise},
    {"Asinh", 1, kNow, turn_elementwise},
    {"Atan", 1, kNow, turn_elementwise},
    {"Atanh", 1, kNow, turn_elementwise},
    {"BitwiseNot", 18, kNow, turn_elementwise},
    {"Cast", 1, kNow, turn_elementwise},
    {"CastLike", 15, kNow, turn_elementwise},
    {"Ceil", 1, kNow, turn_elementwise},
    {"Celu", 12, kNow, turn_elementwise},
    {"Clip", 1, kNow, turn_elementwise},
    {"Cos", 1, kNow, turn_elementwise},
    {"Cosh", 1, kNow, turn_elementwise},
    {"Elu", 1, kNow, turn_elementwise},
    {"Erf", 1, kNow, turn_elementwise},
    {"Exp", 1, kNow, turn_elementwise},
    {"Floor", 1, kNow, turn_elementwise},
    {"Gelu", 20, kNow, turn_elementwise},
    {"HardSigmoid", 1, kNow, turn_elementwise},
    {"HardSwish", 14, kNow, turn_elementwise},
    {"Identity", 1, kNow, turn_elementwise},
    {"IsInf", 10, kNow, turn_elementwise},
    {"IsNaN", 9, kNow, turn_elementwise},
    {"LeakyRelu", 1, kNow, turn_elementwise},
    {"Log", 1, kNow, turn_elementwise},
    {"Mish", 18, kNow, turn_elementwise},
    {"Neg", 1, kNow, turn_elementwise},
    {"Not", 1, kNow, turn_elementwise},
    {"Reciprocal", 1, kNow, turn_elementwise},
    {"Relu", 1, kNow, turn_elementwise},
    {"Round", 11, kNow, turn_elementwise},
    {"Selu", 1, kNow, turn_elementwise},
    {"Shrink", 9, kNow, turn_elementwise},
    {"Sigmoid", 1, kNow, turn_elementwise},
    {"Sign", 9, kNow, turn_elementwise},
    {"Sin", 1, kNow, turn_elementwise},
    {"Sinh", 1, kNow, turn_elementwise},
    {"Softplus", 1, kNow, turn_elementwise},
    {"Softsign", 1, kNow, turn_elementwise},
    {"Sqrt", 1, kNow, turn_elementwise},
    {"Swish", 24, kNow, turn_elementwise},
    {"Tan", 1, kNow, turn_elementwise},
    {"Tanh", 1, kNow, turn_elementwise},
    {"ThresholdedRelu", 1, kNow, turn_elementwise},
    // Before version 7 an attribute says how operands are broadcast.
    {"Add", 7, kNow, turn_broadcast},
    {"And", 7, kNow, turn_broadcast},
    {"BitShift", 11, kNow, turn_broadcast},
    {"BitwiseAnd", 18, kNow, turn_broadcast},
    {"BitwiseOr", 18, kNow, turn_broadcast},
    {"BitwiseXor", 18, kNow, turn_broadcast},
    {"Div", 7, kNow, turn_broadcast},
    {"Equal", 7, kNow, turn_broadcast},
    {"Greater", 7, kNow, turn_broadcast},
    {"GreaterOrEqual", 12, kNow, turn_broadcast},
    {"Less", 7, kNow, turn_broadcast},
    {"LessOrEqual", 12, kNow, turn_broadcast},
    {"Max", 6, kNow, turn_broadcast},
    {"Mean", 6, kNow, turn_broadcast},
    {"Min", 6, kNow, turn_broadcast},
    {"Mod", 10, kNow, turn_broadcast},
    {"Mul", 7, kNow, turn_broadcast},
    {"Or", 7, kNow, turn_broadcast},
    {"Pow", 7, kNow, turn_broadcast},
    {"PRelu", 7, kNow, turn_broadcast},
    {"Sub", 7, kNow, turn_broadcast},
    {"Sum", 6, kNow, turn_broadcast},
    {"Where", 9, kNow, turn_broadcast},
    {"Xor", 7, kNow, turn_broadcast},
    {"BatchNormalization", 7, kNow, turn_channels},
    {"LRN", 1, kNow, turn_channels},
    {"GlobalAveragePool", 1, kNow, turn_spatial},
    {"GlobalMaxPool", 1, kNow, turn_spatial},
    {"InstanceNormalization", 1, kNow, turn_spatial},
    {"Concat", 4, kNow, turn_concat},
    {"Hardmax", 1, 13, turn_flat_softmax},
    {"Hardmax", 13, kNow, turn_last_axis},
    {"LogSoftmax", 1, 13, turn_flat_softmax},
    {"LogSoftmax", 13, kNow, turn_last_axis},
    {"LpNormalization", 1, kNow, turn_last_axis},
    {"Softmax", 1, 13, turn_flat_softmax},
    {"Softmax", 13, kNow, turn_last_axis},
    {"Split", 2, kNow, turn_first_axis},
    {"TopK", 10, kNow, turn_last_axis},
    {"CumSum", 11, kNow, turn_axis_input},
    {"DequantizeLinear", 10, kNow, turn_quantize},
    {"QuantizeLinear", 10, kNow, turn_quantize},
    {"ReduceL1", 1, kNow, turn_reduce},
    {"ReduceL2", 1, kNow, turn_reduce},
    {"ReduceLogSum", 1, kNow, turn_reduce},
    {"ReduceLogSumExp", 1, kNow, turn_reduce},
    {"ReduceMax", 1, kNow, turn_reduce},
    {"ReduceMean", 1, kNow, turn_reduce},
    {"ReduceMin", 1, kNow, turn_reduce},
    {"ReduceProd", 1, kNow, turn_reduce},
    {"ReduceSum", 1, kNow, turn_reduce},
    {"ReduceSumSquare", 1, kNow, turn_reduce},
    {"ArgMax", 1, kNow, turn_arg_reduce},
    {"ArgMin", 1, kNow, turn_arg_reduce},
    {"Slice", 1, kNow, turn_slice},
    {"Pad", 2, kNow, turn_pad},
    {"Expand", 8, kNow, turn_repeats},
    {"Tile", 6, kNow, turn_repeats},
    {"Gather", 1, kNow, turn_gather},
    {"GatherElements", 11, kNow, turn_gather_elements},
    {"Squeeze", 1, kNow, turn_squeeze},
    {"Unsqueeze", 1, kNow, turn_unsqueeze},
    {"Flatten", 1, kNow, turn_reshape},
    {"Reshape", 5, kNow, turn_reshape},
    {"Shape", 1, kNow, turn_shape},
    {"Size", 1, kNow, turn_size},
};

}  // namespace

const Rule* rule_for(const graph::Node& node) {
  if (!node.domain.empty()) return nullptr;
  const auto* rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& r) {
    return r.op == node.op_type && r.since <= node.opset && node.opset < r.before;
  });
  return rule == std::end(kRules) || node.inputs.empty() || node.outputs.empty() ? nullptr : rule;
}

graph::ValueId leading_value(const graph::Node& node, const Rule& rule) {
  return rule.turn == turn_broadcast ? node.outputs[0] : node.inputs[0];
}

std::optional<Turning> turn(const graph::Graph& graph, const graph::Node& node, const Rule& rule, const Order& order) {
  const graph::ValueId leading = leading_value(node, rule);
  if (leading == graph::kNoValue) return std::nullopt;
  const auto known = [&](graph::ValueId id) {
    const graph::ValueType& type = graph.value(id).type;
    return type.is_tensor() && type.shape;
  };
  for (const graph::ValueId output : node.outputs) {
    if (output == graph::kNoValue || !known(output)) return std::nullopt;
  }
  if (!known(leading) || graph.value(leading).type.shape->size() != order.size()) return std::nullopt;
  Turning t(graph, node, order);
  if (!rule.turn(t)) return std::nullopt;
  const auto settled = [&](std::vector<Order>& orders, const std::vector<graph::ValueId>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (orders[i].empty()) continue;
      if (!known(values[i]) || graph.value(values[i]).type.shape->size() != orders[i].size()) return false;
      orders[i] = settle(*graph.value(values[i]).type.shape, std::move(orders[i]));
    }
    return true;
  };
  return settled(t.inputs, node.inputs) && settled(t.outputs, node.outputs) ? std::optional(std::move(t))
                                                                            : std::nullopt;
}

}  // namespace infernode::passes::transposes
