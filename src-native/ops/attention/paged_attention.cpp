#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/charge.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "microkernels/reduce/reduce.h"
#include "ops/attention/attention_core.h"
#include "ops/attention/rotary.h"
#include "ops/common/reals.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr const char* kName = "PagedAttention";
enum Input : std::size_t {
  kQuery,
  kKey,
  kValue,
  kKeyCache,
  kValueCache,
  kStarts,
  kPast,
  kBlockTable,
  kCos,
  kSin,
  kSlots,
  kSink,
  kQueryNorm,
  kKeyNorm,
  kKeyScale,
  kValueScale
};

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }
std::int64_t dim(std::size_t v) { return static_cast<std::int64_t>(v); }

/// The tokens of one sequence: rows [first, first + fresh) of the query, behind `past` others.
struct Sequence {
  std::size_t first = 0, fresh = 0, past = 0;
  const std::int64_t* pages = nullptr;  ///< of its table; those that are no page are not mapped
};

/// A cache [pages, rows, heads, head]: of the query's type, or 8-bit codes with a scale for all or for each channel.
class Cache {
 public:
  Cache() = default;
  Cache(Tensor cache, const KernelContext& ctx, const microkernels::KernelSet& kernels, const Tensor* scale)
      : tensor_(std::move(cache)),
        run_(&ctx.run()),
        kernels_(&kernels),
        width_(size(tensor_.dim(2) * tensor_.dim(3))),
        item_(tensor::bit_size(tensor_.dtype()) / 8) {
    if (scale == nullptr) return;
    const std::vector<float> given = tensor::to_float_vector(*scale);
    if (given.size() != 1 && given.size() != width_)
      fail(ErrorCode::ShapeMismatch, cat(kName, ": a cache's scale is ", scale->to_string()));
    for (std::size_t i = 0; i < width_; ++i) scales_.push_back(given[given.size() == 1 ? 0 : i]);
  }
  explicit operator bool() const { return static_cast<bool>(tensor_); }
  std::size_t width() const { return width_; }

  /// Row `slot` of all pages, of all heads.
  void write(std::size_t slot, const float* from) const {
    auto* to = static_cast<std::byte*>(tensor_.mutable_raw()) + slot * width_ * item_;
    if (scales_.empty()) return convert_reals(*run_, *kernels_, DType::Float32, from, tensor_.dtype(), to, width_);
    auto* codes = reinterpret_cast<std::int8_t*>(to);
    for (std::size_t i = 0; i < width_; ++i) {
      const float rounded = std::nearbyint(from[i] / scales_[i]);
      codes[i] = static_cast<std::int8_t>(std::clamp(std::isnan(rounded) ? 0.0f : rounded, -128.0f, 127.0f));
    }
  }
  void read(std::size_t slot, float* to) const {
    const auto* from = static_cast<const std::byte*>(tensor_.raw()) + slot * width_ * item_;
    if (scales_.empty()) return convert_reals(*run_, *kernels_, tensor_.dtype(), from, DType::Float32, to, width_);
    const auto* codes = reinterpret_cast<const std::int8_t*>(from);
    for (std::size_t i = 0; i < width_; ++i) to[i] = static_cast<float>(codes[i]) * scales_[i];
  }

 private:
  Tensor tensor_;
  const kernel::RunContext* run_ = nullptr;
  const microkernels::KernelSet* kernels_ = nullptr;
  std::size_t width_ = 0, item_ = 0;
  std::vector<float> scales_;
};

