#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "microkernels/elementwise/elementwise.h"
#include "ops/common/reals.h"
#include "ops/common/strided_copy.h"
#include "ops/norm/float_rows.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr float kEpsilon = 1e-5f, kSkipEpsilon = 1e-12f;

/// One row: y = (x - mean) * inv_std * gamma + beta, or without the mean (RMS). gamma and beta may be null.
class RowNorm {
 public:
  RowNorm(const microkernels::KernelSet& kernels, bool rms, float epsilon)
      : rows_(kernels), rms_(rms), epsilon_(epsilon) {}

  template <class T>
  void operator()(kernel::Watch& watch, const T* x, const T* gamma, const T* beta, T* y, std::size_t n, T* mean,
                  T* inv_std) const {
    if constexpr (std::is_same_v<T, float>) {
      if (!rms_) return rows_.layer_norm(watch, x, gamma, beta, y, n, epsilon_, mean, inv_std);
      rows_.rms_norm(watch, x, gamma, y, n, epsilon_, inv_std);
    } else {
      const T m = rms_ ? 0 : sum_in_pieces<T>(watch, n, 1.0, [&](std::size_t i) { return x[i]; }) / static_cast<T>(n);
      const auto square = [&](std::size_t i) { return (x[i] - m) * (x[i] - m); };
      const T variance = sum_in_pieces<T>(watch, n, 1.0, square) / static_cast<T>(n);
      const T scale = 1 / std::sqrt(variance + static_cast<T>(epsilon_));
      each_in_pieces(watch, n, 1.0, [&](std::size_t i) {
        y[i] = (x[i] - m) * scale * (gamma == nullptr ? 1 : gamma[i]) + (beta == nullptr ? 0 : beta[i]);
      });
      if (mean != nullptr) *mean = m;
      if (inv_std != nullptr) *inv_std = scale;
    }
  }

 private:
  FloatRows rows_;
  bool rms_;
  float epsilon_;
};

/// A scale or bias read along the rows [outer, n] of a tensor that it broadcasts to.
template <class T>
class RowFactor {
 public:
  RowFactor(KernelContext& ctx, const microkernels::KernelSet& kernels, std::size_t input, const Shape& shape,
            std::size_t axis) {
    const Tensor* given = ctx.optional_input(input);
    if (given == nullptr) return;
    Tensor t = *given;
    const Shape strides = tensor::broadcast_strides(t.shape(), shape);
    const std::int64_t n = shape.numel(axis, shape.rank());
    bool same_rows = true;
    for (std::size_t i = 0; i < axis; ++i) same_rows = same_rows && (strides[i] == 0 || shape[i] == 1);
    if (!same_rows || t.numel() != n) {
      Shape dims = shape;
      for (std::size_t i = 0; i < axis && same_rows; ++i) dims[i] = 1;
      const Tensor full = Tensor::make(t.dtype(), dims, *ctx.run().allocator);
      strided_copy(ctx.run(), dims, {t, 0, strides}, {full, 0, dims.strides()});
      t = full;
    }
    if (!same_rows) step_ = static_cast<std::size_t>(n);
    values_ = RealInput<T>(ctx, kernels, t);
    source_ = std::move(t);
  }
  const T* row(std::size_t r) const { return values_.data() == nullptr ? nullptr : values_.data() + r * step_; }

 private:
  Tensor source_;
  RealInput<T> values_;
  std::size_t step_ = 0;
};

