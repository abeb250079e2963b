#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "microkernels/elementwise/elementwise.h"
#include "ops/common/arguments.h"
#include "ops/common/reals.h"
#include "ops/common/strided_copy.h"
#include "ops/math/columns.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

/// Divides by the L1 or L2 norm along an axis; where the norm is 0 the result is 0.
class LpNormalization final : public kernel::Kernel {
 public:
  explicit LpNormalization(KernelInfo& info)
      : kernels_(info.kernels()), axis_(info.attributes().get_int("axis", -1)), p_(info.attributes().get_int("p", 2)) {
    if (p_ != 1 && p_ != 2) fail(ErrorCode::InvalidModel, cat("LpNormalization's p is ", p_, ", expected 1 or 2"));
  }

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const std::size_t axis = tensor::normalize_axis(axis_, x.rank());
    const auto outer = static_cast<std::size_t>(x.shape().numel(0, axis)), n = static_cast<std::size_t>(x.dim(axis));
    const auto inner = static_cast<std::size_t>(x.shape().numel(axis + 1, x.rank()));
    const Tensor y = ctx.output(0, x.shape());
    if (x.numel() == 0) return;
    dispatch_reals(x.dtype(), "LpNormalization", [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, x);
      const RealOutput<T> out(ctx, kernels_, y);
      ctx.parallel_for(outer * inner, static_cast<double>(n) * 2, [&](std::size_t begin, std::size_t end, std::size_t) {
        kernel::Watch watch(ctx.run());
        const double step = step_ns(inner * sizeof(T));
        for (std::size_t i = begin; i < end; ++i) {
          const std::size_t at = i / inner * n * inner + i % inner;
          const auto sum = sum_in_pieces<double>(watch, n, step, [&](std::size_t k) {
            const auto v = static_cast<double>(in[at + k * inner]);
            return p_ == 1 ? std::abs(v) : v * v;
          });
          const double norm = p_ == 1 ? sum : std::sqrt(sum);
          each_in_pieces(watch, n, step, [&](std::size_t k) {
            const std::size_t e = at + k * inner;
            out[e] = norm == 0 ? T{0} : static_cast<T>(static_cast<double>(in[e]) / norm);
          });
        }
      });
      out.store();
    });
  }

 private:
  const microkernels::KernelSet& kernels_;
  std::int64_t axis_, p_;
};

/// (x - mean) / (standard deviation + 1e-9) over some axes.
class MeanVarianceNormalization final : public kernel::Kernel {
 public:
  explicit MeanVarianceNormalization(KernelInfo& info)
      : kernels_(info.kernels()),
        axes_(info.attributes().get_ints("axes", {0, 2, 3})),
        divides_(info.since_version() >= 9 || info.attributes().get_int("normalize_variance", 1) != 0) {
    // Before version 9 each image is normalized by itself: over its channels too, or one by one.
    if (info.since_version() >= 9) return;
    axes_ = {2, 3};
    if (info.attributes().get_int("across_channels", 0) != 0) axes_.insert(axes_.begin(), 1);
  }

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Ints axes = normalize_axes(axes_, x.rank(), "axes");
    const Tensor y = ctx.output(0, x.shape());
    if (x.numel() == 0) return;
    // Kept axes first, the others behind them: each row of `arranged` is what one mean is taken over.
    const Shape strides = x.shape().strides();
    Shape dims, from;
    std::size_t rows = 1;
    for (const bool reduced : {false, true}) {
      for (std::size_t i = 0; i < x.rank(); ++i) {
        if ((std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end()) != reduced) continue;
        dims.push_back(x.dim(i));
        from.push_back(strides[i]);
        if (!reduced) rows *= static_cast<std::size_t>(x.dim(i));
      }
    }
    const std::size_t n = static_cast<std::size_t>(x.numel()) / rows;
    const Tensor arranged = Tensor::make(x.dtype(), dims, *ctx.run().allocator);
    strided_copy(ctx.run(), dims, {x, 0, from}, {arranged, 0, dims.strides()});
    dispatch_reals(x.dtype(), "MeanVarianceNormalization", [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, arranged);
      const RealOutput<T> out(ctx, kernels_, arranged);
      ctx.parallel_for(rows, static_cast<double>(n) * 3, [&](std::size_t begin, std::size_t end, std::size_t) {
        kernel::Watch watch(ctx.run());
        for (std::size_t r = begin; r < end; ++r) normalize(watch, in + r * n, out + r * n, n, divides_);
      });
      out.store();
    });
    strided_copy(ctx.run(), dims, {arranged, 0, dims.strides()}, {y, 0, from});
  }

 private:
  template <class T>
  static void normalize(kernel::Watch& watch, const T* x, T* y, std::size_t n, bool divides) {
    const auto count = static_cast<double>(n);
    const auto at = [x](std::size_t i) { return static_cast<double>(x[i]); };
    const double mean = sum_in_pieces<double>(watch, n, 1.0, at) / count;
    const auto square = [&](std::size_t i) { return (at(i) - mean) * (at(i) - mean); };
    const double variance = sum_in_pieces<double>(watch, n, 1.0, square) / count;
    const double deviation = divides ? std::sqrt(variance) + 1e-9 : 1;
    each_in_pieces(watch, n, 1.0, [&](std::size_t i) { y[i] = static_cast<T>((at(i) - mean) / deviation); });
  }

  const microkernels::KernelSet& kernels_;
  std::vector<std::int64_t> axes_;
  bool divides_;
};

