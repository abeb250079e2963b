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
  SymShape out;
  std::size_t axis = 0;
  bool all = true, first = true;
  Dim total = 0;
  for (std::size_t i = 0; i < ctx.input_count(); ++i) {
    const SymShape* in = ctx.input_shape(i);
    if (!in) {
      all = false;
      continue;
    }
    if (first) {
      out = *in;
      axis = tensor::normalize_axis(axis_attribute(ctx.attributes(), ctx.since_version()), out.size());
    }
    INFERNODE_CHECK(in->size() == out.size(), ErrorCode::ShapeMismatch, "inputs have ranks ", out.size(), " and ",
                    in->size());
    for (std::size_t d = 0; d < out.size(); ++d) {
      if (d != axis && !first) out[d] = merge_dims(out[d], (*in)[d], "Concat");
    }
    total = total + (*in)[axis];
    first = false;
  }
  if (first) return;
  out[axis] = all ? total : Dim::unknown();
  const bool vector = out.size() == 1;
  ctx.set_output_shape(0, std::move(out));
  if (vector && all && tensor::is_integer(ctx.input_dtype(0))) infer_concat_contents(ctx);
}

class Concat : public Kernel {
 public:
  explicit Concat(KernelInfo& info) : axis_(axis_attribute(info.attributes(), info.since_version())) {}
  void run(KernelContext& ctx) const override {
    Shape dims = ctx.input(0).shape();
    const std::size_t axis = tensor::normalize_axis(axis_, dims.rank());
    for (std::size_t i = 1; i < ctx.input_count(); ++i) {
      const Shape& in = ctx.input(i).shape();
      bool fits = in.rank() == dims.rank();
      for (std::size_t d = 0; fits && d < dims.rank(); ++d) fits = d == axis || in[d] == dims[d];
      INFERNODE_CHECK(fits, ErrorCode::ShapeMismatch, "input ", i, " has shape ", in.dims(), ", which does not fit ",
                      ctx.input(0).shape().dims(), " along axis ", axis);
      dims[axis] = checked_add(dims[axis], in[axis]);
    }
    const Tensor out = ctx.output(0, dims);
    const std::int64_t outer = dims.numel(0, axis), inner = dims.numel(axis + 1, dims.rank());
    std::int64_t at = 0;
    for (std::size_t i = 0; i < ctx.input_count(); ++i) {
      const Tensor& in = ctx.input(i);
      const std::int64_t run = in.dim(axis) * inner;
      strided_copy(ctx.run(), Shape{outer, run}, {in, 0, Shape{run, 1}}, {out, at, Shape{dims[axis] * inner, 1}});
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
