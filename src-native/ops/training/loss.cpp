#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/reals.h"
#include "ops/math/columns.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

enum class Reduction : std::uint8_t { None, Sum, Mean };

Reduction read_reduction(const graph::Attributes& attributes) {
  const std::string text = attributes.get_string("reduction", "mean");
  if (text == "none") return Reduction::None;
  if (text == "sum") return Reduction::Sum;
  if (text == "mean") return Reduction::Mean;
  fail(ErrorCode::InvalidModel, cat("reduction '", text, "' is none of none, sum, mean"));
}

/// NegativeLogLikelihoodLoss of log-probabilities [N, C, ...], and SoftmaxCrossEntropyLoss, which first makes them of
/// scores.
template <bool Softmax>
class Loss final : public kernel::Kernel {
 public:
  explicit Loss(KernelInfo& info) : kernels_(info.kernels()), reduction_(read_reduction(info.attributes())) {
    if (info.attributes().has("ignore_index")) ignored_ = info.attributes().get_int("ignore_index");
  }

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor& target = ctx.input(1);
    const Tensor* weight = ctx.optional_input(2);
    Shape places;
    for (std::size_t i = 0; i < x.rank(); ++i) {
      if (i != 1) places.push_back(x.dim(i));
    }
    if (x.rank() < 2 || target.shape() != places) {
      fail(ErrorCode::ShapeMismatch, cat(kName, ": the targets ", target.to_string(), " do not fit ", x.to_string()));
    }
    if (weight != nullptr && weight->shape() != Shape{x.dim(1)})
      fail(ErrorCode::ShapeMismatch, cat(kName, ": ", weight->to_string(), " weighs ", x.dim(1), " classes"));
    const Tensor out = ctx.output(0, reduction_ == Reduction::None ? places : Shape{});
    const Tensor log_prob = Softmax && ctx.wants_output(1) ? ctx.output(1, x.shape()) : Tensor();
    dispatch_reals(x.dtype(), kName, [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, x), weights(ctx, kernels_, weight);
      const RealOutput<T> loss(ctx, kernels_, out), logs(ctx, kernels_, log_prob);
      compute<T>(ctx, x.shape(), in, kernel::Numbers<std::int64_t>(ctx.run(), target), weights, loss, logs);
      loss.store();
      logs.store();
    });
  }

 private:
  static constexpr double kNsPerTarget = 2;
  static constexpr const char* kName = Softmax ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss";

  template <class T>
  void compute(KernelContext& ctx, const Shape& shape, const T* x, const kernel::Numbers<std::int64_t>& targets,
               const T* weights, T* loss, T* logs) const {
    const std::int64_t classes = shape[1];
    const std::size_t n = static_cast<std::size_t>(classes),
                      inner = static_cast<std::size_t>(shape.numel(2, shape.rank()));
    kernel::Watch watch(ctx.run());
    for (const std::int64_t t : targets) {
      watch.did(kNsPerTarget);
      if ((t < 0 || t >= classes) && t != ignored_)
        fail(ErrorCode::InvalidArgument, cat(kName, ": target ", t, " is none of ", classes, " classes"));
    }
    // Each loss is a result itself, or one of those that are added up.
    const kernel::Scratch<T> parts(ctx.run(), reduction_ == Reduction::None ? 0 : targets.size());
    T* const losses = reduction_ == Reduction::None ? loss : parts.data();
    ctx.parallel_for(targets.size(), Softmax ? static_cast<double>(n) * 10 : 5,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       kernel::Watch part(ctx.run());
                       for (std::size_t i = begin; i < end; ++i) {
                         losses[i] = 0;
                         if (n == 0) continue;
                         const T* column = x + i / inner * n * inner + i % inner;
                         const T shift = Softmax ? log_sum(part, column, n, inner) : T{0};
                         if (logs != nullptr) {
                           T* to = logs + (column - x);
                           each_in_pieces(part, n, step_ns(inner * sizeof(T)),
                                          [&](std::size_t c) { to[c * inner] = column[c * inner] - shift; });
                         }
                         if (targets[i] == ignored_) continue;
                         const auto c = static_cast<std::size_t>(targets[i]);
                         losses[i] = -(column[c * inner] - shift) * (weights == nullptr ? T{1} : weights[c]);
                       }
                     });
    if (reduction_ == Reduction::None) return;
    double total = 0, weight = 0;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      watch.did(kNsPerTarget);
      total += static_cast<double>(losses[i]);
      if (targets[i] != ignored_)
        weight += weights == nullptr ? 1.0 : static_cast<double>(weights[static_cast<std::size_t>(targets[i])]);
    }
    *loss = static_cast<T>(reduction_ == Reduction::Sum ? total : total / weight);
  }

  /// log(sum(exp(x))).
  template <class T>
  static T log_sum(kernel::Watch& watch, const T* x, std::size_t n, std::size_t stride) {
    const double step = step_ns(stride * sizeof(T));
    T most = x[0];
    each_in_pieces(watch, n, step, [&](std::size_t i) { most = std::max(most, x[i * stride]); });
    const T sum =
        sum_in_pieces<T>(watch, n, 10.0 + step, [&](std::size_t i) { return std::exp(x[i * stride] - most); });
    return most + std::log(sum);
  }

  const microkernels::KernelSet& kernels_;
  Reduction reduction_;
  std::optional<std::int64_t> ignored_;
};

void infer_loss(InferContext& ctx) {
  const DType type = ctx.input_dtype(0);
  ctx.set_output_dtype(0, type);
  if (ctx.has_output(1)) ctx.set_output_dtype(1, type);
  if (const graph::SymShape* x = ctx.input_shape(0); x != nullptr && ctx.has_output(1)) ctx.set_output_shape(1, *x);
  if (read_reduction(ctx.attributes()) != Reduction::None) {
    ctx.set_output_shape(0, graph::SymShape{});
  } else if (const graph::SymShape* target = ctx.input_shape(1)) {
    ctx.set_output_shape(0, *target);
  }
}

}  // namespace

void register_loss(kernel::OpRegistrar& r) {
  r.op("NegativeLogLikelihoodLoss")
      .version(12, "input:T, target:Tind, weight:T? -> loss:T; T = floats, Tind = int32|int64")
      .version(13, "input:T, target:Tind, weight:T? -> loss:T; T = floats, Tind = int32|int64")
      .version(22, "input:T, target:Tind, weight:T? -> loss:T; T = floats_bf16, Tind = int32|int64")
      .infer(infer_loss)
      .kernel<Loss<false>>();
  r.op("SoftmaxCrossEntropyLoss")
      .version(12, "scores:T, labels:Tind, weights:T? -> output:T, log_prob:T?; T = floats, Tind = int32|int64")
      .version(13, "scores:T, labels:Tind, weights:T? -> output:T, log_prob:T?; T = floats_bf16, Tind = int32|int64")
      .infer(infer_loss)
      .kernel<Loss<true>>();
}

}  // namespace infernode::ops
