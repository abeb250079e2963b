// onnxruntime's Attention and QAttention (com.microsoft).

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/op_registrar.h"
#include "ops/attention/masked_attention.h"
#include "ops/common/reals.h"
#include "ops/matmul/integer_gemm.h"
#include "ops/matmul/product.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// Inputs beside the operands of the projection; kNone where the operator has no such input.
struct Inputs {
  static constexpr std::size_t kNone = SIZE_MAX;
  std::size_t mask, past, added, length;
};

/// Attention whose projections to query, key and value are part of the operator: outputs `output` and `present`.
class ProjectedAttention : public MaskedAttention {
 protected:
  ProjectedAttention(KernelInfo& info, Inputs inputs)
      : MaskedAttention(info),
        in_(inputs),
        sizes_(info.attributes().get_ints("qkv_hidden_sizes")),
        shared_(info.attributes().get_int("past_present_share_buffer", 0) != 0),
        rotary_(info.attributes().get_int("do_rotary", 0) != 0),
        rotated_(info.attributes().get_int("rotary_embedding_dim", 0)) {
    const std::string& op = info.node().op_type;
    if (rotated_ < 0 || rotated_ % 2 != 0) fail(ErrorCode::InvalidModel, cat("rotary_embedding_dim is ", rotated_));
    if (shared_ && (in_.length == Inputs::kNone || !info.has_input(in_.length) || !info.has_input(in_.past)))
      fail(ErrorCode::UnsupportedOperator, cat(op, " with a shared cache, but without it or past_sequence_length"));
    if (!sizes_.empty() && sizes_.size() != 3)
      fail(ErrorCode::InvalidModel, cat("qkv_hidden_sizes has ", sizes_.size(), " elements, expected 3"));
  }

  /// Shape of the weights [input width, widths of query, key and value together].
  virtual const Shape& weight_shape(const KernelContext& ctx) const = 0;
  /// out[rows, width] = x * weights + bias.
  virtual void project(KernelContext& ctx, const Tensor& x, std::size_t rows, std::size_t width, float* out) const = 0;

 public:
  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Shape& w = weight_shape(ctx);
    if (x.rank() != 3 || w.rank() != 2 || w[0] != x.dim(2))
      fail(ErrorCode::ShapeMismatch,
           cat("Attention: input ", x.to_string(), " and weights ", w.to_string(), " do not fit"));
    const std::int64_t third = w[1] / 3;
    const std::vector<std::int64_t> widths = sizes_.empty() ? std::vector<std::int64_t>{third, third, third} : sizes_;
    if (widths[0] < 1 || widths[2] < 1 || widths[0] != widths[1] || widths[0] + widths[1] + widths[2] != w[1] ||
        widths[0] % heads_ != 0 || widths[2] % heads_ != 0) {
      fail(ErrorCode::ShapeMismatch,
           cat("Attention: weights ", w.to_string(), " do not divide into query, key and value of ", heads_, " heads"));
    }
    const auto heads = size(heads_), width = size(w[1]), rows = size(x.dim(0) * x.dim(1));
    AttentionCall<float> call;
    call.batch = size(x.dim(0));
    call.q_heads = call.kv_heads = heads;
    call.q_len = size(x.dim(1));
    call.head = size(widths[0]) / heads;
    call.v_head = size(widths[2]) / heads;
    const Tensor y = ctx.output(0, Shape{x.dim(0), x.dim(1), widths[2]});

