#include "runtime/plan/execution_plan.h"

#include <algorithm>
#include <functional>

#include "graph/captures.h"
#include "graph/walks.h"
#include "runtime/plan/step_builder.h"

namespace infernode::runtime {

namespace {

using graph::kNoValue;
using graph::ValueId;

std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

}  // namespace

std::unique_ptr<ExecutionPlan> ExecutionPlan::build(std::shared_ptr<graph::Graph> graph,
                                                    const PlanEnvironment& environment) {
  std::unique_ptr<ExecutionPlan> plan(new ExecutionPlan(environment));
  plan->graph_ = std::move(graph);
  const graph::Graph& g = *plan->graph_;
  graph::adopt_constants(*plan->graph_);
  plan->order_ = graph::topological_order(g, [&environment] {
    if (environment.load != nullptr) environment.load->check();
  });
  const std::vector<int> uses = plan->count_uses();
  std::vector<std::atomic<int>> releases(g.values().size());
  HeldBytes held;
  if (environment.held == nullptr) {
    plan->environment_.held = &held;
  } else {
    plan->environment_.built = nullptr;
  }
  plan->make_steps(uses, releases);
  plan->keep_constants(uses, releases);
  plan->environment_.load = nullptr;
  plan->environment_.cache = nullptr;
  plan->environment_.tuner = nullptr;
  plan->environment_.built = nullptr;
  plan->environment_.held = nullptr;
  for (const auto& [at, bytes] : held.sizes) plan->held_bytes_ += bytes;
  plan->find_pinned();
  plan->find_frees();
  plan->find_copies();
  plan->measured_ = std::make_unique<MeasuredMemory[]>(plan->steps_.size());
  return plan;
}

/// Readers of each value, by ValueId; the graph's outputs are read by whoever runs it.
std::vector<int> ExecutionPlan::count_uses() const {
  std::vector<int> uses(graph_->values().size(), 0);
  for (const graph::NodeId id : order_) {
    const graph::Node& node = graph_->node(id);
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) ++uses[index(input)];
    }
    for (const ValueId input : graph::implicit_inputs(node)) ++uses[index(input)];
  }
  for (const ValueId output : graph_->outputs()) ++uses[index(output)];
  return uses;
}

void ExecutionPlan::make_steps(const std::vector<int>& uses, std::vector<std::atomic<int>>& releases) {
  schemas_.resize(graph_->node_count(), nullptr);
  const auto look = [&] {
    if (environment_.load != nullptr) environment_.load->check();
  };
  for (const graph::NodeId id : order_) {
    look();
    const graph::Node& node = graph_->node(id);
    schemas_[static_cast<std::size_t>(id)] = environment_.registry->find_schema(node.domain, node.op_type, node.opset);
  }
  StepBuilder builder(*graph_, environment_, schemas_, releases);
  for (const graph::NodeId id : order_) {
    look();
    Step step = builder.describe(id);
    step.wanted = std::make_unique<bool[]>(step.outputs.size());
    for (std::size_t o = 0; o < step.outputs.size(); ++o) {
      step.wanted[o] = step.outputs[o] != kNoValue && uses[index(step.outputs[o])] > 0;
    }
    steps_.push_back(std::move(step));
  }
  builder.make_kernels(steps_);
  look();
}

/// Drops constants of the graph that every reader has packed, or that have none left.
void ExecutionPlan::keep_constants(const std::vector<int>& uses, const std::vector<std::atomic<int>>& releases) {
  constants_.resize(graph_->values().size());
  for (std::size_t i = 0; i < constants_.size(); ++i) {
    graph::ValueInfo& value = graph_->value(static_cast<ValueId>(i));
    if (!value.has_constant()) continue;
    if (releases[i] == uses[i] && !value.is_input) {
      value.constant = {};
    } else {
      constants_[i] = value.constant;
      const void* at = value.constant.is_tensor() ? value.constant.tensor().raw() : &constants_[i];
      environment_.held->add(at, value.constant.bytes());
    }
  }
}

void ExecutionPlan::find_pinned() {
  pinned_.resize(constants_.size(), false);
  const auto pin = [&](const std::vector<ValueId>& ids) {
    for (const ValueId id : ids) {
      if (id != kNoValue) pinned_[index(id)] = true;
    }
  };
  pin(graph_->inputs());
  pin(graph_->outputs());
  for (const graph::Capture& capture : graph_->captures()) pinned_[index(capture.inner)] = true;
  for (const Step& step : steps_) {
    pin(step.implicit);
    const bool late = step.provider != nullptr;  // streams read and write when the step is over
    if (late || step.holds_inputs) pin(step.inputs), pin(step.outputs);
  }
}

void ExecutionPlan::find_frees() {
  std::vector<std::int64_t> last(constants_.size(), -1);
  std::vector<bool> keep(constants_.size(), false);
  for (const ValueId id : graph_->outputs()) keep[index(id)] = true;
  const auto use = [&](ValueId id, std::size_t step) {
    if (id != kNoValue) last[index(id)] = static_cast<std::int64_t>(step);
  };
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    for (const ValueId id : steps_[s].outputs) use(id, s);
    for (const ValueId id : steps_[s].inputs) use(id, s);
    for (const ValueId id : steps_[s].implicit) use(id, s);
  }
  for (std::size_t v = 0; v < last.size(); ++v) {
    if (last[v] >= 0 && !keep[v] && constants_[v].empty()) {
      steps_[static_cast<std::size_t>(last[v])].frees.push_back(static_cast<ValueId>(v));
    }
  }
}

