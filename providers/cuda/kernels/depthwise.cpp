#include "providers/cuda/kernels/depthwise.h"

#include "providers/cuda/kernels/params/depthwise.h"

namespace infernode::cuda {

namespace {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Kernel {
  std::string name;
  int width;  ///< output pixels of a thread
};

Kernel kernel_of(const DepthwiseProblem& d) {
  const std::int64_t k = d.kernel[0], s = d.stride[0];
  const bool square = k == d.kernel[1] && s == d.stride[1] && d.dilation[0] == 1 && d.dilation[1] == 1;
  const bool vectors =
      d.type != Element::f32 && d.input % 16 == 0 && d.pixel % 8 == 0 && d.pixel >= ceil_div(d.channels, 8) * 8;
  if (!square || !vectors || (k != 3 && k != 5 && k != 7) || s > 2 || (k == 7 && s == 2)) return {"depthwise_any", 1};
  return {"depthwise_" + std::to_string(k) + "x" + std::to_string(k) + "_s" + std::to_string(s), k == 7 ? 1 : 2};
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

std::vector<Launch> plan_depthwise(const Target&, const DepthwiseProblem& d) {
  const auto narrow = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
  const Kernel kernel = kernel_of(d);
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
  p.columns = narrow(ceil_div(d.out[1], kernel.width));
  p.type = d.type;
  p.vector = d.input % 16 == 0 && d.pixel * element_size(d.type) % 16 == 0;
  Launch launch;
  launch.kernel = kernel.name;
  launch.grid.x = static_cast<std::uint32_t>(ceil_div(d.images * d.out[0] * p.columns * p.chunks, 128));
  launch.block.x = 128;
  launch.programmatic = true;
  launch.params = param_bytes(p);
  return {launch};
}

}  // namespace infernode::cuda