/// com.microsoft's attention of packed sequences over caches in pages: tokens of all sequences follow one another, and
/// a table tells where the pages of each sequence lie.
class PagedAttention final : public kernel::Kernel {
 public:
  explicit PagedAttention(KernelInfo& info)
      : kernels_(info.kernels()),
        heads_(info.attributes().get_int("num_heads")),
        kv_heads_(info.attributes().get_int("kv_num_heads")),
        scale_(info.attributes().get_float("scale", 0)),
        softcap_(info.attributes().get_float("softcap", 0)),
        epsilon_(info.attributes().get_float("qk_norm_epsilon", 1e-6f)),
        window_(info.attributes().get_int("local_window_size", -1)),
        rotary_offset_(info.attributes().get_int("rotary_offset", 0)),
        value_head_(info.attributes().get_int("v_head_size", 0)),
        rotary_(info.attributes().get_int("do_rotary", 0) != 0),
        interleaved_(info.attributes().get_int("rotary_interleaved", 0) != 0),
        causal_(info.attributes().get_int("is_causal", 1) != 0),
        latent_(info.attributes().get_string("kv_cache_layout", "SEPARATE") == "LATENT") {
    if (heads_ < 1 || kv_heads_ < 1 || heads_ % kv_heads_ != 0)
      fail(ErrorCode::InvalidModel, cat(kName, ": ", heads_, " heads do not share ", kv_heads_));
    if (latent_ && (kv_heads_ != 1 || info.has_input(kValue) || info.has_input(kValueCache)))
      fail(ErrorCode::InvalidModel, cat(kName, ": a latent cache has one head and no values beside it"));
    if (rotary_offset_ < 0 || value_head_ < 0)
      fail(ErrorCode::InvalidModel, cat(kName, ": rotary_offset ", rotary_offset_, ", v_head_size ", value_head_));
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string type = info.attributes().get_string(i == 0 ? "k_cache_dtype" : "v_cache_dtype", "");
      if (type == "int4" || type == "float4e2m1")
        fail(ErrorCode::UnsupportedOperator, cat(kName, " with a cache of ", type));
      const std::string granularity = info.attributes().get_string(i == 0 ? "k_quant_type" : "v_quant_type", "NONE");
      if (i == 1 && latent_) continue;
      if (!info.has_input(kKeyCache + i)) fail(ErrorCode::InvalidModel, cat(kName, " without input ", kKeyCache + i));
      const bool codes = info.input_type(kKeyCache + i).elem == DType::Int8;
      if (codes != (granularity != "NONE") || codes != info.has_input(kKeyScale + i))
        fail(ErrorCode::InvalidModel, cat(kName, ": a cache of 8-bit codes goes with a scale, ", granularity));
    }
  }

  void run(KernelContext& ctx) const override {
    const Tensor &query = ctx.input(kQuery), &pages = ctx.input(kKeyCache);
    const bool packed = !ctx.has_input(kKey);
    const std::int64_t all = heads_ + (packed ? 2 * kv_heads_ : 0);
    if (query.rank() != 2 || query.dim(1) % all != 0 || (packed && latent_))
      fail(ErrorCode::ShapeMismatch, cat(kName, ": query is ", query.to_string(), " for ", all, " heads"));
    const std::int64_t tokens = query.dim(0), head = query.dim(1) / all;
    const std::int64_t value_head = latent_ && value_head_ > 0 ? value_head_ : head;
    if (value_head > head)
      fail(ErrorCode::InvalidModel, cat(kName, ": v_head_size is ", value_head, ", heads have ", head));
    for (const std::size_t i : {kKey, kValue}) {
      if (packed || (latent_ && i == kValue)) continue;
      if (!ctx.has_input(i) || ctx.input(i).shape() != Shape{tokens, kv_heads_ * head})
        fail(ErrorCode::ShapeMismatch, cat(kName, ": input ", i, " does not fit query ", query.to_string()));
    }
    if (pages.rank() != 4 || pages.dim(1) < 1)
      fail(ErrorCode::ShapeMismatch, cat(kName, ": key_cache is ", pages.to_string()));
    const Shape held{pages.dim(0), pages.dim(1), kv_heads_, head};
    for (std::size_t i = kKeyCache; i <= kValueCache; ++i) {
      if (ctx.has_input(i) && ctx.input(i).shape() != held)
        fail(ErrorCode::ShapeMismatch,
             cat(kName, ": input ", i, " is ", ctx.input(i).to_string(), ", expected ", held.to_string()));
    }
    const kernel::Numbers<std::int64_t> table(ctx.run(), ctx.input(kBlockTable));
    const std::vector<Sequence> sequences = read_sequences(ctx, table, size(tokens), size(pages.dim(1)));
    const RealInput<float> q(ctx, kernels_, query), k(ctx, kernels_, ctx.optional_input(kKey)),
        v(ctx, kernels_, ctx.optional_input(kValue));
    const std::size_t h = size(head), n = size(heads_), m = size(kv_heads_), width = size(query.dim(1));
    const Tensor queries = prepared(ctx, q, width, n, h, kQueryNorm, sequences),
                 keys = prepared(ctx, packed ? q + n * h : k.data(), packed ? width : m * h, m, h, kKeyNorm, sequences);
    const Tensor y = ctx.output(0, Shape{tokens, checked_mul(heads_, value_head)});
    const Cache key_cache = cache_of(ctx, 0), value_cache = latent_ ? Cache() : cache_of(ctx, 1);
    store(ctx, sequences, size(pages.dim(0)), size(pages.dim(1)), keys.data<float>(), m * h, key_cache);
    if (value_cache)
      store(ctx, sequences, size(pages.dim(0)), size(pages.dim(1)), packed ? q + (n + m) * h : v.data(),
            packed ? width : m * h, value_cache);
    const RealOutput<float> out(ctx, kernels_, y);
    const std::vector<float> sinks = sinks_of(ctx);
    for (const Sequence& s : sequences) {
      AttentionCall<float> call;
      call.head = h;
      call.v_head = size(value_head);
      call.q = Heads<const float>::bsnh(queries.data<float>() + s.first * n * h, n, s.fresh, h);
      call.y = Heads<float>::bsnh(out + s.first * n * call.v_head, n, s.fresh, call.v_head);
      if (!sinks.empty()) call.sinks = sinks.data();
      attend(ctx, s, size(pages.dim(0)), size(pages.dim(1)), key_cache, value_cache, call);
    }
    out.store();
  }

 private:
  std::vector<Sequence> read_sequences(const KernelContext& ctx, const kernel::Numbers<std::int64_t>& table,
                                       std::size_t tokens, std::size_t page_rows) const {
    const Tensor& pages = ctx.input(kBlockTable);
    const kernel::Numbers<std::int64_t> starts(ctx.run(), ctx.input(kStarts)), past(ctx.run(), ctx.input(kPast));
    if (starts.size() != past.size() + 1 || pages.rank() != 2 || size(pages.dim(0)) != past.size() || starts[0] != 0 ||
        starts[past.size()] != dim(tokens))
      fail(ErrorCode::ShapeMismatch,
           cat(kName, ": cumulative_sequence_length ", ctx.input(kStarts).to_string(), ", past_seqlens ",
               ctx.input(kPast).to_string(), " and block_table ", pages.to_string(), " for ", tokens, " tokens"));
    const std::int64_t most = checked_mul(pages.dim(1), dim(page_rows));
    std::vector<Sequence> out;
    for (std::size_t b = 0; b < past.size(); ++b) {
      const std::int64_t fresh = starts[b + 1] - starts[b];
      if (starts[b] < 0 || fresh < 0 || past[b] < 0 || past[b] > most || fresh > most - past[b])
        fail(ErrorCode::InvalidArgument,
             cat(kName, ": sequence ", b, " has ", past[b], " tokens and ", fresh, " new ones, its pages hold ", most));
      out.push_back({size(starts[b]), size(fresh), size(past[b]), table.data() + b * size(pages.dim(1))});
    }
    return out;
  }

  /// Heads of all tokens [tokens, heads, head], divided by their root mean square where there is a weight for it, and
  /// turned by their positions. `stride`: elements from one token of `x` to the next.
  Tensor prepared(KernelContext& ctx, const float* x, std::size_t stride, std::size_t heads, std::size_t h,
                  std::size_t norm, const std::vector<Sequence>& sequences) const {
    const std::size_t tokens = sequences.empty() ? 0 : sequences.back().first + sequences.back().fresh;
    const Tensor out = Tensor::make(DType::Float32, Shape{dim(tokens), dim(heads), dim(h)}, *ctx.run().allocator);
    float* to = out.mutable_data<float>();
    const Tensor* weight = ctx.optional_input(norm);
    if (weight != nullptr && weight->shape() != Shape{dim(h)})
      fail(ErrorCode::ShapeMismatch,
           cat(kName, ": input ", norm, " is ", weight->to_string(), " for heads of ", h, " elements"));
    const RealInput<float> gain(ctx, kernels_, weight),
        cos(ctx, kernels_, rotary_ ? &rotary_cache(ctx, kCos, h, sequences) : nullptr),
        sin(ctx, kernels_, rotary_ ? &rotary_cache(ctx, kSin, h, sequences) : nullptr);
    const std::size_t half = rotary_ ? size(ctx.input(kCos).dim(1)) : 0, offset = size(rotary_offset_);
    for (const Sequence& s : sequences) {
      ctx.parallel_for(s.fresh, static_cast<double>(heads * h) * 2,
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         for (std::size_t t = begin; t < end; ++t) {
                           for (std::size_t k = 0; k < heads; ++k) {
                             float* row = to + ((s.first + t) * heads + k) * h;
                             std::memcpy(row, x + (s.first + t) * stride + k * h, h * sizeof(float));
                             if (weight != nullptr) kernels_.reduce.rms_norm(row, gain, row, h, epsilon_, nullptr);
                             if (rotary_)
                               turn_pairs(row + offset, cos + (s.past + t) * half, sin + (s.past + t) * half,
                                          row + offset, half, h - offset, interleaved_);
                           }
                         }
                       });
    }
    return out;
  }

  const Tensor& rotary_cache(const KernelContext& ctx, std::size_t input, std::size_t h,
                             const std::vector<Sequence>& sequences) const {
    const Tensor* cache = ctx.optional_input(input);
    if (cache == nullptr) fail(ErrorCode::InvalidArgument, cat(kName, " with do_rotary needs cos_cache and sin_cache"));
    if (cache->rank() != 2 || cache->shape() != ctx.input(kCos).shape() ||
        size(rotary_offset_) + 2 * size(cache->dim(1)) > h)
      fail(ErrorCode::ShapeMismatch,
           cat(kName, ": input ", input, " is ", cache->to_string(), " for heads of ", h, " elements"));
    for (const Sequence& s : sequences) {
      if (s.past + s.fresh > size(cache->dim(0)))
        fail(ErrorCode::InvalidArgument, cat(kName, ": position ", s.past + s.fresh - 1,
                                             " lies outside a rotary cache of ", cache->dim(0), " rows"));
    }
    return *cache;
  }

  /// Keys (0) or values (1): the output that takes their input's place, or where nobody reads it a copy.
  Cache cache_of(KernelContext& ctx, std::size_t which) const {
    const Tensor& given = ctx.input(kKeyCache + which);
    const Tensor out = ctx.wants_output(1 + which) ? ctx.output(1 + which, given.dtype(), given.shape())
                                                   : Tensor::make(given.dtype(), given.shape(), *ctx.run().allocator);
    copy_all(ctx.run(), given, out);
    return Cache(out, ctx, kernels_, ctx.optional_input(kKeyScale + which));
  }

  /// Puts new rows where slot_mapping, or else the table, says. Rows of tokens lie `stride` elements apart.
  void store(const KernelContext& ctx, const std::vector<Sequence>& sequences, std::size_t pages, std::size_t page_rows,
             const float* rows, std::size_t stride, const Cache& cache) const {
    const Tensor* given = ctx.optional_input(kSlots);
    const kernel::Numbers<std::int64_t> slots(ctx.run(), given);
    kernel::Watch watch(ctx.run());
    const std::size_t tokens = sequences.empty() ? 0 : sequences.back().first + sequences.back().fresh;
    if (given != nullptr && slots.size() != tokens)
      fail(ErrorCode::ShapeMismatch, cat(kName, ": slot_mapping is ", given->to_string(), " for ", tokens, " tokens"));
    for (const Sequence& s : sequences) {
      for (std::size_t t = 0; t < s.fresh; ++t) {
        const std::int64_t slot = given == nullptr ? slot_of(s, s.past + t, pages, page_rows) : slots[s.first + t];
        if (slot < -1 || slot >= dim(pages * page_rows))
          fail(ErrorCode::InvalidArgument,
               cat(kName, ": slot ", slot, " lies outside ", pages, " pages of ", page_rows, " rows"));
        if (slot >= 0) cache.write(size(slot), rows + (s.first + t) * stride);
        watch.did(5 + 0.5 * static_cast<double>(cache.width()));
      }
    }
  }

  /// -1 where the page is not mapped.
  static std::int64_t slot_of(const Sequence& s, std::size_t position, std::size_t pages, std::size_t page_rows) {
    const std::int64_t page = s.pages[position / page_rows];
    if (page >= dim(pages))
      fail(ErrorCode::InvalidArgument, cat(kName, ": block_table names page ", page, " of ", pages));
    return page < 0 ? -1 : page * dim(page_rows) + dim(position % page_rows);
  }

  /// One sequence, whose rows of the caches are gathered.
  void attend(KernelContext& ctx, const Sequence& s, std::size_t pages, std::size_t page_rows, const Cache& keys,
              const Cache& values, AttentionCall<float>& call) const {
    const std::size_t total = s.past + s.fresh, width = keys.width();
    if (s.fresh == 0) return;
    const kernel::Charge charge(ctx.run(), checked_mul(total, sizeof(float)));
    std::vector<float> shut(total, 0.0f);
    const Tensor rows =
        Tensor::make(DType::Float32, Shape{values ? 2 : 1, dim(total), dim(width)}, *ctx.run().allocator);
    float *k = rows.mutable_data<float>(), *v = values ? k + total * width : k;
    ctx.parallel_for(total, static_cast<double>(width), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t t = begin; t < end; ++t) {
        const std::int64_t slot = slot_of(s, t, pages, page_rows);
        if (slot < 0) {
          shut[t] = -std::numeric_limits<float>::infinity();
          std::fill_n(k + t * width, width, 0.0f);
          if (values) std::fill_n(v + t * width, width, 0.0f);
          continue;
        }
        keys.read(size(slot), k + t * width);
        if (values) values.read(size(slot), v + t * width);
      }
    });
    call.batch = 1;
    call.q_heads = size(heads_);
    call.kv_heads = size(kv_heads_);
    call.q_len = s.fresh;
    call.kv_len = total;
    call.k = Heads<const float>::bsnh(k, call.kv_heads, total, call.head);
    call.v = Heads<const float>{v, total * width, call.head, width};
    call.scale = scale_ != 0 ? static_cast<double>(scale_) : 1 / std::sqrt(static_cast<double>(call.head));
    call.softcap = static_cast<double>(softcap_);
    call.causal = causal_;
    if (window_ > 0) call.left_window = std::min<std::int64_t>(window_, std::int64_t{1} << 40) - 1;
    call.offsets = {dim(s.past)};
    if (std::find_if(shut.begin(), shut.end(), [](float f) { return f != 0; }) != shut.end()) {
      call.mask = {shut.data(), 0, 0, 0};
      call.mask_columns = total;
    }
    run_attention(ctx, kernels_, call);
  }

  std::vector<float> sinks_of(const KernelContext& ctx) const {
    const Tensor* sink = ctx.optional_input(kSink);
    if (sink == nullptr) return {};
    if (sink->numel() != heads_)
      fail(ErrorCode::ShapeMismatch, cat(kName, ": head_sink is ", sink->to_string(), " for ", heads_, " heads"));
    return tensor::to_float_vector(*sink);
  }

  const microkernels::KernelSet& kernels_;
  std::int64_t heads_, kv_heads_;
  float scale_, softcap_, epsilon_;
  std::int64_t window_, rotary_offset_, value_head_;
  bool rotary_, interleaved_, causal_, latent_;
};

