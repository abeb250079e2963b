#include "providers/cuda/plan/builder.h"

#include <algorithm>

#include "base/error.h"
#include "kernel/op_traits.h"
#include "providers/cuda/kernels/simple/elementwise.h"
#include "providers/cuda/kernels/simple/movement.h"
#include "providers/cuda/lowering/lowering.h"

namespace infernode::cuda {

using graph::kNoValue;
using graph::NodeId;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;

namespace {

/// Storage of what lies at an address of the graph's inputs and outputs, or is a constant.
constexpr std::size_t kOutside = SIZE_MAX;
/// While memory is measured: where no storage, input or output meets another one.
constexpr DevicePtr kPretendedStorage = DevicePtr{1} << 40, kPretendedOutside = DevicePtr{1} << 30;

std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }

/// One pixel for each image, and no padding behind its channels.
bool is_same_in_both_orders(const DeviceTensor& t) {
  return t.shape.rank() >= 3 && t.shape.numel(2, t.shape.rank()) == 1 && t.shape[1] == pixel_pitch(t.shape[1]);
}

bool is_view(const graph::Node& node, const kernel::Registry& registry) {
  return kernel::traits_of(node, registry).moves == kernel::Moves::Views ||
         (node.op_type == "Identity" && node.domain.empty());
}

}  // namespace

Builder::Builder(const PlanSource& source, const PlanAddresses* addresses)
    : source_(source),
      addresses_(addresses),
      values_(source.graph.values().size()),
      known_(source.graph.values().size()),
      consumers_(source.graph.consumers()) {}

void Builder::build() {
  const auto& inputs = source_.graph.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DevicePtr where = addresses_ != nullptr ? addresses_->inputs[i] : kPretendedOutside * (i + 1);
    values_[at(inputs[i])].plain = {
        .dtype = type_of(inputs[i]).elem, .shape = shape_of(inputs[i]), .at = where, .storage = kOutside};
  }
  for (const NodeId id : source_.order) {
    node_ = &source_.graph.node(id);
    if (evaluate_on_host(*node_)) continue;
    const Lowering* lowering = source_.lowerings.find(*node_);
    if (lowering == nullptr) fail(ErrorCode::Internal, cat("cuda has no ", node_->op_type));
    try {
      lowering->lower(*this);
    } catch (Error& error) {
      error.prepend(cat("cuda, ", graph::describe(source_.graph, *node_), ": "));
      throw;
    }
    ++step_;
  }
  deliver_outputs();
}

bool Builder::wants_output(std::size_t o) const {
  if (o >= node_->outputs.size() || node_->outputs[o] == kNoValue) return false;
  return !consumers_[at(node_->outputs[o])].empty() || source_.graph.is_output(node_->outputs[o]);
}

bool Builder::is_read_by(std::size_t o, std::string_view op) const {
  const auto& readers = consumers_[at(node_->outputs[o])];
  return std::any_of(readers.begin(), readers.end(), [&](NodeId id) {
    const graph::Node& reader = source_.graph.node(id);
    return reader.domain.empty() && reader.op_type == op;
  });
}

tensor::Shape Builder::shape_of(ValueId id) const {
  const graph::ValueType& type = type_of(id);
  std::optional<tensor::Shape> shape;
  if (type.shape) shape = graph::to_known(*type.shape);
  if (!shape) fail(ErrorCode::Internal, cat("cuda: the shape of '", source_.graph.value(id).name, "' is not known"));
  return *shape;
}

const Tensor* Builder::known_of(ValueId id) const {
  if (known_[at(id)]) return &known_[at(id)];
  const graph::ValueInfo& value = source_.graph.value(id);
  return value.is_constant() && value.constant.is_tensor() ? &value.constant.tensor() : nullptr;
}

const Tensor* Builder::known(std::size_t i) const { return has_input(i) ? known_of(node_->inputs[i]) : nullptr; }

/// Shape arithmetic and what depends on nothing else stays on the host. False where the node needs data.
bool Builder::evaluate_on_host(const graph::Node& node) {
  bool all_known = true;
  for (const ValueId output : node.outputs) {
    if (output == kNoValue) continue;
    if (!known_[at(output)]) known_[at(output)] = kernel::known_tensor(source_.inferred, output);
    all_known = all_known && known_[at(output)];
  }
  if (all_known) return true;
  std::vector<tensor::Value> values(node.inputs.size());
  std::vector<const tensor::Value*> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) {
      inputs.push_back(nullptr);
      continue;
    }
    const Tensor* tensor = known_of(node.inputs[i]);
    if (tensor == nullptr) return false;
    values[i] = *tensor;
    inputs.push_back(&values[i]);
  }
  kernel::RunContext run;
  run.allocator = &tensor::host_allocator();
  std::vector<tensor::Value> outputs = kernel::evaluate_node(source_.graph, node, inputs, source_.registry, run);
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    if (node.outputs[o] != kNoValue) known_[at(node.outputs[o])] = outputs[o].tensor();
  }
  return true;
}

