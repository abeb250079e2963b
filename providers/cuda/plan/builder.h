#pragma once

#include <map>
#include <optional>
#include <span>

#include "graph/graph.h"
#include "kernel/inference.h"
#include "microkernels/common/precision.h"
#include "providers/cuda/kernels/channelwise/channel_gate.h"
#include "providers/cuda/kernels/products/product.h"
#include "providers/cuda/plan/arena.h"
#include "providers/cuda/plan/constants.h"
#include "providers/cuda/plan/device_tensor.h"

namespace infernode::cuda {

class LoweringTable;

/// What a plan is made of, besides the addresses.
struct PlanSource {
  const LoweringTable& lowerings;
  const graph::Graph& graph;
  std::span<const graph::NodeId> order;
  const kernel::Registry& registry;
  const kernel::InferredGraph& inferred;  ///< at the dims of this plan
  Constants& constants;
  const Target& target;
  microkernels::Float32Precision precision;
};

/// Where a plan's memory lies: empty while it is measured, when every storage has a place of its own that nothing is
/// written to.
struct PlanAddresses {
  std::vector<DevicePtr> inputs, outputs;  ///< of the graph
  std::vector<DevicePtr> storages;         ///< in the order in which they were asked for
};

/// Work that makes a value, put off until the value is read: a reader that can do it on the way takes `reads` instead,
/// any other has it launched.
struct Deferred {
  std::vector<Launch> launches;
  std::vector<DeviceTensor> reads;  ///< by the launches
  RowNorm norm{};                   ///< reads[0], its rows normalized; or
  bool joins_rows = false;          ///< reads[0] and reads[1], one behind the other along the axis before the last
  bool reads_given = false;         ///< reads[0] is an input of the graph
  /// Means of an image's pixels, of which reads[0] are sums; or the first layer over them, or both.
  std::optional<ChannelGate> gate{};
  DeviceTensor gated{};  ///< channels last, times the gates
};

/// Makes the launches of a graph, node by node: what a Lowering sees. Made twice for a plan: first to find out what
/// memory is needed and when, then with the addresses. Both must ask for the same.
class Builder {
 public:
  Builder(const PlanSource& source, const PlanAddresses* addresses);

  /// Lowers all nodes and brings outputs to where they belong.
  void build();
  std::vector<Launch> take_launches() { return std::move(launches_); }
  const std::vector<Lifetime>& storages() const { return storages_; }

