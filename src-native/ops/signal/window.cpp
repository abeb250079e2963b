#include <cmath>
#include <numbers>

#include "kernel/op_registrar.h"
#include "ops/signal/scalars.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::TypeTag;

enum class Window { kHann, kHamming, kBlackman };

/// Sample at `turn`, the place within the window's period as an angle.
double sample(Window window, double turn) {
  switch (window) {
    case Window::kHann:
      return 0.5 - 0.5 * std::cos(turn);
    case Window::kHamming:
      return 25.0 / 46.0 - 21.0 / 46.0 * std::cos(turn);
    case Window::kBlackman:
      return 0.42 - 0.5 * std::cos(turn) + 0.08 * std::cos(2 * turn);
  }
  return 0;
}

/// A window of one sample is that sample's peak, as numpy has it: the symmetric formula divides by zero there.
template <Window W>
class WindowFunction final : public Kernel {
 public:
  explicit WindowFunction(KernelInfo& info)
      : periodic_(info.attributes().get_int("periodic", 1) != 0), dtype_(signal::output_datatype(info.attributes())) {}

  void run(KernelContext& ctx) const override {
    const std::int64_t size = signal::scalar(ctx, 0, "size");
    INFERNODE_CHECK(size >= 0, ErrorCode::InvalidArgument, "the window's size is negative: ", size);
    const tensor::Tensor out = ctx.output(0, dtype_, Shape{size});
    const double period = static_cast<double>(periodic_ ? size : size - 1);
    tensor::dispatch_numeric(dtype_, "a window", [&]<class T>(TypeTag<T>) {
      T* y = out.mutable_data<T>();
      ctx.parallel_for(static_cast<std::size_t>(size), 30, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i) {
          const double turn = 2 * std::numbers::pi * static_cast<double>(i) / period;
          y[i] = signal::convert<T>(period > 0 ? sample(W, turn) : 1.0);
        }
      });
    });
  }

 private:
  bool periodic_;
  tensor::DType dtype_;
};

void infer_window(kernel::InferContext& ctx) {
  ctx.set_output_dtype(0, signal::output_datatype(ctx.attributes()));
  const auto size = ctx.input_contents(0);
  const bool known = size && size->size() == 1 && !(size->front().known() && size->front().value() < 0);
  ctx.set_output_shape(0, graph::SymShape{known ? size->front() : graph::Dim::unknown()});
}

}  // namespace

void register_window(kernel::OpRegistrar& r) {
  const auto add = [&]<Window W>(const char* name, std::integral_constant<Window, W>) {
    r.op(name)
        .version(17, "size:T1 -> output:T2; T1 = int32|int64, T2 = numeric_bf16")
        .infer(infer_window)
        .template kernel<WindowFunction<W>>();
  };
  add("HannWindow", std::integral_constant<Window, Window::kHann>{});
  add("HammingWindow", std::integral_constant<Window, Window::kHamming>{});
  add("BlackmanWindow", std::integral_constant<Window, Window::kBlackman>{});
}

}  // namespace infernode::ops
