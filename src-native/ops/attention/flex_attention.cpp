#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "microkernels/reduce/reduce.h"
#include "ops/attention/attention_core.h"
#include "ops/common/arguments.h"
#include "ops/common/reals.h"
#include "ops/matmul/product.h"

namespace infernode::ops {
namespace {

using graph::Attributes;
using graph::ValueType;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using kernel::SubgraphRunner;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::Value;

/// The type of the scores that the subgraphs see.
DType score_type(const Attributes& attributes, DType query) {
  const std::int64_t code = attributes.get_int("softmax_precision", 0);
  if (code == 0) return query == DType::Float64 ? DType::Float64 : DType::Float32;
  const auto type = tensor::dtype_from_code(code);
  if (type &&
      (*type == DType::Float32 || *type == DType::Float64 || *type == DType::Float16 || *type == DType::BFloat16))
    return *type;
  fail(ErrorCode::InvalidModel, cat("FlexAttention: softmax_precision ", code, " is no floating type"));
}

/// Scaled dot-product attention over [batch, heads, rows, columns] whose scores and probabilities pass through
/// subgraphs where the node has them. Without any, no score matrix is made.
class FlexAttention final : public Kernel {
 public:
  explicit FlexAttention(KernelInfo& info)
      : kernels_(info.kernels()),
        score_type_(score_type(info.attributes(), info.input_type(0).elem)),
        score_mod_(subgraph(info, "score_mod")),
        prob_mod_(subgraph(info, "prob_mod")) {
    if (info.attributes().has("scale")) scale_ = info.attributes().get_float("scale");
  }

  void run(KernelContext& ctx) const override {
    const Tensor &q = ctx.input(0), &k = ctx.input(1), &v = ctx.input(2);
    if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || k.dim(0) != q.dim(0) || v.dim(0) != q.dim(0) ||
        k.dim(3) != q.dim(3) || v.dim(1) != k.dim(1) || v.dim(2) != k.dim(2) || k.dim(1) == 0 ||
        q.dim(1) % k.dim(1) != 0) {
      fail(ErrorCode::ShapeMismatch, cat("FlexAttention: Q ", q.to_string(), ", K ", k.to_string(), " and V ",
                                         v.to_string(), " do not fit each other"));
    }
    const Tensor y = ctx.output(0, q.dtype(), Shape{q.dim(0), q.dim(1), q.dim(2), v.dim(3)});
    if (y.numel() == 0) return;
    if (q.dtype() == DType::Float64 || score_type_ == DType::Float64) {
      attend<double>(ctx, y);
    } else {
      attend<float>(ctx, y);
    }
  }

 private:
  static std::unique_ptr<SubgraphRunner> subgraph(KernelInfo& info, const char* name) {
    if (!info.attributes().has(name)) return nullptr;
    std::unique_ptr<SubgraphRunner> runner = info.subgraph(name);
    if (runner->input_count() != 1 || runner->output_count() != 1) {
      fail(ErrorCode::InvalidModel, cat("FlexAttention: ", name, " must have one input and one output, has ",
                                        runner->input_count(), " and ", runner->output_count()));
    }
    return runner;
  }

  template <class T>
  void attend(KernelContext& ctx, const Tensor& y) const {
    const Tensor &q = ctx.input(0), &k = ctx.input(1), &v = ctx.input(2);
    const RealInput<T> query(ctx, kernels_, q), keys(ctx, kernels_, k), values(ctx, kernels_, v);
    const RealOutput<T> out(ctx, kernels_, y);
    const double scale = scale_ ? static_cast<double>(*scale_) : 1 / std::sqrt(static_cast<double>(q.dim(3)));
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    if (!score_mod_ && !prob_mod_) {
      AttentionCall<T> call;
      call.batch = size(q.dim(0));
      call.q_heads = size(q.dim(1));
      call.kv_heads = size(k.dim(1));
      call.q_len = size(q.dim(2));
      call.kv_len = size(k.dim(2));
      call.head = size(q.dim(3));
      call.v_head = size(v.dim(3));
      call.q = Heads<const T>::bnsh(query.data(), call.q_heads, call.q_len, call.head);
      call.k = Heads<const T>::bnsh(keys.data(), call.kv_heads, call.kv_len, call.head);
      call.v = Heads<const T>::bnsh(values.data(), call.kv_heads, call.kv_len, call.v_head);
      call.y = Heads<T>::bnsh(out.data(), call.q_heads, call.q_len, call.v_head);
      call.scale = scale;
      call.softmax_precision = score_type_;
      run_attention(ctx, kernels_, call);
      return out.store();
    }
    Tensor scores =
        Tensor::make(tensor::kDTypeOf<T>, Shape{q.dim(0), q.dim(1), q.dim(2), k.dim(2)}, *ctx.run().allocator);
    multiply<T>(ctx, query.data(), keys.data(), q.dim(2), k.dim(2), q.dim(3), true, scale, scores.mutable_data<T>());
    scores = modified<T>(ctx, score_mod_.get(), "score_mod", scores);
    scores = softmax<T>(ctx, scores);
    scores = modified<T>(ctx, prob_mod_.get(), "prob_mod", scores);
    multiply<T>(ctx, scores.data<T>(), values.data(), q.dim(2), v.dim(3), k.dim(2), false, 1, out.data());
    out.store();
  }

