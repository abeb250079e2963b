#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/counted.h"
#include "kernel/op_registrar.h"
#include "microkernels/convert/convert.h"
#include "ops/common/packed_weight.h"
#include "ops/matmul/integer_gemm.h"
#include "ops/quant/dynamic_quantize.h"
#include "ops/recurrent/lstm_cell.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr std::size_t kGates = 4;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// An 8-bit weight [directions, k, 4 * hidden] with scales and zero points [directions] or [directions, 4 * hidden].
class ByteWeight {
 public:
  ByteWeight(KernelInfo& info, std::size_t input)
      : input_(input), scale_input_(input == 1 ? 8 : 10), table_(info.kernels().qgemm) {
    const Tensor* w = info.constant(input);
    if (w == nullptr || w->rank() != 3 || w->numel() == 0) return;
    shape_ = w->shape();
    packed_ = PackedWeight(
        info, input, "directions", operand(shape_), size(shape_[0]),
        [&](const Tensor& weight, std::size_t d, std::byte* to) { pack(weight, d, 0, size(shape_[2]), to); });
    info.release_constant(input);
  }

  const Shape& shape(const KernelContext& ctx) const { return packed_ ? shape_ : ctx.input(input_).shape(); }

  /// The weight of this run.
  struct Use {
    PackedWeight packed;
    std::size_t n, k;
    std::vector<float> scales;
    std::vector<std::int32_t> zeros;
  };
  Use use(const KernelContext& ctx) const {
    const Shape& s = shape(ctx);
    Use out;
    out.n = size(s[2]);
    out.k = size(s[1]);
    const auto fill = [&](std::size_t d, std::size_t begin, std::size_t end, std::byte* to) {
      pack(ctx.input(input_), d, begin, end, to);
    };
    out.packed = packed_ ? packed_ : PackedWeight(ctx.run(), operand(s), size(s[0]), table_.nr, fill);
    out.scales = tensor::to_float_vector(ctx.input(scale_input_));
    for (const std::int64_t z : tensor::to_int64_vector(ctx.input(scale_input_ + 1)))
      out.zeros.push_back(static_cast<std::int32_t>(z));
    const std::size_t directions = size(s[0]), columns = directions * out.n;
    const auto fits = [&](std::size_t count) { return count == directions || count == columns; };
    if (!fits(out.scales.size()) || !fits(out.zeros.size())) {
      fail(ErrorCode::ShapeMismatch,
           cat("DynamicQuantizeLSTM: a scale ", ctx.input(scale_input_).to_string(), " and zero point ",
               ctx.input(scale_input_ + 1).to_string(), " do not fit a weight ", s.to_string()));
    }
    return out;
  }

  /// out[rows, n] = x[rows, k] * weight of direction `d`, x quantized to bytes by its own range. `bytes` holds them.
  void multiply(KernelContext& ctx, const microkernels::ConvertTable& convert, const Use& w, std::size_t d,
                const float* x, std::size_t rows, kernel::CountedVector<std::uint8_t>& bytes, float* out) const {
    if (rows == 0 || w.n == 0) return;
    const DynamicScale range = dynamic_scale(ctx, convert, x, rows * w.k);
    kernel::Watch watch(ctx.run());
    bytes.reserve(rows * w.k);
    in_pieces(watch, rows * w.k, 0.5, [&](std::size_t, std::size_t end) { bytes.resize(std::max(bytes.size(), end)); });
    quantize_dynamically(ctx, convert, x, rows * w.k, range, bytes.data());
    microkernels::QgemmArgs args{.m = rows, .n = w.n, .k = w.k, .a = bytes.data(), .lda = w.k};
    args.a_zero = range.zero;
    args.packed_b = w.packed.read(table_.weights.name, d);
    const bool by_column = w.zeros.size() >= (d + 1) * w.n, scaled = w.scales.size() >= (d + 1) * w.n;
    args.b_zero = w.zeros[by_column ? d * w.n : d];
    if (by_column) args.b_zeros = w.zeros.data() + d * w.n;
    std::vector<float> scales(scaled ? w.n : 1);
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = range.scale * w.scales[scaled ? d * w.n + i : d];
    args.scale = scales[0];
    if (scaled) args.scales = scales.data();
    args.c = out;
    args.ldc = w.n;
    args.output = microkernels::QgemmOutput::kF32;
    run_qgemm(ctx, table_, args);
  }

 private:
  /// One direction's matrix.
  microkernels::PackedOperand operand(const Shape& shape) const {
    return table_.weights.packed(size(shape[2]), size(shape[1]), nullptr);
  }
  void pack(const Tensor& w, std::size_t direction, std::size_t begin, std::size_t end, std::byte* to) const {
    const std::size_t n = size(w.dim(2)), k = size(w.dim(1));
    table_.weights.pack(n, k, static_cast<const std::byte*>(w.raw()) + direction * n * k, w.dtype() == DType::Int8, n,
                        false, to, begin, end);
  }

  std::size_t input_, scale_input_;
  const microkernels::QgemmTable& table_;
  Shape shape_;
  PackedWeight packed_;
};

/// com.microsoft's DynamicQuantizeLSTM: an LSTM whose weights are 8-bit; X as a whole, and the state at each step, are
/// quantized by their own range.
class DynamicQuantizeLstm final : public kernel::Kernel {
 public:
  explicit DynamicQuantizeLstm(KernelInfo& info)
      : kernels_(info.kernels()),
        convert_(kernels_.convert),
        cells_(kernels_.rnn),
        attributes_(info.attributes(), kGates,
                    {CellFunction::Kind::Sigmoid, CellFunction::Kind::Tanh, CellFunction::Kind::Tanh}),
        input_forget_(info.attributes().get_int("input_forget", 0) != 0),
        w_(info, 1),
        r_(info, 2) {}