    const tensor::Buffer memory = ctx.scratch(checked_mul(checked_mul(rows, width), sizeof(float)));
    auto* projected = reinterpret_cast<float*>(memory.data());
    project(ctx, x, rows, width, projected);
    const std::size_t before = past_rows(ctx, call);
    if (rotary_) turn(ctx, call, before, projected, width);
    const auto part = [&](std::size_t offset, std::size_t head) {
      return Heads<const float>{projected + offset, call.q_len * width, head, width};
    };
    call.q = part(0, call.head);
    call.k = part(size(widths[0]), call.head);
    call.v = part(size(2 * widths[0]), call.v_head);
    call.kv_len = call.q_len;
    const Tensor joined = with_past(ctx, call, before);
    call.scale = scale(call.head);
    call.causal = causal_;
    call.offsets.assign(call.batch, static_cast<std::int64_t>(call.kv_len - call.q_len));
    const kernel::CountedVector<float> added =
        bias(ctx, ctx.optional_input(in_.mask), ctx.optional_input(in_.added), call);
    const RealOutput<float> out(ctx, kernels_, y);
    call.y = Heads<float>::bsnh(out.data(), heads, call.q_len, call.v_head);
    run_attention(ctx, kernels_, call);
    out.store();
  }

 private:
  /// Rows of the past that count.
  std::size_t past_rows(const KernelContext& ctx, const AttentionCall<float>& call) const {
    const Tensor* past = ctx.optional_input(in_.past);
    const std::int64_t held = past != nullptr && past->rank() == 5 ? past->dim(3) : 0;
    const std::int64_t length = shared_ ? tensor::to_int64_scalar(ctx.input(in_.length)) : held;
    if (length < 0 || (shared_ && length > held - static_cast<std::int64_t>(call.q_len))) {
      fail(ErrorCode::InvalidArgument, cat("Attention: past_sequence_length ", length, " and ", call.q_len,
                                           " tokens in a cache of ", held, " rows"));
    }
    return size(length);
  }

  /// Turns the first `rotated_` elements of each head of queries and keys, which begin the rows of `projected`:
  /// elements i and i + half of them by the angle position / 10000^(i / half), as rotary embeddings do without caches.
  void turn(KernelContext& ctx, const AttentionCall<float>& call, std::size_t before, float* projected,
            std::size_t width) const {
    const std::size_t rotated = rotated_ == 0 ? call.head : size(rotated_), half = rotated / 2;
    if (rotated % 2 != 0 || rotated > call.head)
      fail(ErrorCode::ShapeMismatch, cat("Attention: ", rotated, " elements of heads of ", call.head, " to turn"));
    std::vector<float> cos(checked_mul(call.q_len, half)), sin(cos.size());
    for (std::size_t i = 0; i < cos.size(); ++i) {
      const double angle = static_cast<double>(before + i / half) /
                           std::pow(10000.0, static_cast<double>(i % half) / static_cast<double>(half));
      cos[i] = static_cast<float>(std::cos(angle));
      sin[i] = static_cast<float>(std::sin(angle));
    }
    ctx.parallel_for(call.batch * call.q_len, static_cast<double>(2 * call.q_heads * call.head),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       for (std::size_t r = begin; r < end; ++r) {
                         const float *c = cos.data() + r % call.q_len * half, *s = sin.data() + r % call.q_len * half;
                         for (std::size_t k = 0; k < 2 * call.q_heads; ++k) {
                           float* x = projected + r * width + k * call.head;
                           for (std::size_t i = 0; i < half; ++i) {
                             const float a = x[i], b = x[i + half];
                             x[i] = c[i] * a - s[i] * b;
                             x[i + half] = s[i] * a + c[i] * b;
                           }
                         }
                       }
                     });
  }

  /// Puts the past before keys and values: both are [2, batch, heads, rows, head], the present with the past's rows
  /// where they share a buffer.
  Tensor with_past(KernelContext& ctx, AttentionCall<float>& call, std::size_t before) const {
    const Tensor* past = ctx.optional_input(in_.past);
    const bool wanted = ctx.wants_output(1);
    if (past == nullptr && !wanted) return {};
    const auto dim = [](std::size_t v) { return static_cast<std::int64_t>(v); };
    std::size_t held = 0;
    if (past != nullptr) {
      if (past->rank() == 5) held = size(past->dim(3));
      if (past->shape() != Shape{2, dim(call.batch), heads_, dim(held), dim(call.head)} || call.head != call.v_head)
        fail(ErrorCode::ShapeMismatch, cat("Attention: the past is ", past->to_string()));
    }
    if (call.head != call.v_head)
      fail(ErrorCode::UnsupportedOperator, "Attention that keeps keys and values of unlike sizes");
    const std::size_t fresh = call.q_len, heads = call.q_heads, capacity = shared_ ? held : before + fresh;
    const Shape shape{2, dim(call.batch), heads_, dim(capacity), dim(call.head)};
    const Tensor out = wanted ? ctx.output(1, shape) : Tensor();
    const Tensor joined =
        wanted && out.dtype() == DType::Float32 ? out : Tensor::make(DType::Float32, shape, *ctx.run().allocator);
    const RealInput<float> old(ctx, kernels_, past);
    const std::vector<std::size_t> lengths(call.batch, before);
    if (shared_ && joined.mutable_data<float>() != old.data())
      convert_reals(ctx.run(), kernels_, DType::Float32, old.data(), DType::Float32, joined.mutable_raw(),
                    size(joined.numel()));
    for (std::size_t i = 0; i < 2; ++i) {
      Heads<const float>& rows = i == 0 ? call.k : call.v;
      float* to = joined.mutable_data<float>() + i * call.batch * heads * capacity * call.head;
      const float* from = past == nullptr ? nullptr : old + i * call.batch * heads * held * call.head;
      join_rows(ctx, call.batch, heads, call.head, Heads<const float>::bnsh(from, heads, held, call.head), lengths,
                rows, fresh, to, capacity);
      rows = Heads<const float>::bnsh(to, heads, capacity, call.head);
    }
    if (wanted && out.dtype() != DType::Float32)
      convert_reals(ctx.run(), kernels_, DType::Float32, joined.raw(), out.dtype(), out.mutable_raw(),
                    size(out.numel()));
    call.kv_len = before + fresh;
    return joined;
  }

  Inputs in_;
  std::vector<std::int64_t> sizes_;
  bool shared_, rotary_;
  std::int64_t rotated_;  ///< elements of a head that turn; 0: all
};

