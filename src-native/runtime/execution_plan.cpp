#include "runtime/execution_plan.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>

#include "graph/captures.h"
#include "provider/partitioner.h"
#include "runtime/copy_kernels.h"
#include "runtime/node_kernel_info.h"

namespace infernode::runtime {

namespace {

using graph::kNoValue;
using graph::ValueId;

std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

bool is_copy(const graph::Node& node) {
  return node.domain == "infernode" &&
         (node.op_type == provider::kCopyToDevice || node.op_type == provider::kCopyToHost);
}

bool is_compiled(const graph::Node& node) { return node.domain == "infernode" && node.op_type == provider::kCompiled; }

std::string type_list(const graph::Graph& graph, const graph::Node& node) {
  std::string text;
  for (const ValueId id : node.inputs) {
    if (!text.empty()) text += ", ";
    text += id == kNoValue ? std::string("-") : graph.value(id).type.to_string();
  }
  return text;
}

/// The element type of an output without a name, which a kernel may still have to compute: that of an input of the same
/// type parameter, or the only one that the operator allows.
tensor::DType absent_type(const graph::Graph& graph, const graph::Node& node, const kernel::OpSchema& schema,
                          std::size_t output) {
  if (output >= schema.max_outputs()) return tensor::DType::Undefined;
  const std::size_t constraint = schema.output(output).constraint;
  for (std::size_t i = 0; i < std::min(node.inputs.size(), schema.max_inputs()); ++i) {
    if (node.inputs[i] != kNoValue && schema.input(i).constraint == constraint)
      return graph.value(node.inputs[i]).type.elem;
  }
  const auto only = [&](tensor::DType type) { return schema.constraints[constraint].tensor == tensor::TypeSet{type}; };
  for (const auto type : {tensor::DType::Int64, tensor::DType::Bool, tensor::DType::Float32, tensor::DType::UInt8}) {
    if (only(type)) return type;
  }
  return tensor::DType::Undefined;
}

/// Finds or builds the kernel of each node and gathers what cannot be built, so that a model with ten such nodes gets
/// one error.
class StepBuilder {
 public:
  StepBuilder(graph::Graph& graph, const PlanEnvironment& environment,
              const std::vector<const kernel::OpSchema*>& schemas, std::vector<std::atomic<int>>& releases)
      : graph_(graph), environment_(environment), schemas_(schemas), releases_(releases) {}

  /// All but the kernel.
  Step describe(graph::NodeId id) const {
    const graph::Node& node = graph_.node(id);
    Step step;
    step.node = id;
    step.inputs = node.inputs;
    step.implicit = graph::implicit_inputs(node);
    step.outputs = node.outputs;
    step.control_flow = step.holds_inputs = !graph::subgraphs(node).empty();
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId output = node.outputs[o];
      const bool tensor = output != kNoValue && graph_.value(output).type.kind != graph::ValueType::Kind::Sequence &&
                          graph_.value(output).type.kind != graph::ValueType::Kind::Optional &&
                          graph_.value(output).type.kind != graph::ValueType::Kind::Map;
      if (output != kNoValue)
        step.output_dtypes.push_back(graph_.value(output).type.elem);
      else
        step.output_dtypes.push_back(schema(id) ? absent_type(graph_, node, *schema(id), o) : tensor::DType::Undefined);
      if (!tensor) step.holds_inputs = true;
    }
    return step;
  }

  /// The kernels of all steps, on the load's threads; those that have bodies or are not the CPU's come one by one after
  /// the others.
  void make_kernels(std::vector<Step>& steps) {
    constexpr double kOneNs = 5000;  // without weights
    std::vector<Step*> shared, alone;
    for (Step& step : steps) {
      const std::string& provider = graph_.node(step.node).provider;
      (step.control_flow || !(provider.empty() || provider == "cpu") ? alone : shared).push_back(&step);
    }
    failures_.resize(steps.size());
    const auto make = [&](Step& step) {
      make_kernel_or_fail(step, failures_[static_cast<std::size_t>(&step - steps.data())]);
    };
    std::atomic<std::size_t> next{0};
    const auto work = [&](std::size_t, std::size_t, std::size_t) {  // weights are of any size: one step after another
      for (std::size_t i; !failed_ && (i = next++) < shared.size();) make(*shared[i]);
    };
    const std::size_t threads = environment_.load == nullptr ? 1 : environment_.load->max_threads;
    if (threads > 1 && shared.size() > 1) {
      const kernel::RunContext& load = *environment_.load;
      load.parallel_for(threads, kOneNs * static_cast<double>(shared.size()) / static_cast<double>(threads), work);
    } else {
      work(0, 1, 0);
    }
    for (auto step = alone.begin(); !failed_ && step != alone.end(); ++step) make(**step);
    report(steps);
  }

