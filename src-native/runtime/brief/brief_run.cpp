#include "runtime/brief/brief_run.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernel/node_inference.h"

namespace infernode::runtime {

namespace {

using graph::kNoValue;
using graph::ValueId;

/// Below this the way to another thread and back, 20 to 60 us, is a good part of the run.
constexpr double kShortUs = 500;
/// So many bytes of inputs are copied in a microsecond. Without copies JavaScript could change what a run elsewhere
/// reads; a run that is over before they would have held the calling thread twice stays on it.
constexpr double kCopiedPerUs = 12000;
/// What a single step of a brief run may take: nothing ends it once it has begun.
constexpr std::chrono::microseconds kShortStep{250};

[[noreturn]] void give_up() { fail(ErrorCode::Aborted, "the run is not brief"); }

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

std::optional<double> expected_us(const ShapePlan& shapes, const Demand* demand) {
  const RunHistory& history = shapes.history_of(demand);
  if (history.mean_us() < 0) return std::nullopt;
  const bool tells = !shapes.data_decides && history.worth_a_try();
  return tells ? history.mean_us() : std::numeric_limits<double>::infinity();
}

bool is_short(std::optional<double> expected_us) { return expected_us && *expected_us < kShortUs; }

std::optional<std::chrono::microseconds> time_on_caller(std::optional<double> expected_us, std::size_t copied) {
  const double most = std::max(kShortUs, 2 * static_cast<double>(copied) / kCopiedPerUs);
  if (!expected_us || *expected_us >= most) return std::nullopt;
  return std::chrono::microseconds(std::llround(2 * most));
}

bool may_begin_on_caller(const ExecutionPlan& plan, const ShapePlan& shapes, const Demand* demand) {
  constexpr double kShortSteps = 100;  // us
  const auto on_device = [](const Step& step) { return step.provider != nullptr; };
  return !shapes.control_flow && shapes.history_of(demand).steps_us() < kShortSteps &&
         std::ranges::all_of(plan.steps(), on_device);
}

bool may_be_brief(const ShapePlan& shapes, bool traced) {
  return !shapes.control_flow || !(traced || shapes.data_decides);
}

void expect_brief_body(const kernel::RunContext& run, const ShapePlan* shapes) {
  if (shapes == nullptr || shapes->data_decides) give_up();
  const std::chrono::duration<double, std::micro> left = *run.deadline - std::chrono::steady_clock::now();
  const double mean = shapes->history.mean_us();
  if (mean < 0 || mean >= left.count()) give_up();
}

WatchedStep::WatchedStep(const Execution& execution, std::size_t index, std::span<const tensor::Value* const> inputs)
    : execution_(execution),
      index_(index),
      key_(key_of(inputs)),
      begin_(execution.run.brief ? Clock::time_point() : Clock::now()) {
  if (execution.run.brief && (!key_ || !execution.shapes.short_steps->holds(index, *key_))) give_up();
}

void WatchedStep::ended(std::span<const tensor::Value* const> inputs) const {
  if (execution_.run.brief || !key_) return;
  ShortSteps& steps = *execution_.shapes.short_steps;
  if (Clock::now() - begin_ > kShortStep) return steps.remove(index_, *key_);
  try {
    if (!steps.holds(index_, *key_) && sizes_follow(execution_, execution_.plan.steps()[index_], inputs))
      steps.add(index_, *key_);
  } catch (const Error&) {
    // inference found fault with what the kernel took: such a step is never brief
  }
}

}  // namespace infernode::runtime
