#include "base/checked.h"
#include "kernel/charge.h"
#include "kernel/op_registrar.h"
#include "ops/signal/dft_rows.h"
#include "ops/signal/scalars.h"

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
using tensor::TypeTag;

struct Options {
  explicit Options(const graph::Attributes& a)
      : inverse(a.get_int("inverse", 0) != 0), onesided(a.get_int("onesided", 0) != 0), axis(a.get_int("axis", 1)) {}
  bool real_output() const { return inverse && onesided; }
  bool inverse, onesided;
  std::int64_t axis;  ///< of version 17
};

/// An axis of the signal: the last one holds real and imaginary parts.
std::size_t signal_axis(std::int64_t axis, std::size_t rank) {
  INFERNODE_CHECK(rank >= 2, ErrorCode::ShapeMismatch,
                  "the input needs a signal axis and a last axis of 1 (real) or 2 (complex), got rank ", rank);
  const std::size_t at = tensor::normalize_axis(axis, rank);
  INFERNODE_CHECK(at + 1 < rank, ErrorCode::InvalidArgument, "axis ", axis, " is the one of real and imaginary parts");
  return at;
}

void check_parts(std::int64_t parts) {
  INFERNODE_CHECK(parts == 1 || parts == 2, ErrorCode::ShapeMismatch,
                  "the input's last axis must have 1 (real) or 2 (complex) elements, got ", parts);
}

void infer_dft(InferContext& ctx) {
  const Options options(ctx.attributes());
  const SymShape* in = ctx.input_shape(0);
  if (!in) return;
  if (in->empty() || in->back().known()) check_parts(in->empty() ? 0 : in->back().value());
  SymShape out = *in;
  out.back() = options.real_output() ? 1 : 2;
  std::int64_t axis = ctx.since_version() >= 20 ? -2 : options.axis;
  if (ctx.since_version() >= 20 && ctx.has_input(2)) {
    const auto given = ctx.input_contents(2);
    if (!given || given->size() != 1 || !given->front().known()) {
      for (std::size_t d = 0; d + 1 < out.size(); ++d) out[d] = Dim::unknown();
      return ctx.set_output_shape(0, std::move(out));
    }
    axis = given->front().value();
  }
  const std::size_t at = signal_axis(axis, in->size());
  Dim length = options.real_output() ? 2 * ((*in)[at] - 1) : (*in)[at];
  if (ctx.has_input(1)) {
    const auto given = ctx.input_contents(1);
    length = given && given->size() == 1 ? given->front() : Dim::unknown();
  }
  if (length.known() && length.value() < 1) length = Dim::unknown();  // the kernel says what is wrong
  out[at] = options.onesided && !options.inverse ? floor_div(length, 2) + 1 : length;
  ctx.set_output_shape(0, std::move(out));
}

class Dft final : public Kernel {
 public:
  explicit Dft(KernelInfo& info) : options_(info.attributes()), axis_input_(info.since_version() >= 20) {}

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const std::int64_t axis_given = !axis_input_       ? options_.axis
                                    : ctx.has_input(2) ? signal::scalar(ctx, 2, "axis")
                                                       : -2;
    const std::size_t axis = signal_axis(axis_given, in.rank());
    const std::int64_t parts = in.shape().back(), present = in.dim(axis);
    check_parts(parts);
    const std::int64_t length = ctx.has_input(1)         ? signal::scalar(ctx, 1, "dft_length")
                                : options_.real_output() ? 2 * (present - 1)
                                                         : present;
    INFERNODE_CHECK(length > 0, ErrorCode::InvalidArgument, "the transform's length must be positive, got ", length);
    const std::int64_t bins = options_.onesided && !options_.inverse ? length / 2 + 1 : length;
    const std::int64_t out_parts = options_.real_output() ? 1 : 2;
    Shape dims = in.shape();
    dims[axis] = bins;
    dims[in.rank() - 1] = out_parts;
    const Tensor out = ctx.output(0, dims);
    if (out.numel() == 0) return;
    const auto outer = static_cast<std::size_t>(in.shape().numel(0, axis)),
               inner = static_cast<std::size_t>(in.shape().numel(axis + 1, in.rank() - 1));

    tensor::dispatch_floats(in.dtype(), "DFT", [&]<class E>(TypeTag<E>) {
      using T = signal::RealOf<E>;
      const kernel::Charge charge(ctx.run(), signal::plan_bytes<E>(length));
      const auto plan = plans_.get<E>(ctx.run(), length);
      const E* x = in.data<E>();
      E* y = out.mutable_data<E>();
      const std::size_t in_step = inner * static_cast<std::size_t>(parts),
                        out_step = inner * static_cast<std::size_t>(out_parts);
      const auto source = [&](std::size_t row) {
        const std::size_t o = row / inner, i = row % inner;
        const E* at = x + o * static_cast<std::size_t>(present) * in_step + i * static_cast<std::size_t>(parts);
        return signal::RowSource<E>{at, static_cast<std::size_t>(std::min(present, length)), in_step, parts == 2};
      };
      const T scale = options_.inverse ? T(1) / static_cast<T>(length) : T(1);
      const auto store = [&](std::size_t row, const auto& spectrum) {
        const std::size_t o = row / inner, i = row % inner;
        E* at = y + o * static_cast<std::size_t>(bins) * out_step + i * static_cast<std::size_t>(out_parts);
        spectrum(static_cast<std::size_t>(bins), [&](std::size_t, T re, T im) {
          at[0] = E(re * scale);
          if (out_parts == 2) at[1] = E(im * scale);
          at += out_step;
        });
      };
      signal::transform_rows<E>(ctx.run(), *plan, outer * inner, options_.inverse, options_.real_output(), source,
                                store);
    });
  }

 private:
  Options options_;
  bool axis_input_;
  signal::FftPlans plans_;
};

}  // namespace

void register_dft(kernel::OpRegistrar& r) {
  r.op("DFT")
      .version(17, "input:T1, dft_length:T2? -> output:T1; T1 = floats_bf16, T2 = int32|int64")
      .version(20, "input:T1, dft_length:T2?, axis:int64? -> output:T1; T1 = floats_bf16, T2 = int32|int64")
      .infer(infer_dft)
      .kernel<Dft>();
}

}  // namespace infernode::ops
