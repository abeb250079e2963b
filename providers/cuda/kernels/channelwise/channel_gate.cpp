#include "providers/cuda/kernels/channelwise/channel_gate.h"

#include <algorithm>

#include "providers/cuda/kernels/shared_request.h"

namespace infernode::cuda {

namespace {

std::int32_t narrow(std::int64_t v) { return static_cast<std::int32_t>(v); }
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

const char* suffix(Element type) { return type == Element::f16 ? "f16" : "bf16"; }

/// How the channels, with what rows of weights have behind them, are shared: by a cluster where there are clusters.
struct Shares {
  std::int64_t blocks, slice, hidden_row, bytes;  ///< bytes: of shared memory

  Shares(const Target& target, const ChannelGate& g) {
    blocks = target.sm >= 90 ? 8 : 1;
    slice = ceil_div(g.channels, 64) * 64 / blocks;
    hidden_row = ceil_div(g.hidden, 8) * 8;
    bytes = (g.hidden * slice + slice * hidden_row) * 2 +
            4 * gate_floats(narrow(slice), narrow(hidden_row), narrow(blocks));
  }
};

GateLayer layer_of(const ChannelGate::Layer& l) {
  return {.weights = l.weights,
          .bias = l.bias,
          .row = narrow(l.layout.row),
          .activation = l.activation,
          .a = l.a,
          .b = l.b};
}

Launch plan(const Target& target, const ChannelGate& g, const ScaledWeights& weights) {
  constexpr std::int64_t kAtOnce = 8;  // parts that a thread has under way
  const Shares s(target, g);
  const std::int64_t groups = std::clamp<std::int64_t>(kGateThreads / s.slice, 1, ceil_div(g.layout.parts, kAtOnce));
  const ChannelGateParams p{.sums = g.sums,
                            .out = g.out,
                            .weights = weights.weights,
                            .scaled = weights.scaled,
                            .rows = narrow(weights.layout.rows),
                            .weights_row = narrow(weights.layout.row),
                            .first = layer_of(g.first),
                            .second = layer_of(g.second),
                            .channels = narrow(g.channels),
                            .hidden = narrow(g.hidden),
                            .hidden_row = narrow(s.hidden_row),
                            .slice = narrow(s.slice),
                            .blocks = narrow(s.blocks),
                            .parts = narrow(g.layout.parts),
                            .sums_row = narrow(g.layout.row),
                            .out_row = narrow(g.out_row),
                            .groups = narrow(groups),
                            .per_pixel = 1.0f / static_cast<float>(g.pixels)};
  return {.kernel = std::string("channel_gate_") + suffix(g.type),
          .grid = {static_cast<std::uint32_t>(s.blocks), static_cast<std::uint32_t>(g.images)},
          .block = {kGateThreads},
          .cluster = {static_cast<std::uint32_t>(s.blocks)},
          .shared_bytes = shared_request(static_cast<std::size_t>(s.bytes)),
          .programmatic = true,
          .params = param_bytes(p)};
}

}  // namespace

bool can_gate_channels(const Target& target, const ChannelGate& g) {
  constexpr std::int64_t kMostBytes = 160 * 1024, kMostAlone = 48 * 1024;
  const auto fits = [&](const ChannelGate::Layer& l) { return l.layout.type == g.type && l.layout.row % 8 == 0; };
  if (g.type == Element::f32 || !fits(g.first) || !fits(g.second)) return false;
  if (g.hidden > kMostGateHidden || g.images > 65535) return false;
  const std::int64_t bytes = Shares(target, g).bytes;
  return bytes <= (target.sm >= 90 ? kMostBytes : kMostAlone) &&
         static_cast<std::size_t>(bytes) + 1024 <= target.shared_per_block;
}

Launch plan_channel_gate(const Target& target, const ChannelGate& g) { return plan(target, g, {}); }

Launch plan_scaled_weights(const Target& target, const ChannelGate& g, const ScaledWeights& weights) {
  ChannelGate gate = g;
  gate.out = 0;
  return plan(target, gate, weights);
}

Launch plan_pixel_means(const ChannelGate& g) {
  const PixelMeansParams p{.sums = g.sums,
                           .out = g.out,
                           .threads = g.images * g.channels,
                           .channels = narrow(g.channels),
                           .parts = narrow(g.layout.parts),
                           .sums_row = narrow(g.layout.row),
                           .out_row = narrow(g.out_row),
                           .per_pixel = 1.0f / static_cast<float>(g.pixels)};
  return launch_of_threads(std::string("pixel_means_") + suffix(g.type), p.threads, param_bytes(p));
}

}  // namespace infernode::cuda
