#pragma once

#include <memory>
#include <vector>

#include "graph/graph.h"
#include "kernel/run_context.h"
#include "provider/partitioner.h"
#include "runtime/plan/execution_plan.h"
#include "runtime/run/profiler.h"
#include "session/session.h"

namespace infernode::session {

/// A model made ready: what Session::create leaves behind.
struct LoadedModel {
  graph::ModelInfo info;
  std::vector<ValueMetadata> feeds, outputs;
  std::size_t input_count = 0;
  std::vector<std::shared_ptr<provider::Provider>> providers;
  std::vector<provider::Placement> placements;
  std::unique_ptr<runtime::ExecutionPlan> plan;
};

/// From file to plan: read, check operators, infer, optimize, partition, save if asked, build kernels. Throws Error;
/// `cancel` is looked at for each node. The bytes of `source` go when they have been read. `logger` and `options`
/// outlive the result.
LoadedModel load_model(Engine& engine, ModelSource source, const SessionOptions& options, const Logger& logger,
                       const kernel::CancelToken* cancel, runtime::Profiler* profiler);

}  // namespace infernode::session
