#include <algorithm>
#include <cmath>
#include <string>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"
#include "ops/common/contents.h"
#include "ops/common/mover.h"
#include "ops/common/reals.h"

namespace infernode::ops {
namespace {

using graph::Attributes;
using graph::Dim;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

struct HeadCounts {
  std::int64_t query, kv;
  explicit HeadCounts(const Attributes& attributes)
      : query(attributes.get_int("q_num_heads")), kv(attributes.get_int("kv_num_heads")) {
    if (query < 1 || kv < 1 || query % kv != 0) {
      fail(ErrorCode::InvalidModel,
           cat("LinearAttention: q_num_heads must be a multiple of kv_num_heads, got ", query, " and ", kv));
    }
  }
};

/// Attention whose keys and values are summed up in a state [d_k, d_v] for each head: decayed (gated rules), corrected
/// by what it already holds under the key (delta rules), increased by the outer product of key and value, then read
/// with the query. Computes in float32.
class LinearAttention final : public Kernel {
 public:
  explicit LinearAttention(KernelInfo& info)
      : kernels_(info.kernels()), heads_(info.attributes()), scale_(info.attributes().get_float("scale", 0)) {
    const std::string rule = info.attributes().get_string("update_rule", "gated_delta");
    gated_ = rule == "gated" || rule == "gated_delta";
    delta_ = rule == "delta" || rule == "gated_delta";
    if (!gated_ && !delta_ && rule != "linear") {
      fail(ErrorCode::InvalidModel,
           cat("LinearAttention: update_rule is '", rule, "' instead of 'linear', 'gated', 'delta' or 'gated_delta'"));
    }
    if (info.has_input(4) != gated_ || info.has_input(5) != delta_) {
      fail(ErrorCode::InvalidModel, cat("LinearAttention: update_rule '", rule, "' ", gated_ ? "needs" : "takes no",
                                        " decay and ", delta_ ? "needs" : "takes no", " beta"));
    }
  }

  void run(KernelContext& ctx) const override {
    const Sizes s = sizes(ctx);
    const Tensor y = ctx.output(0, ctx.input(0).dtype(), Shape{s.batch, s.steps, checked_mul(heads_.query, s.v)});
    const Shape state_shape{s.batch, heads_.kv, s.k, s.v};
    const Tensor present = ctx.wants_output(1) ? ctx.output(1, state_type(ctx), state_shape)
                                               : Tensor::make(DType::Float32, state_shape, *ctx.run().allocator);
    if (y.numel() == 0 && present.numel() == 0) return;
    const RealInput<float> q(ctx, kernels_, ctx.input(0)), k(ctx, kernels_, ctx.input(1)),
        v(ctx, kernels_, ctx.input(2)), past(ctx, kernels_, ctx.optional_input(3)),
        decay(ctx, kernels_, ctx.optional_input(4)), beta(ctx, kernels_, ctx.optional_input(5));
    const RealOutput<float> out(ctx, kernels_, y), states(ctx, kernels_, present);
    const auto size = static_cast<std::size_t>(s.k * s.v);
    const double cost = static_cast<double>(s.steps) * static_cast<double>(s.k * s.v) * 0.5 *
                        (2.0 + static_cast<double>(heads_.query / heads_.kv));
    ctx.parallel_for(static_cast<std::size_t>(s.batch * heads_.kv), cost,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       std::vector<float> update(static_cast<std::size_t>(s.v));
                       Mover mover(ctx.run());
                       for (std::size_t i = begin; i < end; ++i) {
                         float* state = states.data() + i * size;
                         if (past.data() != nullptr) {
                           mover.copy(past.data() + i * size, s.k * s.v, state);
                         } else {
                           mover.fill(state, s.k * s.v, 0.0f);
                         }
                         recur(mover, s, static_cast<std::int64_t>(i), q, k, v, decay, beta, state, update.data(), out);
                       }
                     });
    out.store();
    states.store();
  }

 private:
  struct Sizes {
    std::int64_t batch, steps, k, v, decay = 0, beta = 0;  ///< k, v: of one head; decay, beta: of all heads
  };

  static DType state_type(KernelContext& ctx) { return ctx.has_input(3) ? ctx.input(3).dtype() : ctx.input(0).dtype(); }