 private:
  const kernel::OpSchema* schema(graph::NodeId id) const { return schemas_[static_cast<std::size_t>(id)]; }

  void make_kernel_or_fail(Step& step, std::exception_ptr& failure) {
    const graph::Node& node = graph_.node(step.node);
    try {
      if (environment_.load != nullptr) environment_.load->check();
      make_kernel(step, node, schema(step.node));
    } catch (Error& error) {
      const bool unsupported = error.code() == ErrorCode::UnsupportedOperator;
      if (!unsupported) {
        name_node(error, node);
        failed_ = true;
      }
      failure = std::current_exception();
    } catch (...) {
      failed_ = true;
      failure = std::current_exception();
    }
  }

  /// Throws what went wrong first, unless it is only that operators are missing: then all of those.
  void report(const std::vector<Step>& steps) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!failures_[i]) continue;
      try {
        std::rethrow_exception(failures_[i]);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::UnsupportedOperator) throw;
        const graph::Node& node = graph_.node(steps[i].node);
        missing_.push_back(error.message());
        if (first_missing_.node.empty()) first_missing_ = {.node = node.name, .op_type = node.op_type};
      }
    }
    if (missing_.empty()) return;
    std::string message =
        missing_.size() == 1 ? missing_[0] : cat("the model has ", missing_.size(), " operators that cannot run:");
    if (missing_.size() > 1) {
      for (const std::string& line : missing_) message += "\n  " + line;
    }
    first_missing_.details = std::move(missing_);
    fail(ErrorCode::UnsupportedOperator, std::move(message), std::move(first_missing_));
  }

  void make_kernel(Step& step, const graph::Node& node, const kernel::OpSchema* schema) {
    const std::string provider_name = node.provider.empty() ? "cpu" : node.provider;
    if (is_copy(node) || is_compiled(node)) {
      step.provider = find_provider(node.attributes.get_string("provider"));
      step.output_on_device = node.op_type != provider::kCopyToHost;
      step.is_copy = is_copy(node);
      step.kernel = is_compiled(node) ? step.provider->compile(node.attributes.get_graph("body"))
                                      : make_copy_kernel(*step.provider);
      return;
    }
    if (schema == nullptr) {
      fail(ErrorCode::UnsupportedOperator,
           cat(graph::describe(graph_, node), ": ",
               environment_.registry->why_missing(node.domain, node.op_type, node.opset)));
    }
    if (provider_name != "cpu") {
      step.provider = find_provider(provider_name);
      step.output_on_device = true;
    }
    std::vector<graph::ValueType> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(id == kNoValue ? graph::ValueType{} : graph_.value(id).type);
    for (const ValueId id : node.outputs)
      outputs.push_back(id == kNoValue ? graph::ValueType{} : graph_.value(id).type);
    const kernel::KernelDef* def = environment_.registry->find_kernel(provider_name, *schema, inputs, outputs);
    if (def == nullptr) {
      fail(ErrorCode::UnsupportedOperator,
           cat("Could not find an implementation for ", node.op_type, "(", schema->since_version, ") on ",
               provider_name, ": ", graph::describe(graph_, node), " with inputs (", type_list(graph_, node), ")"));
    }
    NodeKernelInfo info(graph_, node, *schema, environment_, releases_);
    step.kernel = def->make(info);
    step.in_place = def->in_place;
    step.alias = def->alias;
    step.foldable = schema->deterministic;
  }

  provider::Provider* find_provider(std::string_view name) const {
    for (const auto& provider : environment_.providers) {
      if (provider->name() == name) return provider.get();
    }
    fail(ErrorCode::Internal, cat("no provider '", name, "' in this session"));
  }

  static void name_node(Error& error, const graph::Node& node) {
    if (!error.context().op_type.empty()) return;
    error.context().node = node.name;
    error.context().op_type = node.op_type;
  }

  graph::Graph& graph_;
  const PlanEnvironment& environment_;
  const std::vector<const kernel::OpSchema*>& schemas_;  ///< by NodeId
  std::vector<std::atomic<int>>& releases_;
  std::vector<std::exception_ptr> failures_;  ///< by step
  std::atomic<bool> failed_{false};           ///< other than by missing operators
  std::vector<std::string> missing_;
  ErrorContext first_missing_;
};

}  // namespace

