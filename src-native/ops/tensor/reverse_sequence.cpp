#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {
namespace {

using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

/// Reverses the first sequence_lens[b] steps of each batch entry b.
class ReverseSequence : public Kernel {
 public:
  explicit ReverseSequence(KernelInfo& info) {
    const std::int64_t batch = info.attributes().get_int("batch_axis", 1),
                       time = info.attributes().get_int("time_axis", 0);
    INFERNODE_CHECK((batch == 0 && time == 1) || (batch == 1 && time == 0), ErrorCode::InvalidModel, "batch_axis ",
                    batch, " and time_axis ", time, " must be 0 and 1, in either order");
    batch_ = static_cast<std::size_t>(batch);
  }
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    INFERNODE_CHECK(in.rank() >= 2, ErrorCode::ShapeMismatch, "the input has rank ", in.rank(),
                    "; it needs batch and time");
    const kernel::Numbers<std::int64_t> lengths(ctx.run(), ctx.input(1));
    kernel::Watch watch(ctx.run());
    const std::int64_t batches = in.dim(batch_), steps = in.dim(1 - batch_), inner = in.shape().numel(2, in.rank());
    INFERNODE_CHECK(static_cast<std::int64_t>(lengths.size()) == batches, ErrorCode::ShapeMismatch,
                    "sequence_lens has ", lengths.size(), " elements for a batch of ", batches);
    for (const std::int64_t n : lengths) {
      watch.did(kNsPerLength);
      INFERNODE_CHECK(n >= 0 && n <= steps, ErrorCode::InvalidArgument, "sequence length ", n, " is outside [0, ",
                      steps, "]");
    }
    const Tensor out = ctx.output(0, in.shape());
    const std::int64_t batch_stride = batch_ == 0 ? steps * inner : inner,
                       time_stride = batch_ == 0 ? inner : batches * inner;
    const Shape forward{time_stride, 1}, backward{-time_stride, 1};
    for (std::int64_t b = 0; b < batches; ++b) {
      const std::int64_t n = lengths[static_cast<std::size_t>(b)], at = b * batch_stride;
      if (n > 0) {
        strided_copy(ctx.run(), Shape{n, inner}, {in, at + (n - 1) * time_stride, backward}, {out, at, forward});
      }
      watch.did(kNsPerCopy);
      const std::int64_t rest = at + n * time_stride;
      if (n < steps) strided_copy(ctx.run(), Shape{steps - n, inner}, {in, rest, forward}, {out, rest, forward});
    }
  }

 private:
  static constexpr double kNsPerLength = 1, kNsPerCopy = 100;
  std::size_t batch_ = 1;
};

}  // namespace

void register_reverse_sequence(kernel::OpRegistrar& r) {
  r.op("ReverseSequence")
      .version(10, "input:T, sequence_lens:int64 -> Y:T; T = all")
      .version(28, "input:T, sequence_lens:int64 -> Y:T; T = all_ir4")
      .infer(kernel::infer_same_as_first)
      .kernel<ReverseSequence>();
}

}  // namespace infernode::ops
