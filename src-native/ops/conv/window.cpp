#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "microkernels/transpose/transpose.h"
#include "ops/conv/window.h"

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

// Of a window's sizes, and of the axis that it slides over: the product of two, and a few of those added up, fit 64
// bits.
constexpr std::int64_t kLargest = std::int64_t{1} << 30, kLongest = std::int64_t{1} << 32;

constexpr std::size_t kMostAxes = 3;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

void check_range(const std::vector<std::int64_t>& values, std::int64_t least, const char* what) {
  for (const std::int64_t v : values) {
    if (v < least || v > kLargest) fail(ErrorCode::InvalidModel, cat(what, " has the value ", v));
  }
}

/// A last axis of one element goes, so that runs along the last axis are long.
void drop_thin_axes(microkernels::ConvShape& s) {
  for (std::size_t i = 1; i < kMostAxes; ++i) {
    if (s.in_w != 1 || s.out_w != 1 || s.kernel_w != 1 || s.pad_left != 0) return;
    s.in_w = std::exchange(s.in_h, std::exchange(s.in_d, 1));
    s.out_w = std::exchange(s.out_h, std::exchange(s.out_d, 1));
    s.kernel_w = std::exchange(s.kernel_h, std::exchange(s.kernel_d, 1));
    s.stride_w = std::exchange(s.stride_h, std::exchange(s.stride_d, 1));
    s.dilation_w = std::exchange(s.dilation_h, std::exchange(s.dilation_d, 1));
    s.pad_left = std::exchange(s.pad_top, std::exchange(s.pad_front, 0));
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
  check_range(kernel, 1, "attribute kernel_shape");
  check_range(strides, 1, "attribute strides");
  check_range(dilations, 1, "attribute dilations");
  check_range(pads, -kLargest, "attribute pads");
}

void Window::complete(std::size_t rank, std::span<const std::int64_t> kernel_dims) {
  if (kernel.empty()) {
    kernel.assign(kernel_dims.begin(), kernel_dims.end());
    check_range(kernel, 1, "a spatial axis of W");
  }
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
  if (in > kLongest) fail(ErrorCode::ShapeMismatch, cat("a window cannot slide over an axis of ", in, " elements"));
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

ConvProblem plan_conv(Window window, std::int64_t groups, const tensor::Shape& x, const tensor::Shape& w) {
  if (x.rank() < 3 || w.rank() != x.rank()) {
    fail(ErrorCode::ShapeMismatch, cat("Conv takes X [N,C,...] and W [M,C/group,...] of equal rank, got ",
                                       x.to_string(), " and ", w.to_string()));
  }
  const std::size_t axes = x.rank() - 2;
  if (axes > kMostAxes)
    fail(ErrorCode::UnsupportedOperator, cat("Conv over ", axes, " spatial axes; up to 3 are supported"));
  ConvProblem p;
  p.groups = groups;
  p.images = x[0];
  p.channels = x[1];
  p.out_channels = w[0];
  if (groups < 1 || p.channels != w[1] * groups || p.out_channels % groups != 0) {
    fail(ErrorCode::ShapeMismatch,
         cat("Conv's channels do not fit: X ", x.to_string(), ", W ", w.to_string(), ", group ", groups));
  }
  window.complete(axes, w.dims().subspan(2));
  if (!std::equal(window.kernel.begin(), window.kernel.end(), w.begin() + 2)) {
    fail(ErrorCode::ShapeMismatch, cat("kernel_shape does not match W ", w.to_string()));
  }
  microkernels::ConvShape& s = p.shape;
  s.in_channels = size(w[1]);
  s.out_channels = size(p.out_channels / groups);
  p.out = tensor::Shape{p.images, p.out_channels};
  struct Fields {
    std::size_t *in, *out, *kernel, *stride, *dilation;
    std::ptrdiff_t* pad;
  };
  const Fields fields[kMostAxes] = {
      {&s.in_d, &s.out_d, &s.kernel_d, &s.stride_d, &s.dilation_d, &s.pad_front},
      {&s.in_h, &s.out_h, &s.kernel_h, &s.stride_h, &s.dilation_h, &s.pad_top},
      {&s.in_w, &s.out_w, &s.kernel_w, &s.stride_w, &s.dilation_w, &s.pad_left},
  };
  for (std::size_t i = 0; i < axes; ++i) {
    const Fields& f = fields[kMostAxes - axes + i];
    const Window::Axis axis = window.axis(i, x[i + 2]);
    p.out.push_back(axis.out);
    *f.in = size(x[i + 2]);
    *f.out = size(axis.out);
    *f.kernel = size(window.kernel[i]);
    *f.stride = size(window.strides[i]);
    *f.dilation = size(window.dilations[i]);
    *f.pad = axis.pad_begin;
  }
  drop_thin_axes(s);
  p.window = std::move(window);
  return p;
}

void transpose_rows(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const float* x,
                    std::size_t ld_x, float* y, std::size_t ld_y, std::size_t rows, std::size_t cols) {
  const auto move = kernels.transpose.bytes4;
  constexpr std::size_t kColumns = 64;  // at a time
  ctx.parallel_for(ceil_div(cols, kColumns), static_cast<double>(kColumns * rows) * 0.25,
                   [&](std::size_t begin, std::size_t end, std::size_t) {
                     const std::size_t c0 = begin * kColumns, c1 = std::min(cols, end * kColumns);
                     move(reinterpret_cast<const std::uint32_t*>(x + c0), ld_x,
                          reinterpret_cast<std::uint32_t*>(y + c0 * ld_y), ld_y, rows, c1 - c0);
                   });
}

void infer_conv_shape(kernel::InferContext& ctx, std::size_t x_input, std::size_t w_input) {
  const graph::SymShape* x = ctx.input_shape(x_input);
  const graph::SymShape* w = ctx.input_shape(w_input);
  if (x == nullptr || w == nullptr) return;
  if (x->size() < 3 || x->size() != w->size()) {
    fail(ErrorCode::ShapeMismatch, cat("Conv takes X [N,C,...] and W [M,C/group,...] of equal rank, got ",
                                       graph::to_string(*x), " and ", graph::to_string(*w)));
  }
  Window window(ctx.attributes());
  graph::SymShape out{(*x)[0], (*w)[0]};
  std::vector<std::int64_t> kernel;
  for (std::size_t i = 2; i < w->size() && (*w)[i].known(); ++i) kernel.push_back((*w)[i].value());
  if (window.kernel.empty() && kernel.size() + 2 != w->size()) {
    while (out.size() < x->size()) out.push_back(graph::Dim::unknown());
    ctx.set_output_shape(0, std::move(out));
    return;
  }
  window.complete(x->size() - 2, kernel);
  for (std::size_t i = 0; i + 2 < x->size(); ++i) out.push_back(window.infer_axis(i, (*x)[i + 2]));
  ctx.set_output_shape(0, std::move(out));
}

}  // namespace infernode::ops
