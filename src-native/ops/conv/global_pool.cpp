#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "microkernels/reduce/reduce.h"
#include "ops/common/reals.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

enum class Kind { Max, Average, Lp };

/// Pools each plane [N,C] of X to one element.
template <Kind K>
class GlobalPool final : public kernel::Kernel {
 public:
  explicit GlobalPool(KernelInfo& info)
      : kernels_(info.kernels()),
        table_(kernels_.reduce),
        p_(K == Kind::Lp ? info.attributes().get_float("p", 2) : 0) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    if (x.rank() < 2) fail(ErrorCode::ShapeMismatch, cat("global pooling takes X [N,C,...], got ", x.to_string()));
    Shape shape = x.shape();
    for (std::size_t i = 2; i < shape.rank(); ++i) shape[i] = 1;
    const Tensor y = ctx.output(0, shape);
    const auto n = static_cast<std::size_t>(x.shape().numel(2, x.rank()));
    dispatch_reals(x.dtype(), "global pooling", [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, x);
      const RealOutput<T> out(ctx, kernels_, y);
      ctx.parallel_for(static_cast<std::size_t>(y.numel()), static_cast<double>(n) * (K == Kind::Lp ? 4 : 0.2),
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         kernel::Watch watch(ctx.run());
                         for (std::size_t i = begin; i < end; ++i) out[i] = pool(in + i * n, n, watch);
                       });
      out.store();
    });
  }

 private:
  template <class T>
  T pool(const T* x, std::size_t n, [[maybe_unused]] kernel::Watch& watch) const {
    using microkernels::ReduceOp;
    if constexpr (K == Kind::Lp) {
      double sum = 0;
      const auto p = static_cast<double>(p_);
      for (std::size_t i = 0; i < n; ++i) {
        const double v = std::abs(static_cast<double>(x[i]));
        sum += p_ == 2 ? v * v : p_ == 1 ? v : std::pow(v, p);
        watch.did(p_ == 2 || p_ == 1 ? 1 : 30);
      }
      return static_cast<T>(p_ == 2 ? std::sqrt(sum) : p_ == 1 ? sum : std::pow(sum, 1 / p));
    } else if constexpr (std::is_same_v<T, float>) {
      const auto reduce = table_.row[static_cast<std::size_t>(K == Kind::Max ? ReduceOp::kMax : ReduceOp::kSum)];
      constexpr std::size_t kMost = std::size_t{1} << 22;  // elements between two looks
      float v = reduce(x, std::min(n, kMost));
      for (std::size_t i = kMost; i < n; i += kMost) {
        watch.did(kernel::kLookEveryNs);
        const float part[] = {v, reduce(x + i, std::min(n - i, kMost))};
        v = reduce(part, 2);
      }
      return K == Kind::Max ? v : v / static_cast<float>(n);
    } else {
      T v = K == Kind::Max ? -std::numeric_limits<T>::infinity() : 0;
      each_in_pieces(watch, n, 1.0, [&](std::size_t i) { v = K != Kind::Max ? v + x[i] : !(x[i] <= v) ? x[i] : v; });
      return K == Kind::Max ? v : v / static_cast<T>(n);
    }
  }

  const microkernels::KernelSet& kernels_;
  const microkernels::ReduceTable& table_;
  float p_;
};

void infer_global_pool(kernel::InferContext& ctx) {
  const graph::SymShape* x = ctx.input_shape(0);
  if (x == nullptr) return;
  graph::SymShape out = *x;
  for (std::size_t i = 2; i < out.size(); ++i) out[i] = 1;
  ctx.set_output_shape(0, std::move(out));
}

}  // namespace

void register_global_pool(kernel::OpRegistrar& r) {
  r.op("GlobalMaxPool")
      .version(1, "X:T -> Y:T; T = floats")
      .version(22, "X:T -> Y:T; T = floats_bf16")
      .infer(infer_global_pool)
      .kernel<GlobalPool<Kind::Max>>()
      .axes(kernel::Axes::BatchAndChannels);
  r.op("GlobalAveragePool")
      .version(1, "X:T -> Y:T; T = floats")
      .version(22, "X:T -> Y:T; T = floats_bf16")
      .infer(infer_global_pool)
      .kernel<GlobalPool<Kind::Average>>()
      .axes(kernel::Axes::BatchAndChannels)
      .on_codes("QLinearGlobalAveragePool");
  r.op("GlobalLpPool")
      .version(1, "X:T -> Y:T; T = floats")
      .version(2, "X:T -> Y:T; T = floats")
      .version(22, "X:T -> Y:T; T = floats_bf16")
      .infer(infer_global_pool)
      .kernel<GlobalPool<Kind::Lp>>();
}

}  // namespace infernode::ops
