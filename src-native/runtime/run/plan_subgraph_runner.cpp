#include "runtime/run/plan_subgraph_runner.h"

#include "kernel/profile.h"
#include "runtime/brief/brief_run.h"
#include "runtime/run/executor.h"
#include "runtime/run/value_check.h"

namespace infernode::runtime {

namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

constexpr int kMaxDepth = 64;

}  // namespace

PlanSubgraphRunner::PlanSubgraphRunner(const std::shared_ptr<graph::Graph>& body, std::size_t first_capture,
                                       const PlanEnvironment& environment)
    : plan_(ExecutionPlan::build(body, environment)), first_capture_(first_capture), frames_(environment.keep_memory) {}

const graph::ValueType& PlanSubgraphRunner::output_type(std::size_t o) const {
  return plan_->graph().value(plan_->graph().outputs().at(o)).type;
}

std::vector<tensor::Value> PlanSubgraphRunner::run(kernel::KernelContext& ctx,
                                                   std::vector<tensor::Value> inputs) const {
  if (ctx.run().depth >= kMaxDepth)
    fail(ErrorCode::InvalidModel, cat("control flow is nested deeper than ", kMaxDepth, " levels"));
  if (inputs.size() != input_count()) {
    fail(ErrorCode::InvalidModel, cat("the subgraph takes ", input_count(), " inputs and got ", inputs.size()));
  }
  std::vector<const tensor::Value*> fed;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    expect_type(plan_->graph().value(plan_->graph().inputs()[i]), inputs[i]);
    fed.push_back(inputs[i].empty() ? nullptr : &inputs[i]);
  }
  const auto captured = this->captured(ctx);
  const bool brief = ctx.run().brief;
  const auto shapes = brief ? plan_->find_specialised(fed, captured) : plan_->specialise(fed, captured);
  if (brief) expect_brief_body(ctx.run(), shapes.get());
  const auto begin = kernel::ProfileSink::Clock::now();
  const FrameLease frame(frames_);
  kernel::RunContext run = ctx.run();
  ++run.depth;
  std::vector<tensor::Value> results = frame.watch([&] {
    return execute({.plan = *plan_,
                    .shapes = *shapes,
                    .frame = *frame,
                    .run = run,
                    .inputs = fed,
                    .captures = captured,
                    .bound = {},
                    .devices = {},
                    .output_allocator = *ctx.run().allocator});
  });
  const auto end = kernel::ProfileSink::Clock::now();
  shapes->history.ended(Microseconds(end - begin).count(), brief);
  if (run.profile != nullptr) run.profile->add("Session", "SequentialExecutor::Execute", begin, end);
  return results;
}

std::vector<graph::ValueType> PlanSubgraphRunner::output_types(kernel::KernelContext& ctx,
                                                               std::span<const graph::ValueType> inputs) const {
  if (ctx.run().brief) expect_brief_body(ctx.run(), nullptr);
  std::vector<graph::ValueType> types;
  for (const tensor::Value* value : captured(ctx))
    types.push_back(value != nullptr ? kernel::type_of(*value) : graph::ValueType{});
  return plan_->output_types(inputs, types);
}

std::span<const tensor::Value* const> PlanSubgraphRunner::captured(const kernel::KernelContext& ctx) const {
  return ctx.implicit_inputs().subspan(first_capture_, plan_->graph().captures().size());
}

}  // namespace infernode::runtime
