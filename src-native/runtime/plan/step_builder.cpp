#include "runtime/plan/step_builder.h"

#include <algorithm>
#include <mutex>

#include "graph/captures.h"
#include "provider/partitioner.h"
#include "runtime/plan/copy_kernels.h"
#include "runtime/plan/node_kernel_info.h"
#include "runtime/tuning/tuner.h"

namespace infernode::runtime {

namespace {

using graph::kNoValue;
using graph::ValueId;

bool is_copy(const graph::Node& node) {
  return node.domain == "infernode" &&
         (node.op_type == provider::kCopyToDevice || node.op_type == provider::kCopyToHost);
}

bool is_compiled(const graph::Node& node) { return node.domain == "infernode" && node.op_type == provider::kCompiled; }

/// Runs subgraphs as often as the data says. A device's compiled nodes have a body, too, which runs once.
bool has_control_flow(const graph::Node& node) {
  if (!is_compiled(node)) return !graph::subgraphs(node).empty();
  const graph::Graph& body = *node.attributes.get_graph("body");
  return std::ranges::any_of(body.topological_order(),
                             [&](graph::NodeId id) { return has_control_flow(body.node(id)); });
}

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

void name_node(Error& error, const graph::Node& node) {
  if (!error.context().op_type.empty()) return;
  error.context().node = node.name;
  error.context().op_type = node.op_type;
}

}  // namespace

Step StepBuilder::describe(graph::NodeId id) const {
  const graph::Node& node = graph_.node(id);
  Step step;
  step.node = id;
  step.inputs = node.inputs;
  step.implicit = graph::implicit_inputs(node);
  step.outputs = node.outputs;
  step.control_flow = has_control_flow(node);
  step.holds_inputs = !graph::subgraphs(node).empty();
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

void StepBuilder::make_kernels(std::vector<Step>& steps) {
  constexpr double kOneNs = 5000;  // without weights
  std::vector<Step*> shared, alone;
  for (Step& step : steps) {
    const graph::Node& node = graph_.node(step.node);
    const bool on_cpu = node.provider.empty() || node.provider == "cpu";
    (step.control_flow || is_compiled(node) || !on_cpu ? alone : shared).push_back(&step);
  }
  failures_.resize(steps.size());
  std::mutex telling;
  std::size_t built = 0;
  const auto make = [&](Step& step) {
    make_kernel_or_fail(step, failures_[static_cast<std::size_t>(&step - steps.data())]);
    if (environment_.built == nullptr) return;
    const std::lock_guard lock(telling);
    (*environment_.built)(++built, steps.size());
  };
  std::atomic<std::size_t> next{0};
  const auto work = [&](std::size_t, std::size_t, std::size_t) {  // weights are of any size: one step after another
    for (std::size_t i; !failed_ && (i = next++) < shared.size();) make(*shared[i]);
  };
  const bool one_by_one =
      environment_.load == nullptr || environment_.tuner != nullptr;  // what is timed has all threads
  const std::size_t threads = one_by_one ? 1 : environment_.load->max_threads;
  if (threads > 1 && shared.size() > 1) {
    const kernel::RunContext& load = *environment_.load;
    load.parallel_for(threads, kOneNs * static_cast<double>(shared.size()) / static_cast<double>(threads), work);
  } else {
    work(0, 1, 0);
  }
  for (auto step = alone.begin(); !failed_ && step != alone.end(); ++step) make(**step);
  report(steps);
}

void StepBuilder::make_kernel_or_fail(Step& step, std::exception_ptr& failure) {
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

void StepBuilder::report(const std::vector<Step>& steps) {
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

void StepBuilder::make_kernel(Step& step, const graph::Node& node, const kernel::OpSchema* schema) {
  const std::string provider_name = node.provider.empty() ? "cpu" : node.provider;
  if (is_copy(node) || is_compiled(node)) {
    step.provider = find_provider(node.attributes.get_string("provider"));
    step.output_on_device = node.op_type != provider::kCopyToHost;
    step.is_copy = is_copy(node);
    step.kernel = is_compiled(node)
                      ? step.provider->compile(node.attributes.get_graph("body"), environment_.kernels->precision)
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
  for (const ValueId id : node.outputs) outputs.push_back(id == kNoValue ? graph::ValueType{} : graph_.value(id).type);
  const kernel::KernelDef* def = environment_.registry->find_kernel(provider_name, *schema, inputs, outputs);
  if (def == nullptr) {
    fail(ErrorCode::UnsupportedOperator,
         cat("Could not find an implementation for ", node.op_type, "(", schema->since_version, ") on ", provider_name,
             ": ", graph::describe(graph_, node), " with inputs (", type_list(graph_, node), ")"));
  }
  if (environment_.tuner != nullptr && step.provider == nullptr && def->methods != nullptr) {
    Trial trial(graph_, node, *schema, *def, environment_);
    step.method = environment_.tuner->choose(trial);
  }
  NodeKernelInfo info(graph_, node, *schema, environment_, releases_,
                      step.method ? std::string_view(step.method->method) : std::string_view());
  if (environment_.names_methods && !step.method && step.provider == nullptr && def->methods != nullptr) {
    const std::vector<std::string> names = def->methods(info);
    if (!names.empty()) step.method = {names.front(), MethodChoice::Source::kExpected};
  }
  step.kernel = def->make(info);
  step.in_place = def->in_place;
  step.alias = def->alias;
  step.foldable = schema->deterministic;
}

provider::Provider* StepBuilder::find_provider(std::string_view name) const {
  for (const auto& provider : environment_.providers) {
    if (provider->name() == name) return provider.get();
  }
  fail(ErrorCode::Internal, cat("no provider '", name, "' in this session"));
}

}  // namespace infernode::runtime
