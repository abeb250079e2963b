#include "fusions/definition.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "fusions/rewrite.h"
#include "graph/text.h"

namespace infernode::fusions {

namespace {

using graph::Attributes;
using graph::FunctionDef;
using graph::Graph;
using graph::Node;
using graph::ValueId;

/// The statements of a body, in text form; values are named as they come.
class Body {
 public:
  explicit Body(tensor::DType type) : type_(tensor::onnx_name(type)) {}

  std::string call(std::string_view op, std::initializer_list<std::string_view> inputs) {
    return calls(op, inputs, 1)[0];
  }
  /// Of several outputs. Absent inputs are "".
  std::vector<std::string> calls(std::string_view op, std::initializer_list<std::string_view> inputs,
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
  std::string constant(double value) {
    return call(cat("Constant<value = ", type_, " {", static_cast<float>(value), "}>"), {});
  }
  std::string integers(const std::vector<std::int64_t>& values) {
    std::string list;
    for (const std::int64_t v : values) list += cat(list.empty() ? "" : ", ", v);
    return call(cat("Constant<value = int64[", values.size(), "] {", list, "}>"), {});
  }
  /// `count` copies after one another along axis 2.
  std::string repeat(const std::string& value, std::int64_t count) {
    std::string name = cat("v", count_++);
    text_ += cat(name, " = Concat<axis = 2>(", value);
    for (std::int64_t i = 1; i < count; ++i) text_ += cat(", ", value);
    text_ += ")  ";
    return name;
  }
  void finish(const std::string& result, const char* output = "y") {
    text_ += cat(output, " = Identity(", result, ")  ");
  }
  const std::string& text() const { return text_; }

 private:
  std::string type_, text_;
  int count_ = 0;
};

std::string activate(Body& body, const std::string& t, const Attributes& attributes) {
  const std::string name = attributes.get_string("activation", "");
  const std::vector<float> params = attributes.get_floats("activation_params");
  const auto times = [&](const std::string& a, const std::string& b) { return body.call("Mul", {a, b}); };
  if (name.empty()) return t;
  if (name == "Relu" || name == "Sigmoid" || name == "Tanh") return body.call(name, {t});
  if (name == "LeakyRelu") return body.call(cat("LeakyRelu<alpha = ", params.at(0), ">"), {t});
  if (name == "HardSigmoid")
    return body.call(cat("HardSigmoid<alpha = ", params.at(0), ", beta = ", params.at(1), ">"), {t});
  if (name == "HardSwish") return times(t, body.call("HardSigmoid<alpha = 0.16666667, beta = 0.5>", {t}));
  if (name == "Silu") return times(t, body.call("Sigmoid", {t}));
  if (name == "Clip") {
    const std::string low = body.call("Min", {t, body.constant(params.at(1))});
    return body.call("Max", {low, body.constant(params.at(0))});
  }
  if (name == "Gelu" || name == "GeluTanh") {
    std::string inner;
    if (name == "Gelu") {
      inner = body.call("Erf", {times(t, body.constant(0.70710678118654752440))});
    } else {
      const std::string cube = times(times(t, t), t);
      const std::string sum = body.call("Add", {t, times(cube, body.constant(0.044715))});
      inner = body.call("Tanh", {times(sum, body.constant(0.79788456080286535588))});
    }
    return times(times(t, body.constant(0.5)), body.call("Add", {inner, body.constant(1)}));
  }
  fail(ErrorCode::Internal, cat("the activation '", name, "' has no definition"));
}

/// Inputs i0, i1, ... of a function that stands for the node; an absent one is "".
std::vector<std::string> inputs_of(const Node& node) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    names.push_back(node.inputs[i] == graph::kNoValue ? "" : cat("i", i));
  return names;
}

std::string matmul_body(const Graph& graph, const Node& node, const std::vector<std::string>& in) {
  Body body(graph.value(node.inputs[0]).type.elem);
  const auto has = [&](std::size_t i) { return i < in.size() && !in[i].empty(); };
  std::string b = in.at(1);
  if (has(4)) {
    const std::string axis = node.attributes.get_int("transB", 0) != 0 ? "0" : "1";
    const std::string expand = cat("DequantizeLinear<axis = ", axis, ">");
    b = has(5) ? body.call(expand, {b, in[4], in[5]}) : body.call(expand, {b, in[4]});
  }
  if (node.attributes.get_int("transB", 0) != 0) {
    const auto rank = rank_of(graph.value(node.inputs[1]).type);
    if (!rank) fail(ErrorCode::Internal, "a transposed factor of unknown rank has no definition");
    std::vector<std::int64_t> perm(*rank);
    for (std::size_t i = 0; i < *rank; ++i) perm[i] = static_cast<std::int64_t>(i);
    std::swap(perm[*rank - 1], perm[*rank - 2]);
    b = body.call(cat("Transpose<perm = ", perm, ">"), {b});
  }
  std::string t = body.call("MatMul", {in.at(0), b});
  if (const float alpha = node.attributes.get_float("alpha", 1); alpha != 1)
    t = body.call("Mul", {t, body.constant(alpha)});
  if (has(2)) t = body.call("Add", {t, in[2]});
  if (has(3)) t = body.call("Add", {t, in[3]});
  body.finish(activate(body, t, node.attributes));
  return body.text();
}

std::string integer_matmul_body(const Graph& graph, const Node& node, const std::vector<std::string>& in) {
  Body body(tensor::DType::Float32);
  const auto input = [&](std::size_t i) { return i < in.size() ? in[i] : std::string(); };
  std::string a = input(0), scale = input(2), zero = input(4);
  if (graph.value(node.inputs[0]).type.elem == tensor::DType::Float32) {
    const std::vector<std::string> made = body.calls("DynamicQuantizeLinear", {a}, 3);
    a = made[0];
    scale = made[1];
    zero = made[2];
  }
  std::string t = body.call("MatMulInteger", {a, input(1), zero, input(5)});
  t = body.call("Cast<to = 1>", {t});
  t = body.call("Mul", {t, scale.empty() ? input(3) : body.call("Mul", {scale, input(3)})});
  if (!input(6).empty()) t = body.call("Add", {t, input(6)});
  if (!input(7).empty()) t = body.call("Add", {t, input(7)});
  body.finish(activate(body, t, node.attributes));
  return body.text();
}

std::string conv_body(const Graph& graph, const Node& node, const std::vector<std::string>& in) {
  Body body(graph.value(node.inputs[0]).type.elem);
  const auto has = [&](std::size_t i) { return i < in.size() && !in[i].empty(); };
  std::string t = has(2) ? body.call("Conv", {in[0], in[1], in[2]}) : body.call("Conv", {in.at(0), in.at(1)});
  if (has(3)) t = body.call("Add", {t, in[3]});
  body.finish(activate(body, t, node.attributes));
  return body.text();
}

std::string attention_body(const Graph& graph, const Node& node, const std::vector<std::string>& in) {
  Body body(graph.value(node.inputs[0]).type.elem);
  const auto exchanged = [&](const std::string& t, const char* flag) {
    const bool other = node.attributes.get_int(flag, 0) != 0;
    return other ? body.call("Transpose<perm = [0, 2, 1, 3]>", {t}) : t;
  };
  const auto dims = [&](std::size_t input, const char* flag) {
    graph::SymShape shape = graph.value(node.inputs[input]).type.shape.value();
    if (node.attributes.get_int(flag, 0) != 0) std::swap(shape.at(1), shape.at(2));
    return shape;
  };
  const graph::SymShape q = dims(0, "q_rows_first");
  const char* const turn = q.size() == 3 ? "Transpose<perm = [0, 2, 1]>" : "Transpose<perm = [0, 1, 3, 2]>";
  /// Each head of a tensor of fewer heads as often as there are queries for it.
  const auto repeated = [&](const std::string& t, const graph::SymShape& shape) {
    if (q.size() == 3 || shape[1] == q[1]) return t;
    if (!shape[1].known() || !q[1].known() || !shape[3].known())
      fail(ErrorCode::Internal, "grouped attention over unknown numbers of heads has no definition");
    const std::string alone = body.call("Unsqueeze", {t, body.integers({2})});
    return body.call("Reshape", {body.repeat(alone, q[1].value() / shape[1].value()),
                                 body.integers({0, q[1].value(), -1, shape[3].value()})});
  };
  const std::string query = exchanged(in.at(0), "q_rows_first");
  const std::string key = repeated(exchanged(in.at(1), "k_rows_first"), dims(1, "k_rows_first"));
  const std::string value = repeated(exchanged(in.at(2), "v_rows_first"), dims(2, "v_rows_first"));
  std::string t = body.call("MatMul", {query, body.call(turn, {key})});
  t = body.call("Mul", {t, body.constant(node.attributes.get_float("scale", 1))});
  if (in.size() > 3) t = body.call("Add", {t, in[3]});
  t = body.call("Softmax<axis = -1>", {t});
  const std::string probabilities = t;
  if (node.attributes.get_int("zero_nan", 0) != 0)
    t = body.call("Where", {body.call("IsNaN", {t}), body.constant(0), t});
  t = body.call("MatMul", {t, value});
  body.finish(exchanged(t, "y_rows_first"));
  if (node.outputs.size() > 1) body.finish(probabilities, "p");
  return body.text();
}

class Definer {
 public:
  Definer(std::int64_t opset, std::vector<FunctionDef>& functions) : opset_(opset), functions_(functions) {}