  void run(KernelContext& ctx) const override {
    const Shape &w_shape = w_.shape(ctx), &r_shape = r_.shape(ctx);
    if (w_shape.rank() != 3 || r_shape.rank() != 3)
      fail(ErrorCode::ShapeMismatch,
           cat("DynamicQuantizeLSTM: W is ", w_shape.to_string(), ", R ", r_shape.to_string()));
    const auto turned = [](const Shape& s) { return Shape{s[0], s[2], s[1]}; };
    const RecurrentSizes s = recurrent_sizes(ctx, attributes_, turned(w_shape), turned(r_shape), 2);
    const std::size_t width = kGates * s.hidden, rows = s.steps * s.batch;
    const Tensor* peephole = ctx.optional_input(7);
    if (peephole != nullptr && size(peephole->numel()) != s.directions * 3 * s.hidden)
      fail(ErrorCode::ShapeMismatch, cat("DynamicQuantizeLSTM: P is ", peephole->to_string()));
    const ByteWeight::Use w = w_.use(ctx), r = r_.use(ctx);
    const float* x = ctx.input(0).data<float>();
    const float* bias = ctx.has_input(3) ? ctx.input(3).data<float>() : nullptr;
    const float* peep = peephole == nullptr ? nullptr : peephole->data<float>();
    const Tensor y_tensor = recurrent_output(ctx, s);
    float* const y = y_tensor ? y_tensor.mutable_data<float>() : nullptr;
    const RecurrentState<float> h(ctx, kernels_, s, 5), c(ctx, kernels_, s, 6);
    const Scratch<float> gates(ctx, checked_mul(rows, width)), turn(ctx, checked_mul(s.batch, width));
    const LstmCell cell{cells_, attributes_, input_forget_};
    kernel::CountedVector<std::uint8_t> bytes(ctx.run());
    for (std::size_t d = 0; d < s.directions; ++d) {
      w_.multiply(ctx, convert_, w, d, x, rows, bytes, gates);
      ctx.parallel_for(bias == nullptr ? 0 : rows * width, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i)
          gates[i] += bias[d * 2 * width + i % width] + bias[(d * 2 + 1) * width + i % width];
      });
      for (std::size_t k = 0; k < s.steps; ++k) {
        ctx.run().check();
        const std::size_t step = attributes_.reverse(d) ? s.steps - 1 - k : k;
        r_.multiply(ctx, convert_, r, d, h.row(d, 0), s.batch, bytes, turn);
        kernel::Watch watch(ctx.run());
        for (std::size_t b = 0; b < s.batch; ++b) {
          watch.did(50 + static_cast<double>(width) * kNsPerGate);
          float* to = y == nullptr ? nullptr : y + s.y_row(step, d, b);
          if (step >= s.lengths[b]) {
            if (to != nullptr) std::fill_n(to, s.hidden, 0.0f);
            continue;
          }
          float* row = gates + s.row(step, b) * width;
          for (std::size_t i = 0; i < width; ++i) row[i] += turn[b * width + i];
          cell(static_cast<const float*>(row), peep == nullptr ? nullptr : peep + d * 3 * s.hidden, c.row(d, b),
               h.row(d, b), s.hidden, attributes_.functions_of(d));
          if (to != nullptr) std::copy_n(h.row(d, b), s.hidden, to);
        }
      }
    }
    h.store(ctx, kernels_, 1);
    c.store(ctx, kernels_, 2);
  }

 private:
  const microkernels::KernelSet& kernels_;
  const microkernels::ConvertTable& convert_;
  const microkernels::RnnTable& cells_;
  RecurrentAttributes attributes_;
  bool input_forget_;
  ByteWeight w_, r_;
};

void infer_quantized_lstm(kernel::InferContext& ctx) {
  for (std::size_t o = 0; o < ctx.output_count(); ++o) {
    if (ctx.has_output(o)) ctx.set_output_dtype(o, DType::Float32);
  }
  const graph::SymShape *x = ctx.input_shape(0), *r = ctx.input_shape(2);
  if (x == nullptr || r == nullptr || x->size() != 3 || r->size() != 3) return;
  if (ctx.has_output(0)) ctx.set_output_shape(0, graph::SymShape{(*x)[0], (*r)[0], (*x)[1], (*r)[1]});
  for (const std::size_t o : {1, 2}) {
    if (ctx.has_output(o)) ctx.set_output_shape(o, graph::SymShape{(*r)[0], (*x)[1], (*r)[1]});
  }
}

}  // namespace

void register_dynamic_quantize_lstm(kernel::OpRegistrar& r) {
  r.op("DynamicQuantizeLSTM", "com.microsoft")
      .version(1,
               "X:T, W:T2, R:T2, B:T?, sequence_lens:T1?, initial_h:T?, initial_c:T?, P:T?, W_scale:T, "
               "W_zero_point:T2, R_scale:T, R_zero_point:T2 -> Y:T?, Y_h:T?, Y_c:T?; T = float, T1 = int32, "
               "T2 = int8|uint8")
      .infer(infer_quantized_lstm)
      .kernel<DynamicQuantizeLstm>();
}

}  // namespace infernode::ops