std::size_t Builder::add_storage(std::size_t bytes) {
  storages_.push_back({bytes, step_, step_});
  return storages_.size() - 1;
}

DevicePtr Builder::address(std::size_t storage) const {
  return addresses_ != nullptr ? addresses_->storages.at(storage) : kPretendedStorage * (storage + 1);
}

DeviceTensor Builder::allocate(DType dtype, const tensor::Shape& shape, Order order) {
  const std::size_t storage = add_storage(storage_bytes(dtype, shape, order));
  return {.dtype = dtype,
          .shape = shape,
          .at = address(storage),
          .order = order,
          .pitch = order == Order::ChannelsLast ? pixel_pitch(shape[1]) : 0,
          .storage = storage};
}

DeviceTensor Builder::use(DeviceTensor tensor) {
  if (tensor.storage != kOutside) storages_[tensor.storage].last = step_;
  return tensor;
}

/// Launches the work that was deferred until somebody reads the value.
void Builder::finish(Made& value) {
  const std::shared_ptr<Deferred> work = std::move(value.deferred);
  for (const DeviceTensor& tensor : work->reads) use(tensor);
  use(value.any());
  launch(std::move(work->launches));
  work->launches.clear();
}

Builder::Made& Builder::made(ValueId id) {
  Made& value = values_[at(id)];
  if (value.deferred) finish(value);
  if (value.exists()) return value;
  const Tensor* host = known_of(id);
  if (host == nullptr) fail(ErrorCode::Internal, cat("cuda: '", source_.graph.value(id).name, "' was never made"));
  value.plain = {.dtype = host->dtype(),
                 .shape = host->shape(),
                 .at = source_.constants.upload(*host),
                 .storage = kOutside,
                 .is_constant = true};
  return value;
}

DeviceTensor Builder::plain(ValueId id) {
  Made& value = made(id);
  if (!value.plain && value.channels_last && is_same_in_both_orders(value.channels_last)) {
    value.plain = value.channels_last;
    value.plain.order = Order::Plain;
  }
  if (!value.plain) {
    const DeviceTensor from = use(value.any());
    value.plain = allocate(from.dtype, from.shape, Order::Plain);
    launch(plan_reorder(target(), from, value.plain));
  }
  return use(value.plain);
}

bool Builder::is_given(std::size_t i) const {
  const auto& inputs = source_.graph.inputs();
  return has_input(i) && std::find(inputs.begin(), inputs.end(), node_->inputs[i]) != inputs.end();
}

DeviceTensor Builder::input(std::size_t i) { return has_input(i) ? plain(node_->inputs[i]) : DeviceTensor{}; }

DeviceTensor Builder::input_as_it_is(std::size_t i) {
  if (!has_input(i)) return {};
  Made& value = made(node_->inputs[i]);
  return value.channels_last ? use(value.channels_last) : plain(node_->inputs[i]);
}

DeviceTensor Builder::input_strided(std::size_t i) {
  if (!has_input(i)) return {};
  Made& value = made(node_->inputs[i]);
  return !value.plain && value.strided ? use(value.strided) : plain(node_->inputs[i]);
}

DeviceTensor Builder::input_channels_last(std::size_t i) {
  Made& value = made(node_->inputs[i]);
  if (!value.channels_last && value.plain && is_same_in_both_orders(value.plain)) {
    value.channels_last = value.plain;
    value.channels_last.order = Order::ChannelsLast;
    value.channels_last.pitch = value.plain.shape[1];
  }
  if (!value.channels_last) {
    const DeviceTensor from = use(value.any());
    value.channels_last = allocate(from.dtype, from.shape, Order::ChannelsLast);
    launch(plan_reorder(target(), from, value.channels_last));
  }
  return use(value.channels_last);
}

DevicePtr Builder::input_floats(std::size_t i) {
  if (!has_input(i)) return 0;
  if (const Tensor* host = known(i)) {
    const Tensor floats = Tensor::of<float>(host->shape(), std::span<const float>(tensor::to_float_vector(*host)));
    return source_.constants.upload(floats);
  }
  const DeviceTensor from = input(i);
  if (from.dtype == DType::Float32) return from.at;
  const DevicePtr to = scratch(static_cast<std::size_t>(from.numel()) * sizeof(float));
  launch(plan_cast(target(), {from.at, from.dtype, to, DType::Float32, from.numel()}));
  return to;
}

