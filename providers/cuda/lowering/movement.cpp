// Operators that move elements: each is a copy between two sets of strides, or a gather.

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "providers/cuda/lowering/parts/moves.h"

namespace infernode::cuda {
namespace {

using tensor::DType;
using tensor::Shape;

void lower_transpose(Builder& b) {
  const DeviceTensor x = b.input_strided(0);
  std::vector<std::int64_t> perm = b.attributes().get_ints("perm");
  if (perm.empty()) {
    for (std::size_t d = x.shape.rank(); d-- > 0;) perm.push_back(static_cast<std::int64_t>(d));
  }
  const std::vector<std::int64_t> strides = strides_of(x);
  std::vector<std::int64_t> permuted;
  for (const std::int64_t axis : perm) permuted.push_back(strides[static_cast<std::size_t>(axis)]);
  b.strided_view(0, x, x.at, std::move(permuted));
}

bool can_concat(const NodeView& node) {
  for (std::size_t i = 0; i < node.node().inputs.size(); ++i) {
    if (node.input_rank(i).value_or(9) > kCopyRank) return false;
  }
  return is_movable(node.input_dtype(0));
}
/// The only input that has elements, if there is one.
std::optional<std::size_t> only_part(Builder& b) {
  std::optional<std::size_t> only;
  for (std::size_t i = 0; i < b.input_count(); ++i) {
    if (b.input_shape(i).numel() == 0) continue;
    if (only) return std::nullopt;
    only = i;
  }
  return only;
}

void lower_concat(Builder& b) {
  if (const auto only = only_part(b)) {
    const DeviceTensor x = b.input_strided(*only);
    return x.strides.empty() ? b.view(0, x) : b.strided_view(0, x, x.at, x.strides);
  }
  const DeviceTensor y = b.output(0);
  const std::size_t axis = tensor::normalize_axis(b.attributes().get_int("axis", 1), y.shape.rank());
  const std::vector<std::int64_t> to = vector_of(y.shape.strides());
  std::vector<StridedCopy> copies;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < b.input_count(); ++i) {
    const DeviceTensor x = b.input_strided(i);
    if (x.shape.numel() == 0) continue;  // of any shape
    copies.push_back({.from = x.at,
                      .to = y.at + static_cast<DevicePtr>(begin * to[axis]) * y.element_bytes(),
                      .element_bytes = y.element_bytes(),
                      .dims = x.shape,
                      .from_stride = strides_of(x),
                      .to_stride = to});
    begin += x.shape[axis];
  }
  if (copies.empty()) return;
  std::vector<Launch> launches = plan_strided_copies(b.target(), copies);
  // A decoder's keys and values: attention joins them on the way.
  const bool joins_rows = b.input_count() == 2 && copies.size() == 2 && y.shape.rank() == 4 && axis == 2;
  if (!joins_rows) return b.launch(std::move(launches));
  b.defer(0, {.launches = std::move(launches),
              .reads = {b.input_strided(0), b.input_strided(1)},
              .joins_rows = true,
              .reads_given = b.is_given(0)});
}

DevicePtr moved(const DeviceTensor& x, std::int64_t elements) {
  return x.at + static_cast<DevicePtr>(elements) * x.element_bytes();
}

void lower_split(Builder& b) {
  const DeviceTensor x = b.input_strided(0);
  const std::size_t axis = tensor::normalize_axis(b.attributes().get_int("axis", 0), x.shape.rank());
  const std::vector<std::int64_t> strides = strides_of(x);
  std::int64_t begin = 0;
  for (std::size_t o = 0; o < b.output_count(); ++o) {
    if (b.wants_output(o)) b.strided_view(o, x, moved(x, begin * strides[axis]), strides);
    begin += b.output_shape(o)[axis];
  }
}

bool can_slice(const NodeView& node) { return node.node().opset >= 10 && can_move_known(node); }
void lower_slice(Builder& b) {
  const DeviceTensor x = b.input_strided(0);
  const std::vector<std::int64_t> starts = tensor::to_int64_vector(*b.known(1));
  std::vector<std::int64_t> axes, steps(starts.size(), 1);
  for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (b.known(3) != nullptr) axes = tensor::to_int64_vector(*b.known(3));
  if (b.known(4) != nullptr) steps = tensor::to_int64_vector(*b.known(4));
  std::vector<std::int64_t> from = strides_of(x);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t axis = tensor::normalize_axis(axes[i], x.shape.rank());
    const std::int64_t size = x.shape[axis], last = steps[i] > 0 ? size : size - 1;
    std::int64_t start = starts[i] < 0 ? starts[i] + size : starts[i];
    start = std::clamp<std::int64_t>(start, 0, std::max<std::int64_t>(last, 0));
    offset += start * from[axis];
    from[axis] *= steps[i];
  }
  b.strided_view(0, x, moved(x, offset), std::move(from));
}