/// input, weights, bias, mask_index, past, attention_bias, past_sequence_length.
class Attention final : public ProjectedAttention {
 public:
  explicit Attention(KernelInfo& info)
      : ProjectedAttention(info, {.mask = 3, .past = 4, .added = 5, .length = 6}), loops_(info) {
    const Tensor* w = info.constant(1);
    if (w == nullptr || w->rank() != 2 || w->numel() == 0 || !gemm_type(w->dtype())) return;
    w_shape_ = w->shape();
    packed_ = PackedMatrix(info, loops_.packing(), 1, false);
  }

 private:
  const Shape& weight_shape(const KernelContext& ctx) const override {
    return packed_ ? w_shape_ : ctx.input(1).shape();
  }
  void project(KernelContext& ctx, const Tensor& x, std::size_t rows, std::size_t width, float* out) const override {
    const RealInput<float> bias(ctx, kernels_, ctx.optional_input(2));
    if (const Tensor* b = ctx.optional_input(2); b != nullptr && size(b->numel()) != width)
      fail(ErrorCode::ShapeMismatch, cat("Attention: the bias is ", b->to_string(), " for ", width, " columns"));
    const auto k = size(x.dim(2));
    microkernels::GemmArgs args{.m = rows, .n = width, .k = k, .a = x.raw(), .lda = k, .epilogue = {}};
    args.a_type = *gemm_type(x.dtype());
    if (packed_) {
      args.packed_b = packed_.b();
    } else {
      args.b = ctx.input(1).raw();
      args.ldb = width;
      args.b_type = args.a_type;
    }
    args.c = out;
    args.ldc = width;
    args.epilogue.bias_n = bias.data();
    run_gemm(ctx, loops_, args);
  }

  ProductLoops loops_;
  Shape w_shape_;
  PackedMatrix packed_;
};

/// 8-bit input and weight: input, weight, bias, input_scale, weight_scale, mask_index, input_zero_point,
/// weight_zero_point, past.
class QAttention final : public ProjectedAttention {
 public:
  explicit QAttention(KernelInfo& info)
      : ProjectedAttention(info, {.mask = 5, .past = 8, .added = Inputs::kNone, .length = Inputs::kNone}),
        product_(info, 1) {}

