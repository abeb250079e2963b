#include "kernel/op_registrar.h"
#include "microkernels/elementwise/elementwise.h"
#include "ops/matmul/product.h"
#include "ops/recurrent/recurrent.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Tensor;

/// H = f(X W + H R + bias).
class Rnn final : public kernel::Kernel {
 public:
  explicit Rnn(KernelInfo& info)
      : kernels_(info.kernels()),
        gemm_(recurrent_table(info)),
        elementwise_(kernels_.elementwise),
        attributes_(info.attributes(), 1, {CellFunction::Kind::Tanh}),
        w_(info, 1, 0, 1, 1),
        r_(info, 2, 0, 1, 1) {
    if (w_.packed()) info.release_constant(1);
    if (r_.packed()) info.release_constant(2);
  }

  void run(KernelContext& ctx) const override {
    const RecurrentSizes sizes = recurrent_sizes(ctx, attributes_, w_.shape(ctx), r_.shape(ctx), 1);
    dispatch_reals(ctx.input(0).dtype(), "RNN", [&]<class T>(tensor::TypeTag<T>) { compute<T>(ctx, sizes); });
  }

 private:
  template <class T>
  void compute(KernelContext& ctx, const RecurrentSizes& s) const {
    const std::size_t n = s.hidden, rows = s.steps * s.batch;
    const RealInput<T> x(ctx, kernels_, ctx.input(0)), bias(ctx, kernels_, ctx.optional_input(3));
    const Tensor y_tensor = recurrent_output(ctx, s);
    const RealOutput<T> y(ctx, kernels_, y_tensor);
    const RecurrentState<T> h(ctx, kernels_, s, 5);
    const Scratch<T> sums(ctx, checked_mul(checked_mul(rows, n), s.directions));
    std::vector<RecurrentWeight::Matrix<T>> r;
    std::vector<T> sum(n);
    for (std::size_t d = 0; d < s.directions; ++d) {
      for (std::size_t i = 0; i < n; ++i) sum[i] = bias ? bias[d * 2 * n + i] + bias[(d * 2 + 1) * n + i] : T{0};
      project_rows(ctx, gemm_, rows, x.data(), w_.template matrix<T>(ctx, d), sum.data(), sums + d * rows * n);
      r.push_back(r_.template matrix<T>(ctx, d));
    }
    walk_steps(ctx, gemm_, attributes_, s,
               [&](std::size_t d, std::size_t step, std::size_t first, std::size_t last, const StepHands& hands) {
                 T* base = sums + d * rows * n;
                 multiply_rows(ctx, gemm_, s.batch, static_cast<const T*>(h.row(d, 0)), r[d], base + s.row(step, 0) * n,
                               (s.row(step, 1) - s.row(step, 0)) * n, true, first, last, hands);
                 for (std::size_t b = first; b < last; ++b) {
                   T* to = y ? y + s.y_row(step, d, b) : nullptr;
                   if (step < s.lengths[b]) {
                     activate(base + s.row(step, b) * n, h.row(d, b), n, attributes_.functions_of(d)[0]);
                     if (to != nullptr) std::copy_n(h.row(d, b), n, to);
                   } else if (to != nullptr) {
                     std::fill_n(to, n, T{0});
                   }
                 }
               });
    y.store();
    h.store(ctx, kernels_, 1);
  }

  template <class T>
  void activate(T* sums, T* h, std::size_t n, const CellFunction& f) const {
    for (std::size_t i = 0; i < n; ++i) sums[i] = attributes_.clipped(sums[i]);
    if constexpr (std::is_same_v<T, float>) {
      if (attributes_.standard) return elementwise_[microkernels::UnaryOp::kTanh](sums, h, n, 0, 0);
    }
    for (std::size_t i = 0; i < n; ++i) h[i] = f(sums[i]);
  }

  const microkernels::KernelSet& kernels_;
  const microkernels::GemmTable& gemm_;
  const microkernels::ElementwiseTable& elementwise_;
  RecurrentAttributes attributes_;
  RecurrentWeight w_, r_;
};

}  // namespace

void register_rnn(kernel::OpRegistrar& r) {
  constexpr const char* kSignature =
      "X:T, W:T, R:T, B:T?, sequence_lens:T1?, initial_h:T? -> Y:T?, Y_h:T?; T = floats, T1 = int32";
  r.op("RNN")
      .version(1, kSignature)
      .version(7, kSignature)
      .version(14, kSignature)
      .version(22, "X:T, W:T, R:T, B:T?, sequence_lens:T1?, initial_h:T? -> Y:T?, Y_h:T?; T = floats_bf16, T1 = int32")
      .infer(infer_recurrent)
      .kernel<Rnn>();
}

}  // namespace infernode::ops