/// LayerNormalization, RMSNormalization and ORT's SimplifiedLayerNormalization.
template <bool Rms>
class LayerNorm final : public kernel::Kernel {
 public:
  explicit LayerNorm(KernelInfo& info)
      : kernels_(info.kernels()),
        norm_(kernels_, Rms, info.attributes().get_float("epsilon", kEpsilon)),
        axis_(info.attributes().get_int("axis", -1)) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const std::size_t axis = tensor::normalize_axis(axis_, x.rank());
    const auto outer = static_cast<std::size_t>(x.shape().numel(0, axis));
    const auto n = static_cast<std::size_t>(x.shape().numel(axis, x.rank()));
    const Tensor y = ctx.output(0, x.shape());
    Shape reduced = x.shape();
    for (std::size_t i = axis; i < reduced.rank(); ++i) reduced[i] = 1;
    // Outputs beyond Y: mean (not for RMS) and the inverse deviation.
    constexpr std::size_t kInvStd = Rms ? 1 : 2;
    const Tensor mean = !Rms && ctx.wants_output(1) ? ctx.output(1, reduced) : Tensor();
    const Tensor inv_std = ctx.wants_output(kInvStd) ? ctx.output(kInvStd, reduced) : Tensor();
    if (x.numel() == 0) {  // no row, or rows of nothing, whose statistics are 0
      for (const Tensor* t : {&mean, &inv_std}) {
        if (*t) fill_bytes(ctx.run(), *t);
      }
      return;
    }
    dispatch_reals(x.dtype(), "LayerNormalization", [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, x);
      const RowFactor<T> gamma(ctx, kernels_, 1, x.shape(), axis), beta(ctx, kernels_, 2, x.shape(), axis);
      const RealOutput<T> out(ctx, kernels_, y), means(ctx, kernels_, mean), inverses(ctx, kernels_, inv_std);
      constexpr double kCost = std::is_same_v<T, float> ? 0.5 : 4;
      ctx.parallel_for(outer, static_cast<double>(n) * kCost, [&](std::size_t begin, std::size_t end, std::size_t) {
        kernel::Watch watch(ctx.run());
        for (std::size_t r = begin; r < end; ++r) {
          norm_(watch, in + r * n, gamma.row(r), beta.row(r), out + r * n, n, means ? means + r : nullptr,
                inverses ? inverses + r : nullptr);
        }
      });
      out.store();
      means.store();
      inverses.store();
    });
  }

 private:
  const microkernels::KernelSet& kernels_;
  RowNorm norm_;
  std::int64_t axis_;
};

/// com.microsoft's SkipLayerNormalization and SkipSimplifiedLayerNormalization over the last axis:
/// sum = input + skip (+ bias); output = norm(sum).
template <bool Rms>
class SkipLayerNorm final : public kernel::Kernel {
 public:
  explicit SkipLayerNorm(KernelInfo& info)
      : kernels_(info.kernels()),
        elementwise_(kernels_.elementwise),
        norm_(kernels_, Rms, info.attributes().get_float("epsilon", Rms ? kEpsilon : kSkipEpsilon)) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor& skip = ctx.input(1);
    if (x.rank() == 0) fail(ErrorCode::ShapeMismatch, "SkipLayerNormalization takes no scalars");
    const auto n = static_cast<std::size_t>(x.shape().back());
    const Tensor y = ctx.output(0, x.shape());
    Shape reduced = x.shape();
    reduced[reduced.rank() - 1] = 1;
    const Tensor mean = ctx.wants_output(1) ? ctx.output(1, reduced) : Tensor();
    const Tensor inv_std = ctx.wants_output(2) ? ctx.output(2, reduced) : Tensor();
    const Tensor sum = ctx.wants_output(3) ? ctx.output(3, x.shape()) : Tensor();
    if (x.numel() == 0) return;
    const auto outer = static_cast<std::size_t>(x.numel()) / n;
    check_suffix(skip, x);
    const std::size_t skip_rows = static_cast<std::size_t>(skip.numel()) / n;
    const Tensor* beta = Rms ? nullptr : ctx.optional_input(3);
    const Tensor* bias = ctx.optional_input(Rms ? 3 : 4);
    for (const Tensor* t : {static_cast<const Tensor*>(&ctx.input(2)), beta, bias}) {
      if (t != nullptr && t->numel() != static_cast<std::int64_t>(n)) {
        fail(ErrorCode::ShapeMismatch,
             cat("SkipLayerNormalization: ", t->to_string(), " does not fit rows of ", n, " elements"));
      }
    }
    dispatch_reals(x.dtype(), "SkipLayerNormalization", [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, x), other(ctx, kernels_, skip), gamma(ctx, kernels_, ctx.input(2)),
          shift(ctx, kernels_, beta), add(ctx, kernels_, bias);
      const RealOutput<T> out(ctx, kernels_, y), means(ctx, kernels_, mean), inverses(ctx, kernels_, inv_std),
          sums(ctx, kernels_, sum);
      ctx.parallel_for(outer, static_cast<double>(n) * 0.7, [&](std::size_t begin, std::size_t end, std::size_t) {
        kernel::Watch watch(ctx.run());
        for (std::size_t r = begin; r < end; ++r) {
          T* row = (sums ? sums : out) + r * n;
          const T *a = in + r * n, *b = other + r % skip_rows * n;
          in_pieces(watch, n, 1.0, [&](std::size_t from, std::size_t to) {
            plus(a + from, b + from, row + from, to - from);
            if (add) plus(row + from, add + from, row + from, to - from);
          });
          norm_(watch, static_cast<const T*>(row), gamma.data(), shift.data(), out + r * n, n,
                means ? means + r : nullptr, inverses ? inverses + r : nullptr);
          if (Rms && means) means[r] = 0;
        }
      });
      for (const RealOutput<T>* o : {&out, &means, &inverses, &sums}) o->store();
    });
  }

 private:
  void plus(const float* a, const float* b, float* out, std::size_t n) const {
    elementwise_.vector_vector[static_cast<std::size_t>(microkernels::BinaryOp::kAdd)](a, b, out, n);
  }
  static void plus(const double* a, const double* b, double* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
  }

  /// `skip` has x's shape, or lacks (or has 1 for) leading dims of it.
  static void check_suffix(const Tensor& skip, const Tensor& x) {
    bool fits = skip.rank() >= 1 && skip.rank() <= x.rank() && skip.numel() > 0;
    for (std::size_t i = 1; fits && i <= skip.rank(); ++i) {
      const std::int64_t dim = skip.dim(skip.rank() - i);
      fits = dim == x.dim(x.rank() - i) || (i == skip.rank() && i > 1 && dim == 1);
    }
    if (!fits)
      fail(ErrorCode::ShapeMismatch, cat("SkipLayerNormalization adds ", skip.to_string(), " to ", x.to_string()));
  }

  const microkernels::KernelSet& kernels_;
  const microkernels::ElementwiseTable& elementwise_;
  RowNorm norm_;
};

