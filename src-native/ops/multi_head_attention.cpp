// onnxruntime's MultiHeadAttention and Attention (com.microsoft).

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/op_registrar.h"
#include "ops/attention_core.h"
#include "ops/gemm.h"
#include "ops/reals.h"

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

/// What both operators compute once queries, keys and values are at hand.
class FusedAttention : public kernel::Kernel {
 protected:
  explicit FusedAttention(KernelInfo& info)
      : rung_(info.cpu_rung()),
        heads_(info.attributes().get_int("num_heads")),
        causal_(info.attributes().get_int("unidirectional", 0) != 0),
        filter_(info.attributes().get_float("mask_filter_value", -10000)) {
    const float scale = info.attributes().get_float("scale", 0);
    if (scale != 0) scale_ = scale;
    if (heads_ < 1) fail(ErrorCode::InvalidModel, cat("num_heads is ", heads_));
  }

  double scale(std::size_t head) const {
    return scale_ ? static_cast<double>(*scale_) : 1 / std::sqrt(static_cast<double>(head));
  }

  /// The bias on the scores that a mask of integers and an attention bias make together: [batch, heads or 1, q_len or
  /// 1, kv_len]. Masks: [batch] lengths, [2 * batch] ends and starts, [batch, kv_len] or [batch, q_len, kv_len] zeros
  /// and ones.
  std::vector<float> bias(KernelContext& ctx, const Tensor* mask, const Tensor* added,
                          AttentionCall<float>& call) const {
    if (mask == nullptr && added == nullptr) return {};
    const std::size_t b = call.batch, t = call.kv_len;
    const bool by_head = added != nullptr && added->rank() == 4 && added->dim(1) != 1;
    const bool by_row = added != nullptr || (mask != nullptr && mask->rank() == 3);
    const std::size_t heads = by_head ? call.q_heads : 1, rows = by_row ? call.q_len : 1;
    std::vector<float> out(checked_mul(checked_mul(b * heads, rows), t), 0.0f);
    call.mask = {out.data(), heads * rows * t, by_head ? rows * t : 0, by_row ? t : 0};
    call.mask_columns = t;
    if (mask != nullptr) add_mask(*mask, call, heads, rows, out.data());
    if (added == nullptr) return out;
    const Shape target{static_cast<std::int64_t>(b), static_cast<std::int64_t>(heads), static_cast<std::int64_t>(rows),
                       static_cast<std::int64_t>(t)};
    const Shape strides = tensor::broadcast_strides(added->shape(), target);
    const RealInput<float> values(ctx, rung_, *added);
    for (std::size_t i = 0; i < b * heads * rows; ++i) {
      const auto at = static_cast<std::int64_t>(i / rows / heads) * strides[0] +
                      static_cast<std::int64_t>(i / rows % heads) * strides[1] +
                      static_cast<std::int64_t>(i % rows) * strides[2];
      for (std::size_t k = 0; k < t; ++k)
        out[i * t + k] += values[size(at + static_cast<std::int64_t>(k) * strides[3])];
    }
    return out;
  }

  CpuRung rung_;
  std::int64_t heads_;
  bool causal_;

 private:
  void add_mask(const Tensor& mask, const AttentionCall<float>& call, std::size_t heads, std::size_t rows,
                float* out) const {
    const std::size_t b = call.batch, t = call.kv_len, q = call.q_len;
    const std::vector<std::int64_t> values = tensor::to_int64_vector(mask);
    const auto shut = [&](auto closed) {
      for (std::size_t i = 0; i < b * heads * rows; ++i) {
        for (std::size_t k = 0; k < t; ++k) {
          if (closed(i / rows / heads, i % rows, k)) out[i * t + k] += filter_;
        }
      }
    };
    const auto at = [&](std::size_t i) { return values[i]; };
    if (mask.rank() == 1 && values.size() == b) {
      shut([&](std::size_t n, std::size_t, std::size_t k) { return static_cast<std::int64_t>(k) >= at(n); });
    } else if (mask.rank() == 1 && values.size() == 2 * b) {
      shut([&](std::size_t n, std::size_t, std::size_t k) {
        return static_cast<std::int64_t>(k) >= at(n) || static_cast<std::int64_t>(k) < at(b + n);
      });
    } else if (mask.rank() == 1 && values.size() == 3 * b + 2) {  // lengths, then where sequences start
      shut([&](std::size_t n, std::size_t, std::size_t k) { return static_cast<std::int64_t>(k) >= at(n); });
    } else if (mask.rank() == 2 && values.size() == b * t) {
      shut([&](std::size_t n, std::size_t, std::size_t k) { return at(n * t + k) == 0; });
    } else if (mask.rank() == 3 && values.size() == b * q * t) {
      shut([&](std::size_t n, std::size_t row, std::size_t k) { return at((n * q + row) * t + k) == 0; });
    } else {
      fail(ErrorCode::ShapeMismatch,
           cat("an attention mask ", mask.to_string(), " for ", b, " batches, ", q, " queries and ", t, " keys"));
    }
  }

