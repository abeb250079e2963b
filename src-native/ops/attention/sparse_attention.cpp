#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "microkernels/gemm/gemm.h"
#include "microkernels/reduce/reduce.h"
#include "ops/attention/attention_core.h"
#include "ops/attention/rotary.h"
#include "ops/common/mover.h"
#include "ops/common/reals.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

constexpr const char* kName = "SparseAttention";
enum Input : std::size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kRowIndices,
  kColumnIndices,
  kTotalLength,
  kLengths,
  kCos,
  kSin
};

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// Which blocks of keys the queries of each block see; heads take the layouts in turn.
struct Layouts {
  std::size_t count = 0, rows = 0, most = 0;     ///< layouts, blocks of queries, columns of `columns`
  kernel::Numbers<std::int64_t> begin, columns;  ///< [count, rows + 1], [count, most]
};

/// One call: heads lie as [batch, rows, heads, head], caches as [batch, heads, capacity, head].
struct Call {
  std::size_t batch = 0, length = 0, head = 0, capacity = 0;
  Heads<const float> q, k, v;
  float *keys = nullptr, *values = nullptr, *y = nullptr;
  std::vector<std::size_t> past;  ///< of each batch entry: the position of its first query
};

/// com.microsoft's causal attention over a cache, in which a head's queries see some blocks of keys only. Blocks out of
/// sight are not computed.
class SparseAttention final : public kernel::Kernel {
 public:
  explicit SparseAttention(KernelInfo& info)
      : kernels_(info.kernels()),
        heads_(info.attributes().get_int("num_heads")),
        kv_heads_(info.attributes().get_int("kv_num_heads")),
        block_(info.attributes().get_int("sparse_block_size")),
        scale_(info.attributes().get_float("scale", 0)),
        rotary_(info.attributes().get_int("do_rotary", 0) != 0),
        interleaved_(info.attributes().get_int("rotary_interleaved", 0) != 0) {
    if (heads_ < 1 || kv_heads_ < 1 || heads_ % kv_heads_ != 0)
      fail(ErrorCode::InvalidModel, cat(kName, ": ", heads_, " heads do not share ", kv_heads_));
    if (block_ != 16 && block_ != 32 && block_ != 64 && block_ != 128)
      fail(ErrorCode::InvalidModel, cat(kName, ": sparse_block_size is ", block_, ", not 16, 32, 64 or 128"));
  }

  void run(KernelContext& ctx) const override {
    const Tensor &query = ctx.input(kQuery), &past = ctx.input(kPastKey);
    const bool packed = !ctx.has_input(kKey);
    const std::int64_t all = heads_ + (packed ? 2 * kv_heads_ : 0);
    if (query.rank() != 3 || query.dim(2) % all != 0)
      fail(ErrorCode::ShapeMismatch, cat(kName, ": query is ", query.to_string(), " for ", all, " heads"));
    const std::int64_t batch = query.dim(0), length = query.dim(1), head = query.dim(2) / all;
    for (const std::size_t i : {kKey, kValue}) {
      if (!packed && (!ctx.has_input(i) || ctx.input(i).shape() != Shape{batch, length, kv_heads_ * head}))
        fail(ErrorCode::ShapeMismatch, cat(kName, ": input ", i, " does not fit query ", query.to_string()));
    }
    const std::int64_t capacity = past.rank() == 4 ? past.dim(2) : 0;
    for (const std::size_t i : {kPastKey, kPastValue}) {
      if (ctx.input(i).shape() != Shape{batch, kv_heads_, capacity, head})
        fail(ErrorCode::ShapeMismatch,
             cat(kName, ": input ", i, " is ", ctx.input(i).to_string(), " for query ", query.to_string()));
    }
    const Layouts layouts = read_layouts(ctx, capacity);
    Call call{size(batch), size(length), size(head), size(capacity), {}, {}, {}, nullptr, nullptr, nullptr, {}};
    call.past = places(ctx, call);
    const Tensor y = ctx.output(0, Shape{batch, length, checked_mul(heads_, head)});
    const RealInput<float> q(ctx, kernels_, query), k(ctx, kernels_, ctx.optional_input(kKey)),
        v(ctx, kernels_, ctx.optional_input(kValue));
    const std::size_t width = size(query.dim(2));
    const auto within = [&](std::size_t first) {
      return Heads<const float>{q.data() + first * call.head, call.length * width, call.head, width};
    };
    const std::size_t n = size(heads_), m = size(kv_heads_);
    call.q = within(0);
    call.k = packed ? within(n) : Heads<const float>::bsnh(k.data(), m, call.length, call.head);
    call.v = packed ? within(n + m) : Heads<const float>::bsnh(v.data(), m, call.length, call.head);
    kernel::Scratch<float> turned_q, turned_k;
    if (rotary_) turn(ctx, call, turned_q, turned_k);
    const Tensor held[] = {cache(ctx, kPastKey, 1, call, call.k), cache(ctx, kPastValue, 2, call, call.v)};
    call.keys = held[0].mutable_data<float>();
    call.values = held[1].mutable_data<float>();
    const RealOutput<float> out(ctx, kernels_, y);
    call.y = out;
    attend(ctx, call, layouts);
    out.store();
  }

