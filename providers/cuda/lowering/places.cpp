// Operators whose indices name elements or slices of a tensor.

#include "providers/cuda/kernels/simple/places.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "ops/tensor/gather_scatter.h"
#include "providers/cuda/lowering/parts/elements.h"
#include "providers/cuda/lowering/parts/moves.h"

namespace infernode::cuda {
namespace {

using tensor::Shape;

/// Indices that name slices, and what a slice is.
struct Named {
  Places places{};
  std::int64_t count = 0;  ///< places
  std::int64_t slice = 1, slices = 0;
};

/// What is known of indices is checked; what others beyond an axis name is zero, or left out.
void check_known(Builder& b, std::size_t input, const Places& p) {
  const tensor::Tensor* index = b.known(input);
  if (index == nullptr || p.depth == 0) return;
  const std::vector<std::int64_t> all = tensor::to_int64_vector(*index);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t d = i % static_cast<std::size_t>(p.depth);
    if (all[i] < -p.bound[d] || all[i] >= p.bound[d]) ops::fail_index(all[i], p.bound[d], d);
  }
}

/// One index for each element, along an axis.
Named elements_of(Builder& b, const Shape& data) {
  const Shape shape = b.input_shape(1);
  const std::size_t axis = tensor::normalize_axis(b.attributes().get_int("axis", 0), data.rank());
  const ops::ElementRows checked(data, shape, axis);  // throws where they do not fit
  const DeviceTensor index = b.input(1);
  const Shape strides = data.strides();
  Named n;
  n.count = shape.numel();
  n.slices = data.numel();
  n.places.index = index.at;
  n.places.index_is_64 = index.dtype == tensor::DType::Int64;
  n.places.rank = static_cast<std::int32_t>(shape.rank());
  n.places.depth = 1;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    n.places.dims[d] = static_cast<std::uint32_t>(shape[d]);
    n.places.step[d] = d == axis ? 0 : strides[d];
  }
  n.places.bound[0] = data[axis];
  n.places.stride[0] = strides[axis];
  check_known(b, 1, n.places);
  return n;
}

/// A tuple of indices for each slice.
Named tuples_of(Builder& b, const Shape& data) {
  const ops::IndexTuples tuples(data, b.input_shape(1), b.attributes().get_int("batch_dims", 0));
  const DeviceTensor index = b.input(1);
  Named n;
  n.count = tuples.batches * tuples.rows_per_batch;
  n.slice = tuples.slice;
  n.slices = n.slice > 0 ? data.numel() / n.slice : 0;
  n.places.index = index.at;
  n.places.index_is_64 = index.dtype == tensor::DType::Int64;
  n.places.rank = 2;
  n.places.dims[0] = static_cast<std::uint32_t>(tuples.batches);
  n.places.dims[1] = static_cast<std::uint32_t>(tuples.rows_per_batch);
  if (n.slice > 0) n.places.step[0] = tuples.batch_stride / n.slice;
  n.places.depth = static_cast<std::int32_t>(tuples.depth);
  for (std::size_t d = 0; d < tuples.depth && n.slice > 0; ++d) {
    n.places.bound[d] = tuples.bounds[d];
    n.places.stride[d] = tuples.strides[d] / n.slice;
  }
  check_known(b, 1, n.places);
  return n;
}

bool can_name(const NodeView& node) {
  return is_movable(node.input_dtype(0)) && is_index(node.input_dtype(1)) &&
         node.input_rank(0).value_or(9) <= kPlaceRank && node.input_rank(1).value_or(9) <= kPlaceRank + 1 &&
         node.input_rank(0).value_or(0) > 0;
}

template <Named (*named)(Builder&, const Shape&)>
void lower_gather(Builder& b) {
  const DeviceTensor x = b.input(0);
  const Named n = named(b, x.shape);
  const PlacedCopyParams p{.places = n.places,
                           .from = x.at,
                           .to = b.output(0).at,
                           .owner = 0,
                           .count = n.count * n.slice,
                           .slice = n.slice,
                           .from_slice = 0};
  if (p.count > 0) b.launch(plan_by_size("gather_places", x.element_bytes(), p.count, p));
}

