#include "kernel/op_registrar.h"
#include "microkernels/rnn/rnn.h"
#include "ops/matmul/product.h"
#include "ops/recurrent/recurrent.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Tensor;

constexpr std::size_t kGates = 3;  // update z, reset r, hidden h

/// z = f(X Wz + H Rz), r = f(X Wr + H Rr); h = g(X Wh + (r . H) Rh), or g(X Wh + r . (H Rh + Rbh)) where
/// linear_before_reset; H = (1 - z) . h + z . H.
class Gru final : public kernel::Kernel {
 public:
  explicit Gru(KernelInfo& info)
      : kernels_(info.kernels()),
        gemm_(recurrent_table(info)),
        cells_(kernels_.rnn),
        attributes_(info.attributes(), kGates, {CellFunction::Kind::Sigmoid, CellFunction::Kind::Tanh}),
        linear_(info.attributes().get_int("linear_before_reset", 0) != 0),
        w_(info, 1, 0, kGates, kGates),
        r_gates_(info, 2, 0, 2, kGates),
        r_hidden_(info, 2, 2, kGates, kGates) {
    if (w_.packed()) info.release_constant(1);
    if (r_gates_.packed()) info.release_constant(2);
  }

  void run(KernelContext& ctx) const override {
    const RecurrentSizes sizes = recurrent_sizes(ctx, attributes_, w_.shape(ctx), r_gates_.shape(ctx), 1);
    dispatch_reals(ctx.input(0).dtype(), "GRU", [&]<class T>(tensor::TypeTag<T>) { compute<T>(ctx, sizes); });
  }

 private:
  template <class T>
  void compute(KernelContext& ctx, const RecurrentSizes& s) const {
    const std::size_t n = s.hidden, width = kGates * n, rows = s.steps * s.batch;
    const RealInput<T> x(ctx, kernels_, ctx.input(0)), bias(ctx, kernels_, ctx.optional_input(3));
    const Tensor y_tensor = recurrent_output(ctx, s);
    const RealOutput<T> y(ctx, kernels_, y_tensor);
    const RecurrentState<T> h(ctx, kernels_, s, 5);
    const Scratch<T> gates(ctx, checked_mul(checked_mul(rows, width), s.directions));
    // Of each row of the batch: what Rh is multiplied with, and the product.
    const Scratch<T> factors(ctx, s.directions * s.batch * n), products(ctx, s.directions * s.batch * n);
    std::vector<RecurrentWeight::Matrix<T>> r_gates, r_hidden;
    std::vector<T> sum(width);
    for (std::size_t d = 0; d < s.directions; ++d) {
      for (std::size_t i = 0; i < width; ++i) {
        const bool apart = linear_ && i >= 2 * n;
        sum[i] = bias ? bias[d * 2 * width + i] + (apart ? T{0} : bias[(d * 2 + 1) * width + i]) : T{0};
      }
      project_rows(ctx, gemm_, rows, x.data(), w_.template matrix<T>(ctx, d), sum.data(), gates + d * rows * width);
      r_gates.push_back(r_gates_.template matrix<T>(ctx, d));
      r_hidden.push_back(r_hidden_.template matrix<T>(ctx, d));
    }
    walk_steps(ctx, gemm_, attributes_, s,
               [&](std::size_t d, std::size_t step, std::size_t first, std::size_t last, const StepHands& hands) {
                 T* base = gates + (d * rows + s.row(step, 0)) * width;
                 const std::size_t stride = (s.row(step, 1) - s.row(step, 0)) * width;
                 const CellFunction* f = attributes_.functions_of(d);
                 const T* states = h.row(d, 0);
                 T* factor = factors + d * s.batch * n;
                 T* product = products + d * s.batch * n;
                 multiply_rows(ctx, gemm_, s.batch, states, r_gates[d], base, stride, true, first, last, hands);
                 for (std::size_t b = first; b < last; ++b) {
                   T* gate = base + b * stride;
                   open_gates(gate, n, f[0]);
                   for (std::size_t i = 0; i < n && !linear_; ++i) factor[b * n + i] = gate[n + i] * states[b * n + i];
                 }
                 multiply_rows(ctx, gemm_, s.batch, linear_ ? states : static_cast<const T*>(factor), r_hidden[d],
                               product, n, false, first, last, hands);
                 const T* apart = linear_ && bias ? bias + (d * 2 + 1) * width + 2 * n : nullptr;
                 for (std::size_t b = first; b < last; ++b) {
                   const T* gate = base + b * stride;
                   T* to = y ? y + s.y_row(step, d, b) : nullptr;
                   if (step >= s.lengths[b]) {
                     if (to != nullptr) std::fill_n(to, n, T{0});
                     continue;
                   }
                   T* candidate = product + b * n;
                   for (std::size_t i = 0; i < n; ++i) {
                     if (linear_) candidate[i] = gate[n + i] * (candidate[i] + (apart == nullptr ? 0 : apart[i]));
                     candidate[i] += gate[2 * n + i];
                   }
                   blend(gate, candidate, h.row(d, b), n, f[1]);
                   if (to != nullptr) std::copy_n(h.row(d, b), n, to);
                 }
               });
    y.store();
    h.store(ctx, kernels_, 1);
  }

  template <class T>
  void open_gates(T* gates, std::size_t n, const CellFunction& f) const {
    if constexpr (std::is_same_v<T, float>) {
      if (attributes_.standard) return cells_.gru_gates(gates, n, attributes_.clip);
    }
    for (std::size_t i = 0; i < 2 * n; ++i) gates[i] = f(attributes_.clipped(gates[i]));
  }

  template <class T>
  void blend(const T* update, const T* candidate, T* h, std::size_t n, const CellFunction& f) const {
    if constexpr (std::is_same_v<T, float>) {
      if (attributes_.standard) return cells_.gru_output(update, candidate, h, h, n, attributes_.clip);
    }
    for (std::size_t i = 0; i < n; ++i)
      h[i] = (1 - update[i]) * f(attributes_.clipped(candidate[i])) + update[i] * h[i];
  }

  const microkernels::KernelSet& kernels_;
  const microkernels::GemmTable& gemm_;
  const microkernels::RnnTable& cells_;
  RecurrentAttributes attributes_;
  bool linear_;
  RecurrentWeight w_, r_gates_, r_hidden_;
};

}  // namespace

void register_gru(kernel::OpRegistrar& r) {
  r.op("GRU")
      .version(1, "X:T, W:T, R:T, B:T?, sequence_lens:T1?, initial_h:T? -> Y:T?, Y_h:T; T = floats, T1 = int32")
      .version(3, "X:T, W:T, R:T, B:T?, sequence_lens:T1?, initial_h:T? -> Y:T?, Y_h:T?; T = floats, T1 = int32")
      .version(7, "X:T, W:T, R:T, B:T?, sequence_lens:T1?, initial_h:T? -> Y:T?, Y_h:T?; T = floats, T1 = int32")
      .version(14, "X:T, W:T, R:T, B:T?, sequence_lens:T1?, initial_h:T? -> Y:T?, Y_h:T?; T = floats, T1 = int32")
      .version(22, "X:T, W:T, R:T, B:T?, sequence_lens:T1?, initial_h:T? -> Y:T?, Y_h:T?; T = floats_bf16, T1 = int32")
      .infer(infer_recurrent)
      .kernel<Gru>();
}

}  // namespace infernode::ops
