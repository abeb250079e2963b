#include <algorithm>

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

/// Elements start, start + step, ... of one axis, `count` of them.
struct Range {
  std::int64_t start = 0, step = 1, count = 0;
};

/// What is written for "to the end" means the first element where the step goes backwards, as onnxruntime has it.
bool is_to_the_end(std::int64_t end) { return end == INT32_MAX || end == INT64_MAX; }

Range resolve(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t dim) {
  INFERNODE_CHECK(step != 0, ErrorCode::InvalidArgument, "a step is 0");
  if (dim == 0) return {0, 1, 0};
  // A step beyond the dim takes one element; the limit keeps what follows from overflowing.
  step = std::clamp(step, -dim, dim);
  if (start < 0) start += dim;
  if (end < 0) end += dim;
  if (step > 0) {
    start = std::clamp<std::int64_t>(start, 0, dim);
    end = std::clamp<std::int64_t>(end, 0, dim);
    return {start, step, end > start ? (end - start - 1) / step + 1 : 0};
  }
  start = std::clamp<std::int64_t>(start, 0, dim - 1);
  end = is_to_the_end(end) ? -1 : std::clamp<std::int64_t>(end, -1, dim - 1);
  return {start, step, start > end ? (start - end - 1) / -step + 1 : 0};
}

void check_lengths(std::size_t starts, std::size_t ends, std::size_t axes, std::size_t steps) {
  INFERNODE_CHECK(starts == ends && starts == axes && starts == steps, ErrorCode::InvalidArgument, "", starts,
                  " starts, ", ends, " ends, ", axes, " axes and ", steps, " steps");
}

Ints first_axes(std::size_t count) {
  Ints out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<std::int64_t>(i));
  return out;
}

// ---- inference

bool not_negative(const Dim& d) { return max(d, Dim(0)) == d; }

/// A known negative number, or the negative of a symbol, which stands for a size above 0.
bool negative(const Dim& d) { return d.known() ? d.value() < 0 : !(Dim(0) - d).symbol_name().empty(); }

/// A start or end as counted from the front and kept within the axis; nullopt where its sign is not certain.
std::optional<Dim> clamped(const Dim& at, const Dim& dim) {
  if (not_negative(at)) return min(at, dim);
  if (negative(at)) return max(dim + at, Dim(0));
  return std::nullopt;
}

/// Length of [start:end:step] of `dim` as far as it can be told; unknown otherwise.
Dim sliced(const Dim& dim, const Dim& start, const Dim& end, const Dim& step) {
  if (dim.known() && start.known() && end.known() && step.known()) {
    return resolve(start.value(), end.value(), step.value(), dim.value()).count;
  }
  constexpr std::int64_t kBeyond = std::int64_t{1} << 31;  // what exporters write for "to the end" is at least 2^31 - 1
  if (!step.is(1)) {
    const bool whole = start.known() && end.known() && step.known();
    if (whole && start.is(0) && end.value() >= kBeyond - 1 && step.value() > 1) return ceil_div(dim, step);
    if (whole && start.is(-1) && (end.value() <= 1 - kBeyond || is_to_the_end(end.value())) && step.is(-1)) return dim;
    return Dim::unknown();
  }
  const bool to_end = (end.known() && end.value() >= kBeyond - 1) || end == dim;
  if (start.is(0) && to_end) return dim;
  if (not_negative(start) && to_end) return max(dim - start, Dim(0));
  if (negative(start) && to_end) return min(dim, Dim(0) - start);
  const auto from = clamped(start, dim), to = clamped(end, dim);
  return from && to ? max(*to - *from, Dim(0)) : Dim::unknown();
}

/// One list of the node's arguments; elements may be symbols. nullopt where nothing is known.
std::optional<std::vector<Dim>> argument(const InferContext& ctx, const char* name, std::size_t input) {
  if (ctx.since_version() < 10) {
    const auto values = ctx.attributes().get_ints(name);
    return std::vector<Dim>(values.begin(), values.end());
  }
  return ctx.input_contents(input);
}

bool given(const InferContext& ctx, const char* name, std::size_t input) {
  return ctx.since_version() < 10 ? ctx.attributes().has(name) : ctx.has_input(input);
}

