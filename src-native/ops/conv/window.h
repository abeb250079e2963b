#pragma once
// Geometry that convolutions and poolings share.

#include <cstdint>
#include <string>

#include "graph/attributes.h"
#include "kernel/infer_context.h"
#include "kernel/kernel.h"
#include "microkernels/conv/conv.h"
#include "tensor/shape.h"

namespace infernode::ops {

/// Attributes of a sliding window over the spatial axes; lists are empty until the rank is known, then completed with
/// defaults.
struct Window {
  enum class AutoPad : std::uint8_t { NotSet, SameUpper, SameLower, Valid };
  AutoPad auto_pad = AutoPad::NotSet;
  std::vector<std::int64_t> kernel, strides, dilations, pads;
  bool ceil_mode = false;

  Window() = default;
  /// Reads auto_pad, kernel_shape, strides, dilations, pads, ceil_mode. Throws InvalidModel on negative or zero sizes.
  explicit Window(const graph::Attributes& attributes);
  /// Fills missing lists for `rank` spatial axes (kernel from `kernel_dims` where it is missing) and checks their
  /// lengths.
  void complete(std::size_t rank, std::span<const std::int64_t> kernel_dims);
  /// Size of the output along an axis and the pads (begin, end) that apply. Throws ShapeMismatch where the window does
  /// not fit.
  struct Axis {
    std::int64_t out, pad_begin, pad_end;
  };
  Axis axis(std::size_t i, std::int64_t in) const;
  /// Output size for a symbolic input size.
  graph::Dim infer_axis(std::size_t i, const graph::Dim& in) const;
};

/// Window, groups and sizes of one call of a convolution over up to three spatial axes.
struct ConvProblem {
  Window window;
  std::int64_t images = 0, channels = 0, out_channels = 0, groups = 1;
  tensor::Shape out;
  microkernels::ConvShape shape;  ///< of one group
  bool depthwise() const { return shape.in_channels == 1 && groups > 1; }
};

/// What a convolution reads and writes.
struct ConvOperands {
  const float* x;         ///< [images, channels, ...]
  const float* w;         ///< the weight as it is, for who asks for it; else null
  const float* bias;      ///< [out_channels], or null
  const float* residual;  ///< like y, or null
  float* y;
};

/// Throws ShapeMismatch where X and W do not fit each other or the window.
ConvProblem plan_conv(Window window, std::int64_t groups, const tensor::Shape& x, const tensor::Shape& w);

/// y[c][r] = x[r][c], in parallel by columns of x; rows of x and y are `ld_x` and `ld_y` apart.
void transpose_rows(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const float* x,
                    std::size_t ld_x, float* y, std::size_t ld_y, std::size_t rows, std::size_t cols);

/// Shape of output 0 of a convolution of input `x` by input `w`.
void infer_conv_shape(kernel::InferContext& ctx, std::size_t x, std::size_t w);

}  // namespace infernode::ops
