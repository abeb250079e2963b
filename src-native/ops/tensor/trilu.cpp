#include <algorithm>

#include "kernel/op_registrar.h"
#include "ops/common/mover.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {
namespace {

using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Tensor;
using tensor::TypeTag;

/// Keeps the upper or lower triangle of each matrix of [..., rows, columns], up to diagonal k; zeros elsewhere.
class Trilu final : public Kernel {
 public:
  explicit Trilu(KernelInfo& info) : upper_(info.attributes().get_int("upper", 1) != 0) {}

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Tensor* diagonal = ctx.optional_input(1);
    if (in.rank() < 2) fail(ErrorCode::ShapeMismatch, cat("Trilu needs matrices, got ", in.shape().to_string()));
    const std::int64_t columns = in.dim(in.rank() - 1), rows = in.dim(in.rank() - 2);
    // Beyond the matrix all diagonals are alike; the clamp keeps the sums below from overflowing.
    const std::int64_t k = diagonal ? std::clamp(tensor::to_int64_scalar(*diagonal), -rows, columns) : 0;
    const Tensor out = ctx.output(0, in.shape());
    if (out.numel() == 0) return;
    dispatch_elements(in.dtype(), "Trilu", [&]<class T>(TypeTag<T>) {
      const T* from = elements<T>(in);
      T* to = mutable_elements<T>(out);
      ctx.parallel_for(static_cast<std::size_t>(in.numel() / columns), static_cast<double>(columns),
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         Mover mover(ctx.run());
                         for (std::size_t row = begin; row < end; ++row) {
                           // Columns below `split` lie under diagonal k (upper), or on it and below (lower).
                           const std::int64_t split = std::clamp<std::int64_t>(
                               static_cast<std::int64_t>(row) % rows + k + (upper_ ? 0 : 1), 0, columns);
                           const T* x = from + static_cast<std::int64_t>(row) * columns;
                           T* y = to + static_cast<std::int64_t>(row) * columns;
                           if (upper_) {
                             mover.copy(x + split, columns - split, mover.fill(y, split, T{}));
                           } else {
                             mover.fill(mover.copy(x, split, y), columns - split, T{});
                           }
                         }
                       });
    });
  }

 private:
  bool upper_;
};

}  // namespace

void register_trilu(kernel::OpRegistrar& r) {
  r.op("Trilu")
      .version(14, "input:T, k:int64? -> output:T; T = all_ir4")
      .infer(kernel::infer_same_as_first)
      .kernel<Trilu>();
  r.op("Trilu", "com.microsoft")
      .version(1, "X:T, k:int64? -> Y:T; T = numeric_bf16|bool")
      .infer(kernel::infer_same_as_first)
      .kernel<Trilu>();
}

}  // namespace infernode::ops