/// Local response normalization: x / (bias + alpha / size * sum of squares over `size` channels around)^beta.
class Lrn final : public kernel::Kernel {
 public:
  explicit Lrn(KernelInfo& info)
      : kernels_(info.kernels()),
        elementwise_(kernels_.elementwise),
        size_(info.attributes().get_int("size")),
        alpha_(info.attributes().get_float("alpha", 1e-4f)),
        beta_(info.attributes().get_float("beta", 0.75f)),
        bias_(info.attributes().get_float("bias", 1)) {
    if (size_ < 1) fail(ErrorCode::InvalidModel, cat("LRN's size is ", size_));
  }

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    if (x.rank() < 3) fail(ErrorCode::ShapeMismatch, cat("LRN takes X [N,C,...], got ", x.to_string()));
    const Tensor y = ctx.output(0, x.shape());
    if (x.numel() == 0) return;
    const auto plane = static_cast<std::size_t>(x.shape().numel(2, x.rank()));
    const std::int64_t channels = x.dim(1);
    constexpr std::size_t kBlock = 256;
    const std::size_t blocks = ceil_div(plane, kBlock);
    const auto planes = static_cast<std::size_t>(x.dim(0) * channels);
    dispatch_reals(x.dtype(), "LRN", [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, x);
      const RealOutput<T> out(ctx, kernels_, y);
      const double cost =
          static_cast<double>(std::min(kBlock, plane)) * static_cast<double>(std::min(size_, channels) + 4);
      ctx.parallel_for(planes * blocks, cost, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i) {
          const auto channel = static_cast<std::int64_t>(i / blocks) % channels;
          const std::size_t first = i % blocks * kBlock, count = std::min(kBlock, plane - first);
          const std::int64_t from = std::max<std::int64_t>(0, channel - (size_ - 1) / 2);
          const std::int64_t to = std::min(channels - 1, channel + size_ / 2);
          const std::size_t at = i / blocks * plane + first;
          T sum[kBlock] = {};
          for (std::int64_t c = from; c <= to; ++c) {
            const T* row = in + at + (c - channel) * static_cast<std::int64_t>(plane);
            for (std::size_t k = 0; k < count; ++k) sum[k] += row[k] * row[k];
          }
          divide(in + at, sum, out + at, count);
        }
      });
      out.store();
    });
  }

 private:
  void divide(const float* x, float* sum, float* y, std::size_t n) const {
    using microkernels::BinaryOp;
    elementwise_[microkernels::UnaryOp::kAffine](sum, sum, n, alpha_ / static_cast<float>(size_), bias_);
    elementwise_.vector_scalar[static_cast<std::size_t>(BinaryOp::kPow)](sum, &beta_, sum, n);
    elementwise_.vector_vector[static_cast<std::size_t>(BinaryOp::kDiv)](x, sum, y, n);
  }
  void divide(const double* x, const double* sum, double* y, std::size_t n) const {
    const auto alpha = static_cast<double>(alpha_) / static_cast<double>(size_);
    for (std::size_t i = 0; i < n; ++i)
      y[i] = x[i] / std::pow(static_cast<double>(bias_) + alpha * sum[i], static_cast<double>(beta_));
  }

  const microkernels::KernelSet& kernels_;
  const microkernels::ElementwiseTable& elementwise_;
  std::int64_t size_;
  float alpha_, beta_, bias_;
};

}  // namespace

void register_normalization(kernel::OpRegistrar& r) {
  r.op("LpNormalization")
      .version(1, "input:T -> output:T; T = floats")
      .version(22, "input:T -> output:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<LpNormalization>()
      .along_axis(-1);
  r.op("MeanVarianceNormalization")
      .version(1, "X:T -> Y:T; T = floats")
      .version(9, "X:T -> Y:T; T = floats")
      .version(13, "X:T -> Y:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<MeanVarianceNormalization>();
  r.op("LRN")
      .version(1, "X:T -> Y:T; T = floats")
      .version(13, "X:T -> Y:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<Lrn>()
      .axes(kernel::Axes::Channels);
}

}  // namespace infernode::ops
