#include "runtime/plan/node_kernel_info.h"

#include "base/immortal.h"
#include "runtime/run/plan_subgraph_runner.h"
#include "runtime/weights/weight_cache.h"

namespace infernode::runtime {

namespace {
const Immortal<graph::ValueType> kAbsent;
}

const graph::ValueType& NodeKernelInfo::input_type(std::size_t i) const {
  return has_input(i) ? graph_.value(node_.inputs[i]).type : *kAbsent;
}

const graph::ValueType& NodeKernelInfo::output_type(std::size_t o) const {
  return has_output(o) ? graph_.value(node_.outputs[o]).type : *kAbsent;
}

const tensor::Tensor* NodeKernelInfo::constant(std::size_t i) const {
  if (!has_input(i)) return nullptr;
  const graph::ValueInfo& value = graph_.value(node_.inputs[i]);
  return value.is_constant() && value.constant.is_tensor() ? &value.constant.tensor() : nullptr;
}

void NodeKernelInfo::release_constant(std::size_t i) {
  if (constant(i) != nullptr) ++releases_[static_cast<std::size_t>(node_.inputs[i])];
}

std::unique_ptr<kernel::SubgraphRunner> NodeKernelInfo::subgraph(std::string_view name) {
  std::size_t first_capture = 0;
  for (const auto& [key, attribute] : node_.attributes) {
    const auto* body = std::get_if<std::shared_ptr<graph::Graph>>(&attribute);
    if (body == nullptr) continue;
    if (key == name) return std::make_unique<PlanSubgraphRunner>(*body, first_capture, environment_);
    first_capture += (*body)->captures().size();
  }
  fail(ErrorCode::InvalidModel, cat(graph::describe(graph_, node_), " lacks its graph attribute '", name, "'"));
}

tensor::Buffer NodeKernelInfo::pack(const graph::Node& node, std::size_t input, std::string_view format,
                                    FunctionRef<tensor::Buffer(const tensor::Tensor&)> make) {
  const tensor::Tensor& weight = graph_.value(node.inputs.at(input)).constant.tensor();
  tensor::Buffer packed = environment_.cache != nullptr ? environment_.cache->pack(weight, format, make)
                                                        : environment_.weights->pack(weight, format, make);
  environment_.held->add(packed.data(), packed.size());
  return packed;
}

}  // namespace infernode::runtime
