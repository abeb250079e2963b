#include <algorithm>

#include "base/checked.h"
#include "ops/conv/methods/method.h"

namespace infernode::ops {

namespace {

constexpr std::size_t kMostAxes = 3;

/// What an axis of unknown length is taken to be when methods are compared, by the number of spatial axes: a few
/// seconds of sound, a picture of detectors' size, a small volume. No method is refused for it.
constexpr std::int64_t kUsualLength[kMostAxes] = {4096, 320, 32};
/// Longer axes count as this long.
constexpr std::int64_t kLongest = 1 << 16;

struct Length {
  std::int64_t value;
  bool certain;
};

/// Of axis i of the window's; no value below 1 and none that the window does not fit.
std::optional<Length> length_of(const Window& window, std::size_t i, const graph::Dim& dim, std::size_t axes) {
  const std::int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
  const std::int64_t least =
      window.auto_pad == Window::AutoPad::SameUpper || window.auto_pad == Window::AutoPad::SameLower
          ? 1
          : std::max<std::int64_t>(1, extent - window.pads[i] - window.pads[i + axes]);
  if (dim.known() && dim.value() <= kLongest)
    return dim.value() < least ? std::nullopt : std::optional(Length{dim.value(), true});
  return Length{std::max(least, usual_length(dim, axes)), false};
}

/// Whether the window moves along no more than one axis, for certain.
bool is_line(const Window& window, const graph::SymShape& x, std::size_t axes) {
  std::size_t thin = 0;
  for (std::size_t i = 0; i < axes; ++i) {
    if (x[i + 2].is(1) && window.kernel[i] == 1 && window.pads[i] == 0 && window.pads[i + axes] == 0) ++thin;
  }
  return thin + 1 >= axes;
}

}  // namespace

std::int64_t usual_length(const graph::Dim& dim, std::size_t axes) {
  const std::int64_t usual = kUsualLength[axes - 1];
  return std::clamp<std::int64_t>(dim.evaluate([&](std::string_view) { return usual; }).value_or(usual), 1, kLongest);
}

std::optional<ConvSite> conv_site(const graph::Node& node, const graph::ValueType& input, const tensor::Shape& weight,
                                  CpuRung rung, microkernels::Float32Precision precision) {
  if (!input.shape || input.shape->size() != weight.rank() || weight.rank() < 3 || weight.rank() > kMostAxes + 2 ||
      weight.numel() == 0)
    return std::nullopt;
  const std::int64_t groups = node.attributes.get_int("group", 1);
  if (groups < 1 || weight[0] % groups != 0) return std::nullopt;
  ConvSite site;
  site.axes = weight.rank() - 2;
  Window window(node.attributes);
  const auto kernel = weight.dims().subspan(2);
  for (const std::int64_t k : kernel)
    if (k > kLongest) return std::nullopt;
  const auto fits = [&](const std::vector<std::int64_t>& list, std::size_t count) {
    return list.empty() || list.size() == count;
  };
  if (!fits(window.kernel, site.axes) || !fits(window.strides, site.axes) || !fits(window.dilations, site.axes) ||
      !fits(window.pads, 2 * site.axes))
    return std::nullopt;
  window.complete(site.axes, kernel);
  if (!std::equal(window.kernel.begin(), window.kernel.end(), kernel.begin())) return std::nullopt;
  tensor::Shape x{1, weight[1] * groups};
  site.certain = true;
  for (std::size_t i = 0; i < site.axes; ++i) {
    const std::optional<Length> length = length_of(window, i, (*input.shape)[i + 2], site.axes);
    if (!length) return std::nullopt;
    x.push_back(length->value);
    site.certain = site.certain && length->certain;
  }
  const ConvProblem problem = plan_conv(window, groups, x, weight);
  if (problem.shape.positions() == 0) return std::nullopt;
  site.shape = problem.shape;
  site.groups = static_cast<std::size_t>(groups);
  site.line = is_line(window, *input.shape, site.axes);
  site.bias = node.inputs.size() > 2 && node.inputs[2] != graph::kNoValue;
  site.residual = node.inputs.size() > 3 && node.inputs[3] != graph::kNoValue;
  site.activated = !node.attributes.get_string("activation", "").empty();
  site.exact = node.attributes.get_int("exact", 0) != 0;
  site.cpu = site.rung = rung;
  site.precision = precision;
  return site;
}

std::optional<ConvSite> conv_site(const kernel::KernelInfo& info) {
  const tensor::Tensor* const weight = info.constant(1);
  std::optional<tensor::Shape> shape;
  if (weight != nullptr) {
    shape = weight->shape();
  } else if (info.input_type(1).shape) {
    shape = graph::to_known(*info.input_type(1).shape);
  }
  if (!shape) return std::nullopt;
  graph::ValueType input = info.input_type(0);
  if (!input.shape) input.shape = graph::SymShape(shape->rank(), graph::Dim::unknown());
  std::optional<ConvSite> site = conv_site(info.node(), input, *shape, info.kernels().rung, info.kernels().precision);
  if (site && weight != nullptr && weight->dtype() == tensor::DType::Float32) site->weight = weight;
  return site;
}

}  // namespace infernode::ops
