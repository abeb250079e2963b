#include "ops/common/definition.h"

#include <utility>

#include "base/error.h"

namespace infernode::ops {

std::vector<std::string> Definition::calls(std::string_view op, std::initializer_list<std::string_view> inputs,
                                           std::size_t outputs) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs; ++i) {
    names.push_back(cat("v", count_++));
    text_ += cat(i == 0 ? "" : ", ", names.back());
  }
  text_ += cat(" = ", op, "(");
  bool first = true;
  for (const std::string_view input : inputs) text_ += cat(std::exchange(first, false) ? "" : ", ", input);
  text_ += ")  ";
  return names;
}

std::string Definition::constant(double value) {
  return call(cat("Constant<value = ", type_, " {", static_cast<float>(value), "}>"), {});
}

std::string Definition::integers(const std::vector<std::int64_t>& values) {
  std::string list;
  for (const std::int64_t v : values) list += cat(list.empty() ? "" : ", ", v);
  return call(cat("Constant<value = int64[", values.size(), "] {", list, "}>"), {});
}

std::string Definition::repeat(const std::string& value, std::int64_t count) {
  std::string name = cat("v", count_++);
  text_ += cat(name, " = Concat<axis = 2>(", value);
  for (std::int64_t i = 1; i < count; ++i) text_ += cat(", ", value);
  text_ += ")  ";
  return name;
}

void Definition::finish(std::string_view result, std::string_view output) {
  text_ += cat(output, " = Identity(", result, ")  ");
}

std::string Definition::gelu(const std::string& t, bool by_tanh) {
  const auto times = [&](const std::string& a, const std::string& b) { return call("Mul", {a, b}); };
  std::string inner;
  if (!by_tanh) {
    inner = call("Erf", {times(t, constant(0.70710678118654752440))});
  } else {
    const std::string cube = times(times(t, t), t);
    const std::string sum = call("Add", {t, times(cube, constant(0.044715))});
    inner = call("Tanh", {times(sum, constant(0.79788456080286535588))});
  }
  return times(times(t, constant(0.5)), call("Add", {inner, constant(1)}));
}

std::string Definition::activate(const std::string& t, const graph::Attributes& attributes) {
  const std::string name = attributes.get_string("activation", "");
  const std::vector<float> params = attributes.get_floats("activation_params");
  if (name.empty()) return t;
  if (name == "Relu" || name == "Sigmoid" || name == "Tanh") return call(name, {t});
  if (name == "LeakyRelu") return call(cat("LeakyRelu<alpha = ", params.at(0), ">"), {t});
  if (name == "HardSigmoid")
    return call(cat("HardSigmoid<alpha = ", params.at(0), ", beta = ", params.at(1), ">"), {t});
  if (name == "HardSwish") return call("Mul", {t, call("HardSigmoid<alpha = 0.16666667, beta = 0.5>", {t})});
  if (name == "Silu") return call("Mul", {t, call("Sigmoid", {t})});
  if (name == "Clip") {
    const std::string low = call("Min", {t, constant(params.at(1))});
    return call("Max", {low, constant(params.at(0))});
  }
  if (name == "Gelu" || name == "GeluTanh") return gelu(t, name == "GeluTanh");
  fail(ErrorCode::Internal, cat("the activation '", name, "' has no definition"));
}

std::string definition_input(const graph::Node& node, std::size_t i) {
  return i < node.inputs.size() && node.inputs[i] != graph::kNoValue ? cat("i", i) : std::string();
}

}  // namespace infernode::ops
