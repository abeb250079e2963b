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

bool is_onesided(const graph::Attributes& attributes) { return attributes.get_int("onesided", 1) != 0; }

void infer_stft(InferContext& ctx) {
  const SymShape* signal = ctx.input_shape(0);
  if (!signal) return;
  INFERNODE_CHECK(signal->size() == 2 || signal->size() == 3, ErrorCode::ShapeMismatch,
                  "the signal must be [batch, length, 1 or 2], got ", graph::to_string(*signal));
  const auto number = [&](std::size_t i) {
    const auto given = ctx.input_contents(i);
    return given && given->size() == 1 ? given->front() : Dim::unknown();
  };
  Dim length = (*signal)[1];
  if (ctx.has_input(3)) {
    length = number(3);
  } else if (ctx.has_input(2)) {
    const SymShape* window = ctx.input_shape(2);
    length = window && window->size() == 1 ? window->front() : Dim::unknown();
  }
  const Dim step = number(1);
  // The kernel says what is wrong with numbers out of range.
  const bool sound = !(step.known() && step.value() < 1) && !(length.known() && length.value() < 1);
  const Dim frames = sound ? floor_div((*signal)[1] - length, step) + 1 : Dim::unknown();
  const Dim bins = !sound ? Dim::unknown() : is_onesided(ctx.attributes()) ? floor_div(length, 2) + 1 : length;
  const bool negative = frames.known() && frames.value() < 1;
  ctx.set_output_shape(0, SymShape{(*signal)[0], negative ? Dim::unknown() : frames, bins, 2});
}

/// Transforms of windowed frames of a signal [batch, length(, 1 or 2)].
class Stft final : public Kernel {
 public:
  explicit Stft(KernelInfo& info) : onesided_(is_onesided(info.attributes())) {}

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    INFERNODE_CHECK(in.rank() == 2 || (in.rank() == 3 && (in.dim(2) == 1 || in.dim(2) == 2)), ErrorCode::ShapeMismatch,
                    "the signal must be [batch, length, 1 or 2], got ", in.shape().dims());
    const std::int64_t present = in.dim(1), parts = in.rank() == 3 ? in.dim(2) : 1;
    const std::int64_t step = signal::scalar(ctx, 1, "frame_step");
    const Tensor* window = ctx.optional_input(2);
    INFERNODE_CHECK(!window || window->rank() == 1, ErrorCode::ShapeMismatch, "the window must have one axis, got ",
                    window->shape().dims());
    const std::int64_t length = ctx.has_input(3) ? signal::scalar(ctx, 3, "frame_length")
                                : window         ? window->dim(0)
                                                 : present;
    INFERNODE_CHECK(step > 0, ErrorCode::InvalidArgument, "frame_step must be positive, got ", step);
    INFERNODE_CHECK(length > 0, ErrorCode::InvalidArgument, "frame_length must be positive, got ", length);
    INFERNODE_CHECK(length <= present, ErrorCode::InvalidArgument, "frame_length ", length,
                    " exceeds the signal's length of ", present);
    INFERNODE_CHECK(!window || window->dim(0) == length, ErrorCode::ShapeMismatch, "the window has ", window->dim(0),
                    " elements, but frame_length is ", length);
    const std::int64_t frames = (present - length) / step + 1, bins = onesided_ ? length / 2 + 1 : length;
    const Tensor out = ctx.output(0, Shape{in.dim(0), frames, bins, 2});
    if (out.numel() == 0) return;

    tensor::dispatch_floats(in.dtype(), "STFT", [&]<class E>(TypeTag<E>) {
      using T = signal::RealOf<E>;
      const kernel::Charge charge(ctx.run(), signal::plan_bytes<E>(length));
      const auto plan = plans_.get<E>(ctx.run(), length);
      const E* x = in.data<E>();
      const E* w = window ? window->data<E>() : nullptr;
      E* y = out.mutable_data<E>();
      const auto source = [&](std::size_t row) {
        const auto batch = static_cast<std::int64_t>(row) / frames, frame = static_cast<std::int64_t>(row) % frames;
        return signal::RowSource<E>{x + (batch * present + frame * step) * parts, static_cast<std::size_t>(length),
                                    static_cast<std::size_t>(parts), parts == 2, w};
      };
      const auto store = [&](std::size_t row, const auto& spectrum) {
        E* at = y + row * static_cast<std::size_t>(bins) * 2;
        spectrum(static_cast<std::size_t>(bins), [&](std::size_t, T re, T im) {
          *at++ = E(re);
          *at++ = E(im);
        });
      };
      signal::transform_rows<E>(ctx.run(), *plan, static_cast<std::size_t>(in.dim(0) * frames), false, false, source,
                                store);
    });
  }

 private:
  bool onesided_;
  signal::FftPlans plans_;
};

}  // namespace

void register_stft(kernel::OpRegistrar& r) {
  r.op("STFT")
      .version(17,
               "signal:T1, frame_step:T2, window:T1?, frame_length:T2? -> output:T1; "
               "T1 = floats_bf16, T2 = int32|int64")
      .infer(infer_stft)
      .kernel<Stft>();
}

}  // namespace infernode::ops