/// Output 0 like X; outputs 1 and 2 with the normalised axes at 1.
void infer_norm(InferContext& ctx, std::int64_t default_axis, DType statistics) {
  const graph::SymShape* x = ctx.input_shape(0);
  if (ctx.output_type(0).elem == DType::Undefined) ctx.set_output_dtype(0, ctx.input_dtype(0));
  for (std::size_t o : {1, 2}) {
    if (ctx.has_output(o)) ctx.set_output_dtype(o, statistics);
  }
  if (x == nullptr) return;
  ctx.set_output_shape(0, *x);
  graph::SymShape reduced = *x;
  const std::size_t axis = tensor::normalize_axis(ctx.attributes().get_int("axis", default_axis), x->size());
  for (std::size_t i = axis; i < reduced.size(); ++i) reduced[i] = 1;
  for (std::size_t o : {1, 2}) {
    if (ctx.has_output(o)) ctx.set_output_shape(o, reduced);
  }
}

void infer_layer_norm(InferContext& ctx) {
  const bool stash_bf16 = ctx.attributes().get_int("stash_type", 1) == 16;
  infer_norm(ctx, -1, stash_bf16 ? DType::BFloat16 : DType::Float32);
}

void infer_skip_norm(InferContext& ctx) {
  infer_norm(ctx, -1, DType::Float32);
  if (!ctx.has_output(3)) return;
  ctx.set_output_dtype(3, ctx.input_dtype(0));
  if (const graph::SymShape* x = ctx.input_shape(0)) ctx.set_output_shape(3, *x);
}

}  // namespace

void register_layer_norm(kernel::OpRegistrar& r) {
  // Version 1 is what onnxruntime's own optimizer and exporters wrote before the standard had the operator.
  r.op("LayerNormalization")
      .version(1, "X:T, Scale:T, B:T? -> Y:T, Mean:U?, InvStdDev:U?; T = floats_bf16, U = float|bfloat16")
      .version(17, "X:T, Scale:T, B:T? -> Y:T, Mean:U?, InvStdDev:U?; T = floats_bf16, U = float|bfloat16")
      .infer(infer_layer_norm)
      .kernel<LayerNorm<false>>()
      .in_place(0, 0);
  r.op("RMSNormalization")
      .version(23, "X:T, scale:V -> Y:V; T = floats_bf16, V = floats_bf16")
      .infer(infer_layer_norm)
      .kernel<LayerNorm<true>>();
  for (const char* domain : {"", "com.microsoft"}) {
    r.op("SimplifiedLayerNormalization", domain)
        .version(1, "X:T, scale:V -> Y:V, inv_std_var:U?; T = floats_bf16, U = float, V = floats_bf16")
        .infer(infer_layer_norm)
        .kernel<LayerNorm<true>>();
  }
  r.op("SkipLayerNormalization", "com.microsoft")
      .version(1,
               "input:T, skip:T, gamma:T, beta:T?, bias:T? -> output:T, mean:U?, inv_std_var:U?, "
               "input_skip_bias_sum:T?; T = floats_bf16, U = float")
      .infer(infer_skip_norm)
      .kernel<SkipLayerNorm<false>>();
  r.op("SkipSimplifiedLayerNormalization", "com.microsoft")
      .version(1,
               "input:T, skip:T, gamma:T, bias:T? -> output:T, mean:U?, inv_std_var:U?, input_skip_bias_sum:T?; "
               "T = floats_bf16, U = float")
      .infer(infer_skip_norm)
      .kernel<SkipLayerNorm<true>>();
}

}  // namespace infernode::ops
