// RotaryEmbedding, the standard's and com.microsoft's.

#include <algorithm>

#include "base/error.h"
#include "providers/cuda/kernels/params/rotary.h"
#include "providers/cuda/kernels/simple/elementwise.h"
#include "providers/cuda/kernels/simple/places.h"
#include "providers/cuda/lowering/lowering.h"

namespace infernode::cuda {
namespace {

using tensor::Shape;

template <bool microsoft>
bool can_turn(const NodeView& node) {
  const std::size_t rank = node.input_rank(0).value_or(0), cos = microsoft ? 2 : 1;
  return (rank == 3 || rank == 4) && kReals.contains(node.input_dtype(0)) &&
         node.input_dtype(cos) == node.input_dtype(0) && node.input_dtype(cos + 1) == node.input_dtype(0) &&
         node.input_rank(cos).value_or(0) >= 2;
}

/// Heads, rows of each, elements of a head; and how many of those are turned.
RotaryParams sizes_of(Builder& b, const Shape& x, const Shape& cos, bool microsoft) {
  RotaryParams p{};
  p.flat = x.rank() == 3;
  std::int64_t heads = b.attributes().get_int("num_heads", 0), head = 0, length = 0;
  const std::int64_t columns = cos.back();
  if (p.flat) {
    // Without num_heads com.microsoft's form takes the head's size from the cache.
    if (microsoft && heads == 0) heads = x[2] / std::max<std::int64_t>(1, columns * 2);
    if (heads < 1 || x[2] % heads != 0) {
      fail(ErrorCode::ShapeMismatch, cat("X ", x.to_string(), " does not divide into ", heads, " heads"));
    }
    length = x[1], head = x[2] / heads;
  } else {
    heads = x[1], length = x[2], head = x[3];
  }
  std::int64_t rotated = b.attributes().get_int("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = head;
  if (rotated < 0 || rotated > head || rotated % 2 != 0 || columns != rotated / 2) {
    fail(ErrorCode::ShapeMismatch,
         cat("a cache of ", columns, " columns does not turn ", rotated, " of ", head, " elements"));
  }
  p.heads = p.turned_heads = static_cast<std::int32_t>(heads);
  p.length = static_cast<std::int32_t>(length);
  p.head = static_cast<std::int32_t>(head);
  p.rotated = static_cast<std::int32_t>(rotated);
  p.limit = cos.numel() / std::max<std::int64_t>(1, columns);
  return p;
}

template <bool microsoft>
void lower_turn(Builder& b) {
  constexpr std::size_t kCos = microsoft ? 2 : 1, kPositions = microsoft ? 1 : 3;
  const DeviceTensor x = b.input(0), cos = b.input(kCos), sin = b.input(kCos + 1), positions = b.input(kPositions);
  if (!(cos.shape == sin.shape)) {
    fail(ErrorCode::ShapeMismatch, cat("cos ", cos.shape.to_string(), " and sin ", sin.shape.to_string(), " differ"));
  }
  RotaryParams p = sizes_of(b, x.shape, cos.shape, microsoft);
  const std::int64_t tokens = x.shape[0] * p.length;
  if (positions) {
    p.first_alone = microsoft && positions.numel() == 1 && tokens != 1;
    if (!p.first_alone && positions.numel() != tokens) {
      fail(ErrorCode::ShapeMismatch, cat("positions ", positions.shape.to_string(), " for ", tokens, " tokens"));
    }
    p.positions = positions.at;
  } else if (p.limit != tokens) {
    fail(ErrorCode::ShapeMismatch, cat("caches of ", p.limit, " rows without positions for ", tokens, " tokens"));
  }
  p.x = x.at, p.cos = cos.at, p.sin = sin.at;
  p.y = b.output(0).at;
  p.count = x.numel();
  p.interleaved = b.attributes().get_int("interleaved", 0) != 0;
  p.scale = b.attributes().get_float("scale", 1);
  if (p.count > 0) b.launch(launch_of_threads(cat("rotary_", kernel_suffix(x.dtype)), p.count, param_bytes(p)));
}

}  // namespace

void register_rotary(Lowerings& lowerings) {
  lowerings.push_back({"", "RotaryEmbedding", can_turn<false>, lower_turn<false>});
  lowerings.push_back({graph::kMicrosoft, "RotaryEmbedding", can_turn<true>, lower_turn<true>});
}

}  // namespace infernode::cuda
