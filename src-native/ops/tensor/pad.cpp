// Pad and CenterCropPad.

#include <algorithm>
#include <bit>
#include <vector>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "kernel/scratch.h"
#include "kernel/watch.h"
#include "ops/common/arguments.h"
#include "ops/common/arithmetic.h"
#include "ops/common/mapped_copy.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::SymShape;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

enum class Mode : std::uint8_t { Constant, Reflect, Edge, Wrap };

Mode parse_mode(std::string_view name) {
  if (name == "constant") return Mode::Constant;
  if (name == "reflect") return Mode::Reflect;
  if (name == "edge") return Mode::Edge;
  if (name == "wrap") return Mode::Wrap;
  fail(ErrorCode::InvalidModel, cat("unknown mode '", name, "'; known are constant, reflect, edge, wrap"));
}

/// The attribute that holds the pads in the oldest versions; from 11 on they are an input.
const char* pads_name(std::int64_t version) { return version < 2 ? "paddings" : "pads"; }

/// Pads of every axis, begins then ends, from pads that may name some axes only.
template <class Values>
std::vector<typename Values::value_type> spread_pads(const Values& pads, const std::optional<Ints>& axes,
                                                     std::size_t rank) {
  const std::size_t count = axes ? axes->size() : rank;
  INFERNODE_CHECK(pads.size() == 2 * count, ErrorCode::InvalidArgument, "pads has ", pads.size(), " elements for ",
                  count, " axes");
  std::vector<typename Values::value_type> out(2 * rank, 0);
  const Ints named = axes ? normalize_axes(axes->span(), rank) : Ints{};
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t axis = axes ? static_cast<std::size_t>(named[i]) : i;
    out[axis] = pads[i];
    out[axis + rank] = pads[i + count];
  }
  return out;
}

void infer_pad(InferContext& ctx) {
  const SymShape* in = ctx.input_shape(0);
  if (!in) return;
  const InferredInts axes = infer_ints(ctx, "", 3);
  std::optional<std::vector<Dim>> pads;
  if (const char* name = pads_name(ctx.since_version()); ctx.attributes().has(name)) {
    const auto values = ctx.attributes().get_ints(name);
    pads.emplace(values.begin(), values.end());
  } else {
    pads = ctx.input_contents(1);
  }
  if (!pads || axes.unknown()) return ctx.set_output_shape(0, unknown_shape(in->size()));
  SymShape out = *in;
  const std::vector<Dim> all = spread_pads(*pads, axes.values, in->size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] + all[i] + all[i + out.size()];
  ctx.set_output_shape(0, std::move(out));
}

/// Elements of `dim` that negative pads leave, from `first` on.
struct Kept {
  std::int64_t first, length;
  Kept(std::int64_t dim, std::int64_t begin, std::int64_t end)
      : first(begin < 0 ? -begin : 0), length(dim - first + (end < 0 ? end : 0)) {}
};

/// Length of a padded axis.
std::int64_t padded(std::int64_t dim, std::int64_t begin, std::int64_t end, Mode mode, std::size_t axis) {
  const std::int64_t total = checked_add(checked_add(dim, begin), end);
  INFERNODE_CHECK(total >= 0 && begin >= -dim && end >= -dim, ErrorCode::InvalidArgument, "pads ", begin, " and ", end,
                  " crop more than the ", dim, " elements of axis ", axis);
  INFERNODE_CHECK(mode == Mode::Constant || total == 0 || Kept(dim, begin, end).length > 0, ErrorCode::InvalidArgument,
                  "axis ", axis, " has no elements to repeat");
  return total;
}