std::optional<BinaryOp> reduction_of(const graph::Attributes& attributes) {
  const std::string name = attributes.get_string("reduction", "none");
  if (name == "add") return BinaryOp::add;
  if (name == "mul") return BinaryOp::mul;
  if (name == "min") return BinaryOp::min;
  if (name == "max") return BinaryOp::max;
  return std::nullopt;
}
bool can_scatter(const NodeView& node) {
  const bool plain = node.attributes().get_string("reduction", "none") == "none";
  const bool reduces = reduction_of(node.attributes()) && kAllNumbers.contains(node.input_dtype(0));
  return can_name(node) && (plain || reduces);
}

/// An int32 for each slice, all of them -1.
DevicePtr number_slices(Builder& b, const Named& n) {
  if (n.count > INT32_MAX) fail(ErrorCode::UnsupportedOperator, "cuda: more updates than 2^31");
  const DevicePtr numbers = b.scratch(static_cast<std::size_t>(n.slices) * sizeof(std::int32_t));
  b.launch(plan_fill(b.target(), {.to = numbers,
                                  .element_bytes = sizeof(std::int32_t),
                                  .dims = Shape{n.slices},
                                  .to_stride = {1},
                                  .bits = 0xffffffff}));
  return numbers;
}

/// The last of updates that name the same slice wins.
void replace(Builder& b, const Named& n, const DeviceTensor& updates, const DeviceTensor& y) {
  const DevicePtr owner = number_slices(b, n);
  b.launch(launch_of_threads("scatter_owner", n.count,
                             param_bytes(OwnerParams{.places = n.places, .owner = owner, .count = n.count})));
  const PlacedCopyParams p{.places = n.places,
                           .from = updates.at,
                           .to = y.at,
                           .owner = owner,
                           .count = n.count * n.slice,
                           .slice = n.slice,
                           .from_slice = n.slice};
  b.launch(plan_by_size("scatter_places", y.element_bytes(), p.count, p));
}

/// Updates that name the same slice are put in order, then taken one after the other.
void combine(Builder& b, const Named& n, BinaryOp op, const DeviceTensor& updates, const DeviceTensor& y) {
  const std::size_t bytes = static_cast<std::size_t>(n.count) * sizeof(std::int32_t);
  const LinkParams link{.places = n.places, .head = number_slices(b, n), .next = b.scratch(bytes), .count = n.count};
  const OrderParams order{
      .places = n.places, .head = link.head, .next = link.next, .after = b.scratch(bytes), .count = n.count};
  const PlacedSumParams sum{.places = n.places,
                            .from = updates.at,
                            .to = y.at,
                            .after = order.after,
                            .count = n.count * n.slice,
                            .slice = n.slice,
                            .op = op,
                            .type = number_of(y.dtype).value()};
  b.launch(launch_of_threads("scatter_link", n.count, param_bytes(link)));
  b.launch(launch_of_threads("scatter_order", n.count, param_bytes(order)));
  b.launch(launch_of_threads("scatter_sum", sum.count, param_bytes(sum)));
}

template <bool elements>
void lower_scatter(Builder& b) {
  const DeviceTensor x = b.input(0);
  const Named n = elements ? elements_of(b, x.shape) : tuples_of(b, x.shape);
  const Shape indices = b.input_shape(1);
  const DeviceTensor updates = b.input(2);
  const bool fits = elements ? updates.shape == indices : updates.numel() == n.count * n.slice;
  if (!fits) {
    fail(ErrorCode::ShapeMismatch,
         cat("indices of shape ", indices.to_string(), " do not fit updates of shape ", updates.shape.to_string()));
  }
  const DeviceTensor y = b.output(0);
  copy_dense(b, x.at, x.shape, x.element_bytes(), y.at, strides_of(x));
  if (n.count * n.slice == 0) return;
  const auto op = reduction_of(b.attributes());
  if (op) {
    combine(b, n, *op, updates, y);
  } else {
    replace(b, n, updates, y);
  }
}

