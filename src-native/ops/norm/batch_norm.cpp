#include <cmath>

#include "base/error.h"
#include "kernel/op_registrar.h"
#include "kernel/scratch.h"
#include "kernel/watch.h"
#include "microkernels/elementwise/elementwise.h"
#include "ops/common/reals.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Tensor;

/// How the outputs behind Y read, by version.
enum class Style {
  Saved,   ///< 1 to 13: mean, var, saved_mean, saved_var; training where the node has them (or, before 7, by is_test)
  Running  ///< 14 on: running_mean, running_var; training by training_mode
};

class BatchNorm final : public kernel::Kernel {
 public:
  explicit BatchNorm(KernelInfo& info)
      : kernels_(info.kernels()),
        elementwise_(kernels_.elementwise),
        style_(info.since_version() < 14 ? Style::Saved : Style::Running),
        epsilon_(info.attributes().get_float("epsilon", 1e-5f)),
        momentum_(info.attributes().get_float("momentum", 0.9f)),
        spatial_(info.attributes().get_int("spatial", 1) != 0) {
    if (style_ == Style::Running) {
      training_ = info.attributes().get_int("training_mode", 0) != 0;
    } else {
      bool more = false;
      for (std::size_t o = 1; o < info.output_count(); ++o) more = more || info.has_output(o);
      training_ = more && info.attributes().get_int("is_test", 0) == 0;
    }
  }

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    if (x.rank() == 0) fail(ErrorCode::ShapeMismatch, "BatchNormalization takes X [N,C,...], got a scalar");
    Layout at;
    at.images = x.rank() == 1 ? 1 : static_cast<std::size_t>(x.dim(0));
    const std::size_t channel_axis = x.rank() == 1 ? 0 : 1, after = spatial_ ? channel_axis + 1 : x.rank();
    at.channels = static_cast<std::size_t>(x.shape().numel(channel_axis, after));
    at.plane = static_cast<std::size_t>(x.shape().numel(after, x.rank()));
    for (std::size_t i = 1; i < 5; ++i) {
      if (ctx.input(i).numel() != static_cast<std::int64_t>(at.channels)) {
        fail(ErrorCode::ShapeMismatch, cat("BatchNormalization: input ", i, " is ", ctx.input(i).to_string(), " for ",
                                           at.channels, " channels of X ", x.to_string()));
      }
    }
    const Tensor y = ctx.output(0, x.shape());
    Tensor statistics[4];
    for (std::size_t o = 1; o < ctx.output_count() && o <= 4; ++o) {
      if (ctx.wants_output(o)) statistics[o - 1] = ctx.output(o, ctx.input(3).shape());
    }
    dispatch_reals(x.dtype(), "BatchNormalization",
                   [&]<class T>(tensor::TypeTag<T>) { compute<T>(ctx, at, x, y, statistics); });
  }

 private:
  struct Layout {
    std::size_t images, channels, plane;
  };

  template <class T>
  void compute(KernelContext& ctx, const Layout& at, const Tensor& x, const Tensor& y, Tensor (&statistics)[4]) const {
    const RealInput<T> in(ctx, kernels_, x);
    const RealInput<double> scale(ctx, kernels_, ctx.input(1)), bias(ctx, kernels_, ctx.input(2)),
        mean(ctx, kernels_, ctx.input(3)), variance(ctx, kernels_, ctx.input(4));
    const double *means = mean, *variances = variance;
    kernel::Scratch<double> measured[2];
    if (training_) {
      for (auto& values : measured) values = kernel::Scratch<double>(ctx.run(), at.channels);
      measure<T>(ctx, at, in, measured[0].data(), measured[1].data());
      means = measured[0].data(), variances = measured[1].data();
    }
    save(ctx, at.channels, statistics, {mean, variance}, {means, variances});
    const kernel::Scratch<T> factor(ctx.run(), at.channels), offset(ctx.run(), at.channels);
    ctx.parallel_for(at.channels, 5, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t c = begin; c < end; ++c) {
        const double f = scale[c] / std::sqrt(variances[c] + static_cast<double>(epsilon_));
        factor[c] = static_cast<T>(f);
        offset[c] = static_cast<T>(bias[c] - means[c] * f);
      }
    });
    const RealOutput<T> out(ctx, kernels_, y);
    if (at.plane == 1) {
      rows(ctx, at, in.data(), out.data(), factor.data(), offset.data());
    } else {
      planes(ctx, at, in.data(), out.data(), factor.data(), offset.data());
    }
    out.store();
  }

  template <class T>
  void planes(KernelContext& ctx, const Layout& at, const T* x, T* y, const T* factor, const T* offset) const {
    const std::size_t count = at.plane == 0 ? 0 : at.images * at.channels;
    ctx.parallel_for(count, static_cast<double>(at.plane) * 0.3, [&](std::size_t begin, std::size_t end, std::size_t) {
      kernel::Watch watch(ctx.run());
      for (std::size_t i = begin; i < end; ++i) {
        const T a = factor[i % at.channels], b = offset[i % at.channels];
        const T* from = x + i * at.plane;
        T* to = y + i * at.plane;
        in_pieces(watch, at.plane, 0.5, [&](std::size_t first, std::size_t last) {
          if constexpr (std::is_same_v<T, float>) {
            elementwise_[microkernels::UnaryOp::kAffine](from + first, to + first, last - first, a, b);
          } else {
            for (std::size_t k = first; k < last; ++k) to[k] = a * from[k] + b;
          }
        });
      }
    });
  }

  template <class T>
  void rows(KernelContext& ctx, const Layout& at, const T* x, T* y, const T* factor, const T* offset) const {
    ctx.parallel_for(
        at.images, static_cast<double>(at.channels) * 0.3, [&](std::size_t begin, std::size_t end, std::size_t) {
          kernel::Watch watch(ctx.run());
          for (std::size_t i = begin; i < end; ++i) {
            const T* from = x + i * at.channels;
            T* to = y + i * at.channels;
            in_pieces(watch, at.channels, 0.5, [&](std::size_t first, std::size_t last) {
              if constexpr (std::is_same_v<T, float>) {
                elementwise_.multiply_add(from + first, factor + first, offset + first, to + first, last - first);
              } else {
                for (std::size_t c = first; c < last; ++c) to[c] = factor[c] * from[c] + offset[c];
              }
            });
          }
        });
  }

  /// Mean and population variance of each channel over images and places.
  template <class T>
  void measure(KernelContext& ctx, const Layout& at, const T* x, double* means, double* variances) const {
    const auto count = static_cast<double>(at.images * at.plane);
    ctx.parallel_for(at.channels, count * 2, [&](std::size_t begin, std::size_t end, std::size_t) {
      kernel::Watch watch(ctx.run());
      for (std::size_t c = begin; c < end; ++c) {
        const auto sum = [&](auto f) {
          double total = 0;
          for (std::size_t n = 0; n < at.images; ++n) {
            const T* plane = x + (n * at.channels + c) * at.plane;
            in_pieces(watch, at.plane, 1.0, [&](std::size_t first, std::size_t last) {
              for (std::size_t k = first; k < last; ++k) total += f(static_cast<double>(plane[k]));
            });
          }
          return total / count;
        };
        const double mean = sum([](double v) { return v; });
        means[c] = mean;
        variances[c] = sum([mean](double v) { return (v - mean) * (v - mean); });
      }
    });
  }

  /// Means and variances of the channels.
  struct Moments {
    const double *mean, *variance;
  };

  /// running = old * momentum + current * (1 - momentum); before version 14 also the current ones.
  void save(KernelContext& ctx, std::size_t channels, Tensor (&statistics)[4], const Moments& old,
            const Moments& current) const {
    const double keep = static_cast<double>(momentum_);
    for (std::size_t o = 0; o < 4; ++o) {
      if (!statistics[o]) continue;
      const RealOutput<double> out(ctx, kernels_, statistics[o]);
      const double* before = o % 2 == 0 ? old.mean : old.variance;
      const double* now = o % 2 == 0 ? current.mean : current.variance;
      ctx.parallel_for(channels, 2, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t c = begin; c < end; ++c)
          out[c] = o < 2 && training_ ? before[c] * keep + now[c] * (1 - keep) : now[c];
      });
      out.store();
    }
  }

  const microkernels::KernelSet& kernels_;
  const microkernels::ElementwiseTable& elementwise_;
  Style style_;
  float epsilon_, momentum_;
  bool spatial_, training_ = false;
};