/// Which element of an axis stands at each place of the padded one; -1 for the constant. Negative pads crop first; what
/// is added then repeats the cropped axis.
kernel::Scratch<std::int64_t> source_map(const kernel::RunContext& run, std::int64_t dim, std::int64_t begin,
                                         std::int64_t end, Mode mode) {
  const auto [first, length] = Kept(dim, begin, end);
  const std::int64_t total = dim + begin + end;
  kernel::Scratch<std::int64_t> map(run, static_cast<std::size_t>(total));
  kernel::Watch watch(run);
  const std::int64_t period = 2 * (length - 1);
  for (std::int64_t i = 0; i < total; ++i) {
    std::int64_t at = i - std::max<std::int64_t>(0, begin);
    if (at < 0 || at >= length) {
      switch (mode) {
        case Mode::Constant:
          at = -1;
          break;
        case Mode::Edge:
          at = std::clamp<std::int64_t>(at, 0, length - 1);
          break;
        case Mode::Wrap:
          at = (at % length + length) % length;
          break;
        case Mode::Reflect:
          at = period == 0 ? 0 : (at % period + period) % period;
          if (at >= length) at = period - at;
          break;
      }
    }
    map[static_cast<std::size_t>(i)] = at < 0 ? -1 : at + first;
    watch.did(3);
  }
  return map;
}

class Pad : public Kernel {
 public:
  explicit Pad(KernelInfo& info)
      : mode_(parse_mode(info.attributes().get_string("mode", "constant"))),
        value_(info.attributes().get_float("value", 0.0f)),
        pads_(info, pads_name(info.since_version()), 1),
        axes_(info, "", 3) {}

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const auto pads = spread_pads(pads_.required(ctx, "pads"), axes_.read(ctx), in.rank());
    Shape dims;
    for (std::size_t i = 0; i < in.rank(); ++i) {
      dims.push_back(padded(in.dim(i), pads[i], pads[i + in.rank()], mode_, i));
    }
    const Tensor out = ctx.output(0, dims);
    if (out.numel() == 0) return;
    std::vector<kernel::Scratch<std::int64_t>> held;
    AxisMaps maps;
    for (std::size_t i = 0; i < in.rank(); ++i) {
      held.push_back(source_map(ctx.run(), in.dim(i), pads[i], pads[i + in.rank()], mode_));
      maps.emplace_back(held.back());
    }
    with_whole_bytes(ctx.run(), in, out, [&](const Tensor& from, const Tensor& to) {
      dispatch_elements(from.dtype(), "Pad", [&]<class T>(TypeTag<T>) {
        mapped_copy<T>(ctx.run(), from, to, maps, constant<T>(ctx, in.dtype()));
      });
    });
  }

 private:
  /// The value of constant mode, in the bytes of an element.
  template <class T>
  T constant(const KernelContext& ctx, DType dtype) const {
    if (const Tensor* value = ctx.optional_input(2)) {
      INFERNODE_CHECK(value->numel() == 1, ErrorCode::InvalidArgument, "constant_value has ", value->numel(),
                      " elements");
      return tensor::is_sub_byte(dtype) ? *elements<T>(unpack_sub_byte(ctx.run(), *value)) : *elements<T>(*value);
    }
    T out{};
    if (value_ == 0.0f) return out;
    tensor::dispatch_floats(dtype, "Pad's value", [&]<class F>(TypeTag<F>) {
      if constexpr (sizeof(F) == sizeof(T) && std::is_trivially_copyable_v<T>)
        out = std::bit_cast<T>(convert<F>(value_));
    });
    return out;
  }

  Mode mode_;
  float value_;
  IntsArgument pads_, axes_;
};

// ---- CenterCropPad

void infer_center_crop_pad(InferContext& ctx) {
  const SymShape* in = ctx.input_shape(0);
  if (!in) return;
  const auto target = ctx.input_contents(1);
  SymShape out = *in;
  const InferredInts asked = infer_ints(ctx, "axes", kNoInput);
  for (std::size_t i = 0; i < (asked.given ? asked.values->size() : in->size()); ++i) {
    const std::size_t axis = asked.given ? tensor::normalize_axis((*asked.values)[i], in->size()) : i;
    out[axis] = target && i < target->size() ? (*target)[i] : Dim::unknown();
  }
  ctx.set_output_shape(0, std::move(out));
}