  float filter_;
  std::optional<float> scale_;
};

/// query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value, past_sequence_length,
/// cache_indirection -> output, present_key, present_value, qk. Queries are [B,S,N*H] or packed [B,S,N,3,H]; keys and
/// values [B,L,N*H], packed [B,L,N,2,H], or [B,N,L,H]. DecoderMaskedMultiHeadAttention is the same for one query each,
/// with its inputs in another order.
class MultiHeadAttention final : public FusedAttention {
 public:
  explicit MultiHeadAttention(KernelInfo& info)
      : FusedAttention(info),
        decoder_(info.node().op_type == "DecoderMaskedMultiHeadAttention"),
        in_(decoder_ ? Inputs{10, 3, 4, 5, 7} : Inputs{3, 4, 5, 6, 8}),
        shared_(decoder_ ? info.attributes().get_int("past_present_share_buffer", 0) != 0
                         : info.has_input(in_.length)) {
    if (shared_ && (!info.has_input(in_.length) || !info.has_input(in_.past)))
      fail(ErrorCode::InvalidModel, cat(info.node().op_type, " with a shared cache needs it and past_sequence_length"));
    if (info.has_input(kBeams) && !shared_)
      fail(ErrorCode::InvalidModel, cat(info.node().op_type, " takes cache_indirection with a shared cache"));
  }

  void run(KernelContext& ctx) const override {
    const Tensor &query = ctx.input(0), *key = ctx.optional_input(1), *value = ctx.optional_input(2);
    Source q = source(query, 0, 3, "query"), k, v;
    if (query.rank() == 5) {
      k = source(query, 1, 3, "query");
      v = source(query, 2, 3, "query");
    } else if (key == nullptr && decoder_) {
      q = flat_part(query, 0);
      k = flat_part(query, 1);
      v = flat_part(query, 2);
    } else if (key == nullptr) {
      fail(ErrorCode::InvalidArgument, "MultiHeadAttention needs keys beside queries that are not packed");
    } else if (key->rank() == 5) {
      k = source(*key, 0, 2, "key");
      v = source(*key, 1, 2, "key");
    } else {
      if (value == nullptr) fail(ErrorCode::InvalidArgument, "MultiHeadAttention needs values beside its keys");
      k = source(*key, 0, 1, "key");
      v = source(*value, 0, 1, "value");
    }
    if (q.batch != k.batch || q.batch != v.batch || q.head != k.head || k.rows != v.rows) {
      fail(ErrorCode::ShapeMismatch,
           cat("MultiHeadAttention: the key and the value do not fit the query ", query.to_string()));
    }
    if (decoder_ && q.rows != 1)
      fail(ErrorCode::ShapeMismatch,
           cat("DecoderMaskedMultiHeadAttention takes one query each, got ", query.to_string()));
    const Tensor y = ctx.output(0, Shape{static_cast<std::int64_t>(q.batch), static_cast<std::int64_t>(q.rows),
                                         checked_mul(heads_, static_cast<std::int64_t>(v.head))});
    attend(ctx, q, k, v, y);
  }

 private:
  static constexpr std::size_t kBeams = 9;
  struct Inputs {
    std::size_t bias, mask, added, past, length;  ///< past: keys, values next to it
  };

  /// One of query, key and value within a tensor.
  struct Source {
    const Tensor* tensor = nullptr;
    std::size_t batch = 0, rows = 0, head = 0, offset = 0;
    Heads<const float> strides;  ///< without data
    bool biased = true;          ///< of the form that the bias is added to
  };