 private:
  const Shape& weight_shape(const KernelContext& ctx) const override { return product_.b_shape(ctx); }

  void project(KernelContext& ctx, const Tensor& x, std::size_t, std::size_t width, float* out) const override {
    const Tensor& bias = ctx.input(2);
    const Tensor* zero = ctx.optional_input(6);
    if (size(bias.numel()) != width || ctx.input(3).numel() != 1 || (zero != nullptr && zero->numel() != 1)) {
      fail(ErrorCode::ShapeMismatch, cat("QAttention: the bias is ", bias.to_string(), ", input_scale ",
                                         ctx.input(3).to_string(), " for ", width, " columns"));
    }
    const MatMulGeometry g = product_.plan(ctx, x.shape());
    const RealInput<float> added(ctx, kernels_, bias);
    IntegerProduct p(ctx.run());
    p.output = microkernels::QgemmOutput::kF32;
    p.scales = column_scales(ctx.run(), ctx.input(4), product_.b_shape(ctx));
    for (float& s : p.scales) s *= tensor::to_float_scalar(ctx.input(3));
    p.a_zeros = row_zeros(ctx.run(), zero, x.shape());
    p.b_zeros = column_zeros(ctx.run(), ctx.optional_input(7), product_.b_shape(ctx));
    p.bias = added.data();
    product_.run(ctx, g, x, p, out);
  }

  IntegerMatMul product_;
};

void infer_projected_attention(InferContext& ctx) {
  const bool quantized = ctx.node().op_type == "QAttention";
  for (std::size_t o = 0; o < ctx.output_count(); ++o) {
    if (ctx.has_output(o)) ctx.set_output_dtype(o, ctx.input_dtype(quantized ? 2 : 0));
  }
  const graph::SymShape *x = ctx.input_shape(0), *w = ctx.input_shape(1);
  if (x == nullptr || w == nullptr || x->size() != 3 || w->size() != 2) return;
  const std::vector<std::int64_t> sizes = ctx.attributes().get_ints("qkv_hidden_sizes");
  const Dim width = sizes.size() == 3 ? Dim(sizes[2]) : floor_div((*w)[1], Dim(3));
  ctx.set_output_shape(0, graph::SymShape{(*x)[0], (*x)[1], width});
  if (!ctx.has_output(1)) return;
  const std::size_t past_input = quantized ? 8 : 4;
  const bool shared = ctx.attributes().get_int("past_present_share_buffer", 0) != 0;
  const Dim heads = ctx.attributes().get_int("num_heads");
  const graph::SymShape* past = ctx.input_shape(past_input);
  const Dim total = !ctx.has_input(past_input)             ? (*x)[1]
                    : past != nullptr && past->size() == 5 ? (*past)[3] + (shared ? Dim(0) : (*x)[1])
                                                           : Dim::unknown();
  ctx.set_output_shape(1, graph::SymShape{2, (*x)[0], heads, total, floor_div(width, heads)});
}

}  // namespace

void register_projected_attention(kernel::OpRegistrar& r) {
  r.op("Attention", "com.microsoft")
      .version(1,
               "input:T, weights:T, bias:T?, mask_index:M?, past:T?, attention_bias:T?, past_sequence_length:M? -> "
               "output:T, present:T?; T = float|float16|bfloat16, M = int32")
      .infer(infer_projected_attention)
      .kernel<Attention>();
  r.op("QAttention", "com.microsoft")
      .version(1,
               "input:T1, weight:T2, bias:T3, input_scale:T3, weight_scale:T3, mask_index:T4?, input_zero_point:T1?, "
               "weight_zero_point:T2?, past:T3? -> output:T3, present:T3?; T1 = int8|uint8, T2 = int8|uint8, "
               "T3 = float|float16, T4 = int32")
      .infer(infer_projected_attention)
      .kernel<QAttention>();
}

}  // namespace infernode::ops