void infer_slice(InferContext& ctx) {
  const SymShape* in = ctx.input_shape(0);
  if (!in) return;
  const auto starts = argument(ctx, "starts", 1), ends = argument(ctx, "ends", 2);
  const InferredInts asked = infer_ints(ctx, "axes", 3);
  if (!given(ctx, "starts", 1) || !given(ctx, "ends", 2)) {
    fail(ErrorCode::InvalidModel, "starts or ends are missing");
  }
  const std::size_t count = starts ? starts->size() : ends ? ends->size() : 0;
  if (asked.unknown() || (!asked.given && !starts && !ends)) return ctx.set_output_shape(0, unknown_shape(in->size()));
  const Ints axes = normalize_axes(asked.values ? asked.values->span() : first_axes(count).span(), in->size());
  const bool has_steps = ctx.since_version() >= 10 && ctx.has_input(4);
  const auto steps = has_steps ? ctx.input_contents(4) : std::vector<Dim>(axes.size(), Dim(1));
  check_lengths(starts ? starts->size() : axes.size(), ends ? ends->size() : axes.size(), axes.size(),
                steps ? steps->size() : axes.size());
  SymShape out = *in;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Dim& dim = out[static_cast<std::size_t>(axes[i])];
    dim = starts && ends && steps ? sliced(dim, (*starts)[i], (*ends)[i], (*steps)[i]) : Dim::unknown();
  }
  ctx.set_output_shape(0, out);
  const auto contents = out.size() == 1 && out[0].known() ? ctx.input_contents(0) : std::nullopt;
  if (!contents || !starts || !ends || !steps) return;
  std::vector<Dim> taken = *contents;
  if (!axes.empty()) {
    const Dim &start = (*starts)[0], &end = (*ends)[0], &step = (*steps)[0];
    if (!start.known() || !end.known() || !step.known()) return;
    taken.clear();
    const Range range = resolve(start.value(), end.value(), step.value(), static_cast<std::int64_t>(contents->size()));
    for (std::int64_t k = 0; k < range.count; ++k) {
      taken.push_back((*contents)[static_cast<std::size_t>(range.start + k * range.step)]);
    }
  }
  ctx.set_output_contents(0, std::move(taken));
}

// ---- kernel

class Slice : public Kernel {
 public:
  explicit Slice(KernelInfo& info)
      : starts_(info, "starts", 1), ends_(info, "ends", 2), axes_(info, "axes", 3), steps_(info, "", 4) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Ints starts = starts_.required(ctx, "starts"), ends = ends_.required(ctx, "ends");
    const auto asked = axes_.read(ctx), steps = steps_.read(ctx);
    const Ints axes = normalize_axes(asked ? asked->span() : first_axes(starts.size()).span(), in.rank());
    check_lengths(starts.size(), ends.size(), axes.size(), steps ? steps->size() : axes.size());
    Shape dims = in.shape(), strides = dims.strides();
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto axis = static_cast<std::size_t>(axes[i]);
      const Range range = resolve(starts[i], ends[i], steps ? (*steps)[i] : 1, dims[axis]);
      dims[axis] = range.count;
      offset += range.start * strides[axis];
      strides[axis] *= range.step;
    }
    const Tensor out = ctx.output(0, dims);
    strided_copy(ctx.run(), dims, {in, offset, strides}, {out, 0, dims.strides()});
  }

 private:
  IntsArgument starts_, ends_, axes_, steps_;
};

}  // namespace

void register_slice(kernel::OpRegistrar& r) {
  r.op("Slice")
      .version(1, "data:T -> output:T; T = all")
      .version(10, "data:T, starts:Tind, ends:Tind, axes:Tind?, steps:Tind? -> output:T; T = all, Tind = int32|int64")
      .version(11, "data:T, starts:Tind, ends:Tind, axes:Tind?, steps:Tind? -> output:T; T = all, Tind = int32|int64")
      .version(13,
               "data:T, starts:Tind, ends:Tind, axes:Tind?, steps:Tind? -> output:T; T = all_ir4, Tind = int32|int64")
      .infer(infer_slice)
      .kernel<Slice>()
      .axes(kernel::Axes::Sliced)
      .moves(kernel::Moves::Selects);
}

}  // namespace infernode::ops