  Source source(const Tensor& t, std::size_t part, std::size_t parts, const char* what) const {
    Source s;
    s.tensor = &t;
    const auto heads = size(heads_);
    if (t.rank() == 3 && t.dim(2) % heads_ == 0) {
      s.head = size(t.dim(2)) / heads;
      s.rows = size(t.dim(1));
      s.strides = Heads<const float>::bsnh(nullptr, heads, s.rows, s.head);
    } else if (t.rank() == 5 && t.dim(2) == heads_ && size(t.dim(3)) == parts) {
      s.head = size(t.dim(4));
      s.rows = size(t.dim(1));
      s.strides = {nullptr, s.rows * heads * parts * s.head, parts * s.head, heads * parts * s.head};
      s.offset = part * s.head;
      s.biased = false;
    } else if (t.rank() == 4 && t.dim(1) == heads_) {
      s.head = size(t.dim(3));
      s.rows = size(t.dim(2));
      s.strides = Heads<const float>::bnsh(nullptr, heads, s.rows, s.head);
      s.biased = false;
    } else {
      fail(ErrorCode::ShapeMismatch,
           cat("MultiHeadAttention: ", what, " is ", t.to_string(), " for ", heads_, " heads"));
    }
    s.batch = size(t.dim(0));
    return s;
  }

  /// Part 0, 1 or 2 of rows that hold query, key and value one after the other.
  Source flat_part(const Tensor& t, std::size_t part) const {
    if (t.rank() != 3 || t.dim(2) % (3 * heads_) != 0)
      fail(ErrorCode::ShapeMismatch, cat("query ", t.to_string(), " holds no keys and values of ", heads_, " heads"));
    Source s;
    s.tensor = &t;
    const std::size_t width = size(t.dim(2)) / 3;
    s.batch = size(t.dim(0));
    s.rows = size(t.dim(1));
    s.head = width / size(heads_);
    s.offset = part * width;
    s.strides = {nullptr, s.rows * 3 * width, s.head, 3 * width};
    return s;
  }

