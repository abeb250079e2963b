#include "providers/cuda/lowering/parts/attention_mask.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "providers/cuda/kernels/simple/elementwise.h"
#include "providers/cuda/lowering/parts/moves.h"

namespace infernode::cuda {

using tensor::DType;
using tensor::Shape;

bool has_one_type(const NodeView& node, std::initializer_list<std::size_t> but) {
  const DType type = node.input_dtype(0);
  for (std::size_t i = 0; i < node.node().inputs.size(); ++i) {
    const bool other = std::find(but.begin(), but.end(), i) != but.end();
    if (node.has_input(i) && !other && node.input_dtype(i) != type) return false;
  }
  for (std::size_t o = 0; o < node.node().outputs.size(); ++o) {
    if (node.has_output(o) && node.output_dtype(o) != type) return false;
  }
  return kProductTypes.contains(type);
}

MaskSource mask_source(const DeviceTensor& t, const Shape& scores) {
  MaskSource m{.at = t.at, .type = number_of(t.dtype).value(), .stride = {}};
  const Shape strides = tensor::broadcast_strides(t.shape, scores);
  for (std::size_t d = 0; d < 4; ++d) m.stride[d] = strides[d];
  return m;
}

AttentionMaskParams open_mask(std::int64_t keys) {
  AttentionMaskParams p{};
  p.keys = p.columns = static_cast<std::int32_t>(keys);
  p.left = p.right = -1;
  p.shut = -std::numeric_limits<float>::infinity();
  return p;
}

Operand4 make_mask(Builder& b, AttentionMaskParams p, const Shape& scores) {
  p.heads = static_cast<std::int32_t>(scores[1]);
  p.queries = static_cast<std::int32_t>(scores[2]);
  p.count = scores.numel();
  p.out = b.scratch(tensor::byte_size(DType::Float32, p.count));
  if (p.count > 0) b.launch(launch_of_threads("attention_mask", p.count, param_bytes(p)));
  const Shape strides = scores.strides();
  Operand4 mask{.at = p.out, .dtype = DType::Float32};
  mask.batch_stride = strides[0];
  mask.head_stride = scores[1] == 1 ? 0 : strides[1];
  mask.row_stride = scores[2] == 1 ? 0 : strides[2];
  return mask;
}

void clear_shut_queries(Builder& b, const Operand4& q, const Operand4& k, const Operand4& mask, const Operand4& y,
                        const Attending& how) {
  const auto narrow = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
  const ClearShutParams p{
      .out = y.at,
      .type = element_of(y.dtype),
      .out_at = heads_of(y).at,
      .mask = {.at = mask.at,
               .type = number_of(mask.dtype).value(),
               .stride = {mask.batch_stride, mask.head_stride, mask.row_stride, 1}},
      .lengths = how.lengths,
      .rows = q.batch * q.heads * q.rows,
      .heads = narrow(q.heads),
      .queries = narrow(q.rows),
      .keys = narrow(k.rows),
      .dv = narrow(y.columns),
      .causal = how.causal,
      .causal_offset = narrow(how.causal_offset),
      .window = narrow(how.window),
  };
  if (p.rows > 0) b.launch(launch_of_blocks("clear_shut", p.rows, 4, 128, param_bytes(p)));
}

namespace {

/// Which of its forms a mask of integers has. Returns whether it is by query.
bool set_integers(const DeviceTensor& mask, const Shape& scores, AttentionMaskParams& p) {
  const std::int64_t batch = scores[0], queries = scores[2], keys = scores[3], count = mask.numel();
  const Shape& s = mask.shape;
  const auto flags = [&](DevicePtr at, std::int64_t matrix, std::int64_t row) {
    p.open = {.at = at, .type = number_of(mask.dtype).value(), .stride = {matrix, 0, row, 1}};
  };
  if (s.rank() == 1 && (count == batch || count == 2 * batch || count == 3 * batch + 2)) {
    p.ends = mask.at;
    if (count == 2 * batch) p.starts = mask.at + static_cast<DevicePtr>(batch) * mask.element_bytes();
    return false;
  }
  if (s.rank() == 2 && count == batch * keys) {
    flags(mask.at, keys, 0);
    return false;
  }
  if (s.rank() == 3 && count == batch * queries * keys) {
    flags(mask.at, queries * keys, keys);
    return true;
  }
  if (s.rank() == 4 && s[0] == batch && s[1] == 1 && s[2] == s[3] && s[3] >= keys && keys >= queries) {
    flags(mask.at + static_cast<DevicePtr>((keys - queries) * s[3]) * mask.element_bytes(), s[2] * s[3], s[3]);
    return true;
  }
  fail(ErrorCode::ShapeMismatch,
       cat("an attention mask ", s.to_string(), " for ", batch, " batches, ", queries, " queries and ", keys, " keys"));
}

}  // namespace

Operand4 microsoft_mask(Builder& b, std::size_t mask, std::size_t added, const Shape& scores) {
  if (!b.has_input(mask)) return mask_of(b, added, 4, scores);
  AttentionMaskParams p = open_mask(scores[3]);
  p.shut = b.attributes().get_float("mask_filter_value", -10000);
  const bool by_query = set_integers(b.input(mask), scores, p);
  Shape sizes{scores[0], 1, by_query ? scores[2] : 1, scores[3]};
  if (b.has_input(added)) {
    const DeviceTensor numbers = b.input(added);
    if (numbers.shape.rank() == 4 && numbers.shape[1] != 1) sizes[1] = scores[1];
    sizes[2] = scores[2];
    p.added = mask_source(numbers, sizes);
  }
  return make_mask(b, p, sizes);
}

float microsoft_scale(const Builder& b, std::int64_t head) {
  const float given = b.attributes().get_float("scale", 0);
  return given != 0 ? given : 1.0f / std::sqrt(static_cast<float>(head));
}

Operand4 join_rows(Builder& b, const DeviceTensor& past, const Operand4& fresh, const DeviceTensor& all) {
  const std::int64_t before = past ? past.shape[2] : 0;
  const Shape shape{fresh.batch, fresh.heads, before + fresh.rows, fresh.columns};
  if ((past && !(past.shape == Shape{fresh.batch, fresh.heads, before, fresh.columns})) || !(all.shape == shape)) {
    fail(ErrorCode::ShapeMismatch, cat("the past is ", past.shape.to_string(), " before ", shape.to_string()));
  }
  const std::vector<std::int64_t> to = vector_of(shape.strides());
  const auto copy = [&](DevicePtr from, std::int64_t first, std::int64_t rows, std::vector<std::int64_t> strides) {
    const Shape dims{fresh.batch, fresh.heads, rows, fresh.columns};
    if (dims.numel() == 0) return;
    b.launch(plan_strided_copy(b.target(),
                               {.from = from,
                                .to = all.at + static_cast<DevicePtr>(first * fresh.columns) * all.element_bytes(),
                                .element_bytes = all.element_bytes(),
                                .dims = dims,
                                .from_stride = std::move(strides),
                                .to_stride = to}));
  };
  if (past) copy(past.at, 0, before, strides_of(past));
  copy(fresh.at, before, fresh.rows, {fresh.batch_stride, fresh.head_stride, fresh.row_stride, 1});
  return operand_of(all, false);
}

}  // namespace infernode::cuda