bool can_write_rows(const NodeView& node) {
  const std::string mode = node.attributes().get_string("mode", "linear");
  return is_movable(node.input_dtype(0)) && node.input_rank(0).value_or(0) > 1 &&
         node.input_rank(1) == node.input_rank(0) && (mode == "linear" || mode == "circular");
}
void lower_write_rows(Builder& b) {
  const DeviceTensor past = b.input(0), fresh = b.input(1), start = b.input(2), y = b.output(0);
  const std::size_t rank = past.shape.rank(), axis = tensor::normalize_axis(b.attributes().get_int("axis", -2), rank);
  bool fits = axis > 0 && (!start || start.numel() == past.shape[0]);
  for (std::size_t d = 0; d < rank; ++d) {
    fits = fits && (d == axis ? fresh.shape[d] <= past.shape[d] : fresh.shape[d] == past.shape[d]);
  }
  if (!fits) {
    fail(ErrorCode::ShapeMismatch,
         cat("an update of shape ", fresh.shape.to_string(), " and write_indices ", start.shape.to_string(),
             " do not fit a cache of shape ", past.shape.to_string(), " along axis ", axis));
  }
  const RowsParams p{.past = past.at,
                     .fresh = fresh.at,
                     .to = y.at,
                     .start = start.at,
                     .count = y.numel(),
                     .middle = past.shape.numel(1, axis),
                     .length = past.shape[axis],
                     .rows = fresh.shape[axis],
                     .inner = past.shape.numel(axis + 1, rank),
                     .circular = b.attributes().get_string("mode", "linear") == "circular"};
  if (p.count > 0) b.launch(plan_by_size("write_rows", y.element_bytes(), p.count, p));
}

bool can_one_hot(const NodeView& node) {
  return is_index(node.input_dtype(0)) && node.input_rank(0).value_or(9) < kPlaceRank && node.has_input(1) &&
         node.is_known(1) && is_movable(node.output_dtype(0));
}
/// All off, then each index's place on.
void lower_one_hot(Builder& b) {
  const DeviceTensor index = b.input(0), values = b.input(2), y = b.output(0);
  if (values.numel() != 2)
    fail(ErrorCode::InvalidArgument, cat("values has ", values.numel(), " elements instead of 2"));
  const std::size_t axis = tensor::normalize_axis(b.attributes().get_int("axis", -1), y.shape.rank());
  const std::int64_t depth = y.shape[axis], inner = y.shape.numel(axis + 1, y.shape.rank());
  if (depth <= 0) fail(ErrorCode::InvalidArgument, cat("depth ", depth, " is not positive"));
  if (y.numel() == 0) return;
  copy_dense(b, values.at, y.shape, y.element_bytes(), y.at, std::vector<std::int64_t>(y.shape.rank(), 0));
  PlacedCopyParams p{.places = {},
                     .from = values.at + y.element_bytes(),
                     .to = y.at,
                     .owner = 0,
                     .count = index.numel(),
                     .slice = 1,
                     .from_slice = 0};
  p.places.index = index.at;
  p.places.index_is_64 = index.dtype == tensor::DType::Int64;
  p.places.rank = 2;
  p.places.depth = 1;
  p.places.dims[0] = static_cast<std::uint32_t>(y.shape.numel(0, axis));
  p.places.dims[1] = static_cast<std::uint32_t>(inner);
  p.places.step[0] = depth * inner;
  p.places.step[1] = 1;
  p.places.bound[0] = depth;
  p.places.stride[0] = inner;
  b.launch(plan_by_size("scatter_places", y.element_bytes(), p.count, p));
}

}  // namespace

void register_places(Lowerings& lowerings) {
  lowerings.push_back({"", "GatherElements", can_name, lower_gather<elements_of>});
  lowerings.push_back({"", "GatherND", can_name, lower_gather<tuples_of>});
  lowerings.push_back({graph::kMicrosoft, "GatherND", can_name, lower_gather<tuples_of>});
  lowerings.push_back({"", "Scatter", can_scatter, lower_scatter<true>});
  lowerings.push_back({"", "ScatterElements", can_scatter, lower_scatter<true>});
  lowerings.push_back({"", "ScatterND", can_scatter, lower_scatter<false>});
  lowerings.push_back({"", "TensorScatter", can_write_rows, lower_write_rows});
  lowerings.push_back({"", "OneHot", can_one_hot, lower_one_hot});
}

}  // namespace infernode::cuda
