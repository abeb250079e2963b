#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/checked.h"
#include "base/error.h"
#include "base/packed.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/attention/attention_core.h"
#include "ops/attention/rotary.h"
#include "ops/common/mover.h"
#include "ops/common/reals.h"
#include "ops/common/strided_copy.h"

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

/// Where the tokens of each batch entry lie. Positions count all tokens, rows those that the cache holds.
struct Places {
  std::size_t held = 0, capacity = 0;  ///< rows of the past and of the present
  bool padded = false;                 ///< `query_seqlens` is given: queries behind `fresh` leave no trace
  std::vector<std::size_t> before;     ///< rows of the past that count
  std::vector<std::size_t> evicted;    ///< position of the past's first row
  std::vector<std::size_t> fresh;      ///< queries that are no padding
  std::vector<std::size_t> kept;       ///< rows of the present that count
};

/// Rows that a cache of `capacity` rows holds of `tokens` tokens when it makes room for several at a time, so that the
/// last `window` always stay.
std::int64_t resident(std::int64_t tokens, std::int64_t capacity, std::int64_t window) {
  if (tokens <= capacity) return tokens;
  const std::int64_t step = capacity - window + 1;
  return tokens - step * ceil_div(tokens - capacity, step);
}

/// onnxruntime's causal attention for decoders: query heads share key heads; keys and values join a cache whose tokens
/// per batch entry `seqlens_k` tells (as the index of the last one); queries and keys may be turned by their position.
class GroupQueryAttention final : public kernel::Kernel {
 public:
  explicit GroupQueryAttention(KernelInfo& info)
      : kernels_(info.kernels()),
        heads_(info.attributes().get_int("num_heads")),
        kv_heads_(info.attributes().get_int("kv_num_heads")),
        scale_(info.attributes().get_float("scale", 0)),
        softcap_(info.attributes().get_float("softcap", 0)),
        window_(info.attributes().get_int("local_window_size", -1)),
        rotary_(info.attributes().get_int("do_rotary", 0) != 0),
        interleaved_(info.attributes().get_int("rotary_interleaved", 0) != 0),
        causal_(info.attributes().get_int("causal", 1) != 0),
        smooth_(info.attributes().get_int("smooth_softmax", 0) > 0),
        qk_output_(info.attributes().get_int("qk_output", 0)),
        bits_(info.attributes().get_int("kv_cache_bit_width", 0)),
        sliding_(info.attributes().get_int("sliding_window_cache", 0) != 0) {
    const float epsilon = info.attributes().get_float("qk_norm_epsilon", 1e-6f);
    q_epsilon_ = info.attributes().get_float("q_norm_epsilon", epsilon);
    k_epsilon_ = info.attributes().get_float("k_norm_epsilon", epsilon);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string type = info.attributes().get_string(i == 0 ? "k_quant_type" : "v_quant_type", "NONE");
      if (type != "NONE" && type != "PER_TENSOR" && type != "PER_CHANNEL")
        fail(ErrorCode::InvalidModel, cat("GroupQueryAttention: a cache quantized '", type, "'"));
      quantized_[i] = type != "NONE";
      if (quantized_[i] && ((bits_ != 8 && bits_ != 4) || !info.has_input(12 + i)))
        fail(ErrorCode::InvalidModel,
             cat("GroupQueryAttention: a quantized cache of ", bits_, " bits, or without scale"));
    }
    if (!causal_ && (window_ > 0 || info.has_input(16)))
      fail(ErrorCode::InvalidModel,
           "GroupQueryAttention: local_window_size and query_seqlens go with causal attention");
    if (sliding_ && window_ < 1)
      fail(ErrorCode::InvalidModel, "GroupQueryAttention: sliding_window_cache needs local_window_size");
    if (heads_ < 1 || kv_heads_ < 1 || heads_ % kv_heads_ != 0)
      fail(ErrorCode::InvalidModel, cat("GroupQueryAttention: ", heads_, " heads do not share ", kv_heads_));
  }

  void run(KernelContext& ctx) const override {
    const Tensor& query = ctx.input(0);
    const bool packed = !ctx.has_input(1);
    if (query.rank() != 3) fail(ErrorCode::ShapeMismatch, cat("GroupQueryAttention: query is ", query.to_string()));
    const std::int64_t batch = query.dim(0), rows = query.dim(1), all = heads_ + (packed ? 2 * kv_heads_ : 0);
    if (query.dim(2) % all != 0)
      fail(ErrorCode::ShapeMismatch,
           cat("GroupQueryAttention: query ", query.to_string(), " does not divide into ", all, " heads"));
    const std::int64_t head = query.dim(2) / all;
    if (!packed) {
      const Shape expected{batch, rows, kv_heads_ * head};
      for (const std::size_t i : {1, 2}) {
        if (!ctx.has_input(i) || ctx.input(i).shape() != expected)
          fail(ErrorCode::ShapeMismatch, cat("GroupQueryAttention: input ", i, " must be ", expected.to_string()));
      }
    }
    const RealInput<float> q_in(ctx, kernels_, query), k_in(ctx, kernels_, ctx.optional_input(1)),
        v_in(ctx, kernels_, ctx.optional_input(2));
    const auto h = size(head), q_heads = size(heads_), kv_heads = size(kv_heads_), n = size(rows), b = size(batch);

    AttentionCall<float> call;
    call.batch = b;
    call.q_heads = q_heads;
    call.kv_heads = kv_heads;
    call.q_len = n;
    call.head = call.v_head = h;
    const std::size_t width = size(query.dim(2));
    const auto within = [&](const float* data, std::size_t first) {
      return Heads<const float>{data + first * h, n * width, h, width};
    };
    call.q = within(q_in.data(), 0);
    call.k = packed ? within(q_in.data(), q_heads) : Heads<const float>::bsnh(k_in.data(), kv_heads, n, h);
    call.v = packed ? within(q_in.data(), q_heads + kv_heads) : Heads<const float>::bsnh(v_in.data(), kv_heads, n, h);

    const Places places = places_of(ctx, b, n, call);
    kernel::Scratch<float> q_turned, k_turned, q_normed, k_normed;
    if ((ctx.optional_input(14) == nullptr) != (ctx.optional_input(15) == nullptr))
      fail(ErrorCode::InvalidArgument, "GroupQueryAttention takes q_norm_weight and k_norm_weight together");
    if (const Tensor* weight = ctx.optional_input(14))
      call.q = normed(ctx, call.q, q_heads, call, *weight, q_epsilon_, q_normed);
    if (const Tensor* weight = ctx.optional_input(15))
      call.k = normed(ctx, call.k, kv_heads, call, *weight, k_epsilon_, k_normed);
    if (rotary_) {
      call.q = turned(ctx, call.q, q_heads, call, places, q_turned);
      call.k = turned(ctx, call.k, kv_heads, call, places, k_turned);
    }
    const Tensor y = ctx.output(0, Shape{batch, rows, checked_mul(heads_, head)});
    Tensor caches[2];
    for (std::size_t i = 0; i < 2; ++i) {
      if (quantized_[i]) {
        quantized_cache(ctx, i, places, call, caches[i]);
      } else {
        cache(ctx, i, places, call, caches[i]);
      }
    }
    call.scale = scale_ != 0 ? static_cast<double>(scale_) : 1 / std::sqrt(static_cast<double>(head));
    call.softcap = static_cast<double>(softcap_);
    call.causal = causal_;
    if (window_ > 0) call.left_window = std::min<std::int64_t>(window_, std::int64_t{1} << 40) - 1;
    const Bias added = bias(ctx, places, call);
    const std::vector<float> sinks = sinks_of(ctx);
    if (!sinks.empty()) call.sinks = sinks.data();
    const bool keeps = ctx.wants_output(3);
    if (keeps && sliding_)
      fail(ErrorCode::UnsupportedOperator, "GroupQueryAttention with sliding_window_cache and output_qk");
    const kernel::Scratch<float> scores(ctx.run(), keeps ? checked_mul(checked_mul(b * q_heads, n), call.kv_len) : 0);
    ctx.parallel_for(scores.size(), 0.2, [&](std::size_t begin, std::size_t end, std::size_t) {
      std::fill(scores.data() + begin, scores.data() + end, 0.0f);
    });
    if (keeps) call.scores = scores.data();
    call.stage = qk_output_ == 2 ? AttentionCall<float>::Stage::Probabilities : AttentionCall<float>::Stage::Biased;
    const RealOutput<float> out(ctx, kernels_, y);
    call.y = Heads<float>::bsnh(out.data(), q_heads, n, h);
    run_attention(ctx, kernels_, call);
    if (places.padded) clear_padding(ctx, places, out.data(), n, q_heads * h);
    out.store();
    if (keeps) keep_scores(ctx, Shape{batch, heads_, rows, tensor::to_int64_scalar(ctx.input(6))}, scores, call.kv_len);
  }

 private:
  /// Zeros for rows of the answer [batch, rows, width] that hold no token.
  static void clear_padding(KernelContext& ctx, const Places& places, float* y, std::size_t rows, std::size_t width) {
    Mover mover(ctx.run());
    for (std::size_t i = 0; i < places.fresh.size(); ++i, y += rows * width)
      mover.fill(y + places.fresh[i] * width, static_cast<std::int64_t>((rows - places.fresh[i]) * width), 0.0f);
  }

  /// Writes output_qk, of dims [batch, heads, rows, total], from rows of `kv_len` scores.
  void keep_scores(KernelContext& ctx, const Shape& shape, const kernel::Scratch<float>& scores,
                   std::size_t kv_len) const {
    const Tensor kept = ctx.output(3, shape);
    const RealOutput<float> store(ctx, kernels_, kept);
    const std::size_t rows = size(shape[0] * shape[1] * shape[2]), total = size(shape[3]);
    ctx.parallel_for(rows, static_cast<double>(total), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t r = begin; r < end; ++r) {
        const float* from = scores.data() + r * kv_len;
        std::replace_copy(from, from + total, store + r * total, -std::numeric_limits<float>::infinity(),
                          0.0f);  // keys out of sight
      }
    });
    store.store();
  }

  /// Also sets what follows from the places in `call`.
  Places places_of(const KernelContext& ctx, std::size_t batch, std::size_t rows, AttentionCall<float>& call) const {
    const kernel::Numbers<std::int64_t> last(ctx.run(), ctx.input(5));
    const std::int64_t total = tensor::to_int64_scalar(ctx.input(6)), n = static_cast<std::int64_t>(rows);
    const Tensor *past = ctx.optional_input(3), *valid = ctx.optional_input(16);
    if (past != nullptr && past->rank() != 4)
      fail(ErrorCode::ShapeMismatch, cat("GroupQueryAttention: past_key is ", past->to_string()));
    const std::int64_t held = past == nullptr ? 0 : past->dim(2);
    const kernel::Numbers<std::int64_t> counts(ctx.run(), valid);
    if (last.size() != batch || (valid != nullptr && counts.size() != batch) || (!sliding_ && total < n)) {
      fail(ErrorCode::InvalidArgument, cat("GroupQueryAttention: ", last.size(), " sequence lengths and a total of ",
                                           total, " for ", batch, " batches of ", rows, " queries"));
    }
    // What is longer than the past and this call's tokens counts tokens that nobody has.
    if (sliding_ ? held < window_ : total - n > held)
      fail(ErrorCode::InvalidArgument,
           cat("GroupQueryAttention: ", held, " rows in the cache for a total of ", total, " tokens, ", rows,
               " of them new", sliding_ ? cat(", and a window of ", window_) : ""));
    Places out;
    out.held = size(held);
    out.capacity = size(sliding_ ? held : std::max(held, total));
    out.padded = valid != nullptr;
    for (std::size_t i = 0; i < batch; ++i) {
      const std::int64_t tokens = last[i] + 1, fresh = valid == nullptr ? std::min(n, tokens) : counts[i];
      const std::int64_t old = tokens - fresh, before = sliding_ ? resident(old, held, window_) : old;
      if (tokens < 1 || tokens > total || fresh < 0 || fresh > std::min(n, tokens) || before > held ||
          (out.padded && !sliding_ && old + n > static_cast<std::int64_t>(out.capacity))) {
        fail(ErrorCode::InvalidArgument, cat("GroupQueryAttention: seqlens_k[", i, "] is ", last[i], " of ", total,
                                             " keys, ", fresh, " of ", rows, " queries count, the cache holds ", held));
      }
      out.before.push_back(size(before));
      out.evicted.push_back(size(old - before));
      out.fresh.push_back(size(fresh));
      out.kept.push_back(size(sliding_ ? resident(tokens, held, window_) : tokens));
      call.offsets.push_back(before);
      call.lengths.push_back(before + fresh);
    }
    call.kv_len = out.capacity;
    if (sliding_) {  // the past's rows with the new ones behind them, before some of them go
      call.kv_len = rows;
      for (const std::size_t before : out.before) call.kv_len = std::max(call.kv_len, before + rows);
    }
    return out;
  }

  /// The score that has no value, of each head.
  std::vector<float> sinks_of(const KernelContext& ctx) const {
    const Tensor* sink = ctx.optional_input(11);
    if (sink == nullptr) return std::vector<float>(smooth_ ? size(heads_) : 0, 0.0f);
    if (sink->numel() != heads_)
      fail(ErrorCode::ShapeMismatch,
           cat("GroupQueryAttention: head_sink is ", sink->to_string(), " for ", heads_, " heads"));
    return tensor::to_float_vector(*sink);
  }

  /// Heads divided by the root of their mean square and multiplied by `weight`, as [batch, rows, heads, head].
  static Heads<const float> normed(KernelContext& ctx, const Heads<const float>& x, std::size_t heads,
                                   const AttentionCall<float>& call, const Tensor& weight, float epsilon,
                                   kernel::Scratch<float>& hold) {
    const std::size_t n = call.q_len, h = call.head;
    if (weight.rank() != 1 || size(weight.numel()) != h)
      fail(ErrorCode::ShapeMismatch,
           cat("GroupQueryAttention: a norm's weight is ", weight.to_string(), " for heads of ", h, " elements"));
    const kernel::Numbers<float> factor(ctx.run(), weight);
    hold = kernel::Scratch<float>(ctx.run(), call.batch * n * heads * h);
    ctx.parallel_for(call.batch * n * heads, static_cast<double>(h) * 2,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       for (std::size_t i = begin; i < end; ++i) {
                         const float* from = x.at(i / heads / n, i % heads, i / heads % n);
                         float squares = 0;
                         for (std::size_t k = 0; k < h; ++k) squares += from[k] * from[k];
                         const float scale = 1 / std::sqrt(squares / static_cast<float>(h) + epsilon);
                         for (std::size_t k = 0; k < h; ++k) hold[i * h + k] = from[k] * scale * factor[k];
                       }
                     });
    return Heads<const float>::bsnh(hold.data(), heads, n, h);
  }

  /// The same as `cache` for one of 8-bit or 4-bit codes, which `call` then reads as the numbers they stand for. Codes
  /// of 4 bits lie two in a byte, the first in the low bits, 8 meaning 0.
  void quantized_cache(KernelContext& ctx, std::size_t i, const Places& places, AttentionCall<float>& call,
                       Tensor& hold) const {
    Heads<const float>& rows = i == 0 ? call.k : call.v;
    const auto dim = [](std::size_t v) { return static_cast<std::int64_t>(v); };
    const std::size_t h = call.head, width = bits_ == 8 ? h : h / 2, heads = call.kv_heads, held = places.held;
    if (bits_ == 4 && h % 2 != 0) fail(ErrorCode::ShapeMismatch, "GroupQueryAttention: 4-bit codes of odd heads");
    const kernel::Numbers<float> scales(ctx.run(), ctx.input(12 + i));
    if (scales.size() != 1 && scales.size() != heads * h)
      fail(ErrorCode::ShapeMismatch, cat("GroupQueryAttention: the cache's scale is ", ctx.input(12 + i).to_string()));
    const Tensor* past = ctx.optional_input(3 + i);
    const DType type = bits_ == 8 ? DType::Int8 : DType::UInt8;
    const Shape old_shape{dim(call.batch), kv_heads_, dim(held), dim(width)};
    if ((past == nullptr) != !ctx.has_input(3) ||
        (past != nullptr && (past->shape() != old_shape || past->dtype() != type)))
      fail(ErrorCode::ShapeMismatch, cat("GroupQueryAttention: the past is not ", old_shape.to_string(), " of codes"));
    const Shape shape{dim(call.batch), kv_heads_, dim(call.kv_len), dim(width)};
    const bool wanted = ctx.wants_output(1 + i);
    const Tensor present =
        wanted ? ctx.output(1 + i, type, Shape{shape[0], shape[1], dim(places.capacity), shape[3]}) : Tensor();
    const Tensor codes = wanted && !sliding_ ? present : Tensor::make(type, shape, *ctx.run().allocator);
    hold = Tensor::make(DType::Float32, Shape{shape[0], shape[1], shape[2], dim(h)}, *ctx.run().allocator);
    float* values = hold.mutable_data<float>();
    auto* bytes = static_cast<std::uint8_t*>(codes.mutable_raw());
    const auto* old = past == nullptr ? nullptr : static_cast<const std::uint8_t*>(past->raw());
    ctx.parallel_for(call.batch * heads, static_cast<double>(call.kv_len * h),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       for (std::size_t p = begin; p < end; ++p) {
                         const std::size_t b = p / heads, kv = p % heads, before = places.before[b];
                         const std::size_t after = before + (places.padded ? places.fresh[b] : call.q_len);
                         const float* scale = scales.data() + (scales.size() == 1 ? 0 : kv * h);
                         const std::size_t step = scales.size() == 1 ? 0 : 1;
                         for (std::size_t r = 0; r < call.kv_len; ++r) {
                           std::uint8_t* to = bytes + (p * call.kv_len + r) * width;
                           float* out = values + (p * call.kv_len + r) * h;
                           if (r < before) {
                             std::copy_n(old + (p * held + r) * width, width, to);
                           } else if (r < after) {
                             encode(rows.at(b, kv, r - before), scale, step, to, h);
                           } else {
                             std::fill_n(to, width, std::uint8_t{0});
                             std::fill_n(out, h, 0.0f);
                             continue;
                           }
                           decode(to, scale, step, out, h);
                         }
                       }
                     });
    Mover mover(ctx.run());
    if (wanted && sliding_)
      keep_last(mover, places, call, bytes, width, static_cast<std::uint8_t*>(present.mutable_raw()));
    rows = Heads<const float>::bnsh(values, heads, call.kv_len, h);
  }

  /// The rows of `staged` [batch, kv_heads, kv_len, width] that stay, as `present` [batch, kv_heads, capacity, width].
  template <class T>
  static void keep_last(Mover& mover, const Places& places, const AttentionCall<float>& call, const T* staged,
                        std::size_t width, T* present) {
    for (std::size_t p = 0; p < call.batch * call.kv_heads; ++p) {
      const std::size_t b = p / call.kv_heads, kept = places.kept[b];
      const T* from = staged + (p * call.kv_len + places.before[b] + places.fresh[b] - kept) * width;
      T* const to = present + p * places.capacity * width;
      T* const end = mover.copy(from, static_cast<std::int64_t>(kept * width), to);
      mover.fill(end, static_cast<std::int64_t>((places.capacity - kept) * width), T{0});
    }
  }

  void encode(const float* x, const float* scale, std::size_t step, std::uint8_t* to, std::size_t n) const {
    const float low = bits_ == 8 ? -128.0f : -8.0f, high = bits_ == 8 ? 127.0f : 7.0f;
    for (std::size_t i = 0; i < n; ++i) {
      const float rounded = std::nearbyint(x[i] / scale[i * step]);
      const auto code = static_cast<int>(std::clamp(std::isnan(rounded) ? 0.0f : rounded, low, high));
      if (bits_ == 8) {
        to[i] = static_cast<std::uint8_t>(code);
      } else {
        set_packed<4>(to, i, code + 8);
      }
    }
  }
  void decode(const std::uint8_t* from, const float* scale, std::size_t step, float* to, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) {
      const int code = bits_ == 8 ? static_cast<std::int8_t>(from[i]) : get_packed<4>(from, i) - 8;
      to[i] = static_cast<float>(code) * scale[i * step];
    }
  }

  /// Output 1 or 2: the cache with the new rows in it, which `call` then reads.
  void cache(KernelContext& ctx, std::size_t i, const Places& places, AttentionCall<float>& call, Tensor& hold) const {
    Heads<const float>& rows = i == 0 ? call.k : call.v;
    const Tensor* past = ctx.optional_input(3 + i);
    const auto dim = [](std::size_t v) { return static_cast<std::int64_t>(v); };
    const auto rows_shape = [&](std::size_t n) { return Shape{dim(call.batch), kv_heads_, dim(n), dim(call.head)}; };
    if ((past == nullptr) != (ctx.optional_input(3) == nullptr))
      fail(ErrorCode::InvalidArgument, "GroupQueryAttention takes past_key and past_value together");
    if (past != nullptr && past->shape() != rows_shape(places.held)) {
      fail(ErrorCode::ShapeMismatch, cat("GroupQueryAttention: the past is ", past->to_string(), ", expected ",
                                         rows_shape(places.held).to_string()));
    }
    const bool wanted = ctx.wants_output(1 + i);
    const Tensor out = wanted ? ctx.output(1 + i, rows_shape(places.capacity)) : Tensor();
    const auto floats = [&](std::size_t n) {
      return Tensor::make(DType::Float32, rows_shape(n), *ctx.run().allocator);
    };
    hold = wanted && !sliding_ && out.dtype() == DType::Float32 ? out : floats(call.kv_len);
    float* to = hold.mutable_data<float>();
    const RealInput<float> old(ctx, kernels_, past);
    fill_bytes(ctx.run(), hold);  // rows that no sequence fills
    join_rows(ctx, call.batch, call.kv_heads, call.head,
              Heads<const float>::bnsh(old.data(), call.kv_heads, places.held, call.head), places.before, rows,
              call.q_len, to, call.kv_len);
    Mover mover(ctx.run());
    for (std::size_t p = 0; places.padded && p < call.batch * call.kv_heads; ++p) {
      const std::size_t b = p / call.kv_heads;
      mover.fill(to + (p * call.kv_len + places.before[b] + places.fresh[b]) * call.head,
                 dim((call.q_len - places.fresh[b]) * call.head), 0.0f);
    }
    rows = Heads<const float>::bnsh(to, call.kv_heads, call.kv_len, call.head);
    if (!wanted || hold.raw() == out.raw()) return;
    Tensor stays = hold;
    if (sliding_) {
      stays = out.dtype() == DType::Float32 ? out : floats(places.capacity);
      keep_last(mover, places, call, to, call.head, stays.mutable_data<float>());
    }
    if (out.dtype() != DType::Float32)
      convert_reals(ctx.run(), kernels_, DType::Float32, stays.raw(), out.dtype(), out.mutable_raw(),
                    size(out.numel()));
  }

  /// Heads turned by the angles of inputs cos_cache and sin_cache, as [batch, rows, heads, head] in `hold`.
  Heads<const float> turned(KernelContext& ctx, const Heads<const float>& x, std::size_t heads,
                            const AttentionCall<float>& call, const Places& places,
                            kernel::Scratch<float>& hold) const {
    if (!ctx.has_input(7) || !ctx.has_input(8))
      fail(ErrorCode::InvalidArgument, "GroupQueryAttention with do_rotary needs cos_cache and sin_cache");
    const Tensor &cos_cache = ctx.input(7), &sin_cache = ctx.input(8);
    const std::size_t n = call.q_len, h = call.head;
    if (cos_cache.rank() != 2 || cos_cache.shape() != sin_cache.shape() || 2 * size(cos_cache.dim(1)) > h)
      fail(ErrorCode::ShapeMismatch,
           cat("GroupQueryAttention: the rotary caches are ", cos_cache.to_string(), " and ", sin_cache.to_string()));
    const kernel::Numbers<std::int64_t> given(ctx.run(), ctx.optional_input(9));
    if (ctx.has_input(9) && given.size() != call.batch * n)
      fail(ErrorCode::ShapeMismatch, cat("GroupQueryAttention: position_ids is ", ctx.input(9).to_string()));
    const bool prompt = !places.padded && tensor::to_int64_scalar(ctx.input(6)) == static_cast<std::int64_t>(n);
    const auto position_of = [&](std::size_t b, std::size_t row) {
      const auto place = static_cast<std::int64_t>(row);
      if (given.empty()) return static_cast<std::int64_t>(places.evicted[b] + places.before[b]) + place;
      // Of a prompt the first position counts alone.
      return prompt ? checked_add(given[0], place, ErrorCode::InvalidArgument) : given[b * n + row];
    };
    const kernel::Scratch<std::size_t> positions(ctx.run(), call.batch * n);
    kernel::Watch watch(ctx.run());
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const std::size_t b = i / n, row = i % n;
      std::int64_t p = position_of(b, row);
      watch.did(5);
      const bool outside = p < 0 || p >= cos_cache.dim(0);
      if (outside && row >= places.fresh[b] && cos_cache.dim(0) > 0) p = 0;  // of padding
      positions[i] = static_cast<std::size_t>(p);
      if (p < 0 || p >= cos_cache.dim(0)) {
        fail(ErrorCode::InvalidArgument,
             cat("GroupQueryAttention: position ", p, " lies outside a rotary cache of ", cos_cache.dim(0), " rows"));
      }
    }
    const RealInput<float> cos(ctx, kernels_, cos_cache), sin(ctx, kernels_, sin_cache);
    const std::size_t half = size(cos_cache.dim(1));
    hold = kernel::Scratch<float>(ctx.run(), call.batch * n * heads * h);
    ctx.parallel_for(call.batch * n, static_cast<double>(heads * h) * 2,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       for (std::size_t i = begin; i < end; ++i) {
                         const std::size_t at = positions[i] * half;
                         for (std::size_t k = 0; k < heads; ++k)
                           turn_pairs(x.at(i / n, k, i % n), cos + at, sin + at, hold.data() + (i * heads + k) * h,
                                      half, h, interleaved_);
                       }
                     });
    return Heads<const float>::bsnh(hold.data(), heads, n, h);
  }

  /// What `call` reads as its mask.
  struct Bias {
    RealInput<float> given;
    kernel::Scratch<float> moved;
  };
  Bias bias(KernelContext& ctx, const Places& places, AttentionCall<float>& call) const {
    const Tensor* added = ctx.optional_input(10);
    if (added == nullptr) return {};
    if (added->rank() != 4)
      fail(ErrorCode::ShapeMismatch, cat("GroupQueryAttention: attention_bias is ", added->to_string()));
    Shape target{static_cast<std::int64_t>(call.batch), heads_, static_cast<std::int64_t>(call.q_len), added->dim(3)};
    const Shape strides = tensor::broadcast_strides(added->shape(), target);
    Bias out{RealInput<float>(ctx, kernels_, *added), {}};
    const std::size_t columns = size(added->dim(3));
    call.mask = {out.given.data(), size(strides[0]), size(strides[1]), size(strides[2])};
    call.mask_columns = columns;
    if (!sliding_) return out;
    // Columns are positions; those in the cache become its rows.
    const std::size_t heads = added->dim(1) == 1 ? 1 : call.q_heads, n = call.q_len, keys = call.kv_len;
    out.moved = kernel::Scratch<float>(ctx.run(), checked_mul(checked_mul(call.batch * heads, n), keys));
    ctx.parallel_for(
        call.batch * heads * n, static_cast<double>(keys), [&](std::size_t begin, std::size_t end, std::size_t) {
          for (std::size_t i = begin; i < end; ++i) {
            const std::size_t b = i / n / heads, first = std::min(places.evicted[b], columns);
            float* const row = out.moved.data() + i * keys;
            float* const rest =
                std::copy_n(call.mask.at(b, i / n % heads, i % n) + first, std::min(keys, columns - first), row);
            std::fill(rest, row + keys, -std::numeric_limits<float>::infinity());
          }
        });
    call.mask = {out.moved.data(), heads * n * keys, heads == 1 ? 0 : n * keys, keys};
    call.mask_columns = keys;
    return out;
  }

  const microkernels::KernelSet& kernels_;
  std::int64_t heads_, kv_heads_;
  float scale_, softcap_;
  std::int64_t window_;
  bool rotary_, interleaved_, causal_, smooth_;
  std::int64_t qk_output_, bits_;
  bool sliding_;  ///< the cache forgets what lies before the window
  float q_epsilon_, k_epsilon_;
  bool quantized_[2];  ///< keys, values
};

