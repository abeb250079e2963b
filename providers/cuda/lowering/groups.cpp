// Normalization over groups of channels and over rows: of instances, groups, neighbouring channels, by norms.

#include "providers/cuda/kernels/params/groups.h"

#include <algorithm>

#include "base/error.h"
#include "providers/cuda/lowering/parts/elements.h"
#include "providers/cuda/lowering/parts/moves.h"

namespace infernode::cuda {
namespace {

using tensor::Shape;

void launch_groups(Builder& b, tensor::DType dtype, std::int64_t groups, const GroupNormParams& p) {
  constexpr std::int64_t kLarge = 4096;
  const std::uint32_t threads = p.members * p.pixels >= kLarge ? 1024 : 128;
  b.launch(launch_of_blocks(cat("group_norm_", kernel_suffix(dtype)), groups, 1, threads, param_bytes(p)));
}

void expect_elements(Builder& b, std::size_t i, std::int64_t count) {
  if (!b.has_input(i) || b.input_shape(i).numel() == count) return;
  fail(ErrorCode::ShapeMismatch,
       cat(b.node().op_type, ": input ", i, " has ", b.input_shape(i).numel(), " elements, expected ", count));
}
void expect_groups(std::int64_t channels, std::int64_t groups) {
  if (groups < 1 || channels % groups != 0) {
    fail(ErrorCode::ShapeMismatch, cat(channels, " channels do not divide into ", groups, " groups"));
  }
}

template <bool grouped>
bool can_normalize(const NodeView& node) {
  return kReals.contains(node.input_dtype(0)) && node.all_of({node.input_dtype(0)}) &&
         node.input_rank(0).value_or(0) >= 2 && (!grouped || node.attributes().get_int("num_groups", 0) > 0);
}
/// InstanceNormalization: each channel is a group. Images may have channels last.
template <bool grouped>
void lower_normalize(Builder& b) {
  const DeviceTensor x = b.input_as_it_is(0);
  const std::int64_t channels = x.shape[1], groups = grouped ? b.attributes().get_int("num_groups", 1) : channels;
  if (channels > 0) expect_groups(channels, groups);
  const bool by_group = grouped && b.node().opset < 21;
  for (const std::size_t i : {1, 2}) expect_elements(b, i, by_group ? groups : channels);
  GroupNormParams p{};
  p.scale = b.input_floats(1);
  p.bias = b.input_floats(2);
  p.in = x.at;
  p.out = b.output(0, x.order).at;
  if (x.numel() == 0) return;
  const std::vector<std::int64_t> strides = strides_of(x);
  p.pixels = x.shape.numel(2, x.shape.rank());
  p.image_stride = strides[0];
  p.channel_stride = x.order == Order::ChannelsLast ? 1 : p.pixels;
  p.pixel_stride = x.order == Order::ChannelsLast ? x.pitch : 1;
  p.groups = static_cast<std::int32_t>(groups);
  p.members = static_cast<std::int32_t>(channels / groups);
  p.by_group = by_group;
  p.epsilon = b.attributes().get_float("epsilon", 1e-5f);
  launch_groups(b, x.dtype, x.shape[0] * groups, p);
}

/// com.microsoft's GroupNorm and SkipGroupNorm, which say themselves where the channels are.
bool can_group_norm(const NodeView& node) {
  const std::int64_t activation = node.attributes().get_int("activation", -1);
  return kReals.contains(node.input_dtype(0)) && node.input_rank(0) == 4 &&
         node.attributes().get_int("groups", 0) > 0 && (activation == 0 || activation == 1);
}
template <bool skips>
void lower_group_norm(Builder& b) {
  const DeviceTensor x = b.input(0);
  const bool last = b.attributes().get_int("channels_last", 1) != 0;
  const std::int64_t channels = x.shape[last ? 3 : 1], groups = b.attributes().get_int("groups", 1);
  expect_groups(channels, groups);
  for (const std::size_t i : {1, 2}) expect_elements(b, i, channels);
  if (skips) expect_elements(b, 4, channels);
  GroupNormParams p{};
  p.pixels = channels == 0 ? 0 : x.shape.numel(1, 4) / channels;
  if (skips) {
    const DeviceTensor skip = b.input(3);
    p.skip_is_pixel = skip.numel() != x.numel();
    if (skip.shape.rank() != 4) expect_elements(b, 3, skip.shape.rank() == 2 ? x.shape[0] * channels : -1);
    if (p.skip_is_pixel) expect_elements(b, 3, x.shape[0] * channels);
    p.skip = skip.at;
    p.skip_bias = b.input(4).at;
  }
  p.scale = b.input_floats(1);
  p.bias = b.input_floats(2);
  p.in = x.at;
  p.out = b.output(0).at;
  if (skips && b.wants_output(1)) p.sum = b.output(1).at;
  if (x.numel() == 0) return;
  p.image_stride = channels * p.pixels;
  p.channel_stride = last ? 1 : p.pixels;
  p.pixel_stride = last ? channels : 1;
  p.groups = static_cast<std::int32_t>(groups);
  p.members = static_cast<std::int32_t>(channels / groups);
  p.silu = b.attributes().get_int("activation", 0) == 1;
  p.epsilon = b.attributes().get_float("epsilon", 1e-5f);
  launch_groups(b, x.dtype, x.shape[0] * groups, p);
}

bool can_mean_variance(const NodeView& node) { return node.all_of(kReals) && node.node().opset >= 9 && can_move(node); }
/// Kept axes first, the others behind them: rows of which each is normalized.
void lower_mean_variance(Builder& b) {
  const DeviceTensor x = b.input(0), y = b.output(0);
  if (x.numel() == 0) return;
  const std::size_t rank = x.shape.rank();
  std::vector<bool> reduced(rank, false);
  for (const std::int64_t axis : b.attributes().get_ints("axes", {0, 2, 3})) {
    reduced[tensor::normalize_axis(axis, rank)] = true;
  }
  const std::vector<std::int64_t> strides = strides_of(x);
  Shape dims;
  std::vector<std::int64_t> from;
  std::int64_t rows = 1;
  for (const bool pass : {false, true}) {
    for (std::size_t d = 0; d < rank; ++d) {
      if (reduced[d] != pass) continue;
      dims.push_back(x.shape[d]), from.push_back(strides[d]);
      if (!pass) rows *= x.shape[d];
    }
  }
  const DeviceTensor arranged = scratch_tensor(b, x.dtype, dims);
  copy_dense(b, x.at, dims, x.element_bytes(), arranged.at, from);
  GroupNormParams p{};
  p.in = p.out = arranged.at;
  p.pixels = x.numel() / rows;
  p.image_stride = p.channel_stride = p.pixels;
  p.pixel_stride = 1;
  p.groups = p.members = 1;
  p.plain_deviation = 1;
  p.epsilon = 1e-9f;
  launch_groups(b, x.dtype, rows, p);
  b.launch(plan_strided_copy(b.target(), {.from = arranged.at,
                                          .to = y.at,
                                          .element_bytes = x.element_bytes(),
                                          .dims = dims,
                                          .from_stride = vector_of(dims.strides()),
                                          .to_stride = from}));
}

template <class P>
void launch_rows(Builder& b, std::string_view kernel, tensor::DType dtype, std::int64_t rows, std::int64_t per_block,
                 const P& params) {
  b.launch(launch_of_blocks(cat(kernel, kernel_suffix(dtype)), rows, per_block, 128, param_bytes(params)));
}

bool can_lp(const NodeView& node) {
  const std::int64_t p = node.attributes().get_int("p", 2);
  return node.all_of(kReals) && node.input_rank(0).value_or(0) > 0 && (p == 1 || p == 2);
}
void lower_lp(Builder& b) {
  const DeviceTensor x = b.input(0);
  const std::size_t axis = tensor::normalize_axis(b.attributes().get_int("axis", -1), x.shape.rank());
  const std::int64_t inner = x.shape.numel(axis + 1, x.shape.rank());
  const LpNormParams p{.in = x.at,
                       .out = b.output(0).at,
                       .rows = x.shape.numel(0, axis) * inner,
                       .columns = x.shape[axis],
                       .inner = inner,
                       .p = static_cast<std::int32_t>(b.attributes().get_int("p", 2))};
  if (x.numel() > 0) launch_rows(b, "lp_norm_", x.dtype, p.rows, 4, p);
}

bool can_lrn(const NodeView& node) {
  return node.all_of(kReals) && node.input_rank(0).value_or(0) >= 3 && node.attributes().get_int("size", 0) > 0;
}
void lower_lrn(Builder& b) {
  const DeviceTensor x = b.input(0);
  const std::int64_t size = b.attributes().get_int("size", 1);
  const LrnParams p{.in = x.at,
                    .out = b.output(0).at,
                    .count = x.numel(),
                    .channels = x.shape[1],
                    .pixels = x.shape.numel(2, x.shape.rank()),
                    .before = (size - 1) / 2,
                    .behind = size / 2,
                    .alpha = b.attributes().get_float("alpha", 1e-4f) / static_cast<float>(size),
                    .beta = b.attributes().get_float("beta", 0.75f),
                    .bias = b.attributes().get_float("bias", 1)};
  if (x.numel() > 0) launch_rows(b, "lrn_", x.dtype, p.count, 128, p);
}

}  // namespace

void register_groups(Lowerings& lowerings) {
  lowerings.push_back({"", "InstanceNormalization", can_normalize<false>, lower_normalize<false>});
  lowerings.push_back({"", "GroupNormalization", can_normalize<true>, lower_normalize<true>});
  lowerings.push_back({graph::kMicrosoft, "GroupNorm", can_group_norm, lower_group_norm<false>});
  lowerings.push_back({graph::kMicrosoft, "SkipGroupNorm", can_group_norm, lower_group_norm<true>});
  lowerings.push_back({"", "MeanVarianceNormalization", can_mean_variance, lower_mean_variance});
  lowerings.push_back({"", "LpNormalization", can_lp, lower_lp});
  lowerings.push_back({"", "LRN", can_lrn, lower_lrn});
}

}  // namespace infernode::cuda
