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

/// Sizes along the axis where the node does not list them: equal parts; from version 18 on the last ones may be
/// smaller.
Ints equal_parts(std::int64_t dim, std::int64_t count, bool uneven) {
  INFERNODE_CHECK(count > 0, ErrorCode::InvalidArgument, "no outputs");
  INFERNODE_CHECK(uneven || dim % count == 0, ErrorCode::InvalidArgument, "a dim of ", dim, " cannot be split into ",
                  count, " equal parts");
  const std::int64_t part = ceil_div(dim, count);
  Ints out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(std::min(part, dim));
    dim -= out.back();
  }
  return out;
}

void check_sizes(const Ints& sizes, std::size_t outputs, std::int64_t dim) {
  std::int64_t sum = 0;
  bool valid = sizes.size() == outputs;
  for (std::int64_t s : sizes) valid = valid && s >= 0 && !add_overflows<std::int64_t>(sum, s, sum);
  INFERNODE_CHECK(valid && sum == dim, ErrorCode::InvalidArgument, "sizes ", sizes, " do not split a dim of ", dim,
                  " into ", outputs, " outputs");
}

void check_count(const graph::Attributes& attributes, std::size_t outputs) {
  const std::int64_t count = attributes.get_int("num_outputs", static_cast<std::int64_t>(outputs));
  INFERNODE_CHECK(count == static_cast<std::int64_t>(outputs), ErrorCode::InvalidArgument, "num_outputs is ", count,
                  " but the node has ", outputs, " outputs");
}

void infer_split(InferContext& ctx) {
  check_count(ctx.attributes(), ctx.output_count());
  const SymShape* in = ctx.input_shape(0);
  if (!in) return;
  const std::size_t axis = tensor::normalize_axis(ctx.attributes().get_int("axis", 0), in->size());
  const Dim& dim = (*in)[axis];
  const InferredInts asked = infer_ints(ctx, "split", 1);
  const std::size_t count = ctx.output_count();
  std::vector<Dim> sizes;
  if (asked.values) {
    if (dim.known()) check_sizes(*asked.values, count, dim.value());
    sizes.assign(asked.values->begin(), asked.values->end());
  } else if (!asked.given && dim.known()) {
    const Ints parts = equal_parts(dim.value(), static_cast<std::int64_t>(count), ctx.since_version() >= 18);
    sizes.assign(parts.begin(), parts.end());
  } else if (!asked.given && ctx.since_version() < 18) {
    sizes.assign(count, floor_div(dim, static_cast<std::int64_t>(count)));
  }
  sizes.resize(count, Dim::unknown());
  const auto contents = in->size() == 1 && asked.values ? ctx.input_contents(0) : std::nullopt;
  std::size_t at = 0;
  for (std::size_t o = 0; o < count; ++o) {
    if (ctx.has_output(o)) {
      SymShape out = *in;
      out[axis] = sizes[o];
      ctx.set_output_dtype(o, ctx.input_dtype(0));
      ctx.set_output_shape(o, std::move(out));
    }
    if (contents && sizes[o].known()) {
      const auto end = at + static_cast<std::size_t>(sizes[o].value());
      if (ctx.has_output(o) && end <= contents->size()) {
        ctx.set_output_contents(o, {contents->begin() + static_cast<std::ptrdiff_t>(at),
                                    contents->begin() + static_cast<std::ptrdiff_t>(end)});
      }
      at = end;
    }
  }
}

class Split : public Kernel {
 public:
  explicit Split(KernelInfo& info)
      : axis_(info.attributes().get_int("axis", 0)), uneven_(info.since_version() >= 18), sizes_(info, "split", 1) {
    check_count(info.attributes(), info.output_count());
  }
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const std::size_t axis = tensor::normalize_axis(axis_, in.rank());
    const std::size_t count = ctx.output_count();
    const auto asked = sizes_.read(ctx);
    const Ints sizes = asked ? *asked : equal_parts(in.dim(axis), static_cast<std::int64_t>(count), uneven_);
    check_sizes(sizes, count, in.dim(axis));
    Shape dims = in.shape();
    const std::int64_t outer = dims.numel(0, axis), inner = dims.numel(axis + 1, dims.rank());
    std::int64_t at = 0;
    for (std::size_t o = 0; o < count; ++o) {
      const std::int64_t run = sizes[o] * inner;
      if (ctx.wants_output(o)) {
        dims[axis] = sizes[o];
        const Tensor out = ctx.output(o, in.dtype(), dims);
        strided_copy(ctx.run(), Shape{outer, run}, {in, at, Shape{in.dim(axis) * inner, 1}}, {out, 0, Shape{run, 1}});
      }
      at += run;
    }
  }

 private:
  std::int64_t axis_;
  bool uneven_;
  IntsArgument sizes_;
};

}  // namespace

void register_split(kernel::OpRegistrar& r) {
  r.op("Split")
      .version(1, "input:T, split:T? -> outputs:T*; T = floats")
      .version(2, "input:T -> outputs:T*; T = all")
      .version(11, "input:T -> outputs:T*; T = all")
      .version(13, "input:T, split:int64? -> outputs:T*; T = all_ir4")
      .version(18, "input:T, split:int64? -> outputs:T*; T = all_ir4")
      .infer(infer_split)
      .kernel<Split>()
      .along_axis(0, 2);
}

}  // namespace infernode::ops
