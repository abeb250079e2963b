#include "providers/cuda/plan/device_plan.h"

#include <algorithm>

#include "base/error.h"
#include "providers/cuda/plan/kernel_times.h"

namespace infernode::cuda {

namespace {

/// Instances at addresses of their own; runs at more different ones than these copy what they are given.
constexpr std::size_t kMostInstances = 4;
/// A captured graph is made when it is likely to be used again.
constexpr std::size_t kRunsBeforeCapture = 1;

std::vector<graph::ValueType> types_of(const graph::Graph& graph, std::span<const tensor::Shape> shapes) {
  std::vector<graph::ValueType> types;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    types.push_back(graph::ValueType::tensor(graph.value(graph.inputs()[i]).type.elem, graph::to_sym(shapes[i])));
  }
  return types;
}

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

DevicePlan::DevicePlan(const PlanContext& context, std::span<const tensor::Shape> inputs,
                       microkernels::Float32Precision precision)
    : precision_(precision),
      inferred_(
          kernel::infer_values(*context.graph, context.order, types_of(*context.graph, inputs), {}, context.registry)) {
  const graph::Graph& graph = *context.graph;
  const auto describe = [&](graph::ValueId id) {
    const graph::ValueType& type = inferred_.types[static_cast<std::size_t>(id)];
    const auto shape = type.shape ? graph::to_known(*type.shape) : std::nullopt;
    if (!shape) {
      fail(ErrorCode::ShapeMismatch, cat("cuda: the inputs' shapes do not tell that of '", graph.value(id).name, "'"));
    }
    return Interface{type.elem, *shape, tensor::byte_size(type.elem, shape->numel())};
  };
  for (const graph::ValueId id : graph.inputs()) inputs_.push_back(describe(id));
  for (const graph::ValueId id : graph.outputs()) outputs_.push_back(describe(id));
  const PlanSource from = source(context);
  Builder measure(from, nullptr);
  measure.build();
  lifetimes_ = measure.storages();
  layout_ = lay_out(lifetimes_);
}

PlanSource DevicePlan::source(const PlanContext& context) const {
  return {.lowerings = context.lowerings,
          .graph = *context.graph,
          .order = context.order,
          .registry = context.registry,
          .inferred = inferred_,
          .constants = *context.constants,
          .target = context.device->target(),
          .precision = precision_};
}

/// At these addresses, or with places of its own where there are none.
std::shared_ptr<DevicePlan::Instance> DevicePlan::make(const PlanContext& context, const Addresses* addresses) const {
  auto instance = std::make_shared<Instance>();
  std::size_t staging = 0;
  if (addresses == nullptr) {
    for (const Interface& input : inputs_) staging += aligned(input.bytes);
    for (const Interface& output : outputs_) staging += aligned(output.bytes);
  }
  instance->memory = context.memory->allocate(std::max<std::size_t>(layout_.bytes + staging, 1));
  DevicePtr next = address_of(instance->memory) + layout_.bytes;
  const auto place = [&](const Interface& of) {
    const DevicePtr at = next;
    next += aligned(of.bytes);
    return at;
  };
  if (addresses != nullptr) {
    instance->addresses = *addresses;
  } else {
    instance->staged = true;
    for (const Interface& input : inputs_) instance->addresses.inputs.push_back(place(input));
    for (const Interface& output : outputs_) instance->addresses.outputs.push_back(place(output));
  }
  PlanAddresses at{instance->addresses.inputs, instance->addresses.outputs, {}};
  for (const std::size_t offset : layout_.offsets) at.storages.push_back(address_of(instance->memory) + offset);
  const PlanSource from = source(context);
  Builder builder(from, &at);
  builder.build();
  instance->launches = ready(*context.device, builder.take_launches());
  return instance;
}

std::shared_ptr<DevicePlan::Instance> DevicePlan::find_free(const Addresses& addresses) {
  const auto find = [&](auto suits) {
    const auto at = std::find_if(instances_.begin(), instances_.end(),
                                 [&](const auto& instance) { return !instance->busy && suits(*instance); });
    return at == instances_.end() ? nullptr : *at;
  };
  auto found = find([&](const Instance& i) { return !i.staged && i.addresses == addresses; });
  return found ? found : find([](const Instance& i) { return i.staged; });
}

std::shared_ptr<DevicePlan::Instance> DevicePlan::acquire(const PlanContext& context, const Addresses& addresses) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (auto instance = find_free(addresses)) {
      instance->busy = true;
      return instance;
    }
    if (instances_.size() < kMostInstances) break;
    released_.wait(lock);
  }
  // The last one takes what comes.
  const bool exact = instances_.size() + 1 < kMostInstances;
  auto instance = make(context, exact ? &addresses : nullptr);
  instance->busy = true;
  instances_.push_back(instance);
  return instance;
}

void DevicePlan::release(Instance& instance) {
  {
    const std::lock_guard lock(mutex_);
    instance.busy = false;
  }
  released_.notify_one();
}

void DevicePlan::run(const PlanContext& context, const Addresses& addresses, Stream& stream) {
  const std::shared_ptr<Instance> instance = acquire(context, addresses);
  // Free again when the stream's work is done.
  stream.hold(std::shared_ptr<void>(nullptr, [this, instance](void*) { release(*instance); }));
  Device& device = *context.device;
  device.use();
  const auto copy = [&](DevicePtr from, DevicePtr to, std::size_t bytes) {
    if (from == to || bytes == 0) return;
    device.check(device.api().copy_on_device(to, from, bytes, stream.handle()), "copying on the device");
  };
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    copy(addresses.inputs[i], instance->addresses.inputs[i], inputs_[i].bytes);
  if (context.capture && !instance->graph && instance->runs > kRunsBeforeCapture) {
    if (context.kernel_times) log_kernel_times(context.device, instance->launches, *context.kernel_times);
    instance->graph.emplace(context.device, instance->launches);
  }
  ++instance->runs;
  if (instance->graph) {
    instance->graph->launch(stream.handle());
  } else {
    enqueue(device, instance->launches, stream.handle());
  }
  for (std::size_t o = 0; o < outputs_.size(); ++o)
    copy(instance->addresses.outputs[o], addresses.outputs[o], outputs_[o].bytes);
}

}  // namespace infernode::cuda
