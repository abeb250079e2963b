#include "runtime/run/step_runner.h"

#include <algorithm>
#include <new>
#include <optional>

#include "runtime/brief/brief_run.h"
#include "runtime/memory/charged.h"
#include "runtime/run/value_check.h"
#include "tensor/texts.h"

namespace infernode::runtime {

namespace {

using graph::kNoValue;
using graph::ValueId;

std::size_t index_of(ValueId id) { return static_cast<std::size_t>(id); }

/// JSON array of {"float": [1,3]}: types and dims of the tensors among `values`.
std::string type_shapes(std::span<const tensor::Value* const> values) {
  std::string text = "[";
  for (const tensor::Value* value : values) {
    if (value == nullptr || !value->is_tensor()) continue;
    const tensor::Tensor& t = value->tensor();
    text += cat(text.size() > 1 ? "," : "", "{\"", tensor::onnx_name(t.dtype()), "\":", t.shape().to_string(), "}");
  }
  return text + "]";
}

/// A device's step has the frame's streams for itself while it puts its work into one; what it reads and writes lives
/// on.
class DeviceTurn {
 public:
  DeviceTurn(DeviceWork& devices, const Step& step, const std::vector<const tensor::Value*>& inputs,
             const std::vector<tensor::Value>& outputs)
      : devices_(devices),
        inputs_(inputs),
        outputs_(outputs),
        turn_(devices.turn()),
        stream_(devices.stream(*step.provider)) {
    if (!step.output_on_device) devices_.give(stream_, step.outputs);
  }
  ~DeviceTurn() { devices_.keep(stream_, inputs_, outputs_); }
  DeviceTurn(const DeviceTurn&) = delete;
  DeviceTurn& operator=(const DeviceTurn&) = delete;

  kernel::Stream& stream() const { return stream_; }