  /// The source's rows; with the bias from `bias_at` on, a copy in `hold`.
  Heads<const float> view(KernelContext& ctx, const Source& s, const RealInput<float>& data, const float* bias,
                          std::size_t bias_at, std::vector<float>& hold) const {
    Heads<const float> out = s.strides;
    out.data = data.data() + s.offset;
    if (bias == nullptr || !s.biased) return out;
    const std::size_t columns = size(heads_) * s.head, rows = s.batch * s.rows;
    hold.resize(checked_mul(rows, columns));
    ctx.parallel_for(rows, static_cast<double>(columns), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t r = begin; r < end; ++r) {
        const float* from = out.at(r / s.rows, 0, r % s.rows);
        for (std::size_t c = 0; c < columns; ++c) hold[r * columns + c] = from[c] + bias[bias_at + c];
      }
    });
    return Heads<const float>::bsnh(hold.data(), size(heads_), s.rows, s.head);
  }

  void attend(KernelContext& ctx, const Source& q, const Source& k, const Source& v, const Tensor& y) const {
    const auto heads = size(heads_);
    const RealInput<float> queries(ctx, rung_, *q.tensor), keys(ctx, rung_, *k.tensor), values(ctx, rung_, *v.tensor),
        bias_in(ctx, rung_, ctx.optional_input(in_.bias));
    const std::size_t width = heads * q.head, v_width = heads * v.head;
    if (const Tensor* b = ctx.optional_input(in_.bias); b != nullptr && size(b->numel()) != 2 * width + v_width)
      fail(ErrorCode::ShapeMismatch, cat("MultiHeadAttention: the bias is ", b->to_string()));
    std::vector<float> q_hold, k_hold, v_hold;
    AttentionCall<float> call;
    call.batch = q.batch;
    call.q_heads = call.kv_heads = heads;
    call.q_len = q.rows;
    call.head = q.head;
    call.v_head = v.head;
    call.q = view(ctx, q, queries, bias_in.data(), 0, q_hold);
    call.k = view(ctx, k, keys, bias_in.data(), width, k_hold);
    call.v = view(ctx, v, values, bias_in.data(), 2 * width, v_hold);
    const std::size_t before = rows_before(ctx);
    call.kv_len = before + k.rows;
    const Tensor keys_held = join(ctx, call, 0, before, k.rows), values_held = join(ctx, call, 1, before, k.rows);
    call.scale = scale(q.head);
    call.causal = causal_;
    call.offsets.assign(q.batch, static_cast<std::int64_t>(before));
    const std::vector<float> added =
        FusedAttention::bias(ctx, ctx.optional_input(in_.mask), ctx.optional_input(in_.added), call);
    const Tensor scores =
        ctx.wants_output(3)
            ? ctx.output(3, Shape{static_cast<std::int64_t>(q.batch), heads_, static_cast<std::int64_t>(q.rows),
                                  static_cast<std::int64_t>(call.kv_len)})
            : Tensor();
    const RealOutput<float> out(ctx, rung_, y), kept(ctx, rung_, scores);
    call.y = Heads<float>::bsnh(out.data(), heads, q.rows, v.head);
    call.scores = kept.data();
    call.stage = AttentionCall<float>::Stage::Biased;
    run_attention(ctx, rung_, call);
    out.store();
    if (kept)  // keys out of sight
      std::replace(kept.data(), kept + scores.numel(), -std::numeric_limits<float>::infinity(),
                   std::numeric_limits<float>::lowest());
    kept.store();
  }

  std::size_t rows_before(const KernelContext& ctx) const {
    const Tensor* past = ctx.optional_input(in_.past);
    if (past == nullptr) return 0;
    if (past->rank() != 4) fail(ErrorCode::ShapeMismatch, cat("past_key is ", past->to_string()));
    if (!shared_) return size(past->dim(2));
    const std::int64_t length = tensor::to_int64_scalar(ctx.input(in_.length));
    if (length < 0 || length > past->dim(2)) {
      fail(ErrorCode::InvalidArgument,
           cat("past_sequence_length is ", length, " of ", past->dim(2), " rows of the cache"));
    }
    return size(length);
  }

  /// Puts the past before the keys (i = 0) or values (i = 1) of `call`, as output 1 + i where it is wanted. Returns
  /// what holds the rows.
  Tensor join(KernelContext& ctx, AttentionCall<float>& call, std::size_t i, std::size_t before,
              std::size_t fresh) const {
    Heads<const float>& rows = i == 0 ? call.k : call.v;
    const std::size_t head = i == 0 ? call.head : call.v_head, heads = call.kv_heads;
    const auto dim = [](std::size_t v) { return static_cast<std::int64_t>(v); };
    const Tensor* old = ctx.optional_input(in_.past + i);
    if ((old == nullptr) != (ctx.optional_input(in_.past) == nullptr))
      fail(ErrorCode::InvalidArgument, "past_key and past_value come together");
    const bool wanted = ctx.wants_output(1 + i);
    if (old == nullptr && !wanted) return {};
    const std::int64_t held = old == nullptr ? 0 : ctx.input(in_.past).dim(2);
    const Shape shape{dim(call.batch), heads_, shared_ ? held : dim(call.kv_len), dim(head)};
    if (old != nullptr && old->shape() != Shape{shape[0], heads_, held, shape[3]}) {
      fail(ErrorCode::ShapeMismatch,
           cat("the past is ", old->to_string(), ", expected [", shape[0], ",", heads_, ",", held, ",", shape[3], "]"));
    }
    if (dim(call.kv_len) > shape[2]) {
      fail(ErrorCode::InvalidArgument, cat(call.kv_len, " keys do not fit a cache of ", shape[2], " rows"));
    }
    const Tensor present = wanted ? ctx.output(1 + i, shape) : Tensor();
    const bool direct = wanted && present.dtype() == DType::Float32;
    const Tensor joined = direct ? present : Tensor::make(DType::Float32, shape, *ctx.run().allocator);
    float* to = joined.mutable_data<float>();
    const RealInput<float> old_rows(ctx, rung_, old);
    if (shared_ && to != old_rows.data()) std::copy_n(old_rows.data(), joined.numel(), to);
    const std::size_t capacity = size(shape[2]);
    const std::vector<std::size_t> lengths(call.batch, before);
    join_rows(ctx, call.batch, heads, head, Heads<const float>::bnsh(old_rows.data(), heads, size(held), head), lengths,
              rows, fresh, to, capacity);
    if (wanted && !direct)
      convert_reals(ctx.run(), rung_, DType::Float32, joined.raw(), present.dtype(), present.mutable_raw(),
                    size(joined.numel()));
    rows = Heads<const float>::bnsh(to, heads, capacity, head);
    const Tensor* beams = ctx.optional_input(kBeams);
    return beams == nullptr ? joined : follow_beams(ctx, call, *beams, before, head, rows);
  }

  /// Rows that came from other beams of the same batch entry, as cache_indirection [batch, beams, rows] says.
  Tensor follow_beams(KernelContext& ctx, const AttentionCall<float>& call, const Tensor& beams, std::size_t before,
                      std::size_t head, Heads<const float>& rows) const {
    const std::vector<std::int64_t> from = tensor::to_int64_vector(beams);
    const std::size_t width = beams.rank() == 3 ? size(beams.dim(1)) : 0,
                      columns = beams.rank() == 3 ? size(beams.dim(2)) : 0;
    if (width == 0 || size(beams.dim(0)) * width != call.batch || columns < before)
      fail(ErrorCode::ShapeMismatch, cat("cache_indirection ", beams.to_string(), " does not fit ", call.batch,
                                         " sequences of ", before, " keys"));
    const Tensor picked = Tensor::make(DType::Float32,
                                       Shape{static_cast<std::int64_t>(call.batch), heads_,
                                             static_cast<std::int64_t>(call.kv_len), static_cast<std::int64_t>(head)},
                                       *ctx.run().allocator);
    float* to = picked.mutable_data<float>();
    for (std::size_t b = 0; b < call.batch; ++b) {
      for (std::size_t h = 0; h < call.kv_heads; ++h) {
        for (std::size_t r = 0; r < call.kv_len; ++r, to += head) {
          const std::int64_t beam = r < before ? from[b * columns + r] : static_cast<std::int64_t>(b % width);
          if (beam < 0 || size(beam) >= width)
            fail(ErrorCode::InvalidArgument, cat("cache_indirection names beam ", beam, " of ", width));
          std::copy_n(rows.at(b / width * width + size(beam), h, r), head, to);
        }
      }
    }
    rows = Heads<const float>::bnsh(picked.data<float>(), call.kv_heads, call.kv_len, head);
    return picked;
  }

  bool decoder_;
  Inputs in_;
  bool shared_;  ///< the present has the past's shape
};

