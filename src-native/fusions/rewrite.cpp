#include "fusions/rewrite.h"

#include <algorithm>
#include <cmath>

namespace infernode::fusions {

using tensor::DType;

std::optional<float> scalar(const Match& match, std::string_view name, std::string_view beside) {
  const tensor::Tensor* t = match.constant(name);
  if (t == nullptr || t->numel() != 1 || !tensor::is_floating(t->dtype())) return std::nullopt;
  if (t->rank() > rank_of(match.type(beside)).value_or(0)) return std::nullopt;
  return tensor::to_float_scalar(*t);
}

bool is_scalar(const Match& match, std::string_view name, std::string_view beside, double wanted) {
  const std::optional<float> value = scalar(match, name, beside);
  if (!value) return false;
  const bool narrow = tensor::bit_size(match.constant(name)->dtype()) < 32;
  return std::abs(*value - wanted) <= (narrow ? 4e-3 : 1e-5) * std::abs(wanted);
}

bool contains(const Match& match, std::string_view op) {
  return std::ranges::any_of(match.nodes(), [&](graph::NodeId id) {
    const graph::Node& node = match.graph().node(id);
    return node.op_type == op && node.domain.empty();
  });
}

bool is_float(const graph::ValueType& type) {
  return type.is_tensor() && (type.elem == DType::Float32 || type.elem == DType::Float16);
}

bool may_fuse_sums(const Match& match, std::string_view value) {
  const tensor::DType type = match.type(value).elem;
  const std::string& provider = match.last().provider;
  const bool on_device = !provider.empty() && provider != "cpu";
  return type == tensor::DType::Float32 ||
         (on_device && (type == tensor::DType::Float16 || type == tensor::DType::BFloat16));
}

bool same_shape(const graph::ValueType& a, const graph::ValueType& b) {
  return a.shape && b.shape && *a.shape == *b.shape;
}

std::optional<std::size_t> rank_of(const graph::ValueType& type) {
  return type.shape ? std::optional(type.shape->size()) : std::nullopt;
}

bool is_row(const graph::ValueType& type, const graph::ValueType& like) {
  return rank_of(type) == 1u && rank_of(like).value_or(0) > 0 && type.shape->back() == like.shape->back();
}

graph::Node make_node(const Match& match, const char* domain, const char* op, std::vector<graph::ValueId> inputs) {
  graph::Node node;
  const graph::Node& last = match.last();
  node.name = last.name;
  node.op_type = op;
  node.domain = domain;
  node.opset = node.domain == last.domain ? last.opset : 1;
  while (!inputs.empty() && inputs.back() == graph::kNoValue) inputs.pop_back();
  node.inputs = std::move(inputs);
  return node;
}

std::vector<graph::ValueId> put(const Match& match, graph::GraphPatch& patch, graph::Node node) {
  const graph::ValueId out = match.last().outputs[0];
  node.outputs = {out};
  node.provenance.clear();
  patch.add_node(std::move(node), match.nodes());
  return {out};
}

}  // namespace infernode::fusions
