#include "kernel/op_registrar.h"
#include "ops/matmul/product.h"
#include "ops/recurrent/lstm_cell.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Tensor;

constexpr std::size_t kGates = 4;  // input, output, forget, cell

/// i = f(X Wi + H Ri + Pi . C), likewise o (with the new C) and f; c = g(X Wc + H Rc); C = f . C + i . c; H = o . h(C).
class Lstm final : public kernel::Kernel {
 public:
  explicit Lstm(KernelInfo& info)
      : kernels_(info.kernels()),
        gemm_(recurrent_table(info)),
        cells_(kernels_.rnn),
        attributes_(info.attributes(), kGates,
                    {CellFunction::Kind::Sigmoid, CellFunction::Kind::Tanh, CellFunction::Kind::Tanh}),
        input_forget_(info.attributes().get_int("input_forget", 0) != 0),
        w_(info, 1, 0, kGates, kGates),
        r_(info, 2, 0, kGates, kGates) {
    if (w_.packed()) info.release_constant(1);
    if (r_.packed()) info.release_constant(2);
  }

  void run(KernelContext& ctx) const override {
    const RecurrentSizes sizes = recurrent_sizes(ctx, attributes_, w_.shape(ctx), r_.shape(ctx), 2);
    const Tensor* peephole = ctx.optional_input(7);
    if (peephole != nullptr && peephole->numel() != static_cast<std::int64_t>(sizes.directions * 3 * sizes.hidden)) {
      fail(ErrorCode::ShapeMismatch,
           cat("P is ", peephole->to_string(), ", expected ", sizes.directions, " x ", 3 * sizes.hidden));
    }
    dispatch_reals(ctx.input(0).dtype(), "LSTM",
                   [&]<class T>(tensor::TypeTag<T>) { compute<T>(ctx, sizes, peephole); });
  }

 private:
  template <class T>
  void compute(KernelContext& ctx, const RecurrentSizes& s, const Tensor* peephole) const {
    const std::size_t width = kGates * s.hidden, rows = s.steps * s.batch;
    const RealInput<T> x(ctx, kernels_, ctx.input(0)), bias(ctx, kernels_, ctx.optional_input(3)),
        peep(ctx, kernels_, peephole);
    const Tensor y_tensor = recurrent_output(ctx, s);
    const RealOutput<T> y(ctx, kernels_, y_tensor);
    const RecurrentState<T> h(ctx, kernels_, s, 5), c(ctx, kernels_, s, 6);
    const Scratch<T> gates(ctx, checked_mul(checked_mul(rows, width), s.directions));
    std::vector<RecurrentWeight::Matrix<T>> r;
    std::vector<T> sum(width);
    const LstmCell cell{cells_, attributes_, input_forget_};
    for (std::size_t d = 0; d < s.directions; ++d) {
      for (std::size_t i = 0; i < width; ++i)
        sum[i] = bias ? bias[d * 2 * width + i] + bias[(d * 2 + 1) * width + i] : T{0};
      project_rows(ctx, gemm_, rows, x.data(), w_.template matrix<T>(ctx, d), sum.data(), gates + d * rows * width);
      r.push_back(r_.template matrix<T>(ctx, d));
    }
    walk_steps(ctx, gemm_, attributes_, s,
               [&](std::size_t d, std::size_t step, std::size_t first, std::size_t last, const StepHands& hands) {
                 T* base = gates + d * rows * width;
                 multiply_rows(ctx, gemm_, s.batch, static_cast<const T*>(h.row(d, 0)), r[d],
                               base + s.row(step, 0) * width, (s.row(step, 1) - s.row(step, 0)) * width, true, first,
                               last, hands);
                 for (std::size_t b = first; b < last; ++b) {
                   T* to = y ? y + s.y_row(step, d, b) : nullptr;
                   if (step < s.lengths[b]) {
                     cell(base + s.row(step, b) * width, peep ? peep + d * 3 * s.hidden : nullptr, c.row(d, b),
                          h.row(d, b), s.hidden, attributes_.functions_of(d));
                     if (to != nullptr) std::copy_n(h.row(d, b), s.hidden, to);
                   } else if (to != nullptr) {
                     std::fill_n(to, s.hidden, T{0});
                   }
                 }
               });
    y.store();
    h.store(ctx, kernels_, 1);
    c.store(ctx, kernels_, 2);
  }

  const microkernels::KernelSet& kernels_;
  const microkernels::GemmTable& gemm_;
  const microkernels::RnnTable& cells_;
  RecurrentAttributes attributes_;
  bool input_forget_;
  RecurrentWeight w_, r_;
};

}  // namespace

void register_lstm(kernel::OpRegistrar& r) {
  constexpr const char* kSignature =
      "X:T, W:T, R:T, B:T?, sequence_lens:T1?, initial_h:T?, initial_c:T?, P:T? -> Y:T?, Y_h:T?, Y_c:T?; "
      "T = floats, T1 = int32";
  r.op("LSTM")
      .version(1, kSignature)
      .version(7, kSignature)
      .version(14, kSignature)
      .version(22,
               "X:T, W:T, R:T, B:T?, sequence_lens:T1?, initial_h:T?, initial_c:T?, P:T? -> Y:T?, Y_h:T?, Y_c:T?; "
               "T = floats_bf16, T1 = int32")
      .infer(infer_recurrent)
      .kernel<Lstm>();
}

}  // namespace infernode::ops
