// ReduceSum, ReduceMean, ... : the ten reductions over any set of axes.

#include "ops/math/reduction.h"

#include "kernel/op_registrar.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::SymShape;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Tensor;

/// The axes to reduce: all where none are given, unless the node says that this means none.
Ints resolve_axes(const std::optional<Ints>& given, bool noop, std::size_t rank) {
  Ints out;
  if (given && !given->empty()) return normalize_axes(given->span(), rank);
  for (std::size_t i = 0; !noop && i < rank; ++i) out.push_back(static_cast<std::int64_t>(i));
  return out;
}

/// Sum, Prod, Min and Max of a vector of dims: the number of elements of a shape, for instance.
template <class Join>
void infer_contents(InferContext& ctx, Dim start, Join join) {
  const auto contents = ctx.input_contents(0);
  const SymShape* in = ctx.input_shape(0);
  if (!contents || !in || in->size() != 1 || !tensor::is_integer(ctx.input_dtype(0))) return;
  for (const Dim& d : *contents) start = join(start, d);
  ctx.set_output_contents(0, {start});
}

template <ReduceKind Kind>
void infer_reduce(InferContext& ctx) {
  const SymShape* in = ctx.input_shape(0);
  if (!in) return;
  const bool keep_dims = ctx.attributes().get_int("keepdims", 1) != 0;
  const bool noop = ctx.attributes().get_int("noop_with_empty_axes", 0) != 0;
  const InferredInts asked = infer_ints(ctx, "axes", 1);
  if (asked.unknown()) {
    if (keep_dims) ctx.set_output_shape(0, unknown_shape(in->size()));
    return;
  }
  const Ints axes = resolve_axes(asked.values, noop, in->size());
  ctx.set_output_shape(0, reduced_shape(*in, axes.span(), keep_dims));
  if (axes.empty()) return;
  if constexpr (Kind == ReduceKind::Sum) infer_contents(ctx, 0, [](const Dim& a, const Dim& b) { return a + b; });
  if constexpr (Kind == ReduceKind::Prod) infer_contents(ctx, 1, [](const Dim& a, const Dim& b) { return a * b; });
}

template <ReduceKind Kind>
class Reduce : public Kernel {
 public:
  explicit Reduce(KernelInfo& info)
      : kernels_(info.kernels()),
        keep_dims_(info.attributes().get_int("keepdims", 1) != 0),
        noop_(info.attributes().get_int("noop_with_empty_axes", 0) != 0),
        axes_(info, "axes", 1) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Ints axes = resolve_axes(axes_.read(ctx), noop_, in.rank());
    const Tensor out = ctx.output(0, reduced_shape(in.shape(), axes.span(), keep_dims_));
    reduce(ctx.run(), kernels_, Kind, axes.span(), in, out);
  }

 private:
  const microkernels::KernelSet& kernels_;
  bool keep_dims_, noop_;
  IntsArgument axes_;
};

/// Most reductions grew alike: bfloat16 at 13, axes as an input at 18.
template <ReduceKind Kind>
void register_reduction(kernel::OpRegistrar& r, std::string_view name) {
  r.op(name)
      .version(1, "data:T -> reduced:T; T = floats|int32|int64|uint32|uint64")
      .version(11, "data:T -> reduced:T; T = floats|int32|int64|uint32|uint64")
      .version(13, "data:T -> reduced:T; T = floats_bf16|int32|int64|uint32|uint64")
      .version(18, "data:T, axes:int64? -> reduced:T; T = floats_bf16|int32|int64|uint32|uint64")
      .infer(infer_reduce<Kind>)
      .template kernel<Reduce<Kind>>()
      .axes(kernel::Axes::Reduced);
}

template <ReduceKind Kind>
void register_logarithmic(kernel::OpRegistrar& r, std::string_view name) {
  r.op(name)
      .version(1, "data:T -> reduced:T; T = floats|int32|int64|uint32|uint64")
      .version(11, "data:T -> reduced:T; T = floats|int32|int64|uint32|uint64")
      .version(13, "data:T -> reduced:T; T = floats_bf16|int32|int64|uint32|uint64")
      .version(18, "data:T, axes:int64? -> reduced:T; T = floats_bf16|int32|int64|uint32|uint64")
      .version(28, "data:T, axes:int64? -> reduced:T; T = floats_bf16")
      .infer(infer_reduce<Kind>)
      .template kernel<Reduce<Kind>>()
      .axes(kernel::Axes::Reduced);
}

template <ReduceKind Kind>
void register_extreme(kernel::OpRegistrar& r, std::string_view name) {
  r.op(name)
      .version(1, "data:T -> reduced:T; T = floats|int32|int64|uint32|uint64")
      .version(11, "data:T -> reduced:T; T = floats|int32|int64|uint32|uint64")
      .version(12, "data:T -> reduced:T; T = floats|int32|int64|uint32|uint64|int8|uint8")
      .version(13, "data:T -> reduced:T; T = floats_bf16|int32|int64|uint32|uint64|int8|uint8")
      .version(18, "data:T, axes:int64? -> reduced:T; T = floats_bf16|int32|int64|uint32|uint64|int8|uint8")
      .version(20, "data:T, axes:int64? -> reduced:T; T = floats_bf16|int32|int64|uint32|uint64|int8|uint8|bool")
      .infer(infer_reduce<Kind>)
      .template kernel<Reduce<Kind>>()
      .axes(kernel::Axes::Reduced);
}

}  // namespace

void register_reduce(kernel::OpRegistrar& r) {
  r.op("ReduceSum")
      .version(1, "data:T -> reduced:T; T = floats|int32|int64|uint32|uint64")
      .version(11, "data:T -> reduced:T; T = floats|int32|int64|uint32|uint64")
      .version(13, "data:T, axes:int64? -> reduced:T; T = floats_bf16|int32|int64|uint32|uint64")
      .infer(infer_reduce<ReduceKind::Sum>)
      .kernel<Reduce<ReduceKind::Sum>>()
      .axes(kernel::Axes::Reduced);
  register_reduction<ReduceKind::Mean>(r, "ReduceMean");
  register_reduction<ReduceKind::Prod>(r, "ReduceProd");
  register_reduction<ReduceKind::L1>(r, "ReduceL1");
  register_reduction<ReduceKind::L2>(r, "ReduceL2");
  register_reduction<ReduceKind::SumSquare>(r, "ReduceSumSquare");
  register_logarithmic<ReduceKind::LogSum>(r, "ReduceLogSum");
  register_logarithmic<ReduceKind::LogSumExp>(r, "ReduceLogSumExp");
  register_extreme<ReduceKind::Max>(r, "ReduceMax");
  register_extreme<ReduceKind::Min>(r, "ReduceMin");
}

}  // namespace infernode::ops
