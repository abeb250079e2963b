#include <algorithm>
#include <array>

#include "base/error.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/math/columns.h"
#include "ops/quant/qlinear.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

/// Softmax of 8-bit codes. Differences of codes take 256 values, so a table holds all exponentials.
class QLinearSoftmax final : public kernel::Kernel {
 public:
  explicit QLinearSoftmax(KernelInfo& info)
      : flattens_(info.attributes().get_int("opset") < 13),
        axis_(info.attributes().get_int("axis", flattens_ ? 1 : -1)) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor y = ctx.output(0, x.shape());
    if (x.numel() == 0) return;
    const Quantized8 from(ctx.input(1), ctx.optional_input(2), x.dtype()),
        to(ctx.input(3), ctx.optional_input(4), y.dtype());
    std::array<float, 256> powers{};
    for (std::size_t i = 0; i < powers.size(); ++i) powers[i] = std::exp(-from.scale * static_cast<float>(i));
    const Shape& shape = x.shape();
    const std::size_t axis = tensor::normalize_axis(axis_, shape.rank());
    const auto n = static_cast<std::size_t>(flattens_ ? shape.numel(axis, shape.rank()) : shape[axis]);
    const auto inner = static_cast<std::size_t>(flattens_ ? 1 : shape.numel(axis + 1, shape.rank()));
    const std::size_t rows = static_cast<std::size_t>(x.numel()) / n;
    ctx.parallel_for(rows, static_cast<double>(n) * 4, [&](std::size_t begin, std::size_t end, std::size_t) {
      kernel::Watch watch(ctx.run());
      for (std::size_t r = begin; r < end; ++r) {
        const std::size_t first = r / inner * n * inner + r % inner;
        normalize(watch, bytes_of(x) + first, mutable_bytes_of(y) + first, n, inner, powers, from, to);
      }
    });
  }

 private:
  static void normalize(kernel::Watch& watch, const std::uint8_t* x, std::uint8_t* y, std::size_t n, std::size_t step,
                        const std::array<float, 256>& powers, const Quantized8& from, const Quantized8& to) {
    std::int32_t most = from.code(x[0]);
    const double ns = step_ns(step);
    each_in_pieces(watch, n, ns, [&](std::size_t i) { most = std::max(most, from.code(x[i * step])); });
    const auto power = [&](std::size_t i) { return powers[static_cast<std::size_t>(most - from.code(x[i * step]))]; };
    const auto sum = sum_in_pieces<float>(watch, n, ns, power);
    each_in_pieces(watch, n, 4.0 + ns, [&](std::size_t i) { y[i * step] = to.quantize(power(i) / sum); });
  }

  bool flattens_;
  std::int64_t axis_;
};

}  // namespace

void register_qlinear_softmax(kernel::OpRegistrar& r) {
  r.op("QLinearSoftmax", "com.microsoft")
      .version(1, "X:T, X_scale:float, x_zero_point:T?, y_scale:float, y_zero_point:T -> Y:T; T = int8|uint8")
      .infer(kernel::infer_same_as_first)
      .kernel<QLinearSoftmax>();
}

}  // namespace infernode::ops
