#include "runtime/executor.h"

#include "runtime/parallel_walk.h"
#include "runtime/step_runner.h"

namespace infernode::runtime {

namespace {

using graph::ValueId;

void set_up(const Execution& execution) {
  Frame& frame = execution.frame;
  const graph::Graph& graph = execution.plan.graph();
  frame.values.assign(execution.plan.value_count(), {});
  for (std::size_t i = 0; i < execution.inputs.size(); ++i) {
    if (execution.inputs[i] != nullptr)
      frame.values[static_cast<std::size_t>(graph.inputs()[i])] = *execution.inputs[i];
  }
  for (std::size_t i = 0; i < execution.captures.size(); ++i) {
    if (execution.captures[i] != nullptr)
      frame.values[static_cast<std::size_t>(graph.captures()[i].inner)] = *execution.captures[i];
  }
  for (const auto& [id, value] : execution.shapes.known) frame.values[static_cast<std::size_t>(id)] = value;
}

/// A tensor that lies in the frame's arena, copied out of it; anything else as it is.
tensor::Value leave_frame(const tensor::Value& value, const Frame& frame) {
  const bool inside = value.is_tensor() && frame.arena && value.tensor().buffer().owner() == frame.arena.owner();
  return inside ? tensor::Value(value.tensor().clone()) : value;
}

std::vector<tensor::Value> collect(const Execution& execution) {
  std::vector<tensor::Value> results;
  const graph::Graph& graph = execution.plan.graph();
  results.reserve(graph.outputs().size());
  for (const ValueId id : graph.outputs()) {
    const tensor::Value& made = execution.frame.values[static_cast<std::size_t>(id)];
    const tensor::Value& value = made.empty() ? execution.plan.constant(id) : made;
    if (value.empty()) fail(ErrorCode::Internal, cat("output '", graph.value(id).name, "' was not produced"));
    results.push_back(leave_frame(value, execution.frame));
  }
  return results;
}

}  // namespace

std::vector<tensor::Value> execute(const Execution& execution) {
  struct Clean {
    Frame& frame;
    ~Clean() {
      for (tensor::Value& value : frame.values) value = {};
    }
  } clean{execution.frame};
  set_up(execution);
  if (execution.inter_op_threads > 1 && execution.run.pool != nullptr) {
    walk_parallel(execution);
  } else {
    Frame& frame = execution.frame;
    if (frame.arena.size() < execution.shapes.arena_bytes) {
      frame.arena = {};
      frame.arena = execution.run.allocator->allocate(execution.shapes.arena_bytes);
    }
    StepRunner runner(execution, true);
    for (std::size_t s = 0; s < execution.plan.steps().size(); ++s) {
      if (!execution.shapes.skip[s]) runner.run(s);
      runner.free_after(s);
    }
  }
  return collect(execution);
}

}  // namespace infernode::runtime
