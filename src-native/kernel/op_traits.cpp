#include "kernel/op_traits.h"

#include "kernel/registry.h"

namespace infernode::kernel {

std::optional<float> NodeConstants::scalar(std::size_t i) const {
  if (!has_input(i) || !has_input(0)) return std::nullopt;
  const graph::ValueInfo& value = graph_.value(node_.inputs[i]);
  if (!value.is_constant() || !value.constant.is_tensor()) return std::nullopt;
  const tensor::Tensor& t = value.constant.tensor();
  const auto& beside = graph_.value(node_.inputs[0]).type.shape;
  if (t.numel() != 1 || !tensor::is_floating(t.dtype()) || t.rank() > (beside ? beside->size() : 0))
    return std::nullopt;
  return tensor::to_float_scalar(t);
}

void FusedActivation::set(graph::Attributes& attributes) const {
  if (name.empty()) return;
  attributes.set("activation", name);
  if (!params.empty()) attributes.set("activation_params", params);
}

const OpTraits& traits_of(const graph::Node& node, const Registry& registry) {
  static constexpr OpTraits kNone{};
  const OpSchema* schema = registry.find_schema(node.domain, node.op_type, node.opset);
  return schema == nullptr ? kNone : schema->traits;
}

}  // namespace infernode::kernel