 private:
  Layouts read_layouts(const KernelContext& ctx, std::int64_t capacity) const {
    const Tensor &rows = ctx.input(kRowIndices), &columns = ctx.input(kColumnIndices);
    if (rows.rank() != 2 || columns.rank() != 2 || rows.dim(0) != columns.dim(0) || rows.dim(0) < 1 ||
        heads_ % rows.dim(0) != 0 || rows.dim(1) < 1)
      fail(ErrorCode::ShapeMismatch,
           cat(kName, ": block indices ", rows.to_string(), " and ", columns.to_string(), " for ", heads_, " heads"));
    Layouts out{size(rows.dim(0)), size(rows.dim(1)) - 1, size(columns.dim(1)),
                kernel::Numbers<std::int64_t>(ctx.run(), rows), kernel::Numbers<std::int64_t>(ctx.run(), columns)};
    for (std::size_t l = 0; l < out.count; ++l) {
      for (std::size_t r = 0; r <= out.rows; ++r) {
        const std::int64_t at = out.begin[l * (out.rows + 1) + r];
        const std::int64_t before = r == 0 ? 0 : out.begin[l * (out.rows + 1) + r - 1];
        if (at < before || at > columns.dim(1))
          fail(ErrorCode::InvalidArgument, cat(kName, ": block_row_indices has ", at, " behind ", before));
      }
    }
    if (ceil_div(capacity, block_) > static_cast<std::int64_t>(out.rows))
      fail(ErrorCode::ShapeMismatch, cat(kName, ": ", out.rows, " blocks for a cache of ", capacity, " rows"));
    return out;
  }

  static std::vector<std::size_t> places(const KernelContext& ctx, const Call& call) {
    const std::int64_t total = tensor::to_int64_scalar(ctx.input(kTotalLength)),
                       n = static_cast<std::int64_t>(call.length);
    const kernel::Numbers<std::int64_t> lengths(ctx.run(), ctx.input(kLengths));
    if (lengths.size() != call.batch || total < n || total > static_cast<std::int64_t>(call.capacity))
      fail(ErrorCode::InvalidArgument,
           cat(kName, ": ", lengths.size(), " lengths and a total of ", total, " for ", call.batch, " batches of ", n,
               " queries and a cache of ", call.capacity, " rows"));
    std::vector<std::size_t> out;
    for (const std::int64_t length : lengths) {
      if (length < 1 || length > total || (total != n && length < n))
        fail(ErrorCode::InvalidArgument, cat(kName, ": a length of ", length, " keys, ", n, " of ", total, " are new"));
      out.push_back(total == n ? 0 : size(length - n));  // a prompt may be padded behind
    }
    return out;
  }

