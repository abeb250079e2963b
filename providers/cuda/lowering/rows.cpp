// Operators over rows: layer normalization, softmax, reductions.

#include "providers/cuda/kernels/simple/rows.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "providers/cuda/kernels/simple/elementwise.h"
#include "providers/cuda/kernels/simple/movement.h"
#include "providers/cuda/kernels/simple/pool.h"
#include "providers/cuda/lowering/parts/channel_gate.h"
#include "providers/cuda/lowering/parts/elements.h"

namespace infernode::cuda {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::TypeSet;

/// The scale and the bias are the same for all rows.
bool can_normalize(const NodeView& node) {
  const std::size_t rank = node.input_rank(0).value_or(0);
  const std::int64_t axis = node.attributes().get_int("axis", -1);
  const std::size_t row_rank = axis < 0 ? static_cast<std::size_t>(-axis) : rank - static_cast<std::size_t>(axis);
  return kReals.contains(node.input_dtype(0)) && node.output_dtype(0) == node.input_dtype(0) && !node.has_output(1) &&
         !node.has_output(2) && rank > 0 && row_rank <= rank && node.input_rank(1).value_or(rank + 1) <= row_rank &&
         (!node.has_input(2) || node.input_rank(2).value_or(rank + 1) <= row_rank);
}

/// The scale, input `i`, and the bias behind it: constants of the rows' size.
bool are_constant(Builder& b, std::size_t i, std::int64_t columns) {
  const auto is_whole = [&](std::size_t input) {
    return b.known(input) != nullptr && b.known(input)->numel() == columns;
  };
  return is_whole(i) && (!b.has_input(i + 1) || is_whole(i + 1));
}

/// Elements of the shape `from` repeated to the shape `to`. Throws ShapeMismatch where they do not broadcast.
DevicePtr repeated(Builder& b, DevicePtr given, std::size_t element_bytes, const Shape& from, const Shape& to) {
  const Shape strides = tensor::broadcast_strides(from, to), dense = to.strides();
  if (from.numel() == to.numel()) return given;
  const DevicePtr all = b.scratch(static_cast<std::size_t>(to.numel()) * element_bytes);
  b.launch(plan_strided_copy(b.target(), {.from = given,
                                          .to = all,
                                          .element_bytes = element_bytes,
                                          .dims = to,
                                          .from_stride = {strides.begin(), strides.end()},
                                          .to_stride = {dense.begin(), dense.end()}}));
  return all;
}

/// Input `i`, a scale or bias of rows of this shape, as float32; null where there is none.
DevicePtr row_floats(Builder& b, std::size_t i, const Shape& row) {
  return b.has_input(i) ? repeated(b, b.input_floats(i), sizeof(float), b.input_shape(i), row) : 0;
}

void normalize(Builder& b, bool no_mean, float epsilon) {
  const DeviceTensor x = b.input(0);
  const std::size_t axis = tensor::normalize_axis(b.attributes().get_int("axis", -1), x.shape.rank());
  Shape row;
  for (std::size_t d = axis; d < x.shape.rank(); ++d) row.push_back(x.shape[d]);
  NormalizeParams p{.in = x.at,
                    .out = 0,
                    .residual = 0,
                    .sum = 0,
                    .scale = row_floats(b, 1, row),
                    .bias = row_floats(b, 2, row),
                    .rows = x.shape.numel(0, axis),
                    .columns = static_cast<std::int32_t>(row.numel()),
                    .no_mean = no_mean,
                    .columns_constant = are_constant(b, 1, row.numel()),
                    .epsilon = epsilon};
  p.out = b.output(0).at;
  if (x.numel() == 0) return;
  Launch launch = plan_normalize(b.target(), x.dtype, p);
  constexpr std::int64_t kFewRows = 8;
  if (p.rows > kFewRows || !p.columns_constant || b.input_dtype(1) != x.dtype) return b.launch(std::move(launch));
  // Products of few rows do it on the way.
  float largest = 0;
  for (const float scale : tensor::to_float_vector(*b.known(1))) largest = std::max(largest, std::abs(scale));
  constexpr float kMostScale = 16384;  // its reciprocal is a normal number of 16 bits
  if (!(largest <= kMostScale)) return b.launch(std::move(launch));
  const RowNorm norm{b.input(1).at, b.input(2).at, epsilon, no_mean, largest};
  b.defer(0, {.launches = {std::move(launch)}, .reads = {x}, .norm = norm});
}
void lower_layer_norm(Builder& b) { normalize(b, false, b.attributes().get_float("epsilon", 1e-5f)); }
void lower_rms_norm(Builder& b) { normalize(b, true, b.attributes().get_float("epsilon", 1e-5f)); }

/// com.microsoft's: input + skip + bias, normalized. Outputs: y, mean, deviation, sum.
template <bool simplified>
bool can_skip_norm(const NodeView& node) {
  return kReals.contains(node.input_dtype(0)) && node.input_rank(0) == node.input_rank(1) && !node.has_output(1) &&
         !node.has_output(2);
}
/// `skip` has x's shape but for the first dim, which may be 1; scales and biases are of the last dim's size.
void check_skip_norm(Builder& b, const Shape& x, std::size_t vectors_end) {
  const Shape skip = b.input_shape(1);
  bool fits = x.rank() > 0 && (skip[0] == x[0] || (skip[0] == 1 && x.rank() > 1));
  for (std::size_t d = 1; d < x.rank(); ++d) fits = fits && skip[d] == x[d];
  if (!fits) {
    fail(ErrorCode::ShapeMismatch, cat("SkipLayerNormalization adds ", skip.to_string(), " to ", x.to_string()));
  }
  for (std::size_t i = 2; i < vectors_end; ++i) {
    if (!b.has_input(i) || b.input_shape(i).numel() == x.back()) continue;
    fail(ErrorCode::ShapeMismatch, cat("SkipLayerNormalization: ", b.input_shape(i).to_string(),
                                       " does not fit rows of ", x.back(), " elements"));
  }
}

template <bool simplified>
void lower_skip_norm(Builder& b) {
  constexpr std::size_t kBias = simplified ? 3 : 4;
  DeviceTensor x = b.input(0);
  const DeviceTensor skip = b.input(1);
  if (x.numel() > 0) check_skip_norm(b, x.shape, kBias + 1);
  if (b.has_input(kBias)) {
    DeviceTensor bias = b.input(kBias);
    const DeviceTensor sum = scratch_tensor(b, x.dtype, x.shape);
    bias.shape = Shape{x.shape.back()};
    launch_binary(b, BinaryOp::add, x, bias, sum);
    x = sum;
  }
  NormalizeParams p{.in = x.at,
                    .out = 0,
                    .residual = repeated(b, skip.at, skip.element_bytes(), skip.shape, x.shape),
                    .sum = 0,
                    .scale = b.input_floats(2),
                    .bias = simplified ? 0 : b.input_floats(3),
                    .rows = x.shape.numel(0, x.shape.rank() - 1),
                    .columns = static_cast<std::int32_t>(x.shape.back()),
                    .no_mean = simplified,
                    .columns_constant = are_constant(b, 2, x.shape.back()),
                    .epsilon = b.attributes().get_float("epsilon", simplified ? 1e-5f : 1e-12f)};
  p.out = b.output(0).at;
  if (b.wants_output(3)) p.sum = b.output(3).at;
  if (x.numel() > 0) b.launch(plan_normalize(b.target(), x.dtype, p));
}

bool can_softmax(const NodeView& node) { return node.all_of(kReals); }
template <bool logarithm>
void lower_softmax(Builder& b) {
  const DeviceTensor x = b.input(0);
  const bool flattens = b.node().opset < 13;  // all axes from the given one on
  const std::size_t axis = tensor::normalize_axis(b.attributes().get_int("axis", flattens ? 1 : -1), x.shape.rank());
  const std::size_t end = flattens ? x.shape.rank() : axis + 1;
  const std::int64_t inner = x.shape.numel(end, x.shape.rank());
  const SoftmaxParams p{.in = x.at,
                        .out = b.output(0).at,
                        .rows = x.shape.numel(0, axis) * inner,
                        .columns = static_cast<std::int32_t>(x.shape.numel(axis, end)),
                        .inner = inner,
                        .logarithm = logarithm};
  if (x.numel() > 0) b.launch(plan_softmax(b.target(), x.dtype, p));
}

/// Axes that lie side by side become one; others are left to the CPU, as are those that are not known.
bool can_reduce(const NodeView& node) {
  return (node.all_of(kReals | kInts)) && node.is_known(1) && node.input_rank(0).value_or(0) > 0;
}

std::vector<std::size_t> axes_of(Builder& b, std::size_t rank) {
  std::vector<std::int64_t> given = b.attributes().get_ints("axes");
  if (const tensor::Tensor* axes = b.known(1)) given = tensor::to_int64_vector(*axes);
  std::vector<std::size_t> axes;
  if (given.empty() && b.attributes().get_int("noop_with_empty_axes", 0) == 0) {
    for (std::size_t d = 0; d < rank; ++d) axes.push_back(d);
  }
  for (const std::int64_t axis : given) axes.push_back(tensor::normalize_axis(axis, rank));
  std::sort(axes.begin(), axes.end());
  return axes;
}

/// The mean or the largest of each image's pixels, where channels lie last already.
bool reduce_pixels(Builder& b, ReduceOp op) {
  const DeviceTensor x = b.input_as_it_is(0);
  if (x.order != Order::ChannelsLast || (op != ReduceOp::mean && op != ReduceOp::max) || !kReals.contains(x.dtype))
    return false;
  const std::vector<std::size_t> axes = axes_of(b, x.shape.rank());
  if (axes.size() != x.shape.rank() - 2 || axes.front() != 2) return false;
  if (op == ReduceOp::mean && defer_pixel_means(b)) return true;
  if (x.numel() > 0) b.launch(plan_global_pool(b.target(), x, b.output(0), op == ReduceOp::mean));
  return true;
}

/// Whether the reduction of a single number is that number.
bool keeps_elements(ReduceOp op) { return op <= ReduceOp::prod; }

/// Each element by itself: over no axes.
void reduce_each(Builder& b, const DeviceTensor& x, ReduceOp op) {
  const ReduceParams p{.in = x.at, .out = b.output(0).at, .outputs = x.numel(), .columns = 1, .inner = 1, .op = op};
  if (p.outputs > 0) b.launch(plan_reduce(b.target(), x.dtype, p));
}

/// The largest or the smallest of no integers: the least or the greatest number of their type.
void reduce_nothing(Builder& b, tensor::DType dtype, const ReduceParams& p) {
  const bool wide = dtype == DType::Int64;
  const std::uint64_t least = wide ? std::uint64_t{1} << 63 : std::uint64_t{1} << 31;
  b.launch(plan_fill(b.target(), {.to = p.out,
                                  .element_bytes = std::size_t{wide ? 8u : 4u},
                                  .dims = Shape{p.outputs},
                                  .to_stride = {1},
                                  .bits = p.op == ReduceOp::max ? least : least - 1}));
}

/// Reduces one run of neighbouring axes after the other, innermost first. Means of means of equal counts are means;
/// norms of norms are norms; but a logarithm or a square is taken once only.
void reduce(Builder& b, ReduceOp op) {
  if (reduce_pixels(b, op)) return;
  const DeviceTensor x = b.input(0);
  std::vector<std::size_t> axes = axes_of(b, x.shape.rank());
  if (axes.empty() && keeps_elements(op)) return b.view(0, x);
  if (axes.empty()) return reduce_each(b, x, op);
  Shape shape = x.shape;
  DevicePtr from = x.at;
  ReduceOp now = op;
  while (!axes.empty()) {
    std::size_t first = axes.size() - 1;
    while (first > 0 && axes[first - 1] + 1 == axes[first]) --first;
    const std::size_t begin = axes[first], end = axes.back() + 1;
    axes.resize(first);
    ReduceParams p{.in = from, .out = 0, .outputs = 0, .columns = shape.numel(begin, end), .inner = 0, .op = now};
    p.inner = shape.numel(end, shape.rank());
    p.outputs = shape.numel(0, begin) * p.inner;
    for (std::size_t d = begin; d < end; ++d) shape[d] = 1;
    p.out = axes.empty() ? b.output(0).at : b.scratch(tensor::byte_size(x.dtype, p.outputs));
    const bool nothing = p.columns == 0 && kInts.contains(x.dtype) && (now == ReduceOp::max || now == ReduceOp::min);
    if (nothing) {
      reduce_nothing(b, x.dtype, p);
    } else if (p.outputs > 0) {
      b.launch(plan_reduce(b.target(), x.dtype, p));
    }
    from = p.out;
    if (op == ReduceOp::sum_square || op == ReduceOp::l1) now = ReduceOp::sum;
  }
}
bool can_reduce_once(const NodeView& node) {
  // More than one run of axes would take the logarithm twice.
  return can_reduce(node) && node.all_of(kReals) && node.input_rank(0).value_or(0) <= 2;
}
template <ReduceOp op>
void lower_reduce(Builder& b) {
  reduce(b, op);
}

bool can_scan(const NodeView& node) {
  return (kReals | kInts).contains(node.input_dtype(0)) && node.has_input(1) && node.is_known(1);
}
void lower_scan(Builder& b) {
  const DeviceTensor x = b.input(0);
  const std::size_t axis = tensor::normalize_axis(tensor::to_int64_scalar(*b.known(1)), x.shape.rank());
  const std::int64_t inner = x.shape.numel(axis + 1, x.shape.rank());
  const ScanParams p{.in = x.at,
                     .out = b.output(0).at,
                     .rows = x.shape.numel(0, axis) * inner,
                     .columns = x.shape[axis],
                     .inner = inner,
                     .exclusive = b.attributes().get_int("exclusive", 0) != 0,
                     .reverse = b.attributes().get_int("reverse", 0) != 0};
  if (x.numel() > 0) b.launch(plan_scan(b.target(), x.dtype, p));
}

}  // namespace

