#pragma once

#include <array>
#include <map>
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
#include "runtime/run_history.h"
#include "runtime/symbolic_plan.h"
#include "runtime/weight_store.h"

namespace infernode::runtime {

/// For tests, slow: compares shapes that are substituted with inferred ones, at the first signature of each kind and at
/// others like it. Runs fail where the two contradict, with Complete also where substitution knows less.
enum class ShapeCheck : std::uint8_t { Off, Contradictions, Complete };

/// Sizes of packed weights and constants by where they lie. Kernels are made on several threads.
struct HeldBytes {
  std::mutex mutex;
  std::map<const void*, std::size_t> sizes;

  void add(const void* at, std::size_t bytes) {
    const std::lock_guard lock(mutex);
    sizes[at] = bytes;
  }
};

/// What building a plan needs; outlives the plan.
struct PlanEnvironment {
  const kernel::Registry* registry = nullptr;
  const microkernels::KernelSet* kernels = nullptr;  ///< that the CPU's nodes are made with
  WeightStore* weights = nullptr;
  /// Asked before `weights`, if there is one; the plan does not keep it.
  class WeightCache* cache = nullptr;
  std::span<const std::shared_ptr<provider::Provider>> providers;
  const Logger* logger = nullptr;
  bool lay_out_memory = true;  ///< one arena laid out by lifetimes where shapes are known
  bool keep_memory = true;     ///< frames keep their memory between runs
  ShapeCheck check_shapes = ShapeCheck::Off;
  /// Asked at each node whether to go on, and for threads to make kernels on; the plan does not keep it.
  const kernel::RunContext* load = nullptr;
  HeldBytes* held = nullptr;  ///< of the plan that this one is a body of; not kept
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
      false;  ///< may keep its inputs in its outputs (control flow, sequences): they cannot lie in the arena
  bool control_flow = false;          ///< runs subgraphs, as often as the data says
  bool is_copy = false;               ///< between the host and `provider`'s device
  bool foldable = false;              ///< no effect but its outputs: skipped where those are known from shapes
  std::vector<graph::ValueId> frees;  ///< values nobody reads after this step
};

/// What a run that wants only some of the graph's outputs has to do. Immutable; shared by such runs.
struct Demand {
  static constexpr std::size_t kMost = 8;       ///< that a plan keeps
  std::vector<bool> outputs;                    ///< of graph.outputs()
  std::vector<bool> steps;                      ///< that run
  std::vector<std::unique_ptr<bool[]>> wanted;  ///< by step and output: somebody reads it
  std::size_t place = kMost;                    ///< among those that the plan keeps; kMost for the rest
};

/// What follows from the shapes of a plan's inputs. Immutable; shared by the runs of that signature.
struct ShapePlan {
  static constexpr std::size_t kNowhere = SIZE_MAX;
  std::vector<std::size_t> offsets;  ///< by ValueId: place in the arena, kNowhere where allocated when made
  std::vector<std::size_t> sizes;    ///< bytes at that place
  std::size_t arena_bytes = 0;
  std::vector<std::pair<graph::ValueId, tensor::Value>> known;  ///< what depends on shapes only and is read
  std::vector<bool> skip;                                       ///< by step: all its outputs are known
  std::vector<graph::ValueType> outputs;                        ///< of graph.outputs(), as inferred
  bool control_flow = false;   ///< the next run may take far longer, so a brief one is watched
  bool data_decides = false;   ///< a step's output has a size that data decides, and so the step a duration
  std::vector<bool> any_size;  ///< by step: reads or makes what has no size yet, after control flow
  std::unique_ptr<ShortSteps> short_steps;                      ///< of those steps
  mutable RunHistory history;                                   ///< of runs that want all outputs
  mutable std::array<RunHistory, Demand::kMost + 1> histories;  ///< of others, by Demand::place

  RunHistory& history_of(const Demand* demand) const { return demand == nullptr ? history : histories[demand->place]; }
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
  /// Of a node; null for the plan's own copies and for what a provider compiled.
  const kernel::OpSchema* schema(graph::NodeId id) const { return schemas_[static_cast<std::size_t>(id)]; }
  /// Whether only copy steps to this device read the input, so that it may be fed as a tensor there.
  bool takes_input_on(graph::ValueId input, tensor::Device device) const;
  /// Host bytes of the constants that remain.
  std::size_t constant_bytes() const;
  /// Host bytes of constants and of what kernels packed, those of bodies too.
  std::size_t held_bytes() const { return held_bytes_; }

  /// The plan for these inputs (graph.inputs() then captures; an empty value counts as absent), cached by their shapes.
  std::shared_ptr<const ShapePlan> specialise(std::span<const tensor::Value* const> inputs,
                                              std::span<const tensor::Value* const> captures) const;
  /// What these outputs of the graph need, cached; null where all are wanted.
  std::shared_ptr<const Demand> demand(const std::vector<bool>& outputs) const;
  /// The same as `specialise` if it is in the cache, otherwise null: for callers that cannot wait for it to be made.
  std::shared_ptr<const ShapePlan> find_specialised(std::span<const tensor::Value* const> inputs,
                                                    std::span<const tensor::Value* const> captures = {}) const;

 private:
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
  void find_frees();

  PlanEnvironment environment_;
  std::shared_ptr<graph::Graph> graph_;
  std::vector<graph::NodeId> order_;
  std::vector<const kernel::OpSchema*> schemas_;  // by NodeId
  std::vector<Step> steps_;
  std::vector<tensor::Value> constants_;
  std::size_t held_bytes_ = 0;
  std::vector<bool> pinned_;  // by ValueId: never in the arena (inputs, outputs, held by control flow or sequences)

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
