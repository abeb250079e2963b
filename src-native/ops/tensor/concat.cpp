#include <algorithm>

#include "kernel/op_registrar.h"
#include "ops/common/stack.h"
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

/// Version 1 had a default; from 4 on the attribute is required.
std::int64_t axis_attribute(const graph::Attributes& attributes, std::int64_t version) {
  return version < 4 ? attributes.get_int("axis", 1) : attributes.get_int("axis");
}

void infer_concat_contents(InferContext& ctx) {
  std::vector<Dim> joined;
  bool any = false;
  for (std::size_t i = 0; i < ctx.input_count(); ++i) {
    const Dim& count = (*ctx.input_shape(i))[0];
    if (const auto contents = ctx.input_contents(i)) {
      joined.insert(joined.end(), contents->begin(), contents->end());
      any = true;
    } else if (count.known() && count.value() <= 64) {
      for (std::int64_t k = 0; k < count.value(); ++k) joined.push_back(Dim::unknown());
    } else {
      return;
    }
  }
  if (any && joined.size() <= 64) ctx.set_output_contents(0, std::move(joined));
}

void infer_concat(InferContext& ctx) {
  std::vector<const SymShape*> parts(ctx.input_count());
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = ctx.input_shape(i);
  auto out = infer_join(parts, axis_attribute(ctx.attributes(), ctx.since_version()), "Concat");
  if (!out) return;
  ctx.set_output_shape(0, std::move(*out));
  const auto is_vector = [](const SymShape* part) { return part != nullptr && part->size() == 1; };
  if (std::ranges::all_of(parts, is_vector) && tensor::is_integer(ctx.input_dtype(0))) infer_concat_contents(ctx);
}

class Concat : public Kernel {
 public:
  explicit Concat(KernelInfo& info) : axis_(axis_attribute(info.attributes(), info.since_version())) {}
  void run(KernelContext& ctx) const override {
    const auto part = [&](std::size_t i) -> const Shape& { return ctx.input(i).shape(); };
    const Join join = plan_join(ctx.input_count(), part, axis_, "Concat");
    const Tensor out = ctx.output(0, join.dims);
    const std::size_t axis = join.axis;
    const std::int64_t outer = join.dims.numel(0, axis), inner = join.dims.numel(axis + 1, join.dims.rank());
    std::int64_t at = 0;
    for (std::size_t i = 0; i < ctx.input_count(); ++i) {
      const Tensor& in = ctx.input(i);
      if (!join.takes(in.shape())) continue;
      const std::int64_t run = in.dim(axis) * inner;
      strided_copy(ctx.run(), Shape{outer, run}, {in, 0, Shape{run, 1}}, {out, at, Shape{join.dims[axis] * inner, 1}});
      at += run;
    }
  }

 private:
  std::int64_t axis_;
};

}  // namespace

void register_concat(kernel::OpRegistrar& r) {
  r.op("Concat")
      .version(1, "inputs:T* -> concat_result:T; T = floats")
      .version(4, "inputs:T* -> concat_result:T; T = all")
      .version(11, "inputs:T* -> concat_result:T; T = all")
      .version(13, "inputs:T* -> concat_result:T; T = all_ir4")
      .infer(infer_concat)
      .kernel<Concat>()
      .axes(kernel::Axes::Joined, 4)
      .blocks(kernel::Blocks::Any)
      .passes_one_on()
      .on_codes("QLinearConcat");
}

}  // namespace infernode::ops
