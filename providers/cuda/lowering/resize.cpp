// Resize and Upsample: one axis after the other, by tables of places and weights.

#include <algorithm>

#include "base/error.h"
#include "ops/image/interpolation.h"
#include "providers/cuda/kernels/params/resample.h"
#include "providers/cuda/kernels/simple/places.h"
#include "providers/cuda/lowering/parts/elements.h"
#include "providers/cuda/lowering/parts/moves.h"

namespace infernode::cuda {
namespace {

using ops::ResizedAxis;
using tensor::Shape;

/// Which inputs there are, and what places mean, by operator and version.
struct Form {
  bool early;  ///< before Resize 11: places are x / scale, and the nearest one is below, or above where an axis shrinks
  std::size_t scales, sizes;
};
Form form_of(const graph::Node& node) {
  if (node.op_type == "Upsample") return {true, 1, 9};
  return node.opset < 11 ? Form{true, 1, 9} : Form{false, 2, 3};
}

bool can_resize(const NodeView& node) {
  const auto& attributes = node.attributes();
  const std::string mode = attributes.get_string("mode", "nearest");
  const bool nearest = mode == "nearest";
  const bool weighs = mode == "linear" || mode == "bilinear" || mode == "trilinear" || mode == "cubic";
  const bool crops = attributes.get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  const bool oldest = node.node().op_type == "Upsample" && node.node().opset < 7;
  return can_move_known(node) && !oldest && !crops && !node.is_empty(0) &&
         attributes.get_string("keep_aspect_ratio_policy", "stretch") == "stretch" &&
         (nearest ? attributes.get_int("antialias", 0) == 0 : weighs && kReals.contains(node.input_dtype(0)));
}

std::vector<std::size_t> axes_of(Builder& b, std::size_t rank) {
  std::vector<std::size_t> axes;
  if (b.attributes().has("axes")) {
    for (const std::int64_t axis : b.attributes().get_ints("axes")) axes.push_back(tensor::normalize_axis(axis, rank));
  } else {
    for (std::size_t d = 0; d < rank; ++d) axes.push_back(d);
  }
  return axes;
}

std::vector<ResizedAxis> resized_axes(Builder& b, const Form& form, const Shape& in, const Shape& out) {
  std::vector<ResizedAxis> all(in.rank());
  const ops::Coordinates coordinates =
      form.early ? ops::Coordinates::Asymmetric
                 : ops::parse_coordinates(b.attributes().get_string("coordinate_transformation_mode", "half_pixel"));
  for (std::size_t d = 0; d < in.rank(); ++d) all[d].in = all[d].out = in[d];
  std::vector<float> scales = b.attributes().get_floats("scales");
  const tensor::Tensor* given = b.known(form.scales);
  if (given != nullptr && given->numel() > 0) scales = tensor::to_float_vector(*given);
  const std::vector<std::size_t> axes = axes_of(b, in.rank());
  if (!scales.empty() && scales.size() != axes.size()) {
    fail(ErrorCode::InvalidArgument, cat("scales has ", scales.size(), " elements for ", axes.size(), " axes"));
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizedAxis& axis = all[axes[i]];
    axis.out = out[axes[i]];
    axis.coordinates = coordinates;
    axis.exact = scales.empty();
    axis.scale = scales.empty() ? static_cast<float>(axis.out) / static_cast<float>(axis.in) : scales[i];
  }
  return all;
}

/// Axes that change: those that shrink first, as what follows has less to do then.
std::vector<std::size_t> changed_axes(const std::vector<ResizedAxis>& all) {
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < all.size(); ++d) {
    if (!all[d].identity() && all[d].out < all[d].in) order.push_back(d);
  }
  for (std::size_t d = all.size(); d-- > 0;) {
    if (!all[d].identity() && all[d].out >= all[d].in) order.push_back(d);
  }
  return order;
}

/// Tables are made with the plan, of host memory, on the calling thread.
kernel::RunContext planning() {
  kernel::RunContext run;
  run.allocator = &tensor::host_allocator();
  return run;
}

DeviceTensor weigh_along(Builder& b, const DeviceTensor& x, std::size_t d, const ResizedAxis& axis,
                         const ops::TapOptions& options, bool last) {
  const ops::Taps<float> taps = ops::make_taps<float>(planning(), axis, options);
  const Shape count{static_cast<std::int64_t>(taps.weight.size())};
  Shape shape = x.shape;
  shape[d] = axis.out;
  const DeviceTensor y = last ? b.output(0) : scratch_tensor(b, x.dtype, shape);
  const ResampleParams p{
      .in = x.at,
      .out = y.at,
      .index = b.constants().upload(tensor::Tensor::of<std::int64_t>(count, std::span<const std::int64_t>(taps.index))),
      .weight = b.constants().upload(tensor::Tensor::of<float>(count, std::span<const float>(taps.weight))),
      .count = shape.numel(),
      .in_size = axis.in,
      .out_size = axis.out,
      .inner = shape.numel(d + 1, shape.rank()),
      .taps = static_cast<std::int32_t>(taps.count)};
  b.launch(launch_of_threads(cat("resample_", kernel_suffix(x.dtype)), p.count, param_bytes(p)));
  return y;
}

void lower_resize(Builder& b) {
  const Form form = form_of(b.node());
  DeviceTensor x = b.input(0);
  const Shape out = b.output_shape(0);
  if (out.numel() == 0) {
    b.output(0);
    return;
  }
  if (x.numel() == 0) {
    fail(ErrorCode::InvalidArgument, cat("an input of shape ", x.shape.to_string(), " has nothing to enlarge"));
  }
  const auto& attributes = b.attributes();
  const std::string mode = attributes.get_string("mode", "nearest");
  const std::vector<ResizedAxis> all = resized_axes(b, form, x.shape, out);
  const ops::Rounding rounding = form.early
                                     ? ops::Rounding::Floor
                                     : ops::parse_rounding(attributes.get_string("nearest_mode", "round_prefer_floor"));
  ops::TapOptions options;
  options.antialias = attributes.get_int("antialias", 0) != 0;
  options.exclude_outside = attributes.get_int("exclude_outside", 0) != 0;
  if (mode == "cubic") options.cubic_a = attributes.get_float("cubic_coeff_a", -0.75f);
  const std::vector<std::size_t> order = changed_axes(all);
  if (order.empty()) return b.view(0, x);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t d = order[i];
    const bool last = i + 1 == order.size();
    if (mode == "nearest") {
      const bool above = form.early && all[d].scale < 1.0f;
      x = take_along(b, x, d, ops::nearest_map(planning(), all[d], above ? ops::Rounding::Ceil : rounding), last);
    } else {
      x = weigh_along(b, x, d, all[d], options, last);
    }
  }
}

}  // namespace

void register_resize(Lowerings& lowerings) {
  lowerings.push_back({"", "Resize", can_resize, lower_resize});
  lowerings.push_back({"", "Upsample", can_resize, lower_resize});
}

}  // namespace infernode::cuda