/// input, weights, bias, mask_index, past, attention_bias -> output, present: the projections to query, key and value
/// are part of the operator.
class ProjectedAttention final : public FusedAttention {
 public:
  explicit ProjectedAttention(KernelInfo& info)
      : FusedAttention(info),
        table_(microkernels::gemm_table(rung_)),
        sizes_(info.attributes().get_ints("qkv_hidden_sizes")) {
    if (info.attributes().get_int("do_rotary", 0) != 0 || info.has_input(6))
      fail(ErrorCode::UnsupportedOperator, "Attention of com.microsoft with rotary embedding or a shared cache");
    if (!sizes_.empty() && sizes_.size() != 3)
      fail(ErrorCode::InvalidModel, cat("qkv_hidden_sizes has ", sizes_.size(), " elements, expected 3"));
    const Tensor* w = info.constant(1);
    if (w == nullptr || w->rank() != 2 || w->numel() == 0 || !gemm_type(w->dtype())) return;
    w_shape_ = w->shape();
    packed_ = PackedMatrix(info, 1, false);
  }

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Shape& w = packed_ ? w_shape_ : ctx.input(1).shape();
    if (x.rank() != 3 || w.rank() != 2 || w[0] != x.dim(2))
      fail(ErrorCode::ShapeMismatch,
           cat("Attention: input ", x.to_string(), " and weights ", w.to_string(), " do not fit"));
    const std::int64_t third = w[1] / 3;
    const std::vector<std::int64_t> widths = sizes_.empty() ? std::vector<std::int64_t>{third, third, third} : sizes_;
    if (widths[0] != widths[1] || widths[0] + widths[1] + widths[2] != w[1] || widths[0] % heads_ != 0 ||
        widths[2] % heads_ != 0) {
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
    const auto part = [&](std::size_t offset, std::size_t head) {
      return Heads<const float>{projected + offset, call.q_len * width, head, width};
    };
    call.q = part(0, call.head);
    call.k = part(size(widths[0]), call.head);
    call.v = part(size(2 * widths[0]), call.v_head);
    call.kv_len = call.q_len;
    const Tensor joined = with_past(ctx, call);
    call.scale = scale(call.head);
    call.causal = causal_;
    call.offsets.assign(call.batch, static_cast<std::int64_t>(call.kv_len - call.q_len));
    const std::vector<float> added = bias(ctx, ctx.optional_input(3), ctx.optional_input(5), call);
    const RealOutput<float> out(ctx, rung_, y);
    call.y = Heads<float>::bsnh(out.data(), heads, call.q_len, call.v_head);
    run_attention(ctx, rung_, call);
    out.store();
  }

