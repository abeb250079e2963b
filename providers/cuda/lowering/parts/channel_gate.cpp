#include "providers/cuda/lowering/parts/channel_gate.h"

#include "providers/cuda/lowering/parts/elements.h"

namespace infernode::cuda {

namespace {

bool is_whole(const ChannelGate& gate) { return gate.second.weights != 0; }

/// Every pixel by itself, without padding.
bool is_pointwise(const ConvProblem& c) {
  for (int i = 0; i < 3; ++i) {
    if (c.kernel[i] != 1 || c.stride[i] != 1 || c.pad[i] != 0 || c.in[i] != c.out[i]) return false;
  }
  return c.groups == 1;
}

/// A dense layer over one pixel, with nothing to add but a constant bias.
bool is_layer(const ConvProblem& c) {
  return is_pointwise(c) && c.in[0] * c.in[1] * c.in[2] == 1 && c.epilogue.residual == 0 && c.epilogue.columns_constant;
}

/// The launches of the layer wait behind those of what it reads.
void defer_layer(Builder& b, const Deferred& before, const ChannelGate& gate, std::vector<Launch> launches) {
  Deferred work = before;
  work.gate = gate;
  work.reads.push_back(b.place_of_deferred(0));
  for (Launch& launch : launches) work.launches.push_back(std::move(launch));
  b.defer(0, std::move(work));
}

bool add_layer(Builder& b, const Deferred& before, const ConvProblem& c) {
  if (!is_layer(c)) return false;
  const Epilogue& e = c.epilogue;
  const ChannelGate::Layer layer{.layout = c.weights,
                                 .weights = c.weights_address,
                                 .bias = e.bias,
                                 .activation = e.activation,
                                 .a = e.a,
                                 .b = e.b};
  ChannelGate gate = *before.gate;
  if (gate.hidden == 0) {
    if (conv_workspace(b.target(), c) > 0) return false;
    gate.first = layer;
    gate.hidden = c.outputs;
    defer_layer(b, before, gate, plan_conv(b.target(), c));
    return true;
  }
  if (is_whole(gate) || c.outputs != gate.channels) return false;
  gate.second = layer;
  gate.out = e.out;
  gate.out_row = e.out_row;
  if (!can_gate_channels(b.target(), gate)) return false;
  Deferred work{.launches = {plan_channel_gate(b.target(), gate)}, .reads = {before.reads.front()}, .gate = gate};
  b.defer(0, std::move(work));
  return true;
}

/// Weights are multiplied in place of pixels: where there are not many more of them.
bool convolve(Builder& b, const Deferred& before, ConvProblem c) {
  const ChannelGate& gate = *before.gate;
  constexpr std::int64_t kMostWeights = 1 << 16;
  const bool few = c.outputs <= 2 * gate.pixels && c.outputs * gate.channels <= kMostWeights;
  if (!is_pointwise(c) || !few || c.weights.type != gate.type || c.weights.pieces != 1) return false;
  const DevicePtr scaled = b.scratch(static_cast<std::size_t>(gate.images) * c.weights.bytes);
  b.use_deferred(0);
  b.launch(
      plan_scaled_weights(b.target(), gate, {.layout = c.weights, .weights = c.weights_address, .scaled = scaled}));
  c.input = before.gated.at;
  c.pixel = before.gated.pitch;
  c.weights_address = scaled;
  c.weights_by_image = true;
  launch_conv(b, c);
  return true;
}

}  // namespace

bool wants_pixel_sums(const Builder& b) {
  return b.is_read_by(0, "GlobalAveragePool") || b.is_read_by(0, "ReduceMean");
}

bool defer_pixel_means(Builder& b) {
  const DeviceTensor sums = b.pixel_sums(0);
  const tensor::Shape x = b.input_shape(0);
  if (!sums || b.output_shape(0).rank() != x.rank()) return false;
  const DeviceTensor y = b.output(0, Order::ChannelsLast);
  const ChannelGate means{.images = x[0],
                          .pixels = x.numel(2, x.rank()),
                          .channels = x[1],
                          .type = element_of(y.dtype),
                          .sums = sums.at,
                          .layout = {.parts = sums.shape[1], .row = sums.shape[2]},
                          .out = y.at,
                          .out_row = y.pitch};
  b.defer(0, {.launches = {plan_pixel_means(means)}, .reads = {sums}, .gate = means});
  return true;
}

bool defer_gated(Builder& b) {
  const auto gates = [&](std::size_t i) {
    const Deferred* work = b.deferred(i);
    return work != nullptr && work->gate && is_whole(*work->gate) && !work->gated;
  };
  if (gates(0) == gates(1)) return false;
  const std::size_t gate = gates(0) ? 0 : 1, image = 1 - gate;
  const tensor::Shape shape = b.output_shape(0);
  Deferred work = *b.deferred(gate);
  if (!(b.input_shape(image) == shape) || work.gate->images != shape[0] || work.gate->channels % 8 != 0 ||
      b.input_order(image) != Order::ChannelsLast)
    return false;
  DeviceTensor factors = b.place_of_deferred(gate);
  work.gated = b.input_channels_last(image);
  work.reads.push_back(factors);
  work.reads.push_back(work.gated);
  factors.order = Order::Plain;  // the same in both
  const DeviceTensor y = b.output(0, Order::ChannelsLast);
  work.launches.push_back(plan_binary(b, BinaryOp::mul, work.gated, factors, y));
  b.defer(0, std::move(work));
  return true;
}

bool waits_for_gate(const Builder& b) {
  const Deferred* work = b.deferred(0);
  return work != nullptr && work->gate && b.attributes().get_int("group", 1) == 1;
}

bool convolve_gated(Builder& b, const ConvProblem& c) {
  const Deferred* before = b.deferred(0);  // not where another input is the same
  if (before == nullptr) return false;
  return before->gated ? convolve(b, *before, c) : add_layer(b, *before, c);
}

}  // namespace infernode::cuda