class CenterCropPad : public Kernel {
 public:
  explicit CenterCropPad(KernelInfo& info) : shape_(info, "", 1), axes_(info, "axes", kNoInput) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Ints target = shape_.required(ctx, "shape");
    Ints axes;
    if (const auto given = axes_.read(ctx)) {
      axes = normalize_axes(given->span(), in.rank());
    } else {
      for (std::size_t i = 0; i < in.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    }
    INFERNODE_CHECK(target.size() == axes.size(), ErrorCode::InvalidArgument, "shape has ", target.size(),
                    " elements for ", axes.size(), " axes");
    Shape dims = in.shape(), common = in.shape();
    Ints from_at(in.rank(), 0), to_at(in.rank(), 0);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto a = static_cast<std::size_t>(axes[i]);
      INFERNODE_CHECK(target[i] >= 0, ErrorCode::InvalidArgument, "shape ", target, " has a negative dim");
      dims[a] = target[i];
      common[a] = std::min(target[i], in.dim(a));
      from_at[a] = (in.dim(a) - common[a]) / 2;
      to_at[a] = (target[i] - common[a]) / 2;
    }
    const Tensor out = ctx.output(0, dims);
    if (common != dims) {
      dispatch_elements(out.dtype(), "CenterCropPad", [&]<class T>(TypeTag<T>) {
        Mover(ctx.run()).fill(mutable_elements<T>(out), out.numel(), T{});
      });
    }
    const Shape from = in.shape().strides(), to = dims.strides();
    std::int64_t from_offset = 0, to_offset = 0;
    for (std::size_t d = 0; d < in.rank(); ++d) {
      from_offset += from_at[d] * from[d];
      to_offset += to_at[d] * to[d];
    }
    strided_copy(ctx.run(), common, {in, from_offset, from}, {out, to_offset, to});
  }

 private:
  IntsArgument shape_, axes_;
};

}  // namespace

void register_pad(kernel::OpRegistrar& r) {
  r.op("Pad")
      .version(1, "data:T -> output:T; T = floats")
      .version(2, "data:T -> output:T; T = floats")
      .version(11, "data:T, pads:int64, constant_value:T? -> output:T; T = numeric")
      .version(13, "data:T, pads:int64, constant_value:T? -> output:T; T = all_ir4")
      .version(18, "data:T, pads:int64, constant_value:T?, axes:Tind? -> output:T; T = all_ir4, Tind = int32|int64")
      .version(19, "data:T, pads:int64, constant_value:T?, axes:Tind? -> output:T; T = all_ir4, Tind = int32|int64")
      .version(21, "data:T, pads:int64, constant_value:T?, axes:Tind? -> output:T; T = all_ir10, Tind = int32|int64")
      .version(23, "data:T, pads:int64, constant_value:T?, axes:Tind? -> output:T; T = all_ir11, Tind = int32|int64")
      .version(24, "data:T, pads:int64, constant_value:T?, axes:Tind? -> output:T; T = all_ir12, Tind = int32|int64")
      .version(25, "data:T, pads:int64, constant_value:T?, axes:Tind? -> output:T; T = all_ir13, Tind = int32|int64")
      .infer(infer_pad)
      .kernel<Pad>()
      .axes(kernel::Axes::Padded, 2);
  r.op("Pad", "com.microsoft")
      .version(1, "data:T, pads:int64, value:T? -> output:T; T = floats")
      .infer(infer_pad)
      .kernel<Pad>();
  r.op("CenterCropPad")
      .version(18, "input_data:T, shape:Tind -> output_data:T; T = all_ir4, Tind = int32|int64")
      .infer(infer_center_crop_pad)
      .kernel<CenterCropPad>();
}

}  // namespace infernode::ops
