#include <algorithm>

#include "base/error.h"
#include "ops/conv.h"

namespace infernode::ops {

namespace {

Window::AutoPad read_auto_pad(const graph::Attributes& attributes) {
  const std::string text = attributes.get_string("auto_pad", "NOTSET");
  if (text == "NOTSET" || text.empty()) return Window::AutoPad::NotSet;
  if (text == "SAME_UPPER") return Window::AutoPad::SameUpper;
  if (text == "SAME_LOWER") return Window::AutoPad::SameLower;
  if (text == "VALID") return Window::AutoPad::Valid;
  fail(ErrorCode::InvalidModel, cat("auto_pad '", text, "' is none of NOTSET, SAME_UPPER, SAME_LOWER, VALID"));
}

constexpr std::int64_t kLargest = std::int64_t{1}
                                  << 40;  // of a window's sizes: sums and products of a few stay far from overflow

void check_range(const std::vector<std::int64_t>& values, std::int64_t least, const char* what) {
  for (const std::int64_t v : values) {
    if (v < least || v > kLargest) fail(ErrorCode::InvalidModel, cat("attribute ", what, " has the value ", v));
  }
}

}  // namespace

Window::Window(const graph::Attributes& attributes)
    : auto_pad(read_auto_pad(attributes)),
      kernel(attributes.get_ints("kernel_shape")),
      strides(attributes.get_ints("strides")),
      dilations(attributes.get_ints("dilations")),
      pads(attributes.get_ints("pads")),
      ceil_mode(attributes.get_int("ceil_mode", 0) != 0) {
  check_range(kernel, 1, "kernel_shape");
  check_range(strides, 1, "strides");
  check_range(dilations, 1, "dilations");
  check_range(pads, -kLargest, "pads");
}

void Window::complete(std::size_t rank, std::span<const std::int64_t> kernel_dims) {
  if (kernel.empty()) kernel.assign(kernel_dims.begin(), kernel_dims.end());
  if (strides.empty()) strides.assign(rank, 1);
  if (dilations.empty()) dilations.assign(rank, 1);
  if (pads.empty() || auto_pad != AutoPad::NotSet) pads.assign(2 * rank, 0);
  if (kernel.size() != rank || strides.size() != rank || dilations.size() != rank || pads.size() != 2 * rank) {
    fail(ErrorCode::ShapeMismatch,
         cat("the window's attributes do not fit ", rank, " spatial axes: kernel_shape ", kernel.size(), ", strides ",
             strides.size(), ", dilations ", dilations.size(), ", pads ", pads.size()));
  }
}

Window::Axis Window::axis(std::size_t i, std::int64_t in) const {
  const std::int64_t extent = (kernel[i] - 1) * dilations[i] + 1;
  if (auto_pad == AutoPad::SameUpper || auto_pad == AutoPad::SameLower) {
    const std::int64_t out = (in + strides[i] - 1) / strides[i];
    const std::int64_t total = std::max<std::int64_t>(0, (out - 1) * strides[i] + extent - in);
    const std::int64_t begin = auto_pad == AutoPad::SameUpper ? total / 2 : total - total / 2;
    return {out, begin, total - begin};
  }
  const std::int64_t begin = pads[i], end = pads[i + kernel.size()];
  const std::int64_t room = in + begin + end - extent;
  if (room < 0) {
    fail(ErrorCode::ShapeMismatch,
         cat("a window of ", extent, " does not fit ", in, " elements with pads ", begin, " and ", end));
  }
  std::int64_t out = room / strides[i] + 1;
  if (ceil_mode && room % strides[i] != 0) {
    // A window that would begin in the padding behind the input does not count.
    if (out * strides[i] < in + begin) ++out;
  }
  return {out, begin, end};
}

graph::Dim Window::infer_axis(std::size_t i, const graph::Dim& in) const {
  if (in.known()) return axis(i, in.value()).out;
  if (auto_pad == AutoPad::SameUpper || auto_pad == AutoPad::SameLower) return ceil_div(in, graph::Dim(strides[i]));
  if (ceil_mode && strides[i] != 1) return graph::Dim::unknown();
  const std::int64_t extent = (kernel[i] - 1) * dilations[i] + 1;
  return floor_div(in + graph::Dim(pads[i] + pads[i + kernel.size()] - extent), graph::Dim(strides[i])) + graph::Dim(1);
}

}  // namespace infernode::ops