  void turn(const KernelContext& ctx, Call& call, kernel::Scratch<float>& q, kernel::Scratch<float>& k) const {
    const Tensor *cos = ctx.optional_input(kCos), *sin = ctx.optional_input(kSin);
    if (cos == nullptr || sin == nullptr)
      fail(ErrorCode::InvalidArgument, cat(kName, " with do_rotary needs cos_cache and sin_cache"));
    if (cos->rank() != 2 || cos->shape() != sin->shape() || 2 * size(cos->dim(1)) > call.head)
      fail(ErrorCode::ShapeMismatch,
           cat(kName, ": the rotary caches are ", cos->to_string(), " and ", sin->to_string()));
    for (const std::size_t past : call.past) {
      if (past + call.length > size(cos->dim(0)))
        fail(ErrorCode::InvalidArgument, cat(kName, ": position ", past + call.length - 1,
                                             " lies outside a rotary cache of ", cos->dim(0), " rows"));
    }
    const RealInput<float> c(ctx, kernels_, *cos), s(ctx, kernels_, *sin);
    const std::size_t half = size(cos->dim(1)), n = call.length, h = call.head;
    const auto all = [&](Heads<const float>& x, std::size_t heads, kernel::Scratch<float>& hold) {
      hold = kernel::Scratch<float>(ctx.run(), call.batch * n * heads * h);
      ctx.parallel_for(call.batch * n, static_cast<double>(heads * h) * 2,
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         for (std::size_t i = begin; i < end; ++i) {
                           const std::size_t at = (call.past[i / n] + i % n) * half;
                           for (std::size_t k_head = 0; k_head < heads; ++k_head)
                             turn_pairs(x.at(i / n, k_head, i % n), c + at, s + at,
                                        hold.data() + (i * heads + k_head) * h, half, h, interleaved_);
                         }
                       });
      x = Heads<const float>::bsnh(hold.data(), heads, n, h);
    };
    all(call.q, size(heads_), q);
    all(call.k, size(kv_heads_), k);
  }

  /// Output `o`: the cache with new rows in it, as float32.
  Tensor cache(KernelContext& ctx, std::size_t input, std::size_t o, const Call& call,
               const Heads<const float>& fresh) const {
    const Tensor& past = ctx.input(input);
    const Tensor out = ctx.output(o, past.shape());
    Tensor held = out.dtype() == tensor::DType::Float32
                      ? out
                      : Tensor::make(tensor::DType::Float32, past.shape(), *ctx.run().allocator);
    float* to = held.mutable_data<float>();
    if (out.raw() != past.raw())
      convert_reals(ctx.run(), kernels_, past.dtype(), past.raw(), tensor::DType::Float32, to, size(past.numel()));
    const std::size_t m = size(kv_heads_), h = call.head;
    Mover mover(ctx.run());
    for (std::size_t i = 0; i < call.batch * m; ++i) {
      for (std::size_t r = 0; r < call.length; ++r) {
        mover.copy(fresh.at(i / m, i % m, r), static_cast<std::int64_t>(h),
                   to + (i * call.capacity + call.past[i / m] + r) * h);
      }
    }
    if (out.dtype() != tensor::DType::Float32)
      convert_reals(ctx.run(), kernels_, tensor::DType::Float32, to, out.dtype(), out.mutable_raw(), size(out.numel()));
    return held;
  }

  /// All heads, a block of queries at a time.
  void attend(KernelContext& ctx, const Call& call, const Layouts& layouts) const {
    const std::size_t block = size(block_), n = size(heads_);
    const microkernels::GemmTable& gemm = kernels_.gemm_float32;
    const std::size_t blocks =
        call.length == 0 ? 0 : ceil_div(call.length, block) + 1;  // the first may begin within one
    const std::size_t widest = align_up(std::max<std::size_t>(call.capacity, 1), block),
                      threads = std::max<std::size_t>(1, ctx.run().max_threads);
    const std::size_t scores =
        align_up(checked_mul(checked_mul(std::min(block, call.length), widest), sizeof(float)), 64);
    const std::size_t stride = checked_add(scores, align_up(gemm.scratch_floats * sizeof(float), 64));
    const tensor::Buffer memory = ctx.scratch(checked_mul(stride, threads));
    const double cost = static_cast<double>(block * call.capacity * call.head) / 8;
    ctx.parallel_for(call.batch * n * blocks, cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
      auto* work = reinterpret_cast<float*>(memory.data() + slot * stride);
      auto* scratch = reinterpret_cast<float*>(memory.data() + slot * stride + scores);
      kernel::Watch watch(ctx.run());
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t b = i / blocks / n, row = call.past[b] / block + i % blocks;  // block of queries
        const std::size_t from = std::max(row * block, call.past[b]),
                          to = std::min((row + 1) * block, call.past[b] + call.length);
        if (from < to) attend_block(watch, call, layouts, b, i / blocks % n, row, from, to, work, scratch);
      }
    });
  }

  /// Queries at positions [from, to), which lie in block `row`.
  void attend_block(kernel::Watch& watch, const Call& call, const Layouts& layouts, std::size_t b, std::size_t head,
                    std::size_t row, std::size_t from, std::size_t to, float* scores, float* scratch) const {
    const std::size_t block = size(block_), rows = to - from, h = call.head, n = size(heads_),
                      kv = head / (n / size(kv_heads_));
    const std::size_t layout = head % layouts.count;
    const std::int64_t* range = layouts.begin.data() + layout * (layouts.rows + 1) + row;
    const std::size_t cache = (b * size(kv_heads_) + kv) * call.capacity * h;
    const microkernels::GemmTable& gemm = kernels_.gemm_float32;
    const double block_ns = 1 + static_cast<double>(h) / 20;  // of a key and a query
    std::size_t width = 0;                                    // of the scores so far
    std::vector<std::size_t> seen;
    const std::size_t ld = align_up(std::max<std::size_t>(call.capacity, 1), block);
    for (std::int64_t c = range[0]; c < range[1]; ++c) {
      const std::int64_t column = layouts.columns[layout * layouts.most + size(c)];
      if (column < 0 || column > static_cast<std::int64_t>(row) || width + block > ld) continue;  // filling, or not yet
      const std::size_t first = size(column) * block, count = std::min(block, to - first);
      microkernels::GemmArgs args;
      args.m = rows, args.n = count, args.k = h;
      args.alpha = scale_ != 0 ? scale_ : 1 / std::sqrt(static_cast<float>(h));
      args.a = call.q.at(b, head, from - call.past[b]), args.lda = call.q.row;
      args.b = call.keys + cache + first * h, args.ldb = h, args.trans_b = true;
      args.c = scores + width, args.ldc = ld;
      gemm.gemm(args, {0, rows, 0, count}, scratch);
      for (std::size_t r = 0; r < rows; ++r) {  // keys behind a query
        for (std::size_t k = 0; k < count; ++k) {
          if (first + k > from + r) scores[r * ld + width + k] = -std::numeric_limits<float>::infinity();
        }
      }
      seen.push_back(first);
      width += count;
      watch.did(static_cast<double>(rows * count) * block_ns);
    }
    float* y = call.y + ((b * call.length + from - call.past[b]) * n + head) * h;
    for (std::size_t r = 0; r < rows; ++r) {
      float* scores_of = scores + r * ld;
      const bool any = std::any_of(scores_of, scores_of + width, [](float s) {
        return s > -std::numeric_limits<float>::infinity() || std::isnan(s);
      });
      if (any) {
        kernels_.reduce.softmax(scores_of, scores_of, width);
      } else {
        std::fill_n(scores_of, width, 0.0f);
      }
      watch.did(static_cast<double>(width) * 2);
      std::fill_n(y + r * n * h, h, 0.0f);
    }
    std::size_t at = 0;
    for (const std::size_t first : seen) {
      const std::size_t count = std::min(block, to - first);
      microkernels::GemmArgs args;
      args.m = rows, args.n = h, args.k = count;
      args.a = scores + at, args.lda = ld;
      args.b = call.values + cache + first * h, args.ldb = h;
      args.c = y, args.ldc = n * h, args.accumulate = true;
      gemm.gemm(args, {0, rows, 0, h}, scratch);
      at += count;
      watch.did(static_cast<double>(rows * count) * block_ns);
    }
  }

  const microkernels::KernelSet& kernels_;
  std::int64_t heads_, kv_heads_, block_;
  float scale_;
  bool rotary_, interleaved_;
};