void infer_paged_attention(InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(kQuery));
  for (const std::size_t which : {0, 1}) {
    if (!ctx.has_output(1 + which) || !ctx.has_input(kKeyCache + which)) continue;
    ctx.set_output_dtype(1 + which, ctx.input_dtype(kKeyCache + which));
    if (const graph::SymShape* cache = ctx.input_shape(kKeyCache + which)) ctx.set_output_shape(1 + which, *cache);
  }
  const graph::SymShape* query = ctx.input_shape(kQuery);
  if (query == nullptr || query->size() != 2) return;
  const std::int64_t heads = ctx.attributes().get_int("num_heads"), shared = ctx.attributes().get_int("kv_num_heads");
  const std::int64_t all = heads + (ctx.has_input(kKey) ? 0 : 2 * shared),
                     width = ctx.attributes().get_int("v_head_size", 0);
  if (heads < 1 || shared < 1) return;
  const graph::Dim head = width > 0 ? graph::Dim(width) : floor_div((*query)[1], graph::Dim(all));
  ctx.set_output_shape(0, graph::SymShape{(*query)[0], head * graph::Dim(heads)});
}

}  // namespace

void register_paged_attention(kernel::OpRegistrar& r) {
  using enum DType;
  r.op("PagedAttention", "com.microsoft")
      .version(1,
               "query:T, key:T?, value:T?, key_cache:T_CACHE, value_cache:T_CACHE?, cumulative_sequence_length:S, "
               "past_seqlens:S, block_table:S, cos_cache:T?, sin_cache:T?, slot_mapping:S?, head_sink:T?, "
               "q_norm_weight:T?, k_norm_weight:T?, k_scale:T_KV_SCALE?, v_scale:T_KV_SCALE?, attention_metadata:S? -> "
               "output:T, key_cache_out:T_CACHE?, value_cache_out:T_CACHE?; T = float|float16|bfloat16, "
               "T_CACHE = float|float16|bfloat16|int8|float8e4m3fn|uint8, T_KV_SCALE = float, S = int32")
      .infer(infer_paged_attention)
      .kernel<PagedAttention>({{"T_CACHE", {Float32, Float16, BFloat16, Int8}}})
      .in_place(kKeyCache, 1)
      .in_place(kValueCache, 2);
}

}  // namespace infernode::ops
