// Scatter, ScatterElements, ScatterND, TensorScatter: a copy of the data with some elements replaced or combined.

#include <algorithm>
#include <array>

#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"
#include "ops/common/strided_copy.h"
#include "ops/tensor/gather_scatter.h"

namespace infernode::ops {
namespace {

using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

/// Output 0 filled with input 0, which it may share memory with.
Tensor start_from_data(KernelContext& ctx) {
  const Tensor& data = ctx.input(0);
  const Tensor out = ctx.output(0, data.shape());
  copy_all(ctx.run(), data, out);
  return out;
}

/// `input`, or a copy of it where the output is about to be written over it.
Tensor apart_from(const KernelContext& ctx, const Tensor& out, const Tensor& input) {
  if (input.raw() != out.raw()) return input;
  const Tensor copy = Tensor::make(input.dtype(), input.shape(), *ctx.run().allocator);
  copy_all(ctx.run(), input, copy);
  return copy;
}

class ScatterElements : public Kernel {
 public:
  explicit ScatterElements(KernelInfo& info)
      : axis_(info.attributes().get_int("axis", 0)),
        reduction_(parse_reduction(info.attributes().get_string("reduction", "none"))) {}
  void run(KernelContext& ctx) const override {
    const Tensor &data = ctx.input(0), &updates_in = ctx.input(2);
    INFERNODE_CHECK(updates_in.shape() == ctx.input(1).shape(), ErrorCode::ShapeMismatch, "indices of shape ",
                    ctx.input(1).shape().dims(), " and updates of shape ", updates_in.shape().dims(), " must be alike");
    const std::size_t axis = tensor::normalize_axis(axis_, data.rank());
    const std::int64_t bound = data.dim(axis);
    const ElementRows rows(data.shape(), updates_in.shape(), axis);
    const ScatterLoops loops = scatter_loops(data.dtype(), reduction_);
    const Tensor out = start_from_data(ctx);
    const Tensor indices = apart_from(ctx, out, indices_as_int64(ctx.run(), ctx.input(1)));
    const Tensor updates = apart_from(ctx, out, updates_in);
    if (updates.numel() == 0) return;
    const auto size = static_cast<std::int64_t>(element_bytes(data.dtype()));
    const auto* index = indices.data<std::int64_t>();
    const auto* from = static_cast<const std::byte*>(updates.raw());
    auto* to = static_cast<std::byte*>(out.mutable_raw());
    // Only groups that touch different elements run side by side, so that the last of equal indices always wins.
    const std::int64_t group = rows.rows / rows.outer;
    const double cost = 3.0 * static_cast<double>(group * rows.columns);
    ctx.parallel_for(static_cast<std::size_t>(rows.outer), cost, [&](std::size_t begin, std::size_t end, std::size_t) {
      std::array<std::int64_t, 256> offsets;
      Mover mover(ctx.run());
      const std::int64_t first = static_cast<std::int64_t>(begin) * group,
                         last = static_cast<std::int64_t>(end) * group;
      Walk walk(rows.axes.data(), rows.axes.size(), first);
      for (std::int64_t r = first; r < last; ++r, walk.next()) {
        for (std::int64_t j = 0; j < rows.columns;) {
          std::size_t n = 0;
          const std::int64_t start = walk.to + j;
          for (; n < offsets.size() && j < rows.columns; ++n, ++j) {
            offsets[n] =
                walk.from + j * rows.last_stride + checked_index(index[walk.to + j], bound, axis) * rows.axis_stride;
          }
          loops.at(mover, to, offsets.data(), from + start * size, n);
        }
      }
    });
  }

 private:
  std::int64_t axis_;
  Reduction reduction_;
};

class ScatterND : public Kernel {
 public:
  explicit ScatterND(KernelInfo& info)
      : reduction_(parse_reduction(info.attributes().get_string("reduction", "none"))) {}
  void run(KernelContext& ctx) const override {
    const Tensor& data = ctx.input(0);
    const IndexTuples tuples(data.shape(), ctx.input(1).shape(), 0);
    Shape expected(ctx.input(1).shape().dims().first(ctx.input(1).rank() - 1));
    for (std::size_t d = tuples.depth; d < data.rank(); ++d) expected.push_back(data.dim(d));
    INFERNODE_CHECK(ctx.input(2).shape() == expected, ErrorCode::ShapeMismatch, "updates have shape ",
                    ctx.input(2).shape().dims(), "; data and indices ask for ", expected.dims());
    const ScatterLoops loops = scatter_loops(data.dtype(), reduction_);
    const Tensor out = start_from_data(ctx);
    const Tensor indices = apart_from(ctx, out, ctx.input(1)), updates = apart_from(ctx, out, ctx.input(2));
    const auto size = static_cast<std::int64_t>(element_bytes(data.dtype()));
    const auto* tuple = indices.data<std::int64_t>();
    const auto* from = static_cast<const std::byte*>(updates.raw());
    auto* to = static_cast<std::byte*>(out.mutable_raw());
    Mover mover(ctx.run());
    for (std::int64_t i = 0; i < tuples.rows_per_batch; ++i, tuple += tuples.depth, from += tuples.slice * size) {
      mover.did(10);
      loops.run(mover, to + tuples.offset(tuple) * size, from, static_cast<std::size_t>(tuples.slice));
    }
  }

