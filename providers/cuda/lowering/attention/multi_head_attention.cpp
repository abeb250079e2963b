// com.microsoft's MultiHeadAttention: heads side by side in rows, with a bias, a past and masks.

#include <algorithm>

#include "base/error.h"
#include "providers/cuda/lowering/parts/attention_mask.h"
#include "providers/cuda/lowering/parts/elements.h"

namespace infernode::cuda {
namespace {

using tensor::Shape;

constexpr std::size_t kBias = 3, kMask = 4, kAdded = 5, kPast = 6;

/// Caches that are shared, beams and scores as an output are left to the CPU.
bool can_attend(const NodeView& node) {
  const bool packed = node.input_rank(0) == 5, rest = node.has_input(1) && node.has_input(2);
  for (const std::size_t i : {8, 9}) {
    if (node.has_input(i)) return false;
  }
  return has_one_type(node, {kMask}) && !node.has_output(3) && node.has_input(kPast) == node.has_input(kPast + 1) &&
         node.attributes().get_int("num_heads", 0) > 0 &&
         (packed || (node.input_rank(0) == 3 &&
                     (rest ? node.input_rank(1).value_or(0) <= 4 && node.input_rank(2) == node.input_rank(1)
                           : node.has_input(1) && node.input_rank(1) == 5)));
}

/// Part `part` of the heads of input `i`: [B,S,N*H], packed [B,S,N,parts,H], or [B,N,L,H].
Operand4 part_of(Builder& b, std::size_t i, std::int64_t part, std::int64_t parts, std::int64_t heads) {
  const DeviceTensor t = b.input(i);
  const Shape& s = t.shape;
  Operand4 o{.at = t.at, .dtype = t.dtype, .batch = s[0], .heads = heads};
  if (s.rank() == 3 && s[2] % heads == 0) {
    o.rows = s[1], o.columns = s[2] / heads;
    o.batch_stride = s[1] * s[2], o.row_stride = s[2], o.head_stride = o.columns;
  } else if (s.rank() == 5 && s[2] == heads && s[3] == parts) {
    o.rows = s[1], o.columns = s[4];
    o.head_stride = parts * o.columns, o.row_stride = heads * o.head_stride, o.batch_stride = s[1] * o.row_stride;
    o.at += static_cast<DevicePtr>(part * o.columns) * t.element_bytes();
  } else if (s.rank() == 4 && s[1] == heads) {
    o.rows = s[2], o.columns = s[3];
    o.row_stride = s[3], o.head_stride = s[2] * s[3], o.batch_stride = heads * o.head_stride;
  } else {
    fail(ErrorCode::ShapeMismatch, cat("input ", i, " is ", s.to_string(), " for ", heads, " heads"));
  }
  return o;
}

/// Rows [B,S,N*H] with the bias from an element on added.
Operand4 biased(Builder& b, std::size_t i, Operand4 o, std::int64_t first) {
  if (!b.has_input(kBias) || b.input_shape(i).rank() != 3) return o;
  const DeviceTensor x = b.input(i), all = b.input(kBias), sum = scratch_tensor(b, x.dtype, x.shape);
  DeviceTensor bias = all;
  bias.shape = Shape{x.shape[2]};
  bias.at += static_cast<DevicePtr>(first) * all.element_bytes();
  launch_binary(b, BinaryOp::add, x, bias, sum);
  o.at = sum.at;
  return o;
}

/// Rows of the past, then new ones: output `o` where it is wanted.
Operand4 joined(Builder& b, std::size_t past_input, std::size_t o, const Operand4& fresh) {
  const bool wanted = b.wants_output(o);
  if (!wanted && !b.has_input(past_input)) return fresh;
  const DeviceTensor past = b.input(past_input);
  const Shape shape{fresh.batch, fresh.heads, (past ? past.shape[2] : 0) + fresh.rows, fresh.columns};
  return join_rows(b, past, fresh, wanted ? b.output(o) : scratch_tensor(b, fresh.dtype, shape));
}

void lower_attend(Builder& b) {
  const std::int64_t heads = b.attributes().get_int("num_heads", 1);
  const bool all_packed = b.input_shape(0).rank() == 5, keys_packed = !all_packed && b.input_shape(1).rank() == 5;
  const std::size_t from_k = all_packed ? 0 : 1, from_v = all_packed ? 0 : keys_packed ? 1 : 2;
  const std::int64_t parts = all_packed ? 3 : keys_packed ? 2 : 1;
  Operand4 q = part_of(b, 0, 0, all_packed ? 3 : 1, heads);
  Operand4 k = part_of(b, from_k, all_packed ? 1 : 0, parts, heads);
  Operand4 v = part_of(b, from_v, all_packed ? 2 : keys_packed ? 1 : 0, parts, heads);
  const std::int64_t width = heads * q.columns;
  if (b.has_input(kBias) && b.input_shape(kBias).numel() != 2 * width + heads * v.columns) {
    fail(ErrorCode::ShapeMismatch, cat("the bias is ", b.input_shape(kBias).to_string()));
  }
  q = biased(b, 0, q, 0);
  k = biased(b, from_k, k, width);
  v = biased(b, from_v, v, 2 * width);
  const std::int64_t fresh = k.rows;
  k = joined(b, kPast, 1, k);
  v = joined(b, kPast + 1, 2, v);
  check_fit(q, k, v);
  if (k.batch != q.batch || v.batch != q.batch) {
    fail(ErrorCode::ShapeMismatch,
         cat("keys of ", k.batch, " and values of ", v.batch, " sequences do not fit ", q.batch));
  }
  const Operand4 mask = microsoft_mask(b, kMask, kAdded, Shape{q.batch, q.heads, q.rows, k.rows});
  const DeviceTensor out = b.output(0);
  if (out.numel() == 0) return;
  Operand4 y{.at = out.at, .dtype = out.dtype, .batch = q.batch, .heads = heads, .rows = q.rows, .columns = v.columns};
  y.row_stride = heads * v.columns, y.head_stride = v.columns, y.batch_stride = q.rows * y.row_stride;
  attend(b, q, k, v, mask, y,
         {.scale = microsoft_scale(b, q.columns),
          .causal = b.attributes().get_int("unidirectional", 0) != 0,
          .causal_offset = k.rows - std::min(fresh, q.rows)});
}

}  // namespace

void register_multi_head_attention(Lowerings& lowerings) {
  lowerings.push_back({graph::kMicrosoft, "MultiHeadAttention", can_attend, lower_attend});
}

}  // namespace infernode::cuda