 private:
  void project(KernelContext& ctx, const Tensor& x, std::size_t rows, std::size_t width, float* out) const {
    const RealInput<float> bias(ctx, rung_, ctx.optional_input(2));
    if (const Tensor* b = ctx.optional_input(2); b != nullptr && size(b->numel()) != width)
      fail(ErrorCode::ShapeMismatch, cat("Attention: the bias is ", b->to_string(), " for ", width, " columns"));
    const auto k = size(x.dim(2));
    microkernels::GemmArgs args{.m = rows, .n = width, .k = k, .a = x.raw(), .lda = k, .epilogue = {}};
    args.a_type = *gemm_type(x.dtype());
    if (packed_) {
      args.packed_b = packed_.data();
    } else {
      args.b = ctx.input(1).raw();
      args.ldb = width;
      args.b_type = args.a_type;
    }
    args.c = out;
    args.ldc = width;
    args.epilogue.bias_n = bias.data();
    run_gemm(ctx, table_, args);
  }

  /// Puts the past before keys and values: both are [2, batch, heads, rows, head].
  Tensor with_past(KernelContext& ctx, AttentionCall<float>& call) const {
    const Tensor* past = ctx.optional_input(4);
    const bool wanted = ctx.wants_output(1);
    if (past == nullptr && !wanted) return {};
    const auto dim = [](std::size_t v) { return static_cast<std::int64_t>(v); };
    std::size_t before = 0;
    if (past != nullptr) {
      if (past->rank() == 5) before = size(past->dim(3));
      if (past->shape() != Shape{2, dim(call.batch), heads_, dim(before), dim(call.head)} || call.head != call.v_head)
        fail(ErrorCode::ShapeMismatch, cat("Attention: the past is ", past->to_string()));
    }
    if (call.head != call.v_head)
      fail(ErrorCode::UnsupportedOperator, "Attention that keeps keys and values of unlike sizes");
    const std::size_t fresh = call.q_len, heads = call.q_heads, total = before + fresh;
    const Shape shape{2, dim(call.batch), heads_, dim(total), dim(call.head)};
    const Tensor out = wanted ? ctx.output(1, shape) : Tensor();
    const Tensor joined =
        wanted && out.dtype() == DType::Float32 ? out : Tensor::make(DType::Float32, shape, *ctx.run().allocator);
    const RealInput<float> old(ctx, rung_, past);
    const std::vector<std::size_t> lengths(call.batch, before);
    for (std::size_t i = 0; i < 2; ++i) {
      Heads<const float>& rows = i == 0 ? call.k : call.v;
      float* to = joined.mutable_data<float>() + i * call.batch * heads * total * call.head;
      const float* from = past == nullptr ? nullptr : old + i * call.batch * heads * before * call.head;
      join_rows(ctx, call.batch, heads, call.head, Heads<const float>::bnsh(from, heads, before, call.head), lengths,
                rows, fresh, to, total);
      rows = Heads<const float>::bnsh(to, heads, total, call.head);
    }
    if (wanted && out.dtype() != DType::Float32)
      convert_reals(ctx.run(), rung_, DType::Float32, joined.raw(), out.dtype(), out.mutable_raw(), size(out.numel()));
    call.kv_len = total;
    return joined;
  }

  const microkernels::GemmTable& table_;
  std::vector<std::int64_t> sizes_;
  Shape w_shape_;
  PackedMatrix packed_;
};

