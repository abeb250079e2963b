#include <cmath>

#include "base/error.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "microkernels/elementwise/elementwise.h"
#include "ops/common/reals.h"
#include "ops/norm/float_rows.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Tensor;

/// InstanceNormalization and GroupNormalization: mean and variance over groups of channels of one image, then a scale
/// and a bias by channel (by group in GroupNormalization 18).
template <bool Grouped>
class GroupNorm final : public kernel::Kernel {
 public:
  explicit GroupNorm(KernelInfo& info)
      : kernels_(info.kernels()),
        elementwise_(kernels_.elementwise),
        rows_(kernels_),
        groups_(Grouped ? info.attributes().get_int("num_groups") : 0),
        by_group_(Grouped && info.since_version() < 21),
        epsilon_(info.attributes().get_float("epsilon", 1e-5f)) {
    if (Grouped && groups_ < 1) fail(ErrorCode::InvalidModel, cat("num_groups is ", groups_));
  }

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    if (x.rank() < 2) fail(ErrorCode::ShapeMismatch, cat(kName, " takes X [N,C,...], got ", x.to_string()));
    const std::int64_t channels = x.dim(1), groups = Grouped ? groups_ : channels;
    if (groups > 0 && channels % groups != 0)
      fail(ErrorCode::ShapeMismatch, cat(channels, " channels do not divide into ", groups, " groups"));
    const std::int64_t factors = by_group_ ? groups : channels;
    for (std::size_t i : {1, 2}) {
      if (ctx.input(i).numel() != factors) {
        fail(ErrorCode::ShapeMismatch, cat(kName, ": input ", i, " is ", ctx.input(i).to_string(), ", expected ",
                                           factors, " elements for X ", x.to_string()));
      }
    }
    const Tensor y = ctx.output(0, x.shape());
    if (x.numel() == 0) return;
    const auto plane = static_cast<std::size_t>(x.shape().numel(2, x.rank()));
    const auto count = static_cast<std::size_t>(groups), members = static_cast<std::size_t>(channels / groups);
    dispatch_reals(x.dtype(), kName, [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, x), scale(ctx, kernels_, ctx.input(1)), bias(ctx, kernels_, ctx.input(2));
      const RealOutput<T> out(ctx, kernels_, y);
      ctx.parallel_for(static_cast<std::size_t>(x.dim(0)) * count, static_cast<double>(members * plane),
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         kernel::Watch watch(ctx.run());
                         for (std::size_t i = begin; i < end; ++i) {
                           const std::size_t at = i * members * plane;
                           normalize(watch, in + at, out + at, members * plane);
                           for (std::size_t m = 0; m < members; ++m) {
                             const std::size_t c = by_group_ ? i % count : i % count * members + m;
                             T* line = out + at + m * plane;
                             in_pieces(watch, plane, 0.5, [&](std::size_t from, std::size_t to) {
                               affine(line + from, to - from, scale[c], bias[c]);
                             });
                           }
                         }
                       });
      out.store();
    });
  }

 private:
  static constexpr const char* kName = Grouped ? "GroupNormalization" : "InstanceNormalization";

  void normalize(kernel::Watch& watch, const float* x, float* y, std::size_t n) const {
    rows_.layer_norm(watch, x, nullptr, nullptr, y, n, epsilon_, nullptr, nullptr);
  }
  void normalize(kernel::Watch& watch, const double* x, double* y, std::size_t n) const {
    const auto count = static_cast<double>(n);
    const double mean = sum_in_pieces<double>(watch, n, 1.0, [&](std::size_t i) { return x[i]; }) / count;
    const auto square = [&](std::size_t i) { return (x[i] - mean) * (x[i] - mean); };
    const double variance = sum_in_pieces<double>(watch, n, 1.0, square) / count;
    const double scale = 1 / std::sqrt(variance + static_cast<double>(epsilon_));
    each_in_pieces(watch, n, 1.0, [&](std::size_t i) { y[i] = (x[i] - mean) * scale; });
  }
  void affine(float* y, std::size_t n, float a, float b) const {
    elementwise_[microkernels::UnaryOp::kAffine](y, y, n, a, b);
  }
  void affine(double* y, std::size_t n, double a, double b) const {
    for (std::size_t i = 0; i < n; ++i) y[i] = a * y[i] + b;
  }

  const microkernels::KernelSet& kernels_;
  const microkernels::ElementwiseTable& elementwise_;
  FloatRows rows_;
  std::int64_t groups_;
  bool by_group_;
  float epsilon_;
};

}  // namespace

void register_instance_norm(kernel::OpRegistrar& r) {
  r.op("InstanceNormalization")
      .version(1, "input:T, scale:T, B:T -> output:T; T = floats")
      .version(6, "input:T, scale:T, B:T -> output:T; T = floats")
      .version(22, "input:T, scale:T, B:T -> output:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<GroupNorm<false>>()
      .axes(kernel::Axes::BatchAndChannels);
  r.op("GroupNormalization")
      .version(18, "X:T, scale:T, bias:T -> Y:T; T = floats_bf16")
      .version(21, "X:T, scale:T, bias:T -> Y:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<GroupNorm<true>>();
}

}  // namespace infernode::ops