/// Rows of the present: those of the past, or as many as there are tokens.
Dim cache_rows(const InferContext& ctx) {
  const graph::SymShape* past = ctx.input_shape(3);
  const bool known = !ctx.has_input(3) || (past != nullptr && past->size() == 4);
  const Dim held = !known ? Dim::unknown() : past == nullptr ? Dim(0) : (*past)[2];
  if (ctx.attributes().get_int("sliding_window_cache", 0) != 0) return held;
  const auto total = ctx.input_contents(6);
  if (!total || total->size() != 1) return Dim::unknown();
  if (held.is(0)) return total->front();
  if (!held.known() || !total->front().known()) return Dim::unknown();
  return Dim(std::max(held.value(), total->front().value()));
}

void infer_group_query_attention(InferContext& ctx) {
  for (std::size_t o = 0; o < ctx.output_count(); ++o) {
    if (ctx.has_output(o)) ctx.set_output_dtype(o, ctx.input_dtype(0));
  }
  const std::int64_t bits = ctx.attributes().get_int("kv_cache_bit_width", 0);
  bool quantized[3] = {};
  for (const std::size_t o : {1, 2}) {
    quantized[o] = ctx.attributes().get_string(o == 1 ? "k_quant_type" : "v_quant_type", "NONE") != "NONE";
    if (quantized[o] && ctx.has_output(o)) ctx.set_output_dtype(o, bits == 4 ? DType::UInt8 : DType::Int8);
  }
  const graph::SymShape* q = ctx.input_shape(0);
  if (q == nullptr || q->size() != 3) return;
  const std::int64_t heads = ctx.attributes().get_int("num_heads"), kv_heads = ctx.attributes().get_int("kv_num_heads");
  const Dim head = floor_div((*q)[2], Dim(ctx.has_input(1) ? heads : heads + 2 * kv_heads));
  ctx.set_output_shape(0, graph::SymShape{(*q)[0], (*q)[1], head * Dim(heads)});
  const Dim capacity = cache_rows(ctx);
  for (const std::size_t o : {1, 2}) {
    const Dim width = quantized[o] && bits == 4 ? floor_div(head, Dim(2)) : head;
    if (ctx.has_output(o)) ctx.set_output_shape(o, graph::SymShape{(*q)[0], kv_heads, capacity, width});
  }
  if (ctx.has_output(3)) ctx.set_output_shape(3, graph::SymShape{(*q)[0], heads, (*q)[1], Dim::unknown()});
}

}  // namespace

void register_group_query_attention(kernel::OpRegistrar& r) {
  r.op("GroupQueryAttention", "com.microsoft")
      .version(
          1,
          "query:T, key:T?, value:T?, past_key:C?, past_value:C?, seqlens_k:M, total_sequence_length:M, cos_cache:T?, "
          "sin_cache:T?, position_ids:int64?, attention_bias:T?, head_sink:T?, k_scale:float?, v_scale:float?, "
          "q_norm_weight:T?, k_norm_weight:T?, query_seqlens:M? -> output:T, present_key:C?, present_value:C?, "
          "output_qk:T?; T = float|float16|bfloat16, C = float|float16|bfloat16|int8|uint8, M = int32")
      .infer(infer_group_query_attention)
      .kernel<GroupQueryAttention>();
}

}  // namespace infernode::ops
