// Operators that repeat elements or put them elsewhere by a rule: copies between strides, triangles and diagonals.

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/half.h"
#include "providers/cuda/kernels/simple/places.h"
#include "providers/cuda/lowering/parts/elements.h"
#include "providers/cuda/lowering/parts/moves.h"

namespace infernode::cuda {
namespace {

using tensor::Shape;

bool can_tile(const NodeView& node) { return node.node().opset >= 6 && can_move_known(node); }
/// Repeated axes are two: the inner one is read once more for each step of the outer one. Where those are too many, one
/// axis after the other.
void lower_tile(Builder& b) {
  const DeviceTensor x = b.input(0);
  const DeviceTensor y = b.output(0);
  if (y.numel() == 0) return;
  const std::vector<std::int64_t> repeats = tensor::to_int64_vector(*b.known(1)), strides = strides_of(x);
  Shape dims;
  std::vector<std::int64_t> from;
  std::size_t repeated = 0;
  for (std::size_t d = 0; d < x.shape.rank(); ++d) {
    if (repeats[d] != 1) dims.push_back(repeats[d]), from.push_back(0), ++repeated;
    dims.push_back(x.shape[d]), from.push_back(strides[d]);
  }
  if (dims.rank() <= kCopyRank) return copy_dense(b, x.at, dims, x.element_bytes(), y.at, std::move(from));
  Shape shape = x.shape;
  DevicePtr at = x.at;
  for (std::size_t d = x.shape.rank(); d-- > 0;) {
    if (repeats[d] == 1) continue;
    const std::int64_t outer = shape.numel(0, d), inner = shape.numel(d, shape.rank());
    shape[d] *= repeats[d];
    const DevicePtr to = --repeated == 0 ? y.at : scratch_tensor(b, x.dtype, shape).at;
    copy_dense(b, at, Shape{outer, repeats[d], inner}, x.element_bytes(), to, {inner, 0, 1});
    at = to;
  }
}

bool can_blocks(const NodeView& node) {
  const std::string mode = node.attributes().get_string("mode", "DCR");
  return can_move(node) && node.input_rank(0) == 4 && (mode == "DCR" || mode == "CRD") &&
         node.attributes().get_int("blocksize", 0) > 0;
}
/// The input's strides in the order in which the output has its dims.
template <bool to_depth>
void lower_blocks(Builder& b) {
  const DeviceTensor x = b.input(0);
  const std::int64_t block = b.attributes().get_int("blocksize", 1);
  const bool depth_first = b.attributes().get_string("mode", "DCR") == "DCR";
  if (to_depth ? x.shape[2] % block != 0 || x.shape[3] % block != 0 : x.shape[1] % (block * block) != 0) {
    fail(ErrorCode::ShapeMismatch, cat("blocks of ", block, " do not divide ", x.shape.to_string()));
  }
  const DeviceTensor y = b.output(0);
  const std::int64_t n = x.shape[0], w = x.shape[3], plane = x.shape[2] * w, image = x.shape[1] * plane;
  if (to_depth) {
    const std::int64_t c = x.shape[1], h = x.shape[2] / block, columns = w / block;
    const Shape dims = depth_first ? Shape{n, block, block, c, h, columns} : Shape{n, c, block, block, h, columns};
    const std::vector<std::int64_t> from = depth_first
                                               ? std::vector<std::int64_t>{image, w, 1, plane, w * block, block}
                                               : std::vector<std::int64_t>{image, plane, w, 1, w * block, block};
    return copy_dense(b, x.at, dims, x.element_bytes(), y.at, from);
  }
  const std::int64_t c = x.shape[1] / (block * block);
  const std::int64_t channel = (depth_first ? 1 : block * block) * plane;
  const std::int64_t row = depth_first ? c * block * plane : block * plane, column = depth_first ? c * plane : plane;
  copy_dense(b, x.at, Shape{n, c, x.shape[2], block, w, block}, x.element_bytes(), y.at,
             {image, channel, w, row, 1, column});
}

bool can_triangle(const NodeView& node) {
  return is_movable(node.input_dtype(0)) && node.input_rank(0).value_or(0) >= 2 && node.is_known(1);
}
void lower_triangle(Builder& b) {
  const DeviceTensor x = b.input(0), y = b.output(0);
  const std::int64_t columns = x.shape.back(), rows = x.shape[x.shape.rank() - 2];
  const std::int64_t diagonal = b.known(1) != nullptr ? tensor::to_int64_scalar(*b.known(1)) : 0;
  const TriangleParams p{.from = x.at,
                         .to = y.at,
                         .count = x.numel(),
                         .rows = rows,
                         .columns = columns,
                         .diagonal = std::clamp(diagonal, -rows, columns),
                         .upper = b.attributes().get_int("upper", 1) != 0};
  if (p.count > 0) b.launch(plan_by_size("triangle", x.element_bytes(), p.count, p));
}

/// 1 in elements of this type; nullopt where they are not numbers.
std::optional<std::uint64_t> one_of(tensor::DType dtype) {
  std::uint64_t bits = 0;
  const auto set = [&](auto one) { std::memcpy(&bits, &one, sizeof one); };
  switch (dtype) {
    case tensor::DType::Float32:
      set(1.0f);
      return bits;
    case tensor::DType::Float64:
      set(1.0);
      return bits;
    case tensor::DType::Float16:
      set(Float16(1.0f));
      return bits;
    case tensor::DType::BFloat16:
      set(BFloat16(1.0f));
      return bits;
    default:
      if ((tensor::types::kInts | tensor::TypeSet{tensor::DType::Bool}).contains(dtype)) return 1;
      return std::nullopt;
  }
}
bool can_eye(const NodeView& node) { return one_of(node.output_dtype(0)).has_value() && node.input_rank(0) == 2; }
void lower_eye(Builder& b) {
  const DeviceTensor y = b.output(0);
  const std::int64_t rows = y.shape[0], columns = y.shape[1];
  if (y.numel() == 0) return;
  const auto fill = [&](std::int64_t first, const Shape& dims, std::vector<std::int64_t> strides, std::uint64_t bits) {
    b.launch(plan_fill(b.target(), {.to = y.at + static_cast<DevicePtr>(first) * y.element_bytes(),
                                    .element_bytes = y.element_bytes(),
                                    .dims = dims,
                                    .to_stride = std::move(strides),
                                    .bits = bits}));
  };
  fill(0, Shape{y.numel()}, {1}, 0);
  const std::int64_t k = std::clamp(b.attributes().get_int("k", 0), -rows, columns);
  const std::int64_t row = std::max<std::int64_t>(0, -k), column = std::max<std::int64_t>(0, k);
  const std::int64_t count = std::min(rows - row, columns - column);
  if (count > 0) fill(row * columns + column, Shape{count}, {columns + 1}, *one_of(y.dtype));
}

bool can_reverse(const NodeView& node) {
  const std::int64_t batch = node.attributes().get_int("batch_axis", 1),
                     time = node.attributes().get_int("time_axis", 0);
  return is_movable(node.input_dtype(0)) && node.input_rank(0).value_or(0) >= 2 && batch + time == 1 &&
         (batch == 0 || batch == 1);
}
void lower_reverse(Builder& b) {
  const bool batch_first = b.attributes().get_int("batch_axis", 1) == 0;
  const DeviceTensor x = b.input(0), lengths = b.input(1), y = b.output(0);
  const ReverseParams p{.from = x.at,
                        .to = y.at,
                        .lengths = lengths.at,
                        .count = x.numel(),
                        .batches = x.shape[batch_first ? 0 : 1],
                        .steps = x.shape[batch_first ? 1 : 0],
                        .inner = x.shape.numel(2, x.shape.rank()),
                        .batch_first = batch_first};
  if (lengths.numel() != p.batches) {
    fail(ErrorCode::ShapeMismatch, cat("sequence_lens has ", lengths.numel(), " elements for a batch of ", p.batches));
  }
  if (p.count > 0) b.launch(plan_by_size("reverse", x.element_bytes(), p.count, p));
}

}  // namespace

void register_rearrange(Lowerings& lowerings) {
  lowerings.push_back({"", "Tile", can_tile, lower_tile});
  lowerings.push_back({"", "SpaceToDepth", can_blocks, lower_blocks<true>});
  lowerings.push_back({"", "DepthToSpace", can_blocks, lower_blocks<false>});
  lowerings.push_back({"", "Trilu", can_triangle, lower_triangle});
  lowerings.push_back({graph::kMicrosoft, "Trilu", can_triangle, lower_triangle});
  lowerings.push_back({"", "EyeLike", can_eye, lower_eye});
  lowerings.push_back({"", "ReverseSequence", can_reverse, lower_reverse});
}

}  // namespace infernode::cuda
