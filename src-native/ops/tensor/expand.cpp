// Expand and Tile: elements repeated along axes.

#include <algorithm>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::SymShape;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

/// Contents of a vector made by repeating a scalar or a vector.
void infer_repeated_contents(InferContext& ctx, const SymShape& out) {
  if (out.size() != 1 || !out[0].known() || out[0].value() > 64) return;
  const auto contents = ctx.input_contents(0);
  if (!contents || contents->empty()) return;
  std::vector<Dim> repeated;
  for (std::int64_t i = 0; i < out[0].value(); ++i) {
    repeated.push_back((*contents)[static_cast<std::size_t>(i) % contents->size()]);
  }
  ctx.set_output_contents(0, std::move(repeated));
}

void infer_expand(InferContext& ctx) {
  const SymShape* in = ctx.input_shape(0);
  const auto asked = ctx.input_contents(1);
  if (!in || !asked) {
    const SymShape* shape = ctx.input_shape(1);
    if (in && shape && shape->size() == 1 && (*shape)[0].known() && (*shape)[0].value() < 64) {
      ctx.set_output_shape(0, unknown_shape(std::max(in->size(), static_cast<std::size_t>((*shape)[0].value()))));
    }
    return;
  }
  const SymShape* both[] = {in, &*asked};
  const SymShape out = kernel::broadcast_shapes(both);
  ctx.set_output_shape(0, out);
  infer_repeated_contents(ctx, out);
}

class Expand : public Kernel {
 public:
  explicit Expand(KernelInfo& info) : shape_(info, "", 1) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Shape asked(shape_.required(ctx, "shape").span());
    for (std::int64_t d : asked) {
      INFERNODE_CHECK(d >= 0, ErrorCode::InvalidArgument, "shape ", asked.dims(), " has a negative dim");
    }
    const Shape dims = tensor::broadcast(in.shape(), asked);
    const Tensor out = ctx.output(0, dims);
    strided_copy(ctx.run(), dims, {in, 0, tensor::broadcast_strides(in.shape(), dims)}, {out, 0, dims.strides()});
  }

 private:
  IntsArgument shape_;
};

/// Version 1 takes one count and one axis, as float scalars.
Ints legacy_repeats(std::size_t rank, std::int64_t tiles, std::int64_t axis) {
  Ints out(rank, 1);
  out[tensor::normalize_axis(axis, rank)] = tiles;
  return out;
}

void infer_tile(InferContext& ctx) {
  const SymShape* in = ctx.input_shape(0);
  if (!in) return;
  std::optional<std::vector<Dim>> repeats;
  if (ctx.since_version() >= 6) {
    repeats = ctx.input_contents(1);
  } else if (ctx.input_constant(1) && ctx.input_constant(2)) {
    const Ints values = legacy_repeats(in->size(), tensor::to_int64_scalar(*ctx.input_constant(1)),
                                       tensor::to_int64_scalar(*ctx.input_constant(2)));
    repeats.emplace(values.begin(), values.end());
  }
  if (!repeats) return ctx.set_output_shape(0, unknown_shape(in->size()));
  INFERNODE_CHECK(repeats->size() == in->size(), ErrorCode::InvalidArgument, "", repeats->size(),
                  " repeats for an input of rank ", in->size());
  SymShape out = *in;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Dim& count = (*repeats)[i];
    INFERNODE_CHECK(!count.known() || count.value() >= 0, ErrorCode::InvalidArgument, "repeats has a negative count, ",
                    count.value());
    out[i] = out[i] * count;
  }
  ctx.set_output_shape(0, out);
  infer_repeated_contents(ctx, out);
}

class Tile : public Kernel {
 public:
  explicit Tile(KernelInfo& info) : legacy_(info.since_version() < 6) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Ints repeats = legacy_ ? legacy_repeats(in.rank(), tensor::to_int64_scalar(ctx.input(1)),
                                                  tensor::to_int64_scalar(ctx.input(2)))
                                 : read_ints(ctx.input(1));
    INFERNODE_CHECK(repeats.size() == in.rank(), ErrorCode::InvalidArgument, "", repeats.size(),
                    " repeats for an input of rank ", in.rank());
    Shape dims = in.shape();
    for (std::size_t i = 0; i < dims.rank(); ++i) {
      INFERNODE_CHECK(repeats[i] >= 0, ErrorCode::InvalidArgument, "repeats ", repeats, " has a negative count");
      dims[i] = checked_mul(dims[i], repeats[i]);
    }
    const Tensor out = ctx.output(0, dims);
    // Each axis becomes two: the repeats, which do not move the source, and the elements.
    const Shape in_strides = in.shape().strides(), out_strides = dims.strides();
    Shape loop, from, to;
    for (std::size_t i = 0; i < dims.rank(); ++i) {
      loop.push_back(repeats[i]);
      from.push_back(0);
      to.push_back(in.dim(i) * out_strides[i]);
      loop.push_back(in.dim(i));
      from.push_back(in_strides[i]);
      to.push_back(out_strides[i]);
    }
    strided_copy(ctx.run(), loop, {in, 0, from}, {out, 0, to});
  }

 private:
  bool legacy_;
};

}  // namespace

void register_expand(kernel::OpRegistrar& r) {
  r.op("Expand")
      .version(8, "input:T, shape:int64 -> output:T; T = all")
      .version(13, "input:T, shape:int64 -> output:T; T = all_ir4")
      .infer(infer_expand)
      .kernel<Expand>()
      .axes(kernel::Axes::Expanded)
      .moves(kernel::Moves::Repeats);
  r.op("Tile")
      .version(1, "input:T, tiles:T, axis:T -> output:T; T = floats")
      .version(6, "input:T, repeats:int64 -> output:T; T = all")
      .version(13, "input:T, repeats:int64 -> output:T; T = all_ir4")
      .infer(infer_tile)
      .kernel<Tile>()
      .axes(kernel::Axes::Repeated, 6)
      .moves(kernel::Moves::Repeats);
}

}  // namespace infernode::ops