void infer_sparse_attention(InferContext& ctx) {
  const graph::SymShape *query = ctx.input_shape(kQuery), *past = ctx.input_shape(kPastKey);
  for (const std::size_t o : {1, 2}) {
    if (ctx.has_output(o)) ctx.set_output_dtype(o, ctx.input_dtype(kPastKey));
    if (ctx.has_output(o) && past != nullptr) ctx.set_output_shape(o, *past);
  }
  ctx.set_output_dtype(0, ctx.input_dtype(kQuery));
  if (query == nullptr || query->size() != 3) return;
  const std::int64_t heads = ctx.attributes().get_int("num_heads"), shared = ctx.attributes().get_int("kv_num_heads");
  graph::SymShape out = *query;
  if (!ctx.has_input(kKey) && heads > 0 && shared > 0)
    out[2] = floor_div(out[2], graph::Dim(heads + 2 * shared)) * graph::Dim(heads);
  ctx.set_output_shape(0, std::move(out));
}

}  // namespace

void register_sparse_attention(kernel::OpRegistrar& r) {
  r.op("SparseAttention", "com.microsoft")
      .version(1,
               "query:T, key:T?, value:T?, past_key:T, past_value:T, block_row_indices:M, block_col_indices:M, "
               "total_sequence_length:M, key_total_sequence_lengths:M, cos_cache:T?, sin_cache:T? -> output:T, "
               "present_key:T, present_value:T; T = float|float16|bfloat16, M = int32")
      .infer(infer_sparse_attention)
      .kernel<SparseAttention>();
}

}  // namespace infernode::ops
