// Convolutions, channels last, with bias, residual and activation.

#include <algorithm>

#include "base/error.h"
#include "providers/cuda/kernels/channelwise/depthwise.h"
#include "providers/cuda/kernels/conv.h"
#include "providers/cuda/kernels/simple/movement.h"
#include "providers/cuda/lowering/parts/channel_gate.h"

namespace infernode::cuda {
namespace {

using tensor::Shape;

/// Weights are constant and there are one to three spatial dims.
bool can_conv(const NodeView& node) {
  const std::size_t rank = node.input_rank(0).value_or(0);
  return kProductTypes.contains(node.input_dtype(0)) && node.all_of({node.input_dtype(0)}) && rank >= 3 && rank <= 5 &&
         node.is_known(1) && !node.is_empty(0) && !node.is_empty(1) && can_activate(node);
}

/// Padding before the first element along each spatial dim.
std::vector<std::int64_t> pads_before(Builder& b, const Shape& in, const Shape& out, const Shape& kernel,
                                      const std::vector<std::int64_t>& strides,
                                      const std::vector<std::int64_t>& dilations) {
  const std::size_t dims = in.rank() - 2;
  const std::string mode = b.attributes().get_string("auto_pad", "NOTSET");
  std::vector<std::int64_t> pads = b.attributes().get_ints("pads");
  if (mode == "NOTSET" && !pads.empty()) return pads;
  pads.assign(dims, 0);
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") return pads;
  for (std::size_t d = 0; d < dims; ++d) {
    const std::int64_t window = (kernel[d + 2] - 1) * dilations[d] + 1;
    const std::int64_t total = std::max<std::int64_t>(0, (out[d + 2] - 1) * strides[d] + window - in[d + 2]);
    pads[d] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
  }
  return pads;
}

void use_weights(Builder& b, ConvProblem& p) {
  const tensor::Tensor& host = *b.known(1);
  const Element type = element_of(host.dtype());
  const std::int64_t taps = p.kernel[0] * p.kernel[1] * p.kernel[2];
  p.weights = weight_layout(b.target(), type, p.precision, p.groups * p.outputs, taps, p.channels, p.groups);
  const std::string format =
      cat("taps ", p.groups, " ", p.outputs, " ", taps, " ", p.channels, " ", static_cast<int>(p.weights.type), " ",
          p.weights.pieces, " ", p.weights.row, " ", p.weights.channels_padded);
  p.weights_address = b.constants().pack(host, format, p.weights.bytes, [&](DevicePtr from, DevicePtr to) {
    const WeightSource source{
        .address = from, .type = type, .row_stride = p.channels * taps, .tap_stride = 1, .channel_stride = taps};
    return plan_pack_weight(p.weights, source, to);
  });
}

/// Each channel has a window of its own.
bool is_depthwise(const ConvProblem& p) {
  return p.channels == 1 && p.outputs == 1 && p.groups > 1 && p.kernel[0] == 1 && p.in[0] == 1;
}

void launch_depthwise(Builder& b, const ConvProblem& p) {
  DepthwiseProblem d;
  d.images = p.images;
  d.channels = p.groups;
  for (int i = 0; i < 2; ++i) {
    d.in[i] = p.in[i + 1];
    d.out[i] = p.out[i + 1];
    d.kernel[i] = p.kernel[i + 1];
    d.stride[i] = p.stride[i + 1];
    d.pad[i] = p.pad[i + 1];
    d.dilation[i] = p.dilation[i + 1];
  }
  d.input = p.input;
  d.type = p.type;
  d.pixel = p.pixel;
  d.epilogue = p.epilogue;
  const std::int64_t taps = p.kernel[1] * p.kernel[2];
  const WeightLayout layout = depthwise_weights(d.channels, taps);
  d.weights =
      b.constants().pack(*b.known(1), cat("depthwise ", layout.row), layout.bytes, [&](DevicePtr from, DevicePtr to) {
        const WeightSource source{
            .address = from, .type = p.type, .row_stride = 1, .tap_stride = 0, .channel_stride = taps};
        return plan_pack_weight(layout, source, to);
      });
  if (wants_pixel_sums(b)) {
    if (const auto sums = depthwise_sums(b.target(), d)) d.sums = b.sum_pixels(0, d.images, *sums).at;
  }
  b.launch(plan_depthwise(b.target(), d));
}

/// X and W fit each other and the attributes.
void check_conv(Builder& b, const Shape& x, const Shape& w) {
  const std::int64_t groups = b.attributes().get_int("group", 1);
  if (w.rank() != x.rank() || groups < 1 || w[1] * groups != x[1] || w[0] % groups != 0) {
    fail(ErrorCode::ShapeMismatch,
         cat("Conv's channels do not fit: X ", x.to_string(), ", W ", w.to_string(), ", group ", groups));
  }
  const std::vector<std::int64_t> window = b.attributes().get_ints("kernel_shape");
  if (!window.empty() && !std::equal(window.begin(), window.end(), w.begin() + 2, w.end()))
    fail(ErrorCode::ShapeMismatch, cat("kernel_shape does not match W ", w.to_string()));
  if (b.has_input(2) && b.input_shape(2).numel() != w[0]) {
    fail(ErrorCode::ShapeMismatch,
         cat("Conv's bias has ", b.input_shape(2).numel(), " elements for ", w[0], " output channels"));
  }
}

/// Windows that lie beside each other without padding, of too few channels to be read in words: a vision
/// transformer's patches.
bool has_patches(const Builder& b, const Shape& in, const Shape& kernel) {
  const auto ones = [](const std::vector<std::int64_t>& v) {
    return std::ranges::all_of(v, [](auto n) { return n == 1; });
  };
  const auto zeros = [](const std::vector<std::int64_t>& v) {
    return std::ranges::all_of(v, [](auto n) { return n == 0; });
  };
  const graph::Attributes& a = b.attributes();
  const std::string mode = a.get_string("auto_pad", "NOTSET");
  const std::vector<std::int64_t> strides = a.get_ints("strides");
  const std::int64_t row = kernel.numel() / kernel[0];
  return in.rank() <= 4 && kernel[1] < 8 && a.get_int("group", 1) == 1 && row > kernel[1] && row % 8 == 0 &&
         ones(a.get_ints("dilations")) && (mode == "VALID" || (mode == "NOTSET" && zeros(a.get_ints("pads")))) &&
         std::equal(kernel.begin() + 2, kernel.end(), strides.begin(), strides.end());
}

/// The elements of each window behind each other: a pixel of as many channels.
DeviceTensor patches_of(Builder& b, const Shape& kernel) {
  const DeviceTensor x = b.input(0);
  const std::size_t dims = kernel.rank() - 2;
  const Shape steps = x.shape.strides();
  Shape window{x.shape[0]};
  std::vector<std::int64_t> from{steps[0]};
  DeviceTensor patches = x;
  patches.shape[1] = patches.pitch = kernel.numel() / kernel[0];
  for (std::size_t d = 2; d < dims + 2; ++d) {
    patches.shape[d] = x.shape[d] / kernel[d];
    window.push_back(patches.shape[d]), from.push_back(steps[d] * kernel[d]);
  }
  for (std::size_t d = 1; d < dims + 2; ++d) window.push_back(kernel[d]), from.push_back(steps[d]);
  const Shape to = window.strides();
  patches.at = b.scratch(tensor::byte_size(x.dtype, window.numel()));
  b.launch(plan_strided_copy(b.target(), {.from = x.at,
                                          .to = patches.at,
                                          .element_bytes = x.element_bytes(),
                                          .dims = window,
                                          .from_stride = from,
                                          .to_stride = {to.begin(), to.end()}}));
  return patches;
}

void lower_conv(Builder& b) {
  Shape kernel = b.input_shape(1);
  check_conv(b, b.input_shape(0), kernel);
  const bool patches = has_patches(b, b.input_shape(0), kernel);
  const bool gate = !patches && waits_for_gate(b);
  const DeviceTensor x = patches ? patches_of(b, kernel) : gate ? b.place_of_deferred(0) : b.input_channels_last(0);
  const std::size_t dims = x.shape.rank() - 2;
  DeviceTensor residual;
  if (b.has_input(3)) residual = b.input_channels_last(3);
  const DeviceTensor y = b.output(0, Order::ChannelsLast);
  if (y.numel() == 0) return;
  const std::vector<std::int64_t> ones(dims, 1);
  if (patches) {
    kernel[1] = x.pitch;
    for (std::size_t d = 0; d < dims; ++d) kernel[d + 2] = 1;
  }
  const std::vector<std::int64_t> strides = patches ? ones : b.attributes().get_ints("strides", ones),
                                  dilations = b.attributes().get_ints("dilations", ones);
  const std::vector<std::int64_t> pads = pads_before(b, x.shape, y.shape, kernel, strides, dilations);

  ConvProblem p = conv_problem(b, x, y, kernel, strides, dilations);
  p.channels = kernel[1];
  p.outputs = kernel[0] / p.groups;
  for (std::size_t d = 0; d < dims; ++d) p.pad[3 - dims + d] = pads[d];
  if (residual) {
    p.epilogue.residual = residual.at;
    p.epilogue.residual_type = element_of(residual.dtype);
    p.epilogue.residual_row = residual.pitch;
  }
  set_activation(b.attributes(), p.epilogue);
  if (!gate && is_depthwise(p)) return launch_depthwise(b, p);
  use_weights(b, p);
  if (gate) {
    if (convolve_gated(b, p)) return;
    b.input_channels_last(0);
  }
  launch_conv(b, p);
}

}  // namespace

void register_conv(Lowerings& lowerings) {
  lowerings.push_back({"", "Conv", can_conv, lower_conv});
  lowerings.push_back({graph::kMicrosoft, "FusedConv", can_conv, lower_conv});
  lowerings.push_back({graph::kOwn, "FusedConv", can_conv, lower_conv});
}

}  // namespace infernode::cuda
