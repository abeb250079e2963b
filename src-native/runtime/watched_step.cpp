#include "runtime/watched_step.h"

#include <algorithm>

#include "kernel/node_inference.h"
#include "runtime/brief_run.h"

namespace infernode::runtime {

namespace {

using graph::kNoValue;
using graph::ValueId;

/// What a single step of a brief run may take: nothing ends it once it has begun.
constexpr std::chrono::microseconds kShort{250};

/// Types and shapes of a step's inputs; nullopt where those do not tell its cost.
std::optional<std::uint64_t> key_of(std::span<const tensor::Value* const> inputs) {
  std::uint64_t key = 1;
  const auto add = [&key](std::uint64_t part) {
    key = (key ^ part) * 0x9E3779B97F4A7C15u;
    key ^= key >> 29;
  };
  for (const tensor::Value* value : inputs) {
    if (value == nullptr || value->empty()) {
      add(~std::uint64_t{0});
      continue;
    }
    if (!value->is_tensor() || value->tensor().dtype() == tensor::DType::String) return std::nullopt;
    const tensor::Tensor& t = value->tensor();
    add(static_cast<std::uint64_t>(t.dtype()));
    add(t.rank());
    for (const std::int64_t dim : t.shape()) add(static_cast<std::uint64_t>(dim));
  }
  return key;
}

/// Whether the sizes of the step's outputs follow from the shapes of its inputs, what is constant among them, and what
/// the shapes of the plan's inputs say.
bool sizes_follow(const Execution& execution, const Step& step, std::span<const tensor::Value* const> inputs) {
  const graph::Node& node = execution.plan.graph().node(step.node);
  const kernel::OpSchema* schema = execution.plan.schema(step.node);
  if (schema == nullptr) return false;
  const auto fixed = [&](ValueId id) -> const tensor::Tensor* {
    const tensor::Value& constant = execution.plan.constant(id);
    if (constant.is_tensor() && !execution.plan.graph().value(id).is_input) return &constant.tensor();
    const auto& known = execution.shapes.known;
    const auto found = std::find_if(known.begin(), known.end(), [id](const auto& item) { return item.first == id; });
    return found != known.end() && found->second.is_tensor() ? &found->second.tensor() : nullptr;
  };
  std::vector<graph::ValueType> types(inputs.size());
  std::vector<kernel::Contents> contents(inputs.size());
  kernel::NodeInference inference(nullptr);
  inference.reset(node, *schema);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = step.inputs[i];
    if (id == kNoValue) continue;
    types[i] = execution.plan.graph().value(id).type;  // of a constant that its readers have packed
    if (inputs[i] != nullptr && inputs[i]->is_tensor()) {
      const tensor::Tensor& t = inputs[i]->tensor();
      types[i] = graph::ValueType::tensor(t.dtype(), graph::to_sym(t.shape()));
    }
    const tensor::Tensor* value = fixed(id);
    if (value != nullptr) contents[i] = kernel::contents_of(*value);
    inference.input(i) = {&types[i], value, contents[i] ? &contents[i] : nullptr};
  }
  inference.infer();
  for (std::size_t o = 0; o < step.outputs.size(); ++o) {
    if (step.outputs[o] == kNoValue) continue;
    const graph::ValueType& type = inference.result(o);
    if (!type.is_tensor() || !type.shape || !graph::to_known(*type.shape)) return false;
  }
  return true;
}

}  // namespace

WatchedStep::WatchedStep(const Execution& execution, std::size_t index, std::span<const tensor::Value* const> inputs)
    : execution_(execution),
      index_(index),
      key_(key_of(inputs)),
      brief_(execution.run.brief),
      begin_(brief_ ? Clock::time_point() : Clock::now()) {
  if (brief_ && (!key_ || !execution.shapes.short_steps->holds(index, *key_))) give_up();
}

void WatchedStep::ended(std::span<const tensor::Value* const> inputs) const {
  if (brief_ || !key_) return;
  ShortSteps& steps = *execution_.shapes.short_steps;
  if (Clock::now() - begin_ > kShort) return steps.remove(index_, *key_);
  try {
    if (!steps.holds(index_, *key_) && sizes_follow(execution_, execution_.plan.steps()[index_], inputs))
      steps.add(index_, *key_);
  } catch (const Error&) {
    // inference found fault with what the kernel took: such a step is never brief
  }
}

}  // namespace infernode::runtime