  // The node being lowered.
  const graph::Node& node() const { return *node_; }
  const graph::Attributes& attributes() const { return node_->attributes; }
  const Target& target() const { return source_.target; }
  microkernels::Float32Precision precision() const { return source_.precision; }
  std::size_t input_count() const { return node_->inputs.size(); }
  std::size_t output_count() const { return node_->outputs.size(); }
  bool has_input(std::size_t i) const { return i < node_->inputs.size() && node_->inputs[i] != graph::kNoValue; }
  /// Somebody reads it.
  bool wants_output(std::size_t o) const;
  /// An operator of ONNX of this name reads it.
  bool is_read_by(std::size_t o, std::string_view op) const;
  tensor::DType input_dtype(std::size_t i) const { return type_of(node_->inputs[i]).elem; }
  tensor::DType output_dtype(std::size_t o) const { return type_of(node_->outputs[o]).elem; }
  tensor::Shape input_shape(std::size_t i) const { return shape_of(node_->inputs[i]); }
  tensor::Shape output_shape(std::size_t o) const { return shape_of(node_->outputs[o]); }
  /// Contents on the host, where they follow from constants and shapes; null otherwise and where absent.
  const tensor::Tensor* known(std::size_t i) const;
  /// The input in plain order; without type where absent.
  DeviceTensor input(std::size_t i);
  /// Whether the input is one of the graph's.
  bool is_given(std::size_t i) const;
  /// In which order the input was made.
  Order input_order(std::size_t i) { return made(node_->inputs[i]).channels_last ? Order::ChannelsLast : Order::Plain; }
  /// In that order.
  DeviceTensor input_as_it_is(std::size_t i);
  /// In plain order, dense or as a view with strides.
  DeviceTensor input_strided(std::size_t i);
  /// With channels last: rank 3 or more.
  DeviceTensor input_channels_last(std::size_t i);
  /// Numbers of a 16- or 32-bit float input as float32.
  DevicePtr input_floats(std::size_t i);
  DeviceTensor output(std::size_t o, Order order = Order::Plain);
  /// Memory for sums over the pixels of output `o`, which the caller writes.
  DeviceTensor sum_pixels(std::size_t o, std::int64_t images, const DepthwiseSums& layout);
  /// Sums over the pixels of input `i`, float32 [images, parts, row]; without type where nobody made them.
  DeviceTensor pixel_sums(std::size_t i);
  /// Output `o` has the elements of `of`, in plain order, under its own shape.
  void view(std::size_t o, const DeviceTensor& of);
  /// Output `o` lies in the memory of `of`, from an address on and with strides for its own shape.
  void strided_view(std::size_t o, const DeviceTensor& of, DevicePtr at, std::vector<std::int64_t> strides);
  /// Output `o`, which was made dense, is to be written by this.
  void defer(std::size_t o, Deferred work);
  /// What input `i` waits for; null where it waits for nothing.
  const Deferred* deferred(std::size_t i) const;
  /// Where input `i`, which waits, will be.
  DeviceTensor place_of_deferred(std::size_t i);
  /// Inputs of that are read now.
  const Deferred& use_deferred(std::size_t i);
  /// The caller writes input `i`, the whole of it: where.
  DeviceTensor take_deferred(std::size_t i);
  /// Output `o` is input `i` under its own shape, and waits for the same.
  void defer_view(std::size_t o, std::size_t i);
  /// Memory for this node's launches.
  DevicePtr scratch(std::size_t bytes);
  Constants& constants() { return source_.constants; }
  /// Copies that follow each other and do not meet become one. A launch over no blocks is left out.
  void launch(Launch launch);
  void launch(std::vector<Launch> launches);

 private:
  struct Made {
    DeviceTensor plain, channels_last, strided;  ///< one of them or more
    std::shared_ptr<Deferred> deferred;          ///< writes the one there is; empty launches: it did. Views share it
    DeviceTensor pixel_sums;
    bool exists() const { return plain || channels_last || strided; }
    const DeviceTensor& any() const { return plain ? plain : channels_last ? channels_last : strided; }
  };
  const graph::ValueType& type_of(graph::ValueId id) const {
    return source_.inferred.types[static_cast<std::size_t>(id)];
  }
  tensor::Shape shape_of(graph::ValueId id) const;
  const tensor::Tensor* known_of(graph::ValueId id) const;
  bool evaluate_on_host(const graph::Node& node);
  Made& made(graph::ValueId id);
  void finish(Made& value);
  DeviceTensor plain(graph::ValueId id);
  DeviceTensor use(DeviceTensor tensor);
  std::size_t add_storage(std::size_t bytes);
  DevicePtr address(std::size_t storage) const;
  DeviceTensor allocate(tensor::DType dtype, const tensor::Shape& shape, Order order);
  std::optional<std::size_t> output_of_graph(graph::ValueId id) const;
  void deliver_outputs();

  const PlanSource& source_;
  const PlanAddresses* addresses_;
  std::vector<Made> values_;           // by ValueId
  std::vector<tensor::Tensor> known_;  // by ValueId: evaluated here
  std::vector<std::vector<graph::NodeId>> consumers_;
  std::vector<Lifetime> storages_;
  std::vector<Launch> launches_;
  const graph::Node* node_ = nullptr;
  std::size_t step_ = 0;
};

}  // namespace infernode::cuda
