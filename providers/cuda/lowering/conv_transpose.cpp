// ConvTranspose, channels last: a convolution that finds for each output pixel the input pixels that reach it.

#include <algorithm>

#include "base/error.h"
#include "providers/cuda/kernels/conv.h"
#include "providers/cuda/lowering/products.h"

namespace infernode::cuda {
namespace {

using tensor::Shape;
using tensor::Tensor;

/// Weights are constant and there are one to three spatial dims.
bool can_spread(const NodeView& node) {
  const std::size_t rank = node.input_rank(0).value_or(0);
  return kProductTypes.contains(node.input_dtype(0)) && node.all_of({node.input_dtype(0)}) && rank >= 3 && rank <= 5 &&
         node.input_rank(1) == rank && node.is_known(1) && !node.is_empty(0) && !node.is_empty(1);
}

void check_spread(Builder& b, const Shape& x, const Shape& w) {
  const std::int64_t groups = b.attributes().get_int("group", 1);
  if (w.rank() != x.rank() || groups < 1 || w[0] != x[1] || x[1] % groups != 0) {
    fail(ErrorCode::ShapeMismatch,
         cat("ConvTranspose's channels do not fit: X ", x.to_string(), ", W ", w.to_string(), ", group ", groups));
  }
  const std::vector<std::int64_t> window = b.attributes().get_ints("kernel_shape");
  if (!window.empty() && !std::equal(window.begin(), window.end(), w.begin() + 2, w.end()))
    fail(ErrorCode::ShapeMismatch, cat("kernel_shape does not match W ", w.to_string()));
  if (b.has_input(2) && b.input_shape(2).numel() != w[1] * groups) {
    fail(ErrorCode::ShapeMismatch, cat("ConvTranspose's bias has ", b.input_shape(2).numel(), " elements for ",
                                       w[1] * groups, " output channels"));
  }
}

/// Of the output along an axis, what is cut off at its begin.
std::int64_t pad_before(Builder& b, std::size_t axis, const ConvProblem& p, std::size_t at) {
  const std::string mode = b.attributes().get_string("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (b.attributes().get_ints("output_shape").empty() && !same) {
    const std::vector<std::int64_t> pads = b.attributes().get_ints("pads");
    return pads.empty() || mode == "VALID" ? 0 : pads[axis];
  }
  const std::vector<std::int64_t> padding = b.attributes().get_ints("output_padding");
  const std::int64_t full =
      (p.in[at] - 1) * p.stride[at] + (p.kernel[at] - 1) * p.dilation[at] + 1 + (padding.empty() ? 0 : padding[axis]);
  const std::int64_t total = std::max<std::int64_t>(0, full - p.out[at]);
  return mode == "SAME_UPPER" ? total / 2 : total - total / 2;
}

/// Weights [group][channel][output][tap] with a group's outputs before its channels.
Tensor outputs_first(const Tensor& w, const ConvProblem& p, std::int64_t taps) {
  const Tensor to = Tensor::make(w.dtype(), w.shape());
  const std::size_t run = static_cast<std::size_t>(taps) * tensor::bit_size(w.dtype()) / 8;
  const auto* from = static_cast<const std::byte*>(w.raw());
  auto* out = static_cast<std::byte*>(to.mutable_raw());
  for (std::int64_t g = 0; g < p.groups; ++g) {
    for (std::int64_t o = 0; o < p.outputs; ++o) {
      for (std::int64_t c = 0; c < p.channels; ++c, out += run) {
        std::copy_n(from + static_cast<std::size_t>((g * p.channels + c) * p.outputs + o) * run, run, out);
      }
    }
  }
  return to;
}

void use_weights(Builder& b, ConvProblem& p) {
  const Tensor& host = *b.known(1);
  const Element type = element_of(host.dtype());
  const std::int64_t taps = p.kernel[0] * p.kernel[1] * p.kernel[2];
  p.weights = weight_layout(b.target(), type, p.precision, p.groups * p.outputs, taps, p.channels, p.groups);
  const bool grouped = p.groups > 1;
  const std::string format =
      cat("spread taps ", grouped, " ", p.outputs, " ", taps, " ", p.channels, " ", static_cast<int>(p.weights.type),
          " ", p.weights.pieces, " ", p.weights.row, " ", p.weights.channels_padded);
  p.weights_address = b.constants().pack(
      grouped ? outputs_first(host, p, taps) : host, format, p.weights.bytes, [&](DevicePtr from, DevicePtr to) {
        const WeightSource source{.address = from,
                                  .type = type,
                                  .row_stride = grouped ? p.channels * taps : taps,
                                  .tap_stride = 1,
                                  .channel_stride = grouped ? taps : p.outputs * taps};
        return plan_pack_weight(p.weights, source, to);
      });
}

void lower_spread(Builder& b) {
  const Shape kernel = b.input_shape(1);
  check_spread(b, b.input_shape(0), kernel);
  const DeviceTensor x = b.input_channels_last(0);
  const std::size_t dims = x.shape.rank() - 2;
  const DeviceTensor y = b.output(0, Order::ChannelsLast);
  if (y.numel() == 0) return;
  const std::vector<std::int64_t> ones(dims, 1);
  const std::vector<std::int64_t> strides = b.attributes().get_ints("strides", ones),
                                  dilations = b.attributes().get_ints("dilations", ones);
  ConvProblem p = conv_problem(b, x, y, kernel, strides, dilations);
  p.transposed = true;
  p.channels = kernel[0] / p.groups;
  p.outputs = kernel[1];
  for (std::size_t d = 0; d < dims; ++d) p.pad[3 - dims + d] = pad_before(b, d, p, 3 - dims + d);
  use_weights(b, p);
  launch_conv(b, p);
}

}  // namespace

void register_conv_transpose(Lowerings& lowerings) {
  lowerings.push_back({"", "ConvTranspose", can_spread, lower_spread});
}

}  // namespace infernode::cuda
