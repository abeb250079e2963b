// onnxruntime's MultiHeadAttention and DecoderMaskedMultiHeadAttention (com.microsoft).

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/attention/masked_attention.h"
#include "ops/common/reals.h"

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

/// query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value, past_sequence_length,
/// cache_indirection -> output, present_key, present_value, qk. Queries are [B,S,N*H] or packed [B,S,N,3,H]; keys and
/// values [B,L,N*H], packed [B,L,N,2,H], or [B,N,L,H]. DecoderMaskedMultiHeadAttention is the same for one query each,
/// with its inputs in another order.
class MultiHeadAttention final : public MaskedAttention {
 public:
  explicit MultiHeadAttention(KernelInfo& info)
      : MaskedAttention(info),
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
                          std::size_t bias_at, kernel::Scratch<float>& hold) const {
    Heads<const float> out = s.strides;
    out.data = data.data() + s.offset;
    if (bias == nullptr || !s.biased) return out;
    const std::size_t columns = size(heads_) * s.head, rows = s.batch * s.rows;
    hold = kernel::Scratch<float>(ctx.run(), checked_mul(rows, columns));
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
    const RealInput<float> queries(ctx, kernels_, *q.tensor), keys(ctx, kernels_, *k.tensor),
        values(ctx, kernels_, *v.tensor), bias_in(ctx, kernels_, ctx.optional_input(in_.bias));
    const std::size_t width = heads * q.head, v_width = heads * v.head;
    if (const Tensor* b = ctx.optional_input(in_.bias); b != nullptr && size(b->numel()) != 2 * width + v_width)
      fail(ErrorCode::ShapeMismatch, cat("MultiHeadAttention: the bias is ", b->to_string()));
    kernel::Scratch<float> q_hold, k_hold, v_hold;
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
    // A key that comes with its past stands for the past: queries are the last rows of what is seen.
    const std::size_t seen_by_first = std::max(call.kv_len, before + q.rows) - q.rows;
    call.offsets.assign(q.batch, static_cast<std::int64_t>(seen_by_first));
    const kernel::CountedVector<float> added =
        MaskedAttention::bias(ctx, ctx.optional_input(in_.mask), ctx.optional_input(in_.added), call);
    const Tensor scores =
        ctx.wants_output(3)
            ? ctx.output(3, Shape{static_cast<std::int64_t>(q.batch), heads_, static_cast<std::int64_t>(q.rows),
                                  static_cast<std::int64_t>(call.kv_len)})
            : Tensor();
    const RealOutput<float> out(ctx, kernels_, y), kept(ctx, kernels_, scores);
    call.y = Heads<float>::bsnh(out.data(), heads, q.rows, v.head);
    call.scores = kept.data();
    call.stage = AttentionCall<float>::Stage::Biased;
    run_attention(ctx, kernels_, call);
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
    const RealInput<float> old_rows(ctx, kernels_, old);
    if (shared_ && to != old_rows.data())
      convert_reals(ctx.run(), kernels_, DType::Float32, old_rows.data(), DType::Float32, to, size(joined.numel()));
    const std::size_t capacity = size(shape[2]);
    const std::vector<std::size_t> lengths(call.batch, before);
    join_rows(ctx, call.batch, heads, head, Heads<const float>::bnsh(old_rows.data(), heads, size(held), head), lengths,
              rows, fresh, to, capacity);
    if (wanted && !direct)
      convert_reals(ctx.run(), kernels_, DType::Float32, joined.raw(), present.dtype(), present.mutable_raw(),
                    size(joined.numel()));
    rows = Heads<const float>::bnsh(to, heads, capacity, head);
    const Tensor* beams = ctx.optional_input(kBeams);
    return beams == nullptr ? joined : follow_beams(ctx, call, *beams, before, head, rows);
  }

  /// Rows that came from other beams of the same batch entry, as cache_indirection [batch, beams, rows] says.
  Tensor follow_beams(KernelContext& ctx, const AttentionCall<float>& call, const Tensor& beams, std::size_t before,
                      std::size_t head, Heads<const float>& rows) const {
    const kernel::Numbers<std::int64_t> from(ctx.run(), beams);
    kernel::Watch watch(ctx.run());
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
          watch.did(5 + 0.3 * static_cast<double>(head));
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

void infer_multi_head_attention(InferContext& ctx) {
  for (std::size_t o = 0; o < ctx.output_count(); ++o) {
    if (ctx.has_output(o)) ctx.set_output_dtype(o, ctx.input_dtype(0));
  }
  const bool decoder = ctx.node().op_type == "DecoderMaskedMultiHeadAttention";
  const std::size_t past_input = decoder ? 5 : 6, length_input = decoder ? 7 : 8;
  const bool shared =
      decoder ? ctx.attributes().get_int("past_present_share_buffer", 0) != 0 : ctx.has_input(length_input);
  const graph::SymShape* q = ctx.input_shape(0);
  if (q == nullptr || q->size() < 2) return;
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
}

}  // namespace infernode::ops