  void define(Graph& graph) {
    for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(graph.node_count()); ++id) {
      Node& node = graph.node(id);
      if (node.removed) continue;
      for (const auto& body : graph::subgraphs(node)) define(*body);
      if (node.domain == kOwn) call_function(graph, node);
    }
  }

 private:
  struct Defined {
    std::string op, body;
    std::vector<std::string> inputs;
    std::size_t outputs;
    Attributes attributes;
    std::string name;
  };

  void call_function(const Graph& graph, Node& node) {
    const std::vector<std::string> in = inputs_of(node);
    std::string body;
    if (node.op_type == "FusedMatMul")
      body = matmul_body(graph, node, in);
    else if (node.op_type == "FusedMatMulInteger")
      body = integer_matmul_body(graph, node, in);
    else if (node.op_type == "FusedConv")
      body = conv_body(graph, node, in);
    else if (node.op_type == "FusedAttention")
      body = attention_body(graph, node, in);
    else
      fail(ErrorCode::Internal, cat(graph::describe(graph, node), " has no definition in standard operators"));
    auto at = std::find_if(defined_.begin(), defined_.end(), [&](const Defined& d) {
      return d.op == node.op_type && d.body == body && d.inputs == in && d.outputs == node.outputs.size() &&
             d.attributes == node.attributes;
    });
    if (at == defined_.end()) {
      defined_.push_back(
          {node.op_type, body, in, node.outputs.size(), node.attributes, cat(node.op_type, "_", defined_.size())});
      at = defined_.end() - 1;
      add(*at);
    }
    node.op_type = at->name;
    node.attributes = {};
  }

