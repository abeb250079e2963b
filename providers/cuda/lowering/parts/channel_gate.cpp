#include "providers/cuda/lowering/parts/channel_gate.h"

namespace infernode::cuda {

namespace {

/// A dense layer over one pixel, with nothing to add but a constant bias.
bool is_layer(const ConvProblem& c) {
  for (int i = 0; i < 3; ++i) {
    if (c.kernel[i] != 1 || c.stride[i] != 1 || c.pad[i] != 0 || c.in[i] != 1 || c.out[i] != 1) return false;
  }
  return c.groups == 1 && c.epilogue.residual == 0 && c.epilogue.columns_constant;
}

bool defer_first(Builder& b, const Deferred& means, const ChannelGate::Layer& layer, const ConvProblem& c) {
  if (conv_workspace(b.target(), c) > 0) return false;
  Deferred work = means;
  work.gate->first = layer;
  work.gate->hidden = c.outputs;
  work.reads.push_back(b.place_of_deferred(0));
  for (Launch& launch : plan_conv(b.target(), c)) work.launches.push_back(std::move(launch));
  b.defer(0, std::move(work));
  return true;
}

}  // namespace

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

bool wants_pixel_sums(const Builder& b) {
  return b.is_read_by(0, "GlobalAveragePool") || b.is_read_by(0, "ReduceMean");
}

bool waits_for_gate(const Builder& b) {
  const Deferred* work = b.deferred(0);
  return work != nullptr && work->gate && b.attributes().get_int("group", 1) == 1 && !b.has_input(3);
}

bool add_gate_layer(Builder& b, const ConvProblem& c) {
  const Deferred& before = *b.deferred(0);
  if (!is_layer(c)) return false;
  const Epilogue& e = c.epilogue;
  const ChannelGate::Layer layer{.layout = c.weights,
                                 .weights = c.weights_address,
                                 .bias = e.bias,
                                 .activation = e.activation,
                                 .a = e.a,
                                 .b = e.b};
  if (before.gate->hidden == 0) return defer_first(b, before, layer, c);
  ChannelGate gate = *before.gate;
  if (c.outputs != gate.channels) return false;
  gate.second = layer;
  gate.out = e.out;
  gate.out_row = e.out_row;
  if (!can_gate_channels(b.target(), gate)) return false;
  b.use_deferred(0);
  b.launch(plan_channel_gate(b.target(), gate));
  return true;
}

}  // namespace infernode::cuda
