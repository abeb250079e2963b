// The standard's Attention.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "providers/cuda/kernels/simple/elementwise.h"
#include "providers/cuda/lowering/parts/attention_mask.h"
#include "providers/cuda/lowering/parts/elements.h"

namespace infernode::cuda {
namespace {

using tensor::DType;
using tensor::Shape;

constexpr std::size_t kMask = 3, kPast = 4, kLengths = 6;

std::int64_t window_of(const graph::Attributes& attributes, const char* name) {
  constexpr std::int64_t kFar = 1 << 30;  // beyond any sequence
  return std::min<std::int64_t>(attributes.get_int(name, -1), kFar);
}

/// Scores as an output, or bent by a hyperbolic tangent, are left to the CPU.
bool can_attend(const NodeView& node) {
  const auto& attributes = node.attributes();
  const std::size_t rank = node.input_rank(0).value_or(0);
  const bool windows =
      window_of(attributes, "left_window_size") >= 0 || window_of(attributes, "right_window_size") >= 0;
  const bool flat = rank == 3 && attributes.get_int("q_num_heads", 0) > 0 && attributes.get_int("kv_num_heads", 0) > 0;
  const bool mask = !node.has_input(kMask) || (node.input_rank(kMask).value_or(0) > 0 && node.input_rank(kMask) <= 4 &&
                                               (kAllNumbers | kBool).contains(node.input_dtype(kMask)));
  return (flat || rank == 4) && node.input_rank(1) == rank && node.input_rank(2) == rank && mask &&
         has_one_type(node, {kMask, kLengths}) && !node.has_output(3) && attributes.get_float("softcap", 0) == 0 &&
         node.has_input(kPast) == node.has_input(kPast + 1) &&
         !(node.has_input(kLengths) && (windows || node.has_input(kPast)));
}

/// [batch, heads, rows, columns], or [batch, rows, heads * columns].
Operand4 heads_in(const DeviceTensor& t, std::int64_t heads) {
  if (t.shape.rank() == 4) return operand_of(t, false);
  if (t.shape[2] % heads != 0) {
    fail(ErrorCode::ShapeMismatch, cat(t.shape.to_string(), " does not divide into ", heads, " heads"));
  }
  DeviceTensor split = t;
  split.shape = Shape{t.shape[0], t.shape[1], heads, t.shape[2] / heads};
  return operand_of(split, true);
}

/// Keys or values behind those of the past: an output where it is wanted.
Operand4 joined(Builder& b, const Operand4& fresh, std::size_t past_input, std::size_t o) {
  const DeviceTensor past = b.input(past_input);
  if (!past && !b.wants_output(o)) return fresh;
  const Shape shape{fresh.batch, fresh.heads, (past && past.shape.rank() == 4 ? past.shape[2] : 0) + fresh.rows,
                    fresh.columns};
  return join_rows(b, past, fresh, b.wants_output(o) ? b.output(o) : scratch_tensor(b, fresh.dtype, shape));
}

DevicePtr lengths_of(Builder& b, std::int64_t batch) {
  if (!b.has_input(kLengths)) return 0;
  const DeviceTensor given = b.input(kLengths), to = scratch_tensor(b, DType::Int32, Shape{batch});
  if (!(given.shape == to.shape)) {
    fail(ErrorCode::ShapeMismatch, cat(given.shape.to_string(), " lengths for ", batch, " sequences"));
  }
  b.launch(plan_cast(b.target(), {given.at, given.dtype, to.at, to.dtype, batch}));
  return to.at;
}

/// What is added to the scores: the mask, and windows that attention's kernels do not know.
Operand4 mask_in(Builder& b, const Shape& scores, const Attending& how, bool windows) {
  const std::int64_t keys = scores[3];
  DeviceTensor mask = b.input(kMask);
  if (mask && mask.shape.back() > keys) {
    fail(ErrorCode::ShapeMismatch, cat("a mask ", mask.shape.to_string(), " is wider than ", keys, " keys"));
  }
  const bool whole = mask && mask.shape.back() == keys && keys > 1;
  if (!windows && (!mask || (whole && kProductTypes.contains(mask.dtype)))) return mask_of(b, kMask, 4, scores);
  AttentionMaskParams p = open_mask(keys);
  Shape sizes{scores[0], 1, windows ? scores[2] : 1, keys};
  if (mask) {
    const std::size_t rank = mask.shape.rank();
    if (rank > 1 && mask.shape[rank - 2] != 1) sizes[2] = scores[2];
    if (rank > 2 && mask.shape[rank - 3] != 1) sizes[1] = scores[1];
    Shape of_mask = sizes;
    of_mask[3] = mask.shape.back();
    (mask.dtype == DType::Bool ? p.open : p.added) = mask_source(mask, of_mask);
    p.columns = static_cast<std::int32_t>(mask.shape.back());
  }
  if (windows) {
    p.left = static_cast<std::int32_t>(window_of(b.attributes(), "left_window_size"));
    p.right = static_cast<std::int32_t>(window_of(b.attributes(), "right_window_size"));
    p.place = static_cast<std::int32_t>(how.causal_offset);
  }
  return make_mask(b, p, sizes);
}

void lower_attend(Builder& b) {
  const auto& attributes = b.attributes();
  const std::int64_t q_heads = attributes.get_int("q_num_heads", 0), kv_heads = attributes.get_int("kv_num_heads", 0);
  const Operand4 q = heads_in(b.input(0), q_heads);
  Operand4 k = heads_in(b.input(1), kv_heads), v = heads_in(b.input(2), kv_heads);
  const std::int64_t fresh = k.rows;
  k = joined(b, k, kPast, 1);
  v = joined(b, v, kPast + 1, 2);
  check_fit(q, k, v);
  if (k.batch != q.batch || v.batch != q.batch) {
    fail(ErrorCode::ShapeMismatch, cat(k.batch, " and ", v.batch, " sequences of keys and values for ", q.batch));
  }
  Attending how{.scale = attributes.get_float("scale", 1.0f / std::sqrt(static_cast<float>(q.columns))),
                .causal = attributes.get_int("is_causal", 0) != 0,
                .causal_offset = k.rows - fresh,
                .lengths = lengths_of(b, q.batch)};
  if (how.lengths != 0) how.causal_offset = k.rows - q.rows;
  const std::int64_t left = window_of(attributes, "left_window_size"),
                     right = window_of(attributes, "right_window_size");
  if (how.causal && left >= 0) how.window = left + 1;
  const bool windows = !how.causal && (left >= 0 || right >= 0);
  const Operand4 mask = mask_in(b, Shape{q.batch, q.heads, q.rows, k.rows}, how, windows);
  const DeviceTensor out = b.output(0);
  if (out.numel() == 0) return;
  const Operand4 y = heads_in(out, q_heads);
  attend(b, q, k, v, mask, y, how);
  if (mask.at != 0) clear_shut_queries(b, q, k, mask, y, how);
}

}  // namespace

void register_standard_attention(Lowerings& lowerings) {
  lowerings.push_back({"", "Attention", can_attend, lower_attend});
}

}  // namespace infernode::cuda