  void add(const Defined& defined) {
    std::string inputs;
    for (std::size_t i = 0; i < defined.inputs.size(); ++i) inputs += cat(i == 0 ? "i" : ", i", i);
    FunctionDef function =
        graph::parse_function(cat("<opset_import: [\"\" : ", opset_, "], domain: \"", kOwn, "\"> ", defined.name, " (",
                                  inputs, ") => (", defined.outputs > 1 ? "y, p" : "y", ") { ", defined.body, " }"));
    for (graph::NodeDef& node : function.body.nodes) {
      if (node.op_type != "Conv") continue;
      for (const auto& [name, value] : defined.attributes) {
        if (!name.starts_with("activation")) node.attributes.set(name, value);
      }
    }
    functions_.push_back(std::move(function));
  }

  std::int64_t opset_;
  std::vector<FunctionDef>& functions_;
  std::vector<Defined> defined_;
};

}  // namespace

graph::Model with_definitions(const graph::Model& model, std::vector<FunctionDef>& functions) {
  graph::Model copy = model;
  copy.graph = model.graph->clone();
  // Older versions have other broadcasting, or no Erf.
  constexpr std::int64_t kOldest = 13;
  const auto imported = model.info.opsets.find("");
  Definer(imported == model.info.opsets.end() ? kOldest : std::max(imported->second, kOldest), functions)
      .define(*copy.graph);
  return copy;
}

}  // namespace infernode::fusions
