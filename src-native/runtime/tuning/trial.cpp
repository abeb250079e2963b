#include "runtime/tuning/trial.h"

#include <algorithm>

#include "base/checked.h"
#include "graph/text.h"
#include "microkernels/convert/convert.h"
#include "runtime/plan/node_kernel_info.h"

namespace infernode::runtime {

namespace {

using graph::kNoValue;
using tensor::DType;
using tensor::Tensor;

/// Inputs and constants of one node beyond which nothing is measured.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr std::size_t kKeptScratch = std::size_t{256} << 20;

/// The tensor's shape, a dim that is a symbol taken as 1: methods() names none where such a dim matters.
tensor::Shape likely_shape(const graph::SymShape& shape) {
  tensor::Shape likely;
  for (const graph::Dim& dim : shape) likely.push_back(dim.known() ? dim.value() : 1);
  return likely;
}

/// Numbers of everyday size between -1 and 1, other types zeros: no method's time depends on a common number.
void fill(Tensor& tensor, const microkernels::ConvertTable& convert) {
  std::fill_n(static_cast<std::byte*>(tensor.mutable_raw()), tensor.bytes(), std::byte{0});
  if (tensor.dtype() != DType::Float32 && tensor.dtype() != DType::BFloat16 && tensor.dtype() != DType::Float16) return;
  constexpr std::size_t kPeriod = 257;
  float numbers[kPeriod];
  for (std::size_t i = 0; i < kPeriod; ++i) numbers[i] = static_cast<float>(i * 79 % kPeriod) / 128.0f - 1.0f;
  const auto count = static_cast<std::size_t>(tensor.numel());
  for (std::size_t i = 0; i < count; i += kPeriod) {
    const std::size_t n = std::min(kPeriod, count - i);
    if (tensor.dtype() == DType::Float32) {
      std::copy_n(numbers, n, tensor.mutable_data<float>() + i);
    } else {
      auto* const to = static_cast<std::uint16_t*>(tensor.mutable_raw()) + i;
      (tensor.dtype() == DType::BFloat16 ? convert.f32_to_bf16 : convert.f32_to_f16)(numbers, to, n);
    }
  }
}

PlanEnvironment without_traces(PlanEnvironment environment, HeldBytes& held) {
  environment.cache = nullptr;
  environment.tuner = nullptr;
  environment.held = &held;
  return environment;
}

}  // namespace

Trial::Trial(const graph::Graph& graph, const graph::Node& node, const kernel::OpSchema& schema,
             const kernel::KernelDef& def, const PlanEnvironment& environment)
    : graph_(graph),
      node_(node),
      schema_(schema),
      def_(def),
      environment_(without_traces(environment, held_)),
      releases_(graph.values().size()),
      scratch_(kKeptScratch),
      output_memory_(node.outputs.size()) {
  for (const graph::ValueId id : node.outputs)
    output_dtypes_.push_back(id == kNoValue ? DType::Undefined : graph.value(id).type.elem);
}

std::string Trial::facts() const {
  std::string text =
      cat(node_.domain, ":", node_.op_type, " ", schema_.since_version, graph::to_text(node_.attributes));
  for (const graph::ValueId id : node_.inputs) {
    text += " ";
    if (id == kNoValue) continue;
    const graph::ValueInfo& value = graph_.value(id);
    text += value.type.to_string();
    if (value.type.shape) text += graph::to_string(*value.type.shape);
    if (value.is_constant()) text += "!";
  }
  return text;
}

std::vector<std::string> Trial::methods() {
  if (def_.methods == nullptr) return {};
  const NodeKernelInfo info(graph_, node_, schema_, environment_, releases_);
  std::vector<std::string> names = def_.methods(info);
  return names.size() > 1 && make_inputs() ? names : std::vector<std::string>();
}

bool Trial::make_inputs() {
  std::size_t bytes = 0;
  for (const graph::ValueId id : node_.inputs) {
    tensor::Value& input = inputs_.emplace_back();
    if (id == kNoValue) continue;
    const graph::ValueInfo& value = graph_.value(id);
    if (value.is_constant()) {
      input = value.constant;
      continue;
    }
    const bool numbers = value.type.kind == graph::ValueType::Kind::Tensor && value.type.elem != DType::String &&
                         value.type.elem != DType::Undefined;
    if (!numbers || !value.type.shape) return false;
    const tensor::Shape shape = likely_shape(*value.type.shape);
    bytes = checked_add(bytes, tensor::byte_size(value.type.elem, shape.numel()));
    if (bytes > kMostBytes) return false;
    Tensor made = Tensor::make(value.type.elem, shape);
    fill(made, environment_.kernels->convert);
    input = std::move(made);
  }
  for (const tensor::Value& input : inputs_) given_.push_back(input.empty() ? nullptr : &input);
  return true;
}

std::unique_ptr<kernel::Kernel> Trial::make(std::string_view method) {
  NodeKernelInfo info(graph_, node_, schema_, environment_, releases_, method);
  return def_.make(info);
}

void Trial::run(const kernel::Kernel& kernel) {
  kernel::RunContext run = environment_.load == nullptr ? kernel::RunContext{} : *environment_.load;
  run.check();
  run.allocator = &scratch_;
  std::vector<tensor::Value> outputs(node_.outputs.size());
  const auto wanted = std::make_unique<bool[]>(outputs.size());
  std::fill_n(wanted.get(), outputs.size(), true);
  kernel::KernelContext ctx(run, given_, {}, outputs, output_dtypes_, {wanted.get(), outputs.size()}, *this);
  kernel.run(ctx);
}

Tensor Trial::allocate_output(std::size_t o, DType dtype, const tensor::Shape& shape) {
  Tensor& memory = output_memory_[o];
  if (memory.dtype() != dtype || memory.shape() != shape) memory = Tensor::make(dtype, shape);
  return memory;
}

}  // namespace infernode::runtime