void infer_batch_norm(InferContext& ctx) {
  if (const graph::SymShape* x = ctx.input_shape(0)) ctx.set_output_shape(0, *x);
  for (std::size_t o = 1; o < ctx.output_count(); ++o) {
    if (!ctx.has_output(o)) continue;
    if (const graph::SymShape* mean = ctx.input_shape(3)) ctx.set_output_shape(o, *mean);
  }
}

}  // namespace

void register_batch_norm(kernel::OpRegistrar& r) {
  constexpr const char* kSaved =
      "X:T, scale:T, B:T, mean:T, var:T -> Y:T, mean:T?, var:T?, saved_mean:T?, saved_var:T?; T = floats";
  r.op("BatchNormalization")
      .version(1, kSaved)
      .version(6, kSaved)
      .version(7, kSaved)
      .version(9, kSaved)
      .version(14,
               "X:T, scale:T, B:T, input_mean:U, input_var:U -> Y:T, running_mean:U?, running_var:U?; "
               "T = floats_bf16, U = floats_bf16")
      .version(15,
               "X:T, scale:T1, B:T1, input_mean:T2, input_var:T2 -> Y:T, running_mean:T2?, running_var:T2?; "
               "T = floats_bf16, T1 = floats_bf16, T2 = floats_bf16")
      .infer(infer_batch_norm)
      .kernel<BatchNorm>()
      .axes(kernel::Axes::Channels, 7);
}

}  // namespace infernode::ops
