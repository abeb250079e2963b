#include "runtime/run/executor.h"

#include <algorithm>
#include <exception>

#include "ops/common/strided_copy.h"
#include "runtime/run/end_apart.h"
#include "runtime/run/parallel_walk.h"
#include "runtime/run/step_runner.h"

namespace infernode::runtime {

namespace {

using graph::ValueId;

void set_up(const Execution& execution) {
  Frame& frame = execution.frame;
  const graph::Graph& graph = execution.plan.graph();
  frame.values.assign(execution.plan.value_count(), {});
  for (std::size_t i = 0; i < execution.inputs.size(); ++i) {
    tensor::Value& value = frame.values[static_cast<std::size_t>(graph.inputs()[i])];
    if (execution.inputs[i] != nullptr) {
      value = *execution.inputs[i];
    } else if (graph.value(graph.inputs()[i]).type.kind == graph::ValueType::Kind::Optional) {
      value = tensor::Optional{};  // not fed
    }
  }
  for (std::size_t i = 0; i < execution.captures.size(); ++i) {
    if (execution.captures[i] != nullptr)
      frame.values[static_cast<std::size_t>(graph.captures()[i].inner)] = *execution.captures[i];
  }
  for (const auto& [id, value] : execution.shapes.known) frame.values[static_cast<std::size_t>(id)] = value;
  frame.devices.prepare(execution.plan.device_providers());
}

/// A host tensor whose memory belongs to the frame, the plan or an input is copied, to where the output was to be
/// written if it fits there; anything else is as it is.
tensor::Value leave_frame(const Execution& execution, std::size_t output, const tensor::Value& value, bool lasting) {
  if (!value.is_tensor() || !value.tensor().device().is_host()) return value;
  const tensor::Tensor& from = value.tensor();
  const tensor::Tensor* bound = execution.bound_to(output, from.dtype(), from.shape());
  // It may have an owner in common with inputs: one that stands for all memory that is the caller's.
  if (bound != nullptr && from.raw() == bound->raw()) return value;
  const void* owner = from.buffer().owner();
  const auto same = [owner](const tensor::Value* other) {
    return other != nullptr && other->is_tensor() && other->tensor().buffer().owner() == owner;
  };
  const auto& known = execution.shapes.known;
  const bool shared = lasting || (execution.frame.arena && owner == execution.frame.arena.owner()) ||
                      std::any_of(execution.inputs.begin(), execution.inputs.end(), same) ||
                      std::any_of(known.begin(), known.end(), [&](const auto& item) { return same(&item.second); });
  if (!shared) return value;
  const tensor::Tensor to =
      bound != nullptr ? *bound : tensor::Tensor::make(from.dtype(), from.shape(), execution.output_allocator);
  ops::copy_all(execution.run, from, to);
  return to;
}

/// The step whose outputs take most of the arena; null where nothing lies there.
const Step* largest_in_arena(const Execution& execution) {
  const ShapePlan& shapes = execution.shapes;
  const Step* largest = nullptr;
  std::size_t most = 0;
  for (const Step& step : execution.plan.steps()) {
    std::size_t bytes = 0;
    for (const ValueId id : step.outputs) {
      const auto at = static_cast<std::size_t>(id);
      if (id != graph::kNoValue && shapes.offsets[at] != ShapePlan::kNowhere) bytes += shapes.sizes[at];
    }
    if (bytes > most) most = bytes, largest = &step;
  }
  return largest;
}

/// The arena counts in the budget of each run that uses it. A budget that is too small for it is an error of the node
/// that needs most of it.
class ArenaCharge {
 public:
  explicit ArenaCharge(const Execution& execution)
      : budget_(execution.run.budget), bytes_(execution.shapes.arena_bytes) {
    if (budget_ == nullptr) return;
    try {
      budget_->reserve(bytes_);
    } catch (Error& error) {
      if (const Step* step = largest_in_arena(execution); step != nullptr) {
        const graph::Node& node = execution.plan.graph().node(step->node);
        error.context().op_type = node.op_type;
        error.context().node = node.name;
        error.prepend(cat("memory for what the nodes compute, most of it for ", execution.plan.describe(*step), ": "));
      }
      throw;
    }
  }
  ~ArenaCharge() {
    if (budget_ != nullptr) budget_->release(bytes_);
  }
  ArenaCharge(const ArenaCharge&) = delete;
  ArenaCharge& operator=(const ArenaCharge&) = delete;

 private:
  kernel::MemoryBudget* budget_;
  std::size_t bytes_;
};

std::vector<tensor::Value> collect(const Execution& execution) {
  std::vector<tensor::Value> results;
  const graph::Graph& graph = execution.plan.graph();
  results.reserve(graph.outputs().size());
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    if (execution.demand != nullptr && !execution.demand->outputs[i]) {
      results.emplace_back();
      continue;
    }
    const ValueId id = graph.outputs()[i];
    const tensor::Value& made = execution.frame.values[static_cast<std::size_t>(id)];
    const tensor::Value& value = made.empty() ? execution.plan.constant(id) : made;
    if (value.empty()) fail(ErrorCode::Internal, cat("output '", graph.value(id).name, "' was not produced"));
    results.push_back(leave_frame(execution, i, value, made.empty()));
  }
  return results;
}

}  // namespace

Traversal::~Traversal() {
  std::vector<tensor::Value>& values = execution_.frame.values;
  execution_.frame.devices.abandon();
  // Of a run that was ended much may be left. What lies on devices needs their providers, which a session lets go.
  ThreadPool* const pool = execution_.run.pool;
  if (pool != nullptr && execution_.plan.device_providers().empty() && are_freed_slowly(values, true))
    end_apart(*pool, std::move(values));
  for (tensor::Value& value : values) value = {};
  if (pool == nullptr || std::uncaught_exceptions() == 0) return;
  try {
    if (std::vector<tensor::Buffer> left = execution_.frame.allocator.take_left(); !left.empty())
      end_apart(*pool, std::move(left));
  } catch (...) {  // they end with the frame's memory
  }
}

void Traversal::run_steps() {
  set_up(execution_);
  if (execution_.inter_op_threads > 1 && execution_.run.pool != nullptr) return walk_parallel(execution_);
  const ArenaCharge charge(execution_);
  tensor::grow_host_buffer(execution_.frame.arena, execution_.shapes.arena_bytes);
  StepRunner runner(execution_, true);
  for (std::size_t s = 0; s < execution_.plan.steps().size(); ++s) {
    if (execution_.runs(s)) runner.run(s);
    runner.free_after(s);
  }
}

std::vector<tensor::Value> Traversal::results() {
  const auto begin = kernel::ProfileSink::Clock::now();
  if (execution_.frame.devices.synchronize()) record_wait(execution_.run, begin);
  return collect(execution_);
}

std::vector<tensor::Value> execute(const Execution& execution) {
  Traversal traversal(execution);
  traversal.run_steps();
  return traversal.results();
}

}  // namespace infernode::runtime
