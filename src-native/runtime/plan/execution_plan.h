#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernel/inference.h"
#include "runtime/memory/step_memory.h"
#include "runtime/plan/plan_environment.h"
#include "runtime/plan/step.h"
#include "runtime/shapes/shape_plan.h"
#include "runtime/shapes/symbolic_plan.h"

namespace infernode::runtime {

/// Immutable steps, kernels and constants of one graph (a session's or a subgraph's). Runs share it.
class ExecutionPlan {
 public:
  /// Builds kernels for every live node. Collects all nodes without a kernel into one UnsupportedOperator error.
  static std::unique_ptr<ExecutionPlan> build(std::shared_ptr<graph::Graph> graph, const PlanEnvironment& environment);

  const graph::Graph& graph() const { return *graph_; }
  const std::vector<Step>& steps() const { return steps_; }
  /// By ValueId; empty where the value is no constant.
  const tensor::Value& constant(graph::ValueId id) const { return constants_[static_cast<std::size_t>(id)]; }
  std::size_t value_count() const { return constants_.size(); }
  /// Those that have steps.
  std::span<provider::Provider* const> device_providers() const { return device_providers_; }
  /// "Conv 'conv1' (made from ...)" for messages, by step.
  std::string describe(const Step& step) const;
  /// Of a node; null for the plan's own copies and for what a provider compiled.
  const kernel::OpSchema* schema(graph::NodeId id) const { return schemas_[static_cast<std::size_t>(id)]; }
  /// Whether only copy steps to this device read the input, so that it may be fed as a tensor there.
  bool takes_input_on(graph::ValueId input, tensor::Device device) const;
  /// The graph's output that this value of a device becomes, where only the caller reads its copy on the host.
  std::optional<std::size_t> device_output(graph::ValueId id) const;
  /// Host bytes of constants and of what kernels packed, those of bodies too.
  std::size_t held_bytes() const { return held_bytes_; }
  /// Bytes of the arena for the shapes that were asked for last; 0 before there were any.
  std::size_t last_arena_bytes() const;
  /// By step.
  std::vector<StepMemory> memory() const;
  /// Where what a run measured of a step is kept.
  MeasuredMemory& measured(std::size_t step) const { return measured_[step]; }

  /// The plan for these inputs (graph.inputs() then captures; an empty value counts as absent), cached by their shapes.
  std::shared_ptr<const ShapePlan> specialise(std::span<const tensor::Value* const> inputs,
                                              std::span<const tensor::Value* const> captures) const;
  /// Types of the graph's outputs for inputs and captures of these types, where nothing is run.
  std::vector<graph::ValueType> output_types(std::span<const graph::ValueType> inputs,
                                             std::span<const graph::ValueType> captured) const {
    return kernel::infer_outputs(*graph_, order_, inputs, captured, *environment_.registry, schemas_);
  }
  /// Types of all values for inputs of these types by inference alone: what the graph declares of sizes does not count.
  /// Throws where the graph cannot run with them.
  std::vector<graph::ValueType> infer(std::span<const graph::ValueType> inputs) const;
  /// What these outputs of the graph need, cached; null where all are wanted.
  std::shared_ptr<const Demand> demand(const std::vector<bool>& outputs) const;
  /// The same as `specialise` if it is in the cache, otherwise null: for callers that cannot wait for it to be made.
  std::shared_ptr<const ShapePlan> find_specialised(std::span<const tensor::Value* const> inputs,
                                                    std::span<const tensor::Value* const> captures = {}) const;

 private:
  /// The readers of a value: none, copies to the device of one provider, or others (the caller too).
  struct Readers {
    const provider::Provider* copies = nullptr;
    bool any = false, others = false;
  };
  explicit ExecutionPlan(const PlanEnvironment& environment) : environment_(environment) {}
  std::shared_ptr<const ShapePlan> make_shape_plan(const Feeds& feeds, const Signature& signature) const;
  std::shared_ptr<ShapePlan> outline(const kernel::InferredGraph& inferred) const;
  void add_symbolic(const Feeds& feeds, const kernel::InferredGraph& inferred) const;
  void check_symbolic(const Feeds& feeds, const SymbolicSignature& signature, const SymbolicShapes* shapes,
                      bool complete) const;
  std::vector<graph::ValueId> needed_values() const;  ///< all that a ShapePlan tells of
  std::shared_ptr<const ShapePlan> find_cached(const Signature& signature) const;
  /// Which steps may take longer than earlier runs of the same shapes tell.
  void find_uncertain(const kernel::InferredGraph& inferred, ShapePlan& plan) const;
  std::vector<int> count_uses() const;
  void make_steps(const std::vector<int>& uses, std::vector<std::atomic<int>>& releases);
  void keep_constants(const std::vector<int>& uses, const std::vector<std::atomic<int>>& releases);
  void find_pinned();
  void find_frees();
  void find_copies();
  void find_readers();

  PlanEnvironment environment_;
  std::shared_ptr<graph::Graph> graph_;
  std::vector<graph::NodeId> order_;
  std::vector<const kernel::OpSchema*> schemas_;  // by NodeId
  std::vector<Step> steps_;
  std::vector<provider::Provider*> device_providers_;
  std::vector<tensor::Value> constants_;
  std::size_t held_bytes_ = 0;
  std::vector<Readers> readers_;  // by ValueId
  std::vector<std::pair<graph::ValueId, std::size_t>> device_outputs_;
  std::vector<bool> pinned_;  // by ValueId: never in the arena (inputs, outputs, held by control flow or sequences)

  std::unique_ptr<MeasuredMemory[]> measured_;  // by step
  struct CachedShape {
    Signature signature;
    std::shared_ptr<const ShapePlan> plan;
  };
  mutable std::mutex cache_mutex_;
  mutable std::vector<CachedShape> cache_;                             // most recent first, bounded
  mutable std::vector<std::shared_ptr<const SymbolicPlan>> symbolic_;  // from the second signature on
  mutable std::size_t symbolic_tries_ = 0;                             // bounded
  mutable std::vector<std::shared_ptr<const Demand>> demands_;         // by place
};

}  // namespace infernode::runtime
