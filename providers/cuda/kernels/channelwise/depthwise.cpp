#include "providers/cuda/kernels/channelwise/depthwise.h"

#include <algorithm>

#include "providers/cuda/kernels/params/depthwise.h"
#include "providers/cuda/kernels/shared_request.h"

namespace infernode::cuda {

namespace {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int32_t narrow(std::int64_t v) { return static_cast<std::int32_t>(v); }

/// Whether there is a kernel that brings windows to shared memory.
bool has_tiles(const DepthwiseProblem& d) {
  const std::int64_t k = d.kernel[0], s = d.stride[0];
  const bool square = k == d.kernel[1] && s == d.stride[1] && d.dilation[0] == 1 && d.dilation[1] == 1;
  const bool vectors =
      d.type != Element::f32 && d.input % 16 == 0 && d.pixel % 8 == 0 && d.pixel >= ceil_div(d.channels, 8) * 8;
  const bool known = ((k == 3 || k == 5) && s <= 2) || (k == 7 && s == 1);
  return square && vectors && known && d.images <= 65535 && ceil_div(d.channels, kTileChannels) <= 65535;
}

/// Output pixels of a thread: as many as the kernels of depthwise.cu say.
int strip_of(const DepthwiseProblem& d) { return d.kernel[0] == 3 && d.stride[0] == 1 ? 4 : 2; }

/// How an image's outputs are cut: tiles of equal size, of 16 rows and columns of the input at most.
struct Tiling {
  std::int64_t h, strips, across, down;  ///< rows and strips of a tile; tiles of a row, of a column

  Tiling(const Target& target, const DepthwiseProblem& d) {
    const std::int64_t most = 16 / d.stride[0], all = ceil_div(d.out[1], strip_of(d));
    across = ceil_div(all, std::max<std::int64_t>(1, 16 / strip_of(d)));
    strips = ceil_div(all, across);
    down = ceil_div(d.out[0], most);
    // Where processors have nothing to do, more tiles.
    const std::int64_t others = d.images * across * ceil_div(d.channels, kTileChannels);
    while (others * down * 2 <= target.sm_count && ceil_div(d.out[0], down) > 4) down *= 2;
    h = ceil_div(d.out[0], down);
    down = ceil_div(d.out[0], h);
  }
};

Launch plan_tiles(const Target& target, const DepthwiseProblem& d) {
  const Tiling t(target, d);
  const std::int64_t k = d.kernel[0], s = d.stride[0], strip = strip_of(d);
  DepthwiseTileParams p{};
  p.in = d.input;
  p.weights = d.weights;
  p.e = epilogue_params(d.epilogue, 0);
  p.sums = d.sums;
  p.pixel = d.pixel;
  p.weights_row = p.sums_row = narrow(depthwise_weights(d.channels, 1).row);
  p.channels = narrow(d.channels);
  p.in_h = narrow(d.in[0]), p.in_w = narrow(d.in[1]), p.out_h = narrow(d.out[0]), p.out_w = narrow(d.out[1]);
  p.pad_h = narrow(d.pad[0]), p.pad_w = narrow(d.pad[1]);
  p.tiles = narrow(t.across * t.down), p.tiles_w = narrow(t.across);
  p.tile_h = narrow(t.h), p.strips = narrow(t.strips);
  p.window_h = narrow((t.h - 1) * s + k);
  p.window_w = narrow((t.strips * strip - 1) * s + k);
  p.pitch = p.window_w | 1;
  Launch launch;
  launch.block.x = static_cast<std::uint32_t>(ceil_div(t.h * t.strips * kTileChunks, 32) * 32);
  const int pixels = static_cast<int>(launch.block.x) / kTileChunks;
  p.step_h = pixels / p.window_w, p.step_w = pixels % p.window_w;
  launch.kernel = std::string("depthwise_") + (d.type == Element::f16 ? "f16_" : "bf16_") + std::to_string(k) + "x" +
                  std::to_string(k) + "_s" + std::to_string(s) +
                  (d.channels % 8 == 0 && is_whole(p.e, d.type) ? "_whole" : "");
  launch.grid = {static_cast<std::uint32_t>(p.tiles), static_cast<std::uint32_t>(ceil_div(d.channels, kTileChannels)),
                 static_cast<std::uint32_t>(d.images)};
  launch.shared_bytes = shared_request(
      static_cast<std::size_t>(k * k * kTileChannels * 4 + std::int64_t{p.window_h} * p.pitch * kTileChannels * 2));
  launch.programmatic = true;
  launch.params = param_bytes(p);
  return launch;
}

}  // namespace

WeightLayout depthwise_weights(std::int64_t channels, std::int64_t taps) {
  WeightLayout w;
  w.type = Element::f32;
  w.rows = taps;
  w.channels = channels;
  w.channels_padded = w.row = (channels + 7) / 8 * 8;
  w.bytes = static_cast<std::size_t>(w.rows * w.row) * 4;
  return w;
}

std::optional<DepthwiseSums> depthwise_sums(const Target& target, const DepthwiseProblem& d) {
  if (!has_tiles(d)) return std::nullopt;
  const Tiling t(target, d);
  return DepthwiseSums{t.across * t.down, depthwise_weights(d.channels, 1).row};
}

std::vector<Launch> plan_depthwise(const Target& target, const DepthwiseProblem& d) {
  if (has_tiles(d)) return {plan_tiles(target, d)};
  DepthwiseParams p{};
  p.in = d.input;
  p.weights = d.weights;
  p.e = epilogue_params(d.epilogue, 0);
  p.pixel = d.pixel;
  p.weights_row = narrow(depthwise_weights(d.channels, 1).row);
  p.images = narrow(d.images), p.channels = narrow(d.channels);
  p.in_h = narrow(d.in[0]), p.in_w = narrow(d.in[1]), p.out_h = narrow(d.out[0]), p.out_w = narrow(d.out[1]);
  p.kernel_h = narrow(d.kernel[0]), p.kernel_w = narrow(d.kernel[1]);
  p.stride_h = narrow(d.stride[0]), p.stride_w = narrow(d.stride[1]);
  p.pad_h = narrow(d.pad[0]), p.pad_w = narrow(d.pad[1]);
  p.dilation_h = narrow(d.dilation[0]), p.dilation_w = narrow(d.dilation[1]);
  p.chunks = narrow(ceil_div(d.channels, 8));
  p.type = d.type;
  p.vector = d.input % 16 == 0 && d.pixel * element_size(d.type) % 16 == 0;
  Launch launch;
  launch.kernel = "depthwise_any";
  launch.grid.x = static_cast<std::uint32_t>(ceil_div(d.images * d.out[0] * d.out[1] * p.chunks, 128));
  launch.block.x = 128;
  launch.programmatic = true;
  launch.params = param_bytes(p);
  return {launch};
}

}  // namespace infernode::cuda
