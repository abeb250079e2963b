// com.microsoft's GroupQueryAttention: causal attention of decoders, whose keys and values join a cache.

#include <algorithm>

#include "base/error.h"
#include "providers/cuda/kernels/params/rotary.h"
#include "providers/cuda/kernels/simple/elementwise.h"
#include "providers/cuda/kernels/simple/rows.h"
#include "providers/cuda/lowering/parts/attention_mask.h"
#include "providers/cuda/lowering/parts/elements.h"

namespace infernode::cuda {
namespace {

using tensor::DType;
using tensor::Shape;

constexpr std::size_t kPast = 3, kLast = 5, kTotal = 6, kCos = 7, kPositions = 9, kBias = 10, kQNorm = 14;

/// Caches of codes or that forget, scores as an output, sinks, caps and padded queries are left to the CPU.
bool can_attend(const NodeView& node) {
  const auto& attributes = node.attributes();
  for (const std::size_t i : {11, 12, 13, 16}) {
    if (node.has_input(i)) return false;
  }
  const bool rotary = attributes.get_int("do_rotary", 0) != 0, packed = !node.has_input(1);
  const std::int64_t heads = attributes.get_int("num_heads", 0), kv_heads = attributes.get_int("kv_num_heads", 0);
  const bool plain = attributes.get_string("k_quant_type", "NONE") == "NONE" &&
                     attributes.get_string("v_quant_type", "NONE") == "NONE" &&
                     attributes.get_float("softcap", 0) == 0 && attributes.get_int("smooth_softmax", 0) <= 0 &&
                     attributes.get_int("sliding_window_cache", 0) == 0;
  const bool causal = attributes.get_int("causal", 1) != 0 || attributes.get_int("local_window_size", -1) <= 0;
  return plain && causal && has_one_type(node, {kLast, kTotal, kPositions}) && !node.has_output(3) &&
         node.input_rank(0) == 3 && node.has_input(2) != packed && node.is_known(kTotal) && heads > 0 && kv_heads > 0 &&
         heads % kv_heads == 0 && node.has_input(kPast) == node.has_input(kPast + 1) &&
         node.has_input(kQNorm) == node.has_input(kQNorm + 1) && !(packed && node.has_input(kQNorm)) &&
         (!rotary || (node.has_input(kCos) && node.has_input(kCos + 1)));
}

/// What the node says of itself at these dims.
struct Sizes {
  std::int64_t heads, kv_heads, batch, rows, head, held, total, capacity;
  bool packed;
  /// No sequence has a past: each begins with the first query.
  bool is_prompt() const { return total == rows; }
};
Sizes sizes_of(Builder& b) {
  const Shape q = b.input_shape(0);
  Sizes s{};
  s.heads = b.attributes().get_int("num_heads"), s.kv_heads = b.attributes().get_int("kv_num_heads");
  s.packed = !b.has_input(1);
  s.batch = q[0], s.rows = q[1];
  s.head = q[2] / (s.heads + (s.packed ? 2 * s.kv_heads : 0));
  s.total = tensor::to_int64_scalar(*b.known(kTotal));
  if (b.has_input(kPast)) s.held = b.input_shape(kPast)[2];
  s.capacity = std::max(s.held, s.total);
  const Shape keys{s.batch, s.rows, s.kv_heads * s.head}, past{s.batch, s.kv_heads, s.held, s.head};
  bool fits = q[2] == s.head * (s.heads + (s.packed ? 2 * s.kv_heads : 0)) && b.input_shape(kLast).numel() == s.batch &&
              s.total >= s.rows && s.total - s.rows <= s.held;
  for (const std::size_t i : {1, 2}) fits = fits && (s.packed || b.input_shape(i) == keys);
  for (const std::size_t i : {kPast, kPast + 1}) fits = fits && (!b.has_input(i) || b.input_shape(i) == past);
  if (!fits) {
    fail(ErrorCode::ShapeMismatch, cat("queries ", q.to_string(), ", keys, values, a past of ", s.held,
                                       " rows and a total of ", s.total, " tokens do not fit"));
  }
  return s;
}

/// Heads divided by the root of their mean square, times input `weight`.
DeviceTensor normed(Builder& b, const DeviceTensor& x, std::size_t weight, std::int64_t head, const char* epsilon) {
  if (!b.has_input(weight)) return x;
  if (b.input_shape(weight).numel() != head) {
    fail(ErrorCode::ShapeMismatch, cat("a norm's weight ", b.input_shape(weight).to_string(), " for heads of ", head));
  }
  const DeviceTensor y = scratch_tensor(b, x.dtype, x.shape);
  const NormalizeParams p{
      .in = x.at,
      .out = y.at,
      .residual = 0,
      .sum = 0,
      .scale = b.input_floats(weight),
      .bias = 0,
      .rows = x.numel() / head,
      .columns = static_cast<std::int32_t>(head),
      .no_mean = 1,
      .columns_constant = b.known(weight) != nullptr,
      .epsilon = b.attributes().get_float(epsilon, b.attributes().get_float("qk_norm_epsilon", 1e-6f))};
  if (p.rows > 0) b.launch(plan_normalize(b.target(), x.dtype, p));
  return y;
}

/// The first `turned` of the `heads` heads of each token, by the token's place.
DeviceTensor turned(Builder& b, const DeviceTensor& x, std::int64_t heads, std::int64_t turned, const Sizes& s) {
  if (b.attributes().get_int("do_rotary", 0) == 0) return x;
  const DeviceTensor cos = b.input(kCos), sin = b.input(kCos + 1), y = scratch_tensor(b, x.dtype, x.shape);
  if (cos.shape.rank() != 2 || !(cos.shape == sin.shape) || 2 * cos.shape[1] > s.head ||
      (b.has_input(kPositions) && b.input_shape(kPositions).numel() != s.batch * s.rows)) {
    fail(ErrorCode::ShapeMismatch, cat("rotary caches ", cos.shape.to_string(), " and ", sin.shape.to_string(),
                                       " do not turn ", s.rows, " rows of heads of ", s.head));
  }
  RotaryParams p{};
  p.x = x.at, p.y = y.at, p.cos = cos.at, p.sin = sin.at;
  if (b.has_input(kPositions)) {
    p.positions = b.input(kPositions).at;
    p.first_alone = s.is_prompt();
  } else {
    p.last = b.input(kLast).at;
  }
  p.count = x.numel();
  p.limit = cos.shape[0];
  p.heads = static_cast<std::int32_t>(heads);
  p.turned_heads = static_cast<std::int32_t>(turned);
  p.length = static_cast<std::int32_t>(s.rows);
  p.head = static_cast<std::int32_t>(s.head);
  p.rotated = static_cast<std::int32_t>(2 * cos.shape[1]);
  p.flat = 1;
  p.interleaved = b.attributes().get_int("rotary_interleaved", 0) != 0;
  p.scale = 1;
  if (p.count > 0) b.launch(launch_of_threads(cat("rotary_", kernel_suffix(x.dtype)), p.count, param_bytes(p)));
  return y;
}

/// Heads from number `first` on of rows [batch, rows, heads * elements].
Operand4 heads_from(const DeviceTensor& t, std::int64_t first, std::int64_t heads, const Sizes& s) {
  Operand4 o{.at = t.at + static_cast<DevicePtr>(first * s.head) * t.element_bytes(), .dtype = t.dtype};
  o.batch = s.batch, o.heads = heads, o.rows = s.rows, o.columns = s.head;
  o.row_stride = t.shape[2], o.head_stride = s.head, o.batch_stride = s.rows * t.shape[2];
  return o;
}

/// Output 1 or 2, the cache with the new rows in it. Also writes how many tokens each sequence has, where asked.
Operand4 cached(Builder& b, std::size_t which, const Operand4& fresh, const Sizes& s, DevicePtr tokens) {
  const Shape shape{s.batch, s.kv_heads, s.capacity, s.head};
  const DeviceTensor past = b.input(kPast + which);
  const DeviceTensor all = b.wants_output(1 + which) ? b.output(1 + which) : scratch_tensor(b, fresh.dtype, shape);
  const auto narrow = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
  const auto bytes = static_cast<std::int64_t>(all.element_bytes());
  bool vectors = (past.at | all.at | fresh.at) % 16 == 0;
  for (const std::int64_t step : {s.head, fresh.row_stride, fresh.head_stride, fresh.batch_stride}) {
    vectors = vectors && step * bytes % 16 == 0;
  }
  const std::int64_t word = vectors ? 16 / bytes : 1;
  const CacheParams p{.past = past.at,
                      .fresh = fresh.at,
                      .to = all.at,
                      .last = b.input(kLast).at,
                      .tokens = tokens,
                      .count = shape.numel() / word,
                      .fresh_at = {fresh.row_stride / word, fresh.head_stride / word, fresh.batch_stride / word},
                      .batch = narrow(s.batch),
                      .heads = narrow(s.kv_heads),
                      .held = narrow(s.held),
                      .capacity = narrow(s.capacity),
                      .rows = narrow(s.rows),
                      .words = narrow(s.head / word)};
  b.launch(launch_of_threads(cat("join_cache_", word * bytes), std::max(p.count, s.batch), param_bytes(p)));
  return operand_of({.dtype = fresh.dtype, .shape = shape, .at = all.at}, false);
}

/// What attention is to see. A single query each sees all tokens of its sequence, which the kernels know to do; of
/// more, those of short sequences are padding, which a mask tells.
Operand4 set_sight(Builder& b, const Sizes& s, DevicePtr tokens, Attending& how) {
  Shape scores{s.batch, s.heads, s.rows, s.capacity};
  const std::int64_t columns = b.has_input(kBias) ? b.input_shape(kBias).back() : s.capacity;
  if (columns > s.capacity)
    fail(ErrorCode::ShapeMismatch, cat("a bias of ", columns, " columns for ", s.total, " keys"));
  how.causal = b.attributes().get_int("causal", 1) != 0;
  how.window = std::max<std::int64_t>(0, b.attributes().get_int("local_window_size", -1));
  if (how.window >= s.capacity) how.window = 0;
  const bool kernels_know = s.rows == 1 || !how.causal;
  AttentionMaskParams p = open_mask(s.capacity);
  if (b.has_input(kBias)) {
    const DeviceTensor bias = b.input(kBias);
    if (bias.shape.rank() != 4) fail(ErrorCode::ShapeMismatch, cat("a bias ", bias.shape.to_string()));
    scores[1] = bias.shape[1] == 1 ? 1 : s.heads;
    Shape of_bias = scores;
    of_bias[3] = columns;
    p.added = mask_source(bias, of_bias);
    p.columns = static_cast<std::int32_t>(columns);
  } else {
    scores[1] = 1;
  }
  if (kernels_know) {
    how.lengths = tokens;
    how.causal_offset = s.capacity - s.rows;
    return b.has_input(kBias) ? make_mask(b, p, scores) : Operand4{};
  }
  p.ends = b.input(kLast).at;
  p.more_end = 1;
  if (!s.is_prompt()) {  // places depend on the sequence
    p.place = -1;
    p.right = 0;
    p.left = how.window > 0 ? static_cast<std::int32_t>(how.window - 1) : -1;
    how.causal = false;
    how.window = 0;
  } else if (!b.has_input(kBias)) {
    scores[2] = 1;
  }
  return make_mask(b, p, scores);
}

void lower_attend(Builder& b) {
  const Sizes s = sizes_of(b);
  DeviceTensor queries = b.input(0), keys, values;
  if (s.packed) {
    queries = turned(b, queries, s.heads + 2 * s.kv_heads, s.heads + s.kv_heads, s);
    keys = values = queries;
  } else {
    queries = turned(b, normed(b, queries, kQNorm, s.head, "q_norm_epsilon"), s.heads, s.heads, s);
    keys = turned(b, normed(b, b.input(1), kQNorm + 1, s.head, "k_norm_epsilon"), s.kv_heads, s.kv_heads, s);
    values = b.input(2);
  }
  const Operand4 q = heads_from(queries, 0, s.heads, s);
  const DevicePtr tokens = scratch_tensor(b, DType::Int32, Shape{s.batch}).at;
  const Operand4 k = cached(b, 0, heads_from(keys, s.packed ? s.heads : 0, s.kv_heads, s), s, tokens);
  const Operand4 v = cached(b, 1, heads_from(values, s.packed ? s.heads + s.kv_heads : 0, s.kv_heads, s), s, 0);
  Attending how{.scale = microsoft_scale(b, s.head)};
  const Operand4 mask = set_sight(b, s, tokens, how);
  const DeviceTensor out = b.output(0);
  if (out.numel() == 0) return;
  const Operand4 y = heads_from(out, 0, s.heads, s);
  attend(b, q, k, v, mask, y, how);
  const bool may_see_none = b.has_input(kBias) || b.attributes().get_int("local_window_size", -1) > 0;
  if (mask.at != 0 && may_see_none) clear_shut_queries(b, q, k, mask, y, how);
}

}  // namespace

void register_group_query_attention(Lowerings& lowerings) {
  lowerings.push_back({graph::kMicrosoft, "GroupQueryAttention", can_attend, lower_attend});
}

}  // namespace infernode::cuda
