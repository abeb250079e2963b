#pragma once

#include <atomic>
#include <exception>
#include <string>
#include <vector>

#include "runtime/plan/plan_environment.h"
#include "runtime/plan/step.h"

namespace infernode::runtime {

/// Finds or builds the kernel of each node and gathers what cannot be built, so that a model with ten such nodes gets
/// one error. What it is given outlives it.
class StepBuilder {
 public:
  /// `schemas` by NodeId; `releases` by ValueId: how many readers gave a constant up.
  StepBuilder(graph::Graph& graph, const PlanEnvironment& environment,
              const std::vector<const kernel::OpSchema*>& schemas, std::vector<std::atomic<int>>& releases)
      : graph_(graph), environment_(environment), schemas_(schemas), releases_(releases) {}

  /// All but the kernel.
  Step describe(graph::NodeId id) const;
  /// The kernels of all steps, on the load's threads, or one by one where methods are measured; those that have bodies
  /// or are not the CPU's come one by one after the others.
  void make_kernels(std::vector<Step>& steps);

 private:
  const kernel::OpSchema* schema(graph::NodeId id) const { return schemas_[static_cast<std::size_t>(id)]; }
  void make_kernel_or_fail(Step& step, std::exception_ptr& failure);
  /// Throws what went wrong first, unless it is only that operators are missing: then all of those.
  void report(const std::vector<Step>& steps);
  void make_kernel(Step& step, const graph::Node& node, const kernel::OpSchema* schema);
  provider::Provider* find_provider(std::string_view name) const;

  graph::Graph& graph_;
  const PlanEnvironment& environment_;
  const std::vector<const kernel::OpSchema*>& schemas_;  ///< by NodeId
  std::vector<std::atomic<int>>& releases_;
  std::vector<std::exception_ptr> failures_;  ///< by step
  std::atomic<bool> failed_{false};           ///< other than by missing operators
  std::vector<std::string> missing_;
  ErrorContext first_missing_;
};

}  // namespace infernode::runtime
