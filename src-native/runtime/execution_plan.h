#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernel/inference.h"
#include "kernel/kernel.h"
#include "provider/provider.h"
#include "runtime/memory_plan.h"
#include "runtime/weight_store.h"

namespace infernode::runtime {

/// What building a plan needs; outlives the plan.
struct PlanEnvironment {
  const kernel::Registry* registry = nullptr;
  CpuRung rung{};
  WeightStore* weights = nullptr;
  std::span<const std::shared_ptr<provider::Provider>> providers;
  const Logger* logger = nullptr;
  bool lay_out_memory = true;  ///< one arena laid out by lifetimes where shapes are known
  bool keep_memory = true;     ///< frames keep their memory between runs
};

/// One node, ready to run.
struct Step {
  std::unique_ptr<kernel::Kernel> kernel;
  graph::NodeId node = graph::kNoNode;
  std::vector<graph::ValueId> inputs, implicit, outputs;
  std::vector<tensor::DType> output_dtypes;  ///< Undefined where unknown or no tensor
  std::unique_ptr<bool[]> wanted;            ///< per output: somebody reads it
  std::vector<kernel::IndexPair> in_place, alias;
  provider::Provider* provider = nullptr;  ///< null: the CPU
  bool output_on_device = false;           ///< outputs lie on the provider's device
  bool holds_inputs =
      false;             ///< may keep its inputs in its outputs (control flow, sequences): they cannot lie in the arena
  bool is_copy = false;  ///< between the host and `provider`'s device
  bool foldable = false;              ///< no effect but its outputs: skipped where those are known from shapes
  std::vector<graph::ValueId> frees;  ///< values nobody reads after this step
};

/// What follows from the shapes of a plan's inputs. Immutable; shared by the runs of that signature.
struct ShapePlan {
  static constexpr std::size_t kNowhere = SIZE_MAX;
  std::vector<std::size_t> offsets;  ///< by ValueId: place in the arena, kNowhere where allocated when made
  std::vector<std::size_t> sizes;    ///< bytes at that place
  std::size_t arena_bytes = 0;
  std::vector<std::pair<graph::ValueId, tensor::Value>> known;  ///< integer tensors that depend on shapes only
  std::vector<bool> skip;                                       ///< by step: all its outputs are known
  std::vector<graph::ValueType> outputs;                        ///< of graph.outputs(), as inferred
  mutable std::atomic<double> mean_us{-1};                      ///< duration of earlier runs; negative before the first
};

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
  const PlanEnvironment& environment() const { return environment_; }
  /// "Conv 'conv1' (made from ...)" for messages, by step.
  std::string describe(const Step& step) const;
  /// Whether only copy steps to this device read the input, so that it may be fed as a tensor there.
  bool takes_input_on(graph::ValueId input, tensor::Device device) const;
  /// Host bytes of the constants that remain.
  std::size_t constant_bytes() const;

  /// The plan for these inputs (graph.inputs() then captures; an empty value counts as absent), cached by their shapes.
  std::shared_ptr<const ShapePlan> specialise(std::span<const tensor::Value* const> inputs,
                                              std::span<const tensor::Value* const> captures) const;
  /// The same if it is in the cache, otherwise null: for callers that cannot wait for it to be made.
  std::shared_ptr<const ShapePlan> find_specialised(std::span<const tensor::Value* const> inputs) const;

 private:
  explicit ExecutionPlan(const PlanEnvironment& environment) : environment_(environment) {}
  std::shared_ptr<const ShapePlan> make_shape_plan(std::span<const tensor::Value* const> inputs,
                                                   std::span<const tensor::Value* const> captures) const;
  std::shared_ptr<const ShapePlan> find_cached(const std::vector<std::int64_t>& signature) const;
  void lay_out(const kernel::InferredGraph& inferred, ShapePlan& plan) const;
  void find_frees();

  PlanEnvironment environment_;
  std::shared_ptr<graph::Graph> graph_;
  std::vector<graph::NodeId> order_;
  std::vector<const kernel::OpSchema*> schemas_;  // by NodeId
  std::vector<Step> steps_;
  std::vector<tensor::Value> constants_;
  std::vector<bool> pinned_;  // by ValueId: never in the arena (inputs, outputs, held by control flow or sequences)

  struct CachedShape {
    std::vector<std::int64_t> signature;
    std::shared_ptr<const ShapePlan> plan;
  };
  mutable std::mutex cache_mutex_;
  mutable std::vector<CachedShape> cache_;  // most recent first, bounded
};

}  // namespace infernode::runtime
