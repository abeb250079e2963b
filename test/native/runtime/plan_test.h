#pragma once
// A graph in text form made into a plan, and runs of it.

#include "base/cpu_features.h"
#include "fusions/graph_test.h"
#include "runtime/run/executor.h"
#include "runtime/run/profiler.h"

namespace infernode::test {

class Planned {
 public:
  struct Options {
    std::int64_t opset = 17;
    int level = 0;
    bool lay_out_memory = true;
    std::span<const std::shared_ptr<provider::Provider>> providers = {};
    const kernel::RunContext* load = nullptr;
  };
  explicit Planned(std::string_view text) : Planned(text, Options()) {}
  Planned(std::string_view text, const Options& options) : Planned(model_of(text, options), options) {}
  Planned(graph::Model model, const Options& options) {
    model.graph->compact();
    plan = runtime::ExecutionPlan::build(model.graph, {.registry = &registry(),
                                                       .kernels = &microkernels::kernel_set(detect_cpu_rung()),
                                                       .weights = &weights,
                                                       .providers = options.providers,
                                                       .logger = nullptr,
                                                       .lay_out_memory = options.lay_out_memory,
                                                       .keep_memory = true,
                                                       .load = options.load});
  }

  std::shared_ptr<const runtime::ShapePlan> shapes(const std::vector<Value>& inputs) const {
    return plan->specialise(pointers(inputs), {});
  }

  struct Run {
    runtime::Frame* frame = nullptr;
    ThreadPool* pool = nullptr;
    std::size_t inter_op_threads = 1;
    const kernel::CancelToken* cancel = nullptr;
    kernel::MemoryBudget* budget = nullptr;
    runtime::Profiler* profiler = nullptr;
    std::optional<std::chrono::steady_clock::time_point> brief_until = {};
    std::vector<Tensor> bound{};
    std::vector<bool> wanted{};              ///< by output; empty: all
    tensor::Allocator* allocator = nullptr;  ///< null: the frame's
  };
  std::vector<Value> run(const std::vector<Value>& inputs) const { return run(inputs, Run()); }
  std::vector<Value> run(const std::vector<Value>& inputs, const Run& options) const {
    runtime::Frame own(true);
    runtime::Frame& frame = options.frame != nullptr ? *options.frame : own;
    const auto plan_of_shapes = shapes(inputs);
    kernel::RunContext context;
    context.pool = options.pool;
    context.max_threads = options.pool == nullptr ? 1 : options.pool->size();
    context.cancel = options.cancel;
    context.brief = options.brief_until.has_value();
    context.deadline = options.brief_until;
    context.budget = options.budget;
    context.profile = options.profiler;
    context.allocator = options.allocator != nullptr ? options.allocator : &frame.allocator;
    const auto fed = pointers(inputs);
    const auto demand = options.wanted.empty() ? nullptr : plan->demand(options.wanted);
    return runtime::execute({.plan = *plan,
                             .shapes = *plan_of_shapes,
                             .frame = frame,
                             .run = context,
                             .inputs = fed,
                             .captures = {},
                             .bound = options.bound,
                             .devices = {},
                             .output_allocator = tensor::host_allocator(),
                             .inter_op_threads = options.inter_op_threads,
                             .demand = demand.get()});
  }

  /// Of the constants that the plan keeps.
  std::size_t constant_bytes() const {
    std::size_t bytes = 0;
    for (std::size_t v = 0; v < plan->value_count(); ++v)
      bytes += plan->constant(static_cast<graph::ValueId>(v)).bytes();
    return bytes;
  }

  graph::ValueId id(std::string_view name) const { return plan->graph().find_value(name); }
  std::size_t offset(const runtime::ShapePlan& p, std::string_view name) const {
    return p.offsets[static_cast<std::size_t>(id(name))];
  }

  runtime::WeightStore weights;
  std::unique_ptr<runtime::ExecutionPlan> plan;

 private:
  static graph::Model model_of(std::string_view text, const Options& options) {
    graph::Model model = parse(text, options.opset);
    optimize(model, options.level);
    return model;
  }
  static std::vector<const Value*> pointers(const std::vector<Value>& values) {
    std::vector<const Value*> out;
    for (const Value& value : values) out.push_back(value.empty() ? nullptr : &value);
    return out;
  }
};

/// The plan's answers are those of the node-by-node reference.
inline void check_plan(std::string_view text, const std::map<std::string, std::int64_t>& symbols = {},
                       std::int64_t opset = 17) {
  CAPTURE(text);
  const graph::Model model = parse(text, opset);
  const std::vector<Value> inputs = feeds(*model.graph, symbols);
  const std::vector<Value> expected = evaluate(*model.graph, inputs);
  for (const bool lay_out : {true, false}) {
    const Planned planned(text, {.opset = opset, .lay_out_memory = lay_out});
    runtime::Frame frame(true);
    for (int again = 0; again < 3; ++again) check_same(planned.run(inputs, {.frame = &frame}), expected);
  }
}

}  // namespace infernode::test
