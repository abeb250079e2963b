// Shape and Size.

#include <algorithm>

#include "kernel/op_registrar.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

/// Dims [begin, end) of `start` and `end`, which count from the back where negative and are clamped to the rank.
struct Range {
  explicit Range(const graph::Attributes& attributes)
      : start(attributes.get_int("start", 0)), end(attributes.get_int("end", INT64_MAX)) {}
  std::pair<std::size_t, std::size_t> of(std::size_t rank) const {
    const auto r = static_cast<std::int64_t>(rank);
    const auto clamp = [r](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? std::max(v, -r) + r : v, 0, r); };
    const auto first = static_cast<std::size_t>(clamp(start));
    return {first, std::max(first, static_cast<std::size_t>(clamp(end)))};
  }
  std::int64_t start, end;
};

class ShapeOf final : public Kernel {
 public:
  explicit ShapeOf(KernelInfo& info) : range_(info.attributes()) {}
  void run(KernelContext& ctx) const override {
    const auto dims = ctx.input(0).shape().dims();
    const auto [first, last] = range_.of(dims.size());
    const Tensor out = ctx.output(0, DType::Int64, {static_cast<std::int64_t>(last - first)});
    std::copy(dims.begin() + static_cast<std::ptrdiff_t>(first), dims.begin() + static_cast<std::ptrdiff_t>(last),
              out.mutable_data<std::int64_t>());
  }

 private:
  Range range_;
};

void infer_shape(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::Int64);
  const graph::SymShape* shape = ctx.input_shape(0);
  if (!shape) return ctx.set_output_shape(0, graph::SymShape{Dim::unknown()});
  const auto [first, last] = Range(ctx.attributes()).of(shape->size());
  ctx.set_output_shape(0, Shape{static_cast<std::int64_t>(last - first)});
  ctx.set_output_contents(
      0, {shape->begin() + static_cast<std::ptrdiff_t>(first), shape->begin() + static_cast<std::ptrdiff_t>(last)});
}

class Size final : public Kernel {
 public:
  explicit Size(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    *ctx.output(0, DType::Int64, {}).mutable_data<std::int64_t>() = ctx.input(0).numel();
  }
};

void infer_size(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::Int64);
  ctx.set_output_shape(0, Shape{});
  if (const graph::SymShape* shape = ctx.input_shape(0)) ctx.set_output_contents(0, {graph::numel(*shape)});
}

}  // namespace

void register_shape(kernel::OpRegistrar& r) {
  r.op("Shape")
      .version(1, "data:T -> shape:T1; T = all, T1 = int64")
      .version(13, "data:T -> shape:T1; T = all_ir4, T1 = int64")
      .version(15, "data:T -> shape:T1; T = all_ir4, T1 = int64")
      .version(19, "data:T -> shape:T1; T = all_ir9, T1 = int64")
      .version(21, "data:T -> shape:T1; T = all_ir10, T1 = int64")
      .version(23, "data:T -> shape:T1; T = all_ir11, T1 = int64")
      .version(24, "data:T -> shape:T1; T = all_ir12, T1 = int64")
      .version(25, "data:T -> shape:T1; T = all_ir13, T1 = int64")
      .infer(infer_shape)
      .kernel<ShapeOf>()
      .axes(kernel::Axes::Dims);
  r.op("Size")
      .version(1, "data:T -> size:T1; T = all, T1 = int64")
      .version(13, "data:T -> size:T1; T = all_ir4, T1 = int64")
      .version(19, "data:T -> size:T1; T = all_ir9, T1 = int64")
      .version(21, "data:T -> size:T1; T = all_ir10, T1 = int64")
      .version(23, "data:T -> size:T1; T = all_ir11, T1 = int64")
      .version(24, "data:T -> size:T1; T = all_ir12, T1 = int64")
      .version(25, "data:T -> size:T1; T = all_ir13, T1 = int64")
      .infer(infer_size)
      .kernel<Size>()
      .axes(kernel::Axes::Count);
}

}  // namespace infernode::ops