 private:
  DeviceWork& devices_;
  const std::vector<const tensor::Value*>& inputs_;
  const std::vector<tensor::Value>& outputs_;
  const std::unique_lock<std::mutex> turn_;
  kernel::Stream& stream_;
};

}  // namespace

const tensor::Value* StepRunner::find(ValueId id) const {
  if (id == kNoValue) return nullptr;
  const tensor::Value& made = execution_.frame.values[index_of(id)];
  if (!made.empty()) return &made;
  const tensor::Value& constant = execution_.plan.constant(id);
  return constant.empty() ? &made : &constant;
}

void StepRunner::run(std::size_t index) {
  const Step& step = execution_.plan.steps()[index];
  const Demand* const demand = execution_.demand;
  const bool* const wanted = demand == nullptr ? step.wanted.get() : demand->wanted[index].get();
  if (step.is_copy && pass_on(step)) return;
  step_ = &step;
  inputs_.clear();
  implicit_.clear();
  for (const ValueId id : step.inputs) inputs_.push_back(find(id));
  for (const ValueId id : step.implicit) implicit_.push_back(find(id));
  outputs_.assign(step.outputs.size(), {});
  wait_for_inputs(step);
  std::optional<Measured> measured;
  if (execution_.run.profile != nullptr) measured.emplace(execution_.run, step);
  try {
    execution_.run.check();
    run_kernel(step, index, measured ? measured->run : execution_.run, wanted);
    for (std::size_t o = 0; o < step.outputs.size(); ++o) {
      if (wanted[o] && outputs_[o].empty()) fail(ErrorCode::Internal, cat("the kernel gave no output ", o));
      if (step.outputs[o] != kNoValue) expect_type(execution_.plan.graph().value(step.outputs[o]), outputs_[o]);
      if (execution_.budget != nullptr) charge_texts(outputs_[o], execution_.budget, execution_.run);
    }
  } catch (Error& error) {
    keep_outputs(step);
    const graph::Node& node = execution_.plan.graph().node(step.node);
    if (error.context().op_type.empty() && error.code() != ErrorCode::Aborted) {
      error.context().op_type = node.op_type;
      error.context().node = node.name;
      error.prepend(cat("Non-zero status code returned while running ", node.op_type, " node. Name:'", node.name, "' ",
                        execution_.plan.describe(step), ": "));
    }
    throw;
  } catch (const std::bad_alloc&) {
    const graph::Node& node = execution_.plan.graph().node(step.node);
    fail(ErrorCode::OutOfMemory, cat("out of memory while running ", execution_.plan.describe(step)),
         {.node = node.name, .op_type = node.op_type});
  }
  if (measured) record(step, index, *measured);
  for (std::size_t o = 0; o < step.outputs.size(); ++o) {
    if (step.outputs[o] != kNoValue && wanted[o])
      execution_.frame.values[index_of(step.outputs[o])] = std::move(outputs_[o]);
  }
}

/// What a step that failed has made ends with the frame's other values.
void StepRunner::keep_outputs(const Step& step) noexcept {
  for (std::size_t o = 0; o < step.outputs.size(); ++o) {
    if (step.outputs[o] != kNoValue) execution_.frame.values[index_of(step.outputs[o])] = std::move(outputs_[o]);
  }
}

void StepRunner::wait_for_inputs(const Step& step) const {
  if (execution_.plan.device_providers().empty()) return;
  DeviceWork& devices = execution_.frame.devices;
  const auto begin = kernel::ProfileSink::Clock::now();
  const auto turn = devices.turn();
  const kernel::Stream* own = step.provider == nullptr ? nullptr : &devices.stream(*step.provider);
  const bool inputs = devices.wait_for(step.inputs, own), implicit = devices.wait_for(step.implicit, own);
  if (inputs || implicit) record_wait(execution_.run, begin);
}

void StepRunner::run_kernel(const Step& step, std::size_t index, kernel::RunContext& run, const bool* wanted) {
  std::optional<DeviceTurn> turn;
  if (step.provider != nullptr) turn.emplace(execution_.frame.devices, step, inputs_, outputs_);
  kernel::KernelContext ctx(run, inputs_, implicit_, outputs_, step.output_dtypes,
                            std::span<const bool>(wanted, step.outputs.size()), *this,
                            turn ? &turn->stream() : nullptr);
  std::optional<WatchedStep> watched;
  if (execution_.shapes.any_size[index]) watched.emplace(execution_, index, inputs_);
  step.kernel->run(ctx);
  if (watched) watched->ended(inputs_);
}

/// A copy step has nothing to do where its input was fed on the device already, or its output shall stay there and
/// nobody reads it on the host: the value passes on. No stream has to be waited for.
bool StepRunner::pass_on(const Step& step) const {
  const tensor::Value* value = find(step.inputs[0]);
  if (!value->is_tensor()) return false;
  const tensor::Device at = value->tensor().device();
  const std::optional<std::size_t> output = step.only_output;
  const bool stays = step.output_on_device
                         ? at == step.provider->device()
                         : output && *output < execution_.devices.size() && execution_.devices[*output] == at;
  if (stays) execution_.frame.values[index_of(step.outputs[0])] = *value;
  return stays;
}

void StepRunner::free_after(std::size_t index) {
  for (const ValueId id : execution_.plan.steps()[index].frees) {
    tensor::Value& value = execution_.frame.values[index_of(id)];
    if (value.is_tensor()) tensor::free_texts(value.tensor(), [this] { execution_.run.check(); });
    value = {};
  }
}

tensor::Tensor StepRunner::allocate_output(std::size_t o, tensor::DType dtype, const tensor::Shape& shape) {
  const Step& step = *step_;
  const ValueId id = step.outputs[o];
  if (step.output_on_device) {
    const tensor::Tensor* bound = execution_.bound_on_device(id, step.provider->device(), dtype, shape);
    return bound != nullptr ? *bound : tensor::Tensor::make(dtype, shape, step.provider->allocator());
  }
  if (dtype == tensor::DType::String)
    return tensor::Tensor::make_strings(shape, *execution_.run.allocator, [&] { execution_.run.check(); });
  if (id == kNoValue) return tensor::Tensor::make(dtype, shape, *execution_.run.allocator);
  if (step.is_copy) return allocate_for_copy(*step.provider, dtype, shape);

  const std::vector<ValueId>& graph_outputs = execution_.plan.graph().outputs();
  for (std::size_t i = 0; i < graph_outputs.size(); ++i) {
    if (graph_outputs[i] != id) continue;
    if (const tensor::Tensor* bound = execution_.bound_to(i, dtype, shape)) return *bound;
    return tensor::Tensor::make(dtype, shape, execution_.output_allocator);
  }
  if (!step.copied_to.empty() && step.copied_to[o] != nullptr)
    return allocate_for_copy(*step.copied_to[o], dtype, shape);
  const std::size_t bytes = tensor::byte_size(dtype, shape.numel());
  const ShapePlan& shapes = execution_.shapes;
  if (use_arena_ && shapes.offsets[index_of(id)] != ShapePlan::kNowhere && bytes <= shapes.sizes[index_of(id)]) {
    return {dtype, shape, execution_.frame.arena.slice(shapes.offsets[index_of(id)], bytes)};
  }
  if (tensor::Tensor reused = reuse_input(step, o, dtype, shape)) return reused;
  return tensor::Tensor::make(dtype, shape, *execution_.run.allocator);
}

tensor::Tensor StepRunner::allocate_for_copy(const provider::Provider& provider, tensor::DType dtype,
                                             const tensor::Shape& shape) const {
  tensor::Allocator& staging = execution_.frame.devices.staging(provider);
  if (execution_.budget == nullptr) return tensor::Tensor::make(dtype, shape, staging);
  BudgetAllocator charged(staging, execution_.budget);
  return tensor::Tensor::make(dtype, shape, charged);
}

/// An input's memory for output `o`, where the kernel may write in place, the input ends with this step and nobody else
/// holds its memory.
tensor::Tensor StepRunner::reuse_input(const Step& step, std::size_t o, tensor::DType dtype,
                                       const tensor::Shape& shape) const {
  if (!use_arena_) return {};
  for (const kernel::IndexPair& pair : step.in_place) {
    if (pair.output != o || pair.input >= step.inputs.size() || step.inputs[pair.input] == kNoValue) continue;
    const ValueId input = step.inputs[pair.input];
    const tensor::Value& value = execution_.frame.values[index_of(input)];
    if (!value.is_tensor()) continue;
    const tensor::Buffer& buffer = value.tensor().buffer();
    const bool ends = std::find(step.frees.begin(), step.frees.end(), input) != step.frees.end();
    if (!ends || !buffer.writable() || value.tensor().dtype() == tensor::DType::String) continue;
    if (tensor::byte_size(dtype, shape.numel()) != value.tensor().bytes() || !buffer.held_alone()) continue;
    return {dtype, shape, buffer};
  }
  return {};
}

void StepRunner::record(const Step& step, std::size_t index, const Measured& measured) const {
  const auto end = kernel::ProfileSink::Clock::now();
  const graph::Node& node = execution_.plan.graph().node(step.node);
  std::size_t activations = 0, parameters = 0, produced = 0;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == nullptr) continue;
    const bool constant = !execution_.plan.constant(step.inputs[i]).empty();
    (constant ? parameters : activations) += inputs_[i]->bytes();
  }
  std::vector<const tensor::Value*> outputs;
  for (const tensor::Value& value : outputs_) {
    outputs.push_back(&value);
    produced += value.bytes();
  }
  execution_.plan.measured(index).add(produced, measured.scratch.most());
  const std::string name = node.name.empty() ? cat(node.op_type, "_", index) : node.name;
  std::vector<kernel::ProfileSink::Argument> arguments = {
      {"op_name", node.op_type},
      {"provider", step.provider == nullptr ? std::string("CPUExecutionProvider") : std::string(step.provider->name())},
      {"node_index", cat(index)},
      {"activation_size", cat(activations)},
      {"parameter_size", cat(parameters)},
      {"output_size", cat(produced)},
      {"input_type_shape", type_shapes(inputs_)},
      {"output_type_shape", type_shapes(outputs)},
      {"thread_scheduling_stats", measured.loops.json()}};
  if (step.method && step.method->source == MethodChoice::Source::kExpected) {
    arguments.emplace_back("expected_method", step.method->method);
  } else if (step.method) {
    arguments.emplace_back("method", step.method->method);
    arguments.emplace_back("method_tuning",
                           step.method->source == MethodChoice::Source::kKept ? "measured earlier" : "measured");
  }
  execution_.run.profile->add("Node", cat(name, "_kernel_time"), measured.begin, end, arguments);
}

void record_wait(const kernel::RunContext& run, kernel::ProfileSink::Clock::time_point begin) {
  if (run.profile != nullptr) run.profile->add("Session", "device_wait", begin, kernel::ProfileSink::Clock::now());
}

}  // namespace infernode::runtime