  /// c[batch, query head, m, n] = alpha * a[batch, query head, m, inner] * b[batch, key head, ...].
  template <class T>
  void multiply(KernelContext& ctx, const T* a, const T* b, std::int64_t m, std::int64_t n, std::int64_t inner,
                bool trans_b, double alpha, T* c) const {
    const std::int64_t heads = ctx.input(0).dim(1), kv_heads = ctx.input(1).dim(1), count = ctx.input(0).dim(0) * heads;
    std::vector<std::int64_t> a_offsets, b_offsets;
    for (std::int64_t i = 0; i < count; ++i) {
      a_offsets.push_back(i * m * inner);
      b_offsets.push_back((i / heads * kv_heads + i % heads / (heads / kv_heads)) * n * inner);
    }
    const GemmBatch batch{static_cast<std::size_t>(count), a_offsets, b_offsets, m * n};
    std::conditional_t<std::is_same_v<T, double>, microkernels::DgemmArgs, microkernels::GemmArgs> args;
    args.m = static_cast<std::size_t>(m);
    args.n = static_cast<std::size_t>(n);
    args.k = static_cast<std::size_t>(inner);
    args.alpha = static_cast<T>(alpha);
    args.a = a;
    args.lda = args.k;
    args.b = b;
    args.ldb = trans_b ? args.k : args.n;
    args.trans_b = trans_b;
    args.c = c;
    args.ldc = args.n;
    const microkernels::GemmTable& table = kernels_.gemm_float32;
    if constexpr (std::is_same_v<T, double>) {
      run_dgemm(ctx, table, args, batch);
    } else {
      run_gemm(ctx, table, args, batch);
    }
  }

  Tensor converted(KernelContext& ctx, const Tensor& from, DType type) const {
    if (from.dtype() == type) return from;
    Tensor to = Tensor::make(type, from.shape(), *ctx.run().allocator);
    convert_reals(ctx.run(), kernels_, from.dtype(), from.raw(), type, to.mutable_raw(),
                  static_cast<std::size_t>(from.numel()));
    return to;
  }

  /// What the subgraph makes of the scores, which it sees in their declared type; without one, their rounding to it.
  template <class T>
  Tensor modified(KernelContext& ctx, const SubgraphRunner* runner, const char* name, const Tensor& scores) const {
    Tensor given = converted(ctx, scores, score_type_);
    if (runner == nullptr) return converted(ctx, given, tensor::kDTypeOf<T>);
    const Shape shape = given.shape();
    std::vector<Value> inputs;
    inputs.emplace_back(std::move(given));
    const std::vector<Value> results = runner->run(ctx, std::move(inputs));
    if (results.size() != 1 || !results[0].is_tensor() || results[0].tensor().shape() != shape ||
        results[0].tensor().dtype() != score_type_) {
      fail(ErrorCode::ShapeMismatch,
           cat("FlexAttention: ", name, " must keep type and shape ", tensor::onnx_name(score_type_), shape.to_string(),
               ", it gave ", results.empty() ? std::string("nothing") : results[0].to_string()));
    }
    return converted(ctx, results[0].tensor(), tensor::kDTypeOf<T>);
  }

  template <class T>
  Tensor softmax(KernelContext& ctx, const Tensor& scores) const {
    const Tensor out = Tensor::make(scores.dtype(), scores.shape(), *ctx.run().allocator);
    const auto n = static_cast<std::size_t>(scores.shape().back());
    if (scores.numel() == 0) return out;
    const T* from = scores.data<T>();
    T* to = out.mutable_data<T>();
    ctx.parallel_for(static_cast<std::size_t>(scores.numel()) / n, static_cast<double>(n) * 2,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       for (std::size_t row = begin; row < end; ++row) {
                         const T* x = from + row * n;
                         T* y = to + row * n;
                         if constexpr (std::is_same_v<T, float>) {
                           kernels_.reduce.softmax(x, y, n);
                         } else {
                           const T most = *std::max_element(x, x + n);
                           T sum = 0;
                           for (std::size_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - most);
                           for (std::size_t i = 0; i < n; ++i) y[i] /= sum;
                         }
                       }
                     });
    return out;
  }

  const microkernels::KernelSet& kernels_;
  DType score_type_;
  std::unique_ptr<SubgraphRunner> score_mod_, prob_mod_;
  std::optional<float> scale_;
};

void infer_flex_attention(InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  const graph::SymShape *q = ctx.input_shape(0), *k = ctx.input_shape(1), *v = ctx.input_shape(2);
  ValueType scores = ValueType::tensor(score_type(ctx.attributes(), ctx.input_dtype(0)));
  if (q != nullptr && k != nullptr && v != nullptr) {
    if (q->size() != 4 || k->size() != 4 || v->size() != 4)
      fail(ErrorCode::ShapeMismatch, "FlexAttention: Q, K and V must have rank 4");
    ctx.set_output_shape(0, graph::SymShape{(*q)[0], (*q)[1], (*q)[2], (*v)[3]});
    scores.shape = graph::SymShape{(*q)[0], (*q)[1], (*q)[2], (*k)[2]};
  }
  for (const char* name : {"score_mod", "prob_mod"}) {
    if (ctx.attributes().has(name)) ctx.infer_subgraph(name, {&scores, 1});
  }
}

}  // namespace

void register_flex_attention(kernel::OpRegistrar& r) {
  r.op("FlexAttention", "ai.onnx.preview")
      .version(1, "Q:T1, K:T1, V:T1 -> Y:T1; T1 = floats_bf16")
      .infer(infer_flex_attention)
      .kernel<FlexAttention>();
}

}  // namespace infernode::ops
