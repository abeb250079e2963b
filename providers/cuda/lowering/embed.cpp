// com.microsoft's EmbedLayerNormalization: rows of three tables, added and normalized.

#include "base/error.h"
#include "providers/cuda/kernels/params/sample.h"
#include "providers/cuda/kernels/simple/elementwise.h"
#include "providers/cuda/kernels/simple/movement.h"
#include "providers/cuda/kernels/simple/rows.h"
#include "providers/cuda/lowering/parts/elements.h"

namespace infernode::cuda {
namespace {

using tensor::DType;
using tensor::Shape;

constexpr std::size_t kTables[] = {2, 3, 4}, kIds[] = {0, 8, 1};  ///< of words, places, segments
constexpr std::size_t kScale = 5, kBias = 6, kMask = 7;

bool can_embed(const NodeView& node) {
  for (const std::size_t i : {2, 3, 4, 5, 6}) {
    if (node.has_input(i) && (node.input_dtype(i) != node.output_dtype(0) || node.input_rank(i) != (i < 5 ? 2 : 1)))
      return false;
  }
  for (const std::size_t i : {0, 1, 7, 8}) {
    if (node.has_input(i) && node.input_dtype(i) != DType::Int32) return false;
  }
  return kReals.contains(node.output_dtype(0)) && node.input_rank(0) == 2 && node.has_input(2) && node.has_input(3);
}

/// How many tokens of each sequence the mask leaves.
void count_tokens(Builder& b, const Shape& ids) {
  if (!b.wants_output(1)) return;
  const DeviceTensor mask = b.input(kMask), counts = b.output(1);
  if (mask && mask.numel() != ids.numel()) {
    fail(ErrorCode::ShapeMismatch, cat("EmbedLayerNormalization: a mask ", mask.shape.to_string()));
  }
  if (!mask || b.attributes().get_int("mask_index_type", 1) == 0) {
    b.launch(plan_fill(
        b.target(),
        {.to = counts.at, .element_bytes = counts.element_bytes(), .dims = counts.shape, .to_stride = {1}, .bits = 0}));
    return;
  }
  const DeviceTensor flags = scratch_tensor(b, DType::Bool, ids), ones = scratch_tensor(b, DType::Int32, ids);
  b.launch(plan_cast(b.target(), {mask.at, mask.dtype, flags.at, flags.dtype, ids.numel()}));
  b.launch(plan_cast(b.target(), {flags.at, flags.dtype, ones.at, ones.dtype, ids.numel()}));
  const ReduceParams p{
      .in = ones.at, .out = counts.at, .outputs = ids[0], .columns = ids[1], .inner = 1, .op = ReduceOp::sum};
  if (p.outputs > 0) b.launch(plan_reduce(b.target(), DType::Int32, p));
}

/// Sums of the tables' rows for each token.
EmbedParams tables_of(Builder& b, const Shape& ids, std::int64_t width) {
  EmbedParams p{};
  for (std::size_t i = 0; i < 3; ++i) {
    const bool is_place = i == 1;
    if (!b.has_input(kTables[i]) || (!is_place && !b.has_input(kIds[i]))) continue;
    const DeviceTensor table = b.input(kTables[i]), given = b.input(kIds[i]);
    const std::int64_t count = given ? given.numel() : ids[1];
    const bool by_place = is_place && count == ids[1];
    if (table.shape[1] != width || (given && count != ids.numel() && !by_place) ||
        (!given && ids[1] > table.shape[0])) {
      fail(ErrorCode::ShapeMismatch, cat("EmbedLayerNormalization: ", count, " rows of a table ",
                                         table.shape.to_string(), " for tokens ", ids.to_string()));
    }
    p.table[i] = table.at, p.ids[i] = given.at, p.rows[i] = table.shape[0], p.period[i] = count;
  }
  p.width = static_cast<std::int32_t>(width);
  p.count = ids.numel() * width;
  return p;
}

void lower_embed(Builder& b) {
  const Shape ids = b.input_shape(0);
  const std::int64_t width = b.input_shape(kTables[0])[1];
  EmbedParams p = tables_of(b, ids, width);
  if (b.input_shape(kScale).numel() != width || b.input_shape(kBias).numel() != width) {
    fail(ErrorCode::ShapeMismatch,
         cat("EmbedLayerNormalization: rows of ", width, " elements and a scale ", b.input_shape(kScale).to_string()));
  }
  count_tokens(b, ids);
  const DeviceTensor y = b.output(0);
  const DeviceTensor sum = b.wants_output(2) ? b.output(2) : scratch_tensor(b, y.dtype, y.shape);
  if (y.numel() == 0) return;
  p.out = sum.at;
  b.launch(launch_of_threads(cat("embed_", kernel_suffix(y.dtype)), p.count, param_bytes(p)));
  const NormalizeParams norm{.in = sum.at,
                             .out = y.at,
                             .residual = 0,
                             .sum = 0,
                             .scale = b.input_floats(kScale),
                             .bias = b.input_floats(kBias),
                             .rows = ids.numel(),
                             .columns = p.width,
                             .no_mean = 0,
                             .columns_constant = b.known(kScale) != nullptr && b.known(kBias) != nullptr,
                             .epsilon = b.attributes().get_float("epsilon", 1e-12f)};
  b.launch(plan_normalize(b.target(), y.dtype, norm));
}

}  // namespace

void register_embed(Lowerings& lowerings) {
  lowerings.push_back({graph::kMicrosoft, "EmbedLayerNormalization", can_embed, lower_embed});
}

}  // namespace infernode::cuda