/// The place among the graph's outputs that a value made now shall be written to: its own, or that of a view of it.
std::optional<std::size_t> Builder::output_of_graph(ValueId id) const {
  const auto& outputs = source_.graph.outputs();
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o] == id) return o;
  }
  for (const NodeId reader : consumers_[at(id)]) {
    const graph::Node& node = source_.graph.node(reader);
    if (is_view(node, source_.registry) && node.inputs[0] == id && node.outputs[0] != kNoValue) {
      if (const auto found = output_of_graph(node.outputs[0])) return found;
    }
  }
  return std::nullopt;
}

DeviceTensor Builder::output(std::size_t o, Order order) {
  const ValueId id = node_->outputs[o];
  const tensor::Shape shape = shape_of(id);
  DeviceTensor tensor;
  const auto place = order == Order::Plain ? output_of_graph(id) : std::nullopt;
  if (place) {
    const DevicePtr where = addresses_ != nullptr ? addresses_->outputs[*place]
                                                  : kPretendedOutside * (source_.graph.inputs().size() + *place + 1);
    tensor = {.dtype = type_of(id).elem, .shape = shape, .at = where, .storage = kOutside};
  } else {
    tensor = allocate(type_of(id).elem, shape, order);
  }
  (order == Order::Plain ? values_[at(id)].plain : values_[at(id)].channels_last) = tensor;
  return tensor;
}

DeviceTensor Builder::sum_pixels(std::size_t o, std::int64_t images, const DepthwiseSums& layout) {
  return values_[at(node_->outputs[o])].pixel_sums =
             allocate(DType::Float32, {images, layout.parts, layout.row}, Order::Plain);
}

DeviceTensor Builder::pixel_sums(std::size_t i) {
  const DeviceTensor& sums = values_[at(node_->inputs[i])].pixel_sums;
  return sums ? use(sums) : sums;
}

void Builder::view(std::size_t o, const DeviceTensor& of) {
  const ValueId id = node_->outputs[o];
  DeviceTensor tensor = of;
  tensor.shape = shape_of(id);
  (of.order == Order::Plain ? values_[at(id)].plain : values_[at(id)].channels_last) = tensor;
}

void Builder::strided_view(std::size_t o, const DeviceTensor& of, DevicePtr where, std::vector<std::int64_t> strides) {
  DeviceTensor tensor = of;
  tensor.shape = shape_of(node_->outputs[o]);
  tensor.at = where;
  tensor.strides = std::move(strides);
  values_[at(node_->outputs[o])].strided = std::move(tensor);
}

void Builder::defer(std::size_t o, Deferred work) {
  values_[at(node_->outputs[o])].deferred = std::make_shared<Deferred>(std::move(work));
}

const Deferred* Builder::deferred(std::size_t i) const {
  if (!has_input(i)) return nullptr;
  const auto& work = values_[at(node_->inputs[i])].deferred;
  return work && !work->launches.empty() ? work.get() : nullptr;
}

DeviceTensor Builder::place_of_deferred(std::size_t i) { return values_[at(node_->inputs[i])].any(); }

const Deferred& Builder::use_deferred(std::size_t i) {
  const Deferred& work = *values_[at(node_->inputs[i])].deferred;
  for (const DeviceTensor& tensor : work.reads) use(tensor);
  return work;
}

DeviceTensor Builder::take_deferred(std::size_t i) {
  use_deferred(i);
  Made& value = values_[at(node_->inputs[i])];
  value.deferred->launches.clear();
  value.deferred = nullptr;
  return use(value.plain);
}

void Builder::defer_view(std::size_t o, std::size_t i) {
  const Made& from = values_[at(node_->inputs[i])];
  Made& to = values_[at(node_->outputs[o])];
  to = from;
  to.plain.shape = shape_of(node_->outputs[o]);
}

DevicePtr Builder::scratch(std::size_t bytes) { return address(add_storage(bytes)); }

void Builder::launch(Launch launch) {
  const Dim3& grid = launch.grid;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;  // over nothing: the driver takes no such grid
  if (launches_.empty() || !join_copies(launches_.back(), launch)) launches_.push_back(std::move(launch));
}

void Builder::launch(std::vector<Launch> launches) {
  for (Launch& one : launches) launch(std::move(one));
}

/// Results that were made elsewhere: in another order, views of inputs, known beforehand.
void Builder::deliver_outputs() {
  const auto& outputs = source_.graph.outputs();
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const DevicePtr where =
        addresses_ != nullptr ? addresses_->outputs[o] : kPretendedOutside * (source_.graph.inputs().size() + o + 1);
    const Made& value = made(outputs[o]);
    const DeviceTensor from = use(value.any());
    if (from.at == where) continue;
    const DeviceTensor to{.dtype = from.dtype, .shape = from.shape, .at = where, .storage = kOutside};
    launch(plan_reorder(target(), from, to));
  }
}

}  // namespace infernode::cuda
