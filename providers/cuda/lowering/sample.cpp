// GridSample and RoiAlign: images read at places that data names.

#include "providers/cuda/kernels/params/sample.h"

#include <optional>

#include "base/error.h"
#include "providers/cuda/kernels/simple/elementwise.h"
#include "providers/cuda/lowering/parts/elements.h"

namespace infernode::cuda {
namespace {

using tensor::Shape;

/// Elements along an axis that a sample is made of.
std::optional<std::int32_t> taps_of(const std::string& mode) {
  if (mode == "nearest") return 1;
  if (mode == "linear" || mode == "bilinear") return 2;
  if (mode == "cubic" || mode == "bicubic") return 4;
  return std::nullopt;
}
std::optional<SamplePadding> padding_of(const std::string& mode) {
  if (mode == "zeros") return SamplePadding::zeros;
  if (mode == "border") return SamplePadding::border;
  if (mode == "reflection") return SamplePadding::reflection;
  return std::nullopt;
}

bool can_sample(const NodeView& node) {
  const std::size_t rank = node.input_rank(0).value_or(0);
  return kReals.contains(node.input_dtype(0)) && kReals.contains(node.input_dtype(1)) && rank >= 3 &&
         rank <= 2 + kSampledAxes && node.input_rank(1) == rank && !node.is_empty(0) &&
         taps_of(node.attributes().get_string("mode", "linear")) &&
         padding_of(node.attributes().get_string("padding_mode", "zeros"));
}

void lower_sample(Builder& b) {
  const DeviceTensor x = b.input(0), grid = b.input(1), y = b.output(0);
  const std::size_t axes = x.shape.rank() - 2;
  if (grid.shape[0] != x.shape[0] || grid.shape.back() != static_cast<std::int64_t>(axes)) {
    fail(ErrorCode::ShapeMismatch,
         cat("a grid of shape ", grid.shape.to_string(), " does not fit an input of shape ", x.shape.to_string()));
  }
  if (y.numel() == 0) return;
  if (x.numel() == 0) {
    fail(ErrorCode::ShapeMismatch, cat("an input of shape ", x.shape.to_string(), " has nothing to sample"));
  }
  GridSampleParams p{};
  p.in = x.at, p.grid = grid.at, p.out = y.at;
  p.grid_type = number_of(grid.dtype).value();
  p.count = y.numel();
  p.places = y.shape.numel(2, y.shape.rank());
  p.plane = x.shape.numel(2, x.shape.rank());
  p.channels = static_cast<std::int32_t>(x.shape[1]);
  p.axes = static_cast<std::int32_t>(axes);
  p.taps = *taps_of(b.attributes().get_string("mode", "linear"));
  p.padding = *padding_of(b.attributes().get_string("padding_mode", "zeros"));
  p.align_corners = b.attributes().get_int("align_corners", 0) != 0;
  const Shape strides = x.shape.strides();
  for (std::size_t d = 0; d < axes; ++d) p.length[d] = x.shape[d + 2], p.stride[d] = strides[d + 2];
  b.launch(launch_of_threads(cat("grid_sample_", kernel_suffix(x.dtype)), p.count, param_bytes(p)));
}

std::string coordinates_of(const graph::Node& node) {
  return node.attributes.get_string("coordinate_transformation_mode",
                                    node.opset < 16 ? "output_half_pixel" : "half_pixel");
}
bool can_align(const NodeView& node) {
  const auto& attributes = node.attributes();
  const std::string mode = attributes.get_string("mode", "avg"), coordinates = coordinates_of(node.node());
  const std::int64_t samples = attributes.get_int("sampling_ratio", 0);
  return kReals.contains(node.input_dtype(0)) && node.input_dtype(1) == node.input_dtype(0) &&
         node.input_rank(0) == 4 && node.input_rank(1) == 2 && !node.is_empty(0) && (mode == "avg" || mode == "max") &&
         (coordinates == "half_pixel" || coordinates == "output_half_pixel") && samples >= 0 && samples <= kMostSamples;
}

void lower_align(Builder& b) {
  const DeviceTensor x = b.input(0), regions = b.input(1), batches = b.input(2), y = b.output(0);
  if (regions.shape[1] != 4 || batches.numel() != regions.shape[0]) {
    fail(ErrorCode::ShapeMismatch, cat("regions ", regions.shape.to_string(), " and batch_indices ",
                                       batches.shape.to_string(), " do not fit each other"));
  }
  if (y.numel() == 0) return;
  if (x.numel() == 0) {
    fail(ErrorCode::ShapeMismatch, cat("an input of shape ", x.shape.to_string(), " has nothing to sample"));
  }
  const auto narrow = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
  const RoiAlignParams p{.in = x.at,
                         .regions = regions.at,
                         .batches = batches.at,
                         .out = y.at,
                         .count = y.numel(),
                         .images = x.shape[0],
                         .channels = narrow(x.shape[1]),
                         .height = narrow(x.shape[2]),
                         .width = narrow(x.shape[3]),
                         .out_height = narrow(y.shape[2]),
                         .out_width = narrow(y.shape[3]),
                         .samples = narrow(b.attributes().get_int("sampling_ratio", 0)),
                         .greatest = b.attributes().get_string("mode", "avg") == "max",
                         .half_pixel = coordinates_of(b.node()) == "half_pixel",
                         .scale = b.attributes().get_float("spatial_scale", 1)};
  b.launch(launch_of_threads(cat("roi_align_", kernel_suffix(x.dtype)), p.count, param_bytes(p)));
}

}  // namespace

void register_sample(Lowerings& lowerings) {
  lowerings.push_back({"", "GridSample", can_sample, lower_sample});
  lowerings.push_back({graph::kMicrosoft, "GridSample", can_sample, lower_sample});
  lowerings.push_back({"", "RoiAlign", can_align, lower_align});
}

}  // namespace infernode::cuda
