// com.microsoft's Attention: queries, keys and values are projections of one input, by one matrix.

#include "base/error.h"
#include "providers/cuda/lowering/parts/attention_mask.h"
#include "providers/cuda/lowering/parts/elements.h"

namespace infernode::cuda {
namespace {

using tensor::Shape;

constexpr std::size_t kWeights = 1, kBias = 2, kMask = 3, kPast = 4, kAdded = 5, kLength = 6;

/// Caches that are shared, and positions that turn queries and keys, are left to the CPU.
bool can_project(const NodeView& node) {
  const auto& attributes = node.attributes();
  const std::size_t sizes = attributes.get_ints("qkv_hidden_sizes").size();
  return has_one_type(node, {kMask}) && node.input_rank(0) == 3 && node.input_rank(kWeights) == 2 &&
         !node.has_input(kLength) && attributes.get_int("past_present_share_buffer", 0) == 0 &&
         attributes.get_int("do_rotary", 0) == 0 && attributes.get_int("num_heads", 0) > 0 &&
         (sizes == 0 || sizes == 3) && !node.is_empty(0) && !node.is_empty(kWeights);
}

/// Widths of queries, keys and values.
std::vector<std::int64_t> widths_of(Builder& b, std::int64_t heads) {
  const Shape x = b.input_shape(0), w = b.input_shape(kWeights);
  std::vector<std::int64_t> widths = b.attributes().get_ints("qkv_hidden_sizes");
  if (widths.empty()) widths.assign(3, w[1] / 3);
  if (w[0] != x[2] || widths[0] < 1 || widths[2] < 1 || widths[0] != widths[1] || widths[0] % heads != 0 ||
      widths[2] % heads != 0 || widths[0] + widths[1] + widths[2] != w[1]) {
    fail(ErrorCode::ShapeMismatch, cat("an input ", x.to_string(), " and weights ", w.to_string(),
                                       " do not make queries, keys and values of ", heads, " heads"));
  }
  if (b.has_input(kBias) && b.input_shape(kBias).numel() != w[1]) {
    fail(ErrorCode::ShapeMismatch, cat("a bias ", b.input_shape(kBias).to_string(), " for ", w[1], " columns"));
  }
  return widths;
}

/// [batch, rows, width]
DeviceTensor project(Builder& b) {
  const DeviceTensor x = b.input(0);
  const Shape w = b.input_shape(kWeights);
  const DeviceTensor y = scratch_tensor(b, x.dtype, Shape{x.shape[0], x.shape[1], w[1]});
  GemmProblem p;
  p.m = x.shape[0] * x.shape[1], p.n = w[1], p.k = w[0];
  p.precision = precision_of(b);
  p.a = {.address = x.at, .type = element_of(x.dtype), .row_stride = p.k, .k_stride = 1};
  p.epilogue.out = y.at;
  p.epilogue.out_type = element_of(y.dtype);
  p.epilogue.out_row = p.n;
  if (b.has_input(kBias)) {
    p.epilogue.bias = b.input_floats(kBias);
    p.epilogue.columns_constant = b.known(kBias) != nullptr;
  }
  WeightLayout layout;
  p.b_constant = b.known(kWeights) != nullptr;
  if (p.b_constant) {
    use_weights(b, kWeights, false, p, layout);
  } else {
    p.b = {.address = b.input(kWeights).at, .type = element_of(x.dtype), .row_stride = 1, .k_stride = p.n};
  }
  launch_gemm(b, p);
  return y;
}

/// Columns of the projection from `first` on as heads.
Operand4 heads_from(const DeviceTensor& all, std::int64_t first, std::int64_t heads, std::int64_t columns) {
  Operand4 o{.at = all.at + static_cast<DevicePtr>(first) * all.element_bytes(), .dtype = all.dtype};
  o.batch = all.shape[0], o.heads = heads, o.rows = all.shape[1], o.columns = columns;
  o.row_stride = all.shape[2], o.head_stride = columns, o.batch_stride = all.shape[1] * all.shape[2];
  return o;
}

/// Keys are the first half of the past and of the present, values the other one.
DeviceTensor half_of(const DeviceTensor& t, std::int64_t half) {
  if (!t) return {};
  DeviceTensor part = t;
  part.shape = Shape{t.shape[1], t.shape[2], t.shape[3], t.shape[4]};
  part.at += static_cast<DevicePtr>(half * part.shape.numel()) * t.element_bytes();
  return part;
}

void lower_projected(Builder& b) {
  const std::int64_t heads = b.attributes().get_int("num_heads", 1);
  const std::vector<std::int64_t> widths = widths_of(b, heads);
  const DeviceTensor all = project(b);
  const Operand4 q = heads_from(all, 0, heads, widths[0] / heads);
  Operand4 k = heads_from(all, widths[0], heads, widths[1] / heads);
  Operand4 v = heads_from(all, 2 * widths[0], heads, widths[2] / heads);
  if (b.has_input(kPast) || b.wants_output(1)) {
    const DeviceTensor past = b.input(kPast);
    if ((past && past.shape.rank() != 5) || widths[0] != widths[2]) {
      fail(ErrorCode::ShapeMismatch, cat("a past ", past.shape.to_string(), " of keys and values of unlike sizes"));
    }
    const Shape shape{2, q.batch, heads, (past ? past.shape[3] : 0) + q.rows, q.columns};
    const DeviceTensor present = b.wants_output(1) ? b.output(1) : scratch_tensor(b, q.dtype, shape);
    k = join_rows(b, half_of(past, 0), k, half_of(present, 0));
    v = join_rows(b, half_of(past, 1), v, half_of(present, 1));
  }
  const Operand4 mask = microsoft_mask(b, kMask, kAdded, Shape{q.batch, heads, q.rows, k.rows});
  const DeviceTensor out = b.output(0);
  if (out.numel() == 0) return;
  attend(b, q, k, v, mask, heads_from(out, 0, heads, v.columns),
         {.scale = microsoft_scale(b, q.columns),
          .causal = b.attributes().get_int("unidirectional", 0) != 0,
          .causal_offset = k.rows - q.rows});
}

}  // namespace

void register_projected_attention(Lowerings& lowerings) {
  lowerings.push_back({graph::kMicrosoft, "Attention", can_project, lower_projected});
}

}  // namespace infernode::cuda