void ExecutionPlan::find_copies() {
  std::vector<provider::Provider*> copied_to(constants_.size(), nullptr);
  for (const Step& step : steps_) {
    if (step.provider == nullptr) continue;
    if (std::ranges::find(device_providers_, step.provider) == device_providers_.end())
      device_providers_.push_back(step.provider);
    if (step.is_copy && step.output_on_device) copied_to[index(step.inputs[0])] = step.provider;
  }
  find_readers();
  if (device_providers_.empty()) return;
  for (Step& step : steps_) {
    step.copied_to.resize(step.outputs.size(), nullptr);
    for (std::size_t o = 0; o < step.outputs.size(); ++o) {
      if (step.outputs[o] != kNoValue) step.copied_to[o] = copied_to[index(step.outputs[o])];
    }
  }
}

void ExecutionPlan::find_readers() {
  readers_.assign(constants_.size(), {});
  const auto read = [&](ValueId id, const provider::Provider* copies) {
    if (id == kNoValue) return;
    Readers& readers = readers_[index(id)];
    readers.any = true;
    if (copies == nullptr || (readers.copies != nullptr && readers.copies != copies)) readers.others = true;
    readers.copies = copies;
  };
  for (const ValueId id : graph_->outputs()) readers_[index(id)].others = true;
  for (const Step& step : steps_) {
    for (const ValueId id : step.implicit) read(id, nullptr);
    for (const ValueId id : step.inputs) read(id, step.is_copy && step.output_on_device ? step.provider : nullptr);
  }
  for (Step& step : steps_) {
    if (!step.is_copy || step.output_on_device || readers_[index(step.outputs[0])].any) continue;
    const auto& outputs = graph_->outputs();
    const auto found = std::ranges::find(outputs, step.outputs[0]);
    if (found == outputs.end()) continue;
    step.only_output = static_cast<std::size_t>(found - outputs.begin());
    device_outputs_.emplace_back(step.inputs[0], *step.only_output);
  }
}

std::optional<std::size_t> ExecutionPlan::device_output(ValueId id) const {
  const auto found = std::ranges::find(device_outputs_, id, &std::pair<ValueId, std::size_t>::first);
  return found == device_outputs_.end() ? std::nullopt : std::optional(found->second);
}

std::shared_ptr<const Demand> ExecutionPlan::demand(const std::vector<bool>& outputs) const {
  if (std::ranges::all_of(outputs, std::identity())) return nullptr;
  const auto find = [&]() -> std::shared_ptr<const Demand> {
    const auto found = std::ranges::find_if(demands_, [&](const auto& d) { return d->outputs == outputs; });
    return found == demands_.end() ? nullptr : *found;
  };
  {
    const std::lock_guard lock(cache_mutex_);
    if (auto cached = find()) return cached;
  }
  auto made = make_demand(*graph_, steps_, outputs);
  const std::lock_guard lock(cache_mutex_);
  if (auto cached = find()) return cached;
  if (demands_.size() < Demand::kMost) {
    made->place = demands_.size();
    demands_.push_back(made);
  }
  return made;
}

std::string ExecutionPlan::describe(const Step& step) const {
  const graph::Node& node = graph_->node(step.node);
  std::string text = graph::describe(*graph_, node);
  if (!node.provenance.empty()) {
    text += " (made from ";
    for (std::size_t i = 0; i < node.provenance.size(); ++i) text += (i == 0 ? "" : ", ") + node.provenance[i];
    text += ")";
  }
  return text;
}

bool ExecutionPlan::takes_input_on(ValueId input, tensor::Device device) const {
  const Readers& readers = readers_[index(input)];
  return !readers.others && (readers.copies == nullptr || readers.copies->device() == device);
}

std::vector<StepMemory> ExecutionPlan::memory() const {
  std::vector<StepMemory> out(steps_.size());
  std::shared_ptr<const ShapePlan> last;
  {
    const std::lock_guard lock(cache_mutex_);
    if (!cache_.empty()) last = cache_.front().plan;
  }
  std::vector<std::size_t> sizes;  // by ValueId
  if (last) {
    sizes = last->sizes;
    const std::vector<ValueId>& outputs = graph_->outputs();
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const graph::ValueType& type = last->outputs[o];
      const auto shape = type.is_tensor() && type.shape ? graph::to_known(*type.shape) : std::nullopt;
      sizes[index(outputs[o])] = shape ? tensor::byte_size(type.elem, shape->numel()) : 0;
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    measured_[i].read(out[i]);
    for (const ValueId id : steps_[i].outputs) {
      if (last && id != kNoValue) out[i].estimated += sizes[index(id)];
    }
  }
  return out;
}

std::size_t ExecutionPlan::last_arena_bytes() const {
  const std::lock_guard lock(cache_mutex_);
  return cache_.empty() ? 0 : cache_.front().plan->arena_bytes;
}

}  // namespace infernode::runtime