/// `border` of images: what is left out at the left and at the top, then at the other ends.
bool can_crop(const NodeView& node) { return can_move(node) && node.attributes().get_ints("border").size() == 4; }
void lower_crop(Builder& b) {
  const DeviceTensor x = b.input_strided(0);
  const std::vector<std::int64_t> border = b.attributes().get_ints("border"), strides = strides_of(x);
  b.strided_view(0, x, moved(x, border[1] * strides[2] + border[0] * strides[3]), strides);
}

void lower_expand(Builder& b) {
  const DeviceTensor x = b.input_strided(0);
  const Shape shape = b.output_shape(0);
  const std::vector<std::int64_t> strides = strides_of(x);
  std::vector<std::int64_t> repeated(shape.rank(), 0);
  for (std::size_t d = 0; d < x.shape.rank(); ++d) {
    if (x.shape[d] != 1) repeated[shape.rank() - x.shape.rank() + d] = strides[d];
  }
  b.strided_view(0, x, x.at, std::move(repeated));
}

bool can_gather(const NodeView& node) { return is_movable(node.input_dtype(0)) && is_index(node.input_dtype(1)); }
/// What is known of the places is checked; what others beyond the axis give is zero.
void check_places(Builder& b) {
  const tensor::Tensor* index = b.known(1);
  if (index == nullptr) return;
  const Shape x = b.input_shape(0);
  const std::size_t axis = tensor::normalize_axis(b.attributes().get_int("axis", 0), x.rank());
  for (const std::int64_t place : tensor::to_int64_vector(*index)) {
    if (place < -x[axis] || place >= x[axis]) {
      fail(ErrorCode::InvalidArgument,
           cat("index ", place, " is out of range [", -x[axis], ", ", x[axis], ") on axis ", axis));
    }
  }
}

/// One place along the axis, known beforehand, is a view.
bool view_gather(Builder& b) {
  const tensor::Tensor* index = b.known(1);
  if (index == nullptr || index->numel() != 1) return false;
  const DeviceTensor x = b.input_strided(0);
  const std::size_t axis = tensor::normalize_axis(b.attributes().get_int("axis", 0), x.shape.rank());
  std::int64_t place = tensor::to_int64_scalar(*index);
  if (place < 0) place += x.shape[axis];
  if (place < 0 || place >= x.shape[axis]) return false;
  std::vector<std::int64_t> strides = strides_of(x);
  const DevicePtr from = moved(x, place * strides[axis]);
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(axis));
  strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(axis), index->rank(), 0);
  b.strided_view(0, x, from, std::move(strides));
  return true;
}

void lower_gather(Builder& b) {
  check_places(b);
  if (view_gather(b)) return;
  const DeviceTensor x = b.input(0), index = b.input(1);
  const std::size_t axis = tensor::normalize_axis(b.attributes().get_int("axis", 0), x.shape.rank());
  b.launch(plan_gather(b.target(), {.from = x.at,
                                    .index = index.at,
                                    .to = b.output(0).at,
                                    .index_is_64 = index.dtype == DType::Int64,
                                    .element_bytes = x.element_bytes(),
                                    .outer = x.shape.numel(0, axis),
                                    .axis = x.shape[axis],
                                    .inner = x.shape.numel(axis + 1, x.shape.rank()),
                                    .indices = index.numel()}));
}

}  // namespace

void register_movement(Lowerings& lowerings) {
  lowerings.push_back({"", "Transpose", can_move, lower_transpose});
  lowerings.push_back({"", "Concat", can_concat, lower_concat});
  lowerings.push_back({"", "Split", can_move_known, lower_split});
  lowerings.push_back({"", "Slice", can_slice, lower_slice});
  lowerings.push_back({"", "Crop", can_crop, lower_crop});
  lowerings.push_back({"", "Expand", can_move_known, lower_expand});
  lowerings.push_back({"", "Gather", can_gather, lower_gather});
}

}  // namespace infernode::cuda