void infer_multi_head_attention(InferContext& ctx) {
  for (std::size_t o = 0; o < ctx.output_count(); ++o) {
    if (ctx.has_output(o)) ctx.set_output_dtype(o, ctx.input_dtype(0));
  }
  const bool decoder = ctx.node().op_type == "DecoderMaskedMultiHeadAttention";
  const std::size_t past_input = decoder ? 5 : 6, length_input = decoder ? 7 : 8;
  const bool shared =
      decoder ? ctx.attributes().get_int("past_present_share_buffer", 0) != 0 : ctx.has_input(length_input);
  const graph::SymShape* q = ctx.input_shape(0);
  if (q == nullptr) return;
  const Dim heads = ctx.attributes().get_int("num_heads");
  Dim fresh = (*q)[1], width = Dim::unknown(), head = Dim::unknown();
  if (q->size() == 5) {
    head = (*q)[4];
    width = heads * head;
  } else if (q->size() != 3) {
    return;
  } else if (!ctx.has_input(1)) {
    width = decoder ? floor_div((*q)[2], Dim(3)) : Dim::unknown();
    head = floor_div(width, heads);
  } else {
    const graph::SymShape* v = ctx.has_input(2) ? ctx.input_shape(2) : ctx.input_shape(1);
    if (v == nullptr || v->size() < 3) return;
    width = v->size() == 3 ? (*v)[2] : heads * v->back();
    fresh = (*v)[v->size() == 4 ? 2 : 1];
    head = floor_div((*q)[2], heads);
  }
  ctx.set_output_shape(0, graph::SymShape{(*q)[0], (*q)[1], width});
  const graph::SymShape* past = ctx.input_shape(past_input);
  const Dim held = past != nullptr && past->size() == 4 ? (*past)[2] : Dim::unknown();
  const Dim total = !ctx.has_input(past_input) ? fresh : shared ? Dim::unknown() : held + fresh;
  const Dim rows = shared ? held : total;
  if (ctx.has_output(1)) ctx.set_output_shape(1, graph::SymShape{(*q)[0], heads, rows, head});
  if (ctx.has_output(2)) ctx.set_output_shape(2, graph::SymShape{(*q)[0], heads, rows, floor_div(width, heads)});
  if (ctx.has_output(3)) ctx.set_output_shape(3, graph::SymShape{(*q)[0], heads, (*q)[1], total});
}

void infer_projected_attention(InferContext& ctx) {
  for (std::size_t o = 0; o < ctx.output_count(); ++o) {
    if (ctx.has_output(o)) ctx.set_output_dtype(o, ctx.input_dtype(0));
  }
  const graph::SymShape *x = ctx.input_shape(0), *w = ctx.input_shape(1);
  if (x == nullptr || w == nullptr || x->size() != 3 || w->size() != 2) return;
  const std::vector<std::int64_t> sizes = ctx.attributes().get_ints("qkv_hidden_sizes");
  const Dim width = sizes.size() == 3 ? Dim(sizes[2]) : floor_div((*w)[1], Dim(3));
  ctx.set_output_shape(0, graph::SymShape{(*x)[0], (*x)[1], width});
  if (!ctx.has_output(1)) return;
  const Dim heads = ctx.attributes().get_int("num_heads");
  const graph::SymShape* past = ctx.input_shape(4);
  const Dim total = !ctx.has_input(4)                      ? (*x)[1]
                    : past != nullptr && past->size() == 5 ? (*past)[3] + (*x)[1]
                                                           : Dim::unknown();
  ctx.set_output_shape(1, graph::SymShape{2, (*x)[0], heads, total, floor_div(width, heads)});
}

}  // namespace

void register_multi_head_attention(kernel::OpRegistrar& r) {
  r.op("MultiHeadAttention", "com.microsoft")
      .version(
          1,
          "query:T, key:T?, value:T?, bias:T?, key_padding_mask:M?, attention_bias:T?, past_key:T?, past_value:T?, "
          "past_sequence_length:M?, cache_indirection:M? -> output:T, present_key:T?, present_value:T?, qk:QK?; "
          "T = float|float16|bfloat16, QK = float|float16|bfloat16, M = int32")
      .infer(infer_multi_head_attention)
      .kernel<MultiHeadAttention>();
  r.op("DecoderMaskedMultiHeadAttention", "com.microsoft")
      .version(1,
               "query:T, key:T?, value:T?, mask_index:M?, attention_bias:T?, past_key:T?, past_value:T?, "
               "past_sequence_length:M?, beam_width:M?, cache_indirection:M?, bias:T? -> output:T, present_key:T?, "
               "present_value:T?, qk:QK?; T = float|float16|bfloat16, QK = float|float16|bfloat16, M = int32")
      .infer(infer_multi_head_attention)
      .kernel<MultiHeadAttention>();
  r.op("Attention", "com.microsoft")
      .version(1,
               "input:T, weights:T, bias:T?, mask_index:M?, past:T?, attention_bias:T?, past_sequence_length:M? -> "
               "output:T, present:T?; T = float|float16, M = int32")
      .infer(infer_projected_attention)
      .kernel<ProjectedAttention>();
}

}  // namespace infernode::ops