void register_rows(Lowerings& lowerings) {
  lowerings.push_back({"", "LayerNormalization", can_normalize, lower_layer_norm});
  lowerings.push_back({"", "RMSNormalization", can_normalize, lower_rms_norm});
  lowerings.push_back({"", "SimplifiedLayerNormalization", can_normalize, lower_rms_norm});
  lowerings.push_back({graph::kMicrosoft, "SkipLayerNormalization", can_skip_norm<false>, lower_skip_norm<false>});
  lowerings.push_back(
      {graph::kMicrosoft, "SkipSimplifiedLayerNormalization", can_skip_norm<true>, lower_skip_norm<true>});
  lowerings.push_back({"", "Softmax", can_softmax, lower_softmax<false>});
  lowerings.push_back({"", "LogSoftmax", can_softmax, lower_softmax<true>});
  lowerings.push_back({"", "CumSum", can_scan, lower_scan});
  lowerings.push_back({"", "ReduceSum", can_reduce, lower_reduce<ReduceOp::sum>});
  lowerings.push_back({"", "ReduceMean", can_reduce, lower_reduce<ReduceOp::mean>});
  lowerings.push_back({"", "ReduceMax", can_reduce, lower_reduce<ReduceOp::max>});
  lowerings.push_back({"", "ReduceMin", can_reduce, lower_reduce<ReduceOp::min>});
  lowerings.push_back({"", "ReduceProd", can_reduce, lower_reduce<ReduceOp::prod>});
  lowerings.push_back({"", "ReduceL1", can_reduce, lower_reduce<ReduceOp::l1>});
  lowerings.push_back({"", "ReduceL2", can_reduce_once, lower_reduce<ReduceOp::l2>});
  lowerings.push_back({"", "ReduceSumSquare", can_reduce, lower_reduce<ReduceOp::sum_square>});
  lowerings.push_back({"", "ReduceLogSum", can_reduce_once, lower_reduce<ReduceOp::log_sum>});
  lowerings.push_back({"", "ReduceLogSumExp", can_reduce_once, lower_reduce<ReduceOp::log_sum_exp>});
}

}  // namespace infernode::cuda