 private:
  Reduction reduction_;
};

class TensorScatter : public Kernel {
 public:
  explicit TensorScatter(KernelInfo& info)
      : axis_(info.attributes().get_int("axis", -2)),
        circular_(is_circular(info.attributes().get_string("mode", "linear"))) {}
  void run(KernelContext& ctx) const override {
    const Shape& cache = ctx.input(0).shape();
    const Shape update_dims = ctx.input(1).shape();
    const std::size_t axis = tensor::normalize_axis(axis_, cache.rank());
    bool fits = cache.rank() == update_dims.rank() && axis > 0;
    for (std::size_t d = 0; fits && d < cache.rank(); ++d) {
      fits = d == axis ? update_dims[d] <= cache[d] : update_dims[d] == cache[d];
    }
    INFERNODE_CHECK(fits, ErrorCode::ShapeMismatch, "an update of shape ", update_dims.dims(),
                    " does not fit a cache of shape ", cache.dims(), " along axis ", axis);
    const std::int64_t batches = cache[0], middle = cache.numel(1, axis), length = cache[axis],
                       count = update_dims[axis], inner = cache.numel(axis + 1, cache.rank());
    Ints starts(static_cast<std::size_t>(batches), 0);
    if (const Tensor* given = ctx.optional_input(2)) {
      INFERNODE_CHECK(given->numel() == batches, ErrorCode::ShapeMismatch, "write_indices has ", given->numel(),
                      " elements for a batch of ", batches);
      starts = read_ints(*given);
    }
    for (std::int64_t start : starts) {
      const bool inside =
          start >= 0 && start <= length && (circular_ ? start < length || count == 0 : start + count <= length);
      INFERNODE_CHECK(inside, ErrorCode::InvalidArgument, "write index ", start, " with ", count,
                      " elements goes beyond axis ", axis, " of length ", length);
    }
    const Tensor out = start_from_data(ctx);
    const Tensor update = apart_from(ctx, out, ctx.input(1));
    const Shape from_strides{count * inner, 1}, to_strides{length * inner, 1};
    for (std::int64_t b = 0; b < batches; ++b) {
      const std::int64_t start = starts[static_cast<std::size_t>(b)];
      const std::int64_t head = std::min(count, length - start);
      const std::int64_t from = b * middle * count * inner, to = b * middle * length * inner;
      strided_copy(ctx.run(), Shape{middle, head * inner}, {update, from, from_strides},
                   {out, to + start * inner, to_strides});
      strided_copy(ctx.run(), Shape{middle, (count - head) * inner}, {update, from + head * inner, from_strides},
                   {out, to, to_strides});
    }
  }

 private:
  static bool is_circular(std::string_view mode) {
    INFERNODE_CHECK(mode == "linear" || mode == "circular", ErrorCode::InvalidModel, "unknown mode '", mode, "'");
    return mode == "circular";
  }

  std::int64_t axis_;
  bool circular_;
};

}  // namespace

void register_scatter(kernel::OpRegistrar& r) {
  r.op("Scatter")
      .version(9, "data:T, indices:Tind, updates:T -> output:T; T = all, Tind = int32|int64")
      .infer(kernel::infer_same_as_first)
      .kernel<ScatterElements>()
      .in_place(0, 0)
      .deprecated(11);
  r.op("ScatterElements")
      .version(11, "data:T, indices:Tind, updates:T -> output:T; T = all, Tind = int32|int64")
      .version(13, "data:T, indices:Tind, updates:T -> output:T; T = all_ir4, Tind = int32|int64")
      .version(16, "data:T, indices:Tind, updates:T -> output:T; T = all_ir4, Tind = int32|int64")
      .version(18, "data:T, indices:Tind, updates:T -> output:T; T = all_ir4, Tind = int32|int64")
      .infer(kernel::infer_same_as_first)
      .kernel<ScatterElements>()
      .in_place(0, 0);
  r.op("ScatterND")
      .version(11, "data:T, indices:int64, updates:T -> output:T; T = all")
      .version(13, "data:T, indices:int64, updates:T -> output:T; T = all_ir4")
      .version(16, "data:T, indices:int64, updates:T -> output:T; T = all_ir4")
      .version(18, "data:T, indices:int64, updates:T -> output:T; T = all_ir4")
      .infer(kernel::infer_same_as_first)
      .kernel<ScatterND>()
      .in_place(0, 0);
  r.op("TensorScatter")
      .version(24, "past_cache:T, update:T, write_indices:int64? -> present_cache:T; T = all_ir12")
      .infer(kernel::infer_same_as_first)
      .kernel<TensorScatter>()
      .in_place(0, 0);
}

}  // namespace infernode::ops
