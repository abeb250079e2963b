// CumSum and CumProd.

#include "kernel/op_registrar.h"
#include "ops/common/arithmetic.h"

namespace infernode::ops {
namespace {

using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Tensor;
using tensor::TypeTag;

/// Running sums (or products) along an axis: of the elements up to the current one, without it where `exclusive`, from
/// the end where `reverse`.
template <bool Product>
class Cumulative final : public Kernel {
 public:
  explicit Cumulative(KernelInfo& info)
      : exclusive_(info.attributes().get_int("exclusive", 0) != 0),
        reverse_(info.attributes().get_int("reverse", 0) != 0) {}

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Tensor out = ctx.output(0, in.shape());
    if (in.rank() == 0) fail(ErrorCode::ShapeMismatch, "a running sum of a scalar has no axis");
    const std::size_t axis = tensor::normalize_axis(tensor::to_int64_scalar(ctx.input(1)), in.rank());
    if (in.numel() == 0) return;
    const std::int64_t count = in.dim(axis), inner = in.shape().numel(axis + 1, in.rank());
    tensor::dispatch<float, double, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t, Float16, BFloat16>(
        in.dtype(), "CumSum", [&]<class T>(TypeTag<T>) {
          using C = tensor::ComputeTypeOf<T>;
          const T* x = in.data<T>();
          T* y = out.mutable_data<T>();
          const auto lines = static_cast<std::size_t>(in.numel() / count);
          ctx.parallel_for(lines, static_cast<double>(count), [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t line = begin; line < end; ++line) {
              const auto l = static_cast<std::int64_t>(line);
              const std::int64_t first = l / inner * count * inner + l % inner;
              C total = Product ? C(1) : C(0);
              for (std::int64_t i = 0; i < count; ++i) {
                const std::int64_t at = first + (reverse_ ? count - 1 - i : i) * inner;
                const C before = total;
                total = Product ? wrap_multiply(total, widen(x[at])) : wrap_add(total, widen(x[at]));
                y[at] = static_cast<T>(exclusive_ ? before : total);
              }
            }
          });
        });
  }

 private:
  bool exclusive_, reverse_;
};

}  // namespace

void register_cumulative(kernel::OpRegistrar& r) {
  r.op("CumSum")
      .version(11, "x:T, axis:T2 -> y:T; T = float|double|int32|int64|uint32|uint64, T2 = int32|int64")
      .version(14, "x:T, axis:T2 -> y:T; T = floats_bf16|int32|int64|uint32|uint64, T2 = int32|int64")
      .infer(kernel::infer_same_as_first)
      .kernel<Cumulative<false>>()
      .in_place(0, 0)
      .axes(kernel::Axes::AlongInput);
  r.op("CumProd")
      .version(26, "x:T, axis:T2 -> y:T; T = floats_bf16|int32|int64|uint32|uint64, T2 = int32|int64")
      .infer(kernel::infer_same_as_first)
      .kernel<Cumulative<true>>()
      .in_place(0, 0);
}

}  // namespace infernode::ops