std::unique_ptr<ExecutionPlan> ExecutionPlan::build(std::shared_ptr<graph::Graph> graph,
                                                    const PlanEnvironment& environment) {
  std::unique_ptr<ExecutionPlan> plan(new ExecutionPlan(environment));
  plan->graph_ = std::move(graph);
  graph::Graph& g = *plan->graph_;
  graph::adopt_constants(g);
  plan->order_ = g.topological_order();
  plan->schemas_.resize(g.node_count(), nullptr);
  std::vector<std::atomic<int>> releases(g.values().size());
  std::vector<int> uses(g.values().size(), 0);
  for (const graph::NodeId id : plan->order_) {
    const graph::Node& node = g.node(id);
    plan->schemas_[static_cast<std::size_t>(id)] =
        environment.registry->find_schema(node.domain, node.op_type, node.opset);
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) ++uses[index(input)];
    }
    for (const ValueId input : graph::implicit_inputs(node)) ++uses[index(input)];
  }
  for (const ValueId output : g.outputs()) ++uses[index(output)];

  HeldBytes held;
  if (environment.held == nullptr) plan->environment_.held = &held;
  StepBuilder builder(g, plan->environment_, plan->schemas_, releases);
  for (const graph::NodeId id : plan->order_) {
    Step step = builder.describe(id);
    step.wanted = std::make_unique<bool[]>(step.outputs.size());
    for (std::size_t o = 0; o < step.outputs.size(); ++o) {
      step.wanted[o] = step.outputs[o] != kNoValue && uses[index(step.outputs[o])] > 0;
    }
    plan->steps_.push_back(std::move(step));
  }
  builder.make_kernels(plan->steps_);
  plan->environment_.load = nullptr;
  plan->environment_.cache = nullptr;

  plan->constants_.resize(g.values().size());
  for (std::size_t i = 0; i < g.values().size(); ++i) {
    graph::ValueInfo& value = g.value(static_cast<ValueId>(i));
    if (!value.has_constant()) continue;
    if (releases[i] == uses[i] && !value.is_input) {
      value.constant = {};  // every reader has packed it, or it has none left
    } else {
      plan->constants_[i] = value.constant;
      const void* at = value.constant.is_tensor() ? value.constant.tensor().raw() : &plan->constants_[i];
      plan->environment_.held->add(at, value.constant.bytes());
    }
  }
  plan->environment_.held = nullptr;
  for (const auto& [at, bytes] : held.sizes) plan->held_bytes_ += bytes;

  plan->pinned_.resize(g.values().size(), false);
  const auto pin = [&](ValueId id) {
    if (id != kNoValue) plan->pinned_[index(id)] = true;
  };
  for (const ValueId id : g.inputs()) pin(id);
  for (const ValueId id : g.outputs()) pin(id);
  for (const graph::Capture& capture : g.captures()) pin(capture.inner);
  for (const Step& step : plan->steps_) {
    for (const ValueId id : step.implicit) pin(id);
    if (step.holds_inputs) {
      for (const ValueId id : step.inputs) pin(id);
    }
    if (step.provider != nullptr) {  // streams read and write late
      for (const ValueId id : step.inputs) pin(id);
    }
    if (step.provider != nullptr || step.holds_inputs) {
      for (const ValueId id : step.outputs) pin(id);
    }
  }
  plan->find_frees();
  plan->find_copies();
  return plan;
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
  if (device_providers_.empty()) return;
  for (Step& step : steps_) {
    step.copied_to.resize(step.outputs.size(), nullptr);
    for (std::size_t o = 0; o < step.outputs.size(); ++o) {
      if (step.outputs[o] != kNoValue) step.copied_to[o] = copied_to[index(step.outputs[o])];
    }
  }
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
  auto made = std::make_shared<Demand>();
  made->outputs = outputs;
  made->steps.resize(steps_.size());
  made->wanted.resize(steps_.size());
  std::vector<bool> read(constants_.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i]) read[index(graph_->outputs()[i])] = true;
  }
  for (std::size_t s = steps_.size(); s-- > 0;) {
    const Step& step = steps_[s];
    made->wanted[s] = std::make_unique<bool[]>(step.outputs.size());
    for (std::size_t o = 0; o < step.outputs.size(); ++o) {
      made->wanted[s][o] = step.outputs[o] != kNoValue && read[index(step.outputs[o])];
      if (made->wanted[s][o]) made->steps[s] = true;
    }
    if (!made->steps[s]) continue;
    for (const auto* inputs : {&step.inputs, &step.implicit}) {
      for (const ValueId id : *inputs) {
        if (id != kNoValue) read[index(id)] = true;
      }
    }
  }
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
  const auto reads = [input](const std::vector<ValueId>& ids) {
    return std::find(ids.begin(), ids.end(), input) != ids.end();
  };
  if (graph_->is_output(input)) return false;
  return std::all_of(steps_.begin(), steps_.end(), [&](const Step& step) {
    if (reads(step.implicit)) return false;
    return !reads(step.inputs) || (step.is_copy && step.output_on_device && step.provider->device() == device);
  });
}

std::size_t ExecutionPlan::constant_bytes() const {
  std::size_t total = 0;
  for (const tensor::Value& value : constants_) total += value.bytes();
  return total;
}

}  // namespace infernode::runtime