  Sizes sizes(KernelContext& ctx) const {
    const Tensor &q = ctx.input(0), &k = ctx.input(1), &v = ctx.input(2);
    const auto unfit = [&](const Tensor& t, const char* what) {
      fail(ErrorCode::ShapeMismatch, cat("LinearAttention: ", what, " ", t.to_string(), " does not fit query ",
                                         q.to_string(), " with ", heads_.query, " and ", heads_.kv, " heads"));
    };
    if (q.rank() != 3 || q.dim(2) % heads_.query != 0) unfit(q, "query");
    Sizes s{q.dim(0), q.dim(1), q.dim(2) / heads_.query, 0};
    const auto rows_fit = [&](const Tensor& t) { return t.rank() == 3 && t.dim(0) == s.batch && t.dim(1) == s.steps; };
    if (!rows_fit(k) || k.dim(2) != heads_.kv * s.k) unfit(k, "key");
    if (!rows_fit(v) || v.dim(2) % heads_.kv != 0) unfit(v, "value");
    s.v = v.dim(2) / heads_.kv;
    const Tensor* past = ctx.optional_input(3);
    if (past != nullptr && past->shape() != Shape{s.batch, heads_.kv, s.k, s.v}) unfit(*past, "past_state");
    if (const Tensor* decay = ctx.optional_input(4)) {
      s.decay = rows_fit(*decay) ? decay->dim(2) : 0;
      if (!rows_fit(*decay) || (s.decay != heads_.kv && s.decay != heads_.kv * s.k)) unfit(*decay, "decay");
    }
    if (const Tensor* beta = ctx.optional_input(5)) {
      s.beta = rows_fit(*beta) ? beta->dim(2) : 0;
      if (!rows_fit(*beta) || (s.beta != heads_.kv && s.beta != 1)) unfit(*beta, "beta");
    }
    return s;
  }

  /// All steps of one batch entry and key-value head.
  void recur(Mover& mover, const Sizes& s, std::int64_t index, const float* q, const float* k, const float* v,
             const float* decay, const float* beta, float* state, float* update, float* out) const {
    const std::int64_t batch = index / heads_.kv, head = index % heads_.kv, group = heads_.query / heads_.kv;
    const float scale = scale_ != 0 ? scale_ : static_cast<float>(1 / std::sqrt(static_cast<double>(s.k)));
    const auto each_key = [&](auto&& take) {
      for (std::int64_t d = 0; d < s.k; ++d) {
        take(d, state + d * s.v);
        mover.did(1 + 0.5 * static_cast<double>(s.v));
      }
    };
    for (std::int64_t t = 0; t < s.steps; ++t) {
      const std::int64_t row = batch * s.steps + t;
      const float* key = k + (row * heads_.kv + head) * s.k;
      std::copy_n(v + (row * heads_.kv + head) * s.v, s.v, update);
      if (gated_) {
        const bool shared = s.decay == heads_.kv;
        const float* gate = decay + row * s.decay + (shared ? head : head * s.k);
        each_key([&](std::int64_t d, float* values) {
          const float factor = std::exp(gate[shared ? 0 : d]);
          for (std::int64_t m = 0; m < s.v; ++m) values[m] *= factor;
        });
      }
      if (delta_) {
        each_key([&](std::int64_t d, const float* values) {
          for (std::int64_t m = 0; m < s.v; ++m) update[m] -= values[m] * key[d];
        });
        const float rate = beta[row * s.beta + (s.beta == 1 ? 0 : head)];
        for (std::int64_t m = 0; m < s.v; ++m) update[m] *= rate;
      }
      each_key([&](std::int64_t d, float* values) {
        for (std::int64_t m = 0; m < s.v; ++m) values[m] += key[d] * update[m];
      });
      for (std::int64_t h = head * group; h < (head + 1) * group; ++h) {
        const float* query = q + (row * heads_.query + h) * s.k;
        float* y = out + (row * heads_.query + h) * s.v;
        std::fill_n(y, s.v, 0.0f);
        each_key([&](std::int64_t d, const float* values) {
          for (std::int64_t m = 0; m < s.v; ++m) y[m] += query[d] * values[m];
        });
        for (std::int64_t m = 0; m < s.v; ++m) y[m] *= scale;
      }
    }
  }

  const microkernels::KernelSet& kernels_;
  HeadCounts heads_;
  float scale_;
  bool gated_ = false, delta_ = false;
};

void infer_linear_attention(InferContext& ctx) {
  const HeadCounts heads(ctx.attributes());
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  if (ctx.has_output(1)) ctx.set_output_dtype(1, ctx.has_input(3) ? ctx.input_dtype(3) : ctx.input_dtype(0));
  const graph::SymShape *q = ctx.input_shape(0), *v = ctx.input_shape(2);
  if (q == nullptr || v == nullptr) return;
  if (q->size() != 3 || v->size() != 3)
    fail(ErrorCode::ShapeMismatch, "LinearAttention: query, key and value must have rank 3");
  Dim d_k = floor_div((*q)[2], Dim(heads.query)), d_v = floor_div((*v)[2], Dim(heads.kv));
  if (const graph::SymShape* past = ctx.input_shape(3); past != nullptr && past->size() == 4) {
    if (!is_told(d_k)) d_k = (*past)[2];
    if (!is_told(d_v)) d_v = (*past)[3];
  }
  ctx.set_output_shape(0, graph::SymShape{(*q)[0], (*q)[1], Dim(heads.query) * d_v});
  if (ctx.has_output(1)) ctx.set_output_shape(1, graph::SymShape{(*q)[0], Dim(heads.kv), d_k, d_v});
}

}  // namespace

void register_linear_attention(kernel::OpRegistrar& r) {
  r.op("LinearAttention")
      .version(27,
               "query:T, key:T, value:T, past_state:S?, decay:T?, beta:T? -> output:T, present_state:S; "
               "T = bfloat16|float16|float, S = bfloat16|float16|float")
      .infer(infer_linear_attention)
      .kernel<LinearAttention>();
}

}  // namespace infernode::ops
