#include "kernel/node_inference.h"

#include "base/error.h"
#include "base/immortal.h"

namespace infernode::kernel {

using graph::Dim;
using graph::ValueType;
using tensor::DType;
using tensor::Tensor;

namespace {

const Immortal<ValueType> kUnknownType;

bool holds_contents(DType type) { return tensor::is_integer(type) || type == DType::Bool; }

const char* spelled(const ValueType& type, std::string& storage) {
  storage = type.to_string();
  return storage.c_str();
}

}  // namespace

Contents contents_of(const Tensor& tensor) {
  if (!tensor || tensor.rank() > 1 || tensor.numel() > kMaxContents || !holds_contents(tensor.dtype()))
    return std::nullopt;
  if (tensor::is_sub_byte(tensor.dtype())) return std::nullopt;
  const std::vector<std::int64_t> values = tensor::to_int64_vector(tensor);
  return std::vector<Dim>(values.begin(), values.end());
}

Tensor tensor_of(const std::vector<Dim>& contents, const ValueType& type) {
  if (!type.is_tensor() || !type.shape || type.shape->size() > 1) return {};
  tensor::Shape shape;
  if (type.shape->size() == 1) shape.push_back(static_cast<std::int64_t>(contents.size()));
  if (static_cast<std::size_t>(shape.numel()) != contents.size()) return {};
  for (const Dim& d : contents) {
    if (!d.known()) return {};
  }
  const auto fill = [&]<class T>(T) {
    Tensor out = Tensor::make(type.elem, shape);
    T* at = out.mutable_data<T>();
    for (const Dim& d : contents) *at++ = static_cast<T>(d.value());
    return out;
  };
  switch (type.elem) {
    case DType::Int64:
      return fill(std::int64_t{});
    case DType::Int32:
      return fill(std::int32_t{});
    case DType::Bool:
      return fill(bool{});
    case DType::UInt8:
      return fill(std::uint8_t{});
    case DType::UInt32:
      return fill(std::uint32_t{});
    case DType::UInt64:
      return fill(std::uint64_t{});
    case DType::Int8:
      return fill(std::int8_t{});
    case DType::Int16:
      return fill(std::int16_t{});
    case DType::UInt16:
      return fill(std::uint16_t{});
    default:
      return {};
  }
}

void NodeInference::reset(const graph::Node& node, const OpSchema& schema) {
  node_ = &node;
  schema_ = &schema;
  inputs_.assign(node.inputs.size(), Input{});
  types_.assign(node.outputs.size(), ValueType{});
  contents_.assign(node.outputs.size(), Contents{});
}

void NodeInference::infer() {
  bind_outputs();
  if (schema_->infer) schema_->infer(*this);
}

void NodeInference::bind_outputs() {
  for (std::size_t o = 0; o < types_.size(); ++o) {
    if (o >= schema_->max_outputs()) return;
    const Parameter& output = schema_->output(o);
    if (output.arity == Parameter::Arity::VariadicHeterogeneous) continue;
    const TypeConstraint& constraint = schema_->constraints[output.constraint];
    if (!constraint.name.empty() && !constraint.any) {
      for (std::size_t i = 0; i < inputs_.size() && i < schema_->max_inputs(); ++i) {
        const Parameter& input = schema_->input(i);
        if (input.constraint != output.constraint || input.arity == Parameter::Arity::VariadicHeterogeneous) continue;
        const ValueType& type = input_type(i);
        if (type.kind == ValueType::Kind::Unknown) continue;
        types_[o] = type;
        types_[o].shape.reset();
        break;
      }
    }
    if (types_[o].kind != ValueType::Kind::Unknown || constraint.any) continue;
    if (!constraint.sequence.empty() || !constraint.optional_tensor.empty() || !constraint.optional_sequence.empty() ||
        !constraint.maps.empty())
      continue;
    for (int code = 1; code < tensor::kDTypeCount; ++code) {
      const auto type = static_cast<DType>(code);
      if (constraint.tensor == tensor::TypeSet{type}) types_[o] = ValueType::tensor(type);
    }
  }
}

const ValueType& NodeInference::input_type(std::size_t i) const {
  return i < inputs_.size() && inputs_[i].type ? *inputs_[i].type : *kUnknownType;
}

const Tensor* NodeInference::input_constant(std::size_t i) const {
  return i < inputs_.size() ? inputs_[i].constant : nullptr;
}

std::optional<std::vector<Dim>> NodeInference::input_contents(std::size_t i) const {
  if (i >= inputs_.size()) return std::nullopt;
  if (inputs_[i].constant) return contents_of(*inputs_[i].constant);
  return inputs_[i].contents ? *inputs_[i].contents : std::nullopt;
}

const ValueType& NodeInference::output_type(std::size_t o) const {
  return o < types_.size() ? types_[o] : *kUnknownType;
}

void NodeInference::set_output_type(std::size_t o, ValueType type) {
  if (o < types_.size()) types_[o] = std::move(type);
}

void NodeInference::set_output_dtype(std::size_t o, DType dtype) {
  if (o >= types_.size()) return;
  types_[o].kind = ValueType::Kind::Tensor;
  types_[o].elem = dtype;
}

void NodeInference::set_output_shape(std::size_t o, graph::SymShape shape) {
  if (o >= types_.size()) return;
  for (const Dim& dim : shape) {
    if (dim.known() && dim.value() < 0)
      fail(ErrorCode::ShapeMismatch, cat("output ", o, " would have the shape ", graph::to_string(shape)));
  }
  types_[o].kind = ValueType::Kind::Tensor;
  types_[o].shape = std::move(shape);
}

void NodeInference::set_output_contents(std::size_t o, std::vector<Dim> contents) {
  if (o < contents_.size() && contents.size() <= static_cast<std::size_t>(kMaxContents))
    contents_[o] = std::move(contents);
}

std::vector<ValueType> NodeInference::infer_subgraph(std::string_view attribute, std::span<const ValueType> inputs) {
  return subgraphs_ ? subgraphs_->infer_subgraph(*node_, attribute, inputs) : std::vector<ValueType>{};
}

void check_signature(const graph::Graph& graph, const graph::Node& node, const OpSchema& schema,
                     std::span<const ValueType* const> types) {
  const auto bad = [&](std::string what) {
    fail(ErrorCode::InvalidModel, cat(graph::describe(graph, node), " ", what));
  };
  const std::size_t inputs = node.inputs.size(), outputs = node.outputs.size();
  if (inputs < schema.min_inputs() || inputs > schema.max_inputs()) {
    const bool few = inputs < schema.min_inputs();
    bad(cat("has ", inputs, " inputs; ", schema.name, " version ", schema.since_version, " takes at ",
            few ? "least " : "most ", few ? schema.min_inputs() : schema.max_inputs()));
  }
  if (outputs < schema.min_outputs() || outputs > schema.max_outputs()) {
    const bool few = outputs < schema.min_outputs();
    bad(cat("has ", outputs, " outputs; ", schema.name, " version ", schema.since_version, " gives at ",
            few ? "least " : "most ", few ? schema.min_outputs() : schema.max_outputs()));
  }
  for (std::size_t i = 0; i < inputs; ++i) {
    if (node.inputs[i] == graph::kNoValue && schema.input(i).arity != Parameter::Arity::Optional)
      bad(cat("has nothing for its input ", i, ", '", schema.input(i).name, "', which ", schema.name, " version ",
              schema.since_version, " needs"));
  }
  std::string text, other;
  std::vector<const ValueType*> bound(schema.constraints.size(), nullptr);
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!types[i] || types[i]->kind == ValueType::Kind::Unknown) continue;
    const Parameter& parameter = schema.input(i);
    const TypeConstraint& constraint = schema.constraints[parameter.constraint];
    if (!constraint.accepts(*types[i]))
      bad(cat("has the type ", spelled(*types[i], text), " for input '", parameter.name, "'; ", schema.name,
              " version ", schema.since_version, " takes ", constraint.to_string()));
    if (constraint.name.empty() || parameter.arity == Parameter::Arity::VariadicHeterogeneous) continue;
    const ValueType*& first = bound[parameter.constraint];
    if (first && first->is_tensor() && types[i]->is_tensor() && first->elem != types[i]->elem &&
        first->elem != DType::Undefined && types[i]->elem != DType::Undefined)
      bad(cat("has inputs of the types ", spelled(*first, text), " and ", spelled(*types[i], other),
              " where both must have the same type ", constraint.name));
    if (!first) first = types[i];
  }
}

const OpSchema& schema_of(const graph::Graph& graph, const graph::Node& node, const Registry& registry) {
  const OpSchema* schema = registry.find_schema(node.domain, node.op_type, node.opset);
  if (!schema)
    fail(ErrorCode::UnsupportedOperator,
         cat(graph::describe(graph, node), ": ", registry.why_missing(node.domain, node.op_type, node.opset)));
  return *schema;
}

void add_node_context(Error& error, const graph::Graph& graph, const graph::Node& node) {
  if (!error.context().op_type.empty()) return;
  error.context().op_type = node.op_type;
  error.context().node = node.name;
  const std::string who = graph::describe(graph, node);
  if (error.message().find(who) == std::string::npos) error.prepend(who + ": ");
}

}  // namespace infernode::kernel
