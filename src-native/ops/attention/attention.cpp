#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "ops/attention/attention_core.h"
#include "ops/common/arguments.h"
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

/// Sizes of Q, K or V, which come as [batch, heads, rows, columns] or as [batch, rows, heads * columns].
struct HeadShape {
  std::int64_t batch, heads, rows, columns;
  bool flat;  ///< of rank 3

  HeadShape(const Shape& shape, std::int64_t stated_heads, const char* what) {
    flat = shape.rank() == 3;
    if (!flat && shape.rank() != 4)
      fail(ErrorCode::ShapeMismatch, cat("Attention: ", what, " must have rank 3 or 4, got ", shape.to_string()));
    batch = shape[0];
    heads = flat ? stated_heads : shape[1];
    rows = flat ? shape[1] : shape[2];
    if (flat && (heads < 1 || shape[2] % heads != 0)) {
      fail(ErrorCode::ShapeMismatch,
           cat("Attention: ", what, " ", shape.to_string(), " does not divide into ", heads, " heads"));
    }
    columns = flat ? shape[2] / heads : shape[3];
  }
  Shape strides() const {
    return flat ? Shape{rows * heads * columns, columns, heads * columns, 1}
                : Shape{heads * rows * columns, rows * columns, columns, 1};
  }
  template <class T>
  Heads<T> view(T* data) const {
    const auto h = static_cast<std::size_t>(heads), r = static_cast<std::size_t>(rows),
               c = static_cast<std::size_t>(columns);
    return flat ? Heads<T>::bsnh(data, h, r, c) : Heads<T>::bnsh(data, h, r, c);
  }
};

class Attention final : public kernel::Kernel {
 public:
  explicit Attention(KernelInfo& info)
      : kernels_(info.kernels()),
        q_heads_(info.attributes().get_int("q_num_heads", 0)),
        kv_heads_(info.attributes().get_int("kv_num_heads", 0)),
        causal_(info.attributes().get_int("is_causal", 0) != 0),
        softcap_(info.attributes().get_float("softcap", 0)),
        left_(info.attributes().get_int("left_window_size", -1)),
        right_(info.attributes().get_int("right_window_size", -1)),
        stage_(info.attributes().get_int("qk_matmul_output_mode", 0)) {
    if (info.attributes().has("scale")) scale_ = info.attributes().get_float("scale");
    if (stage_ < 0 || stage_ > 3) fail(ErrorCode::InvalidModel, cat("qk_matmul_output_mode is ", stage_));
    if (left_ < -1 || right_ < -1) fail(ErrorCode::InvalidModel, "Attention's window sizes are -1 or more");
    if (const std::int64_t code = info.attributes().get_int("softmax_precision", 0)) {
      const auto type = tensor::dtype_from_code(code);
      if (!type || !tensor::is_floating(*type))
        fail(ErrorCode::InvalidModel, cat("softmax_precision ", code, " is no floating type"));
      softmax_precision_ = *type;
    }
  }

  void run(KernelContext& ctx) const override {
    const HeadShape q(ctx.input(0).shape(), q_heads_, "Q");
    HeadShape k(ctx.input(1).shape(), kv_heads_, "K"), v(ctx.input(2).shape(), kv_heads_, "V");
    if (k.batch != q.batch || v.batch != q.batch || k.columns != q.columns || k.heads != v.heads || k.rows != v.rows ||
        k.heads == 0 || q.heads % k.heads != 0) {
      fail(ErrorCode::ShapeMismatch,
           cat("Attention: Q ", ctx.input(0).shape().to_string(), ", K ", ctx.input(1).shape().to_string(), " and V ",
               ctx.input(2).shape().to_string(), " do not fit each other"));
    }
    if (ctx.has_input(4) != ctx.has_input(5))
      fail(ErrorCode::InvalidArgument, "Attention takes past_key and past_value together");
    const std::int64_t fresh = k.rows;
    const Tensor key = with_past(ctx, ctx.input(1), k, 4, 1), value = with_past(ctx, ctx.input(2), v, 5, 2);
    const Shape out =
        q.flat ? Shape{q.batch, q.rows, checked_mul(q.heads, v.columns)} : Shape{q.batch, q.heads, q.rows, v.columns};
    const Tensor y = ctx.output(0, out);
    const Tensor scores = ctx.wants_output(3) ? ctx.output(3, Shape{q.batch, q.heads, q.rows, k.rows}) : Tensor();
    if (y.numel() == 0 && (!scores || scores.numel() == 0)) return;
    dispatch_reals(ctx.input(0).dtype(), "Attention", [&]<class T>(tensor::TypeTag<T>) {
      attend<T>(ctx, q, k, v, k.rows - fresh, key, value, y, scores);
    });
  }

 private:
  /// The keys or values that precede and those given, [batch, heads, past + rows, columns]; `shape` is changed to that.
  /// Without a past, and where nobody reads the joined tensor, the given one.
  Tensor with_past(KernelContext& ctx, const Tensor& given, HeadShape& shape, std::size_t input,
                   std::size_t output) const {
    const Tensor* past = ctx.optional_input(input);
    if (past == nullptr && !ctx.wants_output(output)) return given;
    std::int64_t before = 0;
    if (past != nullptr) {
      if (past->rank() != 4 || past->dim(0) != shape.batch || past->dim(1) != shape.heads ||
          past->dim(3) != shape.columns) {
        fail(ErrorCode::ShapeMismatch,
             cat("Attention: the past ", past->to_string(), " does not fit ", given.to_string()));
      }
      before = past->dim(2);
    }
    const Shape joined{shape.batch, shape.heads, checked_add(before, shape.rows), shape.columns};
    const Tensor out = ctx.wants_output(output) ? ctx.output(output, joined)
                                                : Tensor::make(given.dtype(), joined, *ctx.run().allocator);
    const Shape strides = joined.strides();
    if (past != nullptr) strided_copy(ctx.run(), past->shape(), {*past, 0, past->shape().strides()}, {out, 0, strides});
    const Shape dims{shape.batch, shape.heads, shape.rows, shape.columns};
    strided_copy(ctx.run(), dims, {given, 0, shape.strides()}, {out, before * shape.columns, strides});
    shape.rows += before;
    shape.flat = false;
    return out;
  }

  template <class T>
  void attend(KernelContext& ctx, const HeadShape& q, const HeadShape& k, const HeadShape& v, std::int64_t past,
              const Tensor& key, const Tensor& value, const Tensor& y, const Tensor& scores) const {
    const RealInput<T> query(ctx, kernels_, ctx.input(0)), keys(ctx, kernels_, key), values(ctx, kernels_, value);
    const RealOutput<T> out(ctx, kernels_, y), score_out(ctx, kernels_, scores);
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    AttentionCall<T> call;
    call.batch = size(q.batch);
    call.q_heads = size(q.heads);
    call.kv_heads = size(k.heads);
    call.q_len = size(q.rows);
    call.kv_len = size(k.rows);
    call.head = size(q.columns);
    call.v_head = size(v.columns);
    call.q = q.view(query.data());
    call.k = k.view(keys.data());
    call.v = v.view(values.data());
    HeadShape y_shape = q;
    y_shape.columns = v.columns;
    call.y = y_shape.view(out.data());
    call.scale = scale_ ? static_cast<double>(*scale_) : 1 / std::sqrt(static_cast<double>(q.columns));
    call.softcap = static_cast<double>(softcap_);
    call.causal = causal_;
    constexpr std::int64_t kFar = std::int64_t{1} << 40;  // beyond any sequence
    call.left_window = std::min(left_, kFar);
    call.right_window = std::min(right_, kFar);
    call.stage = static_cast<typename AttentionCall<T>::Stage>(stage_);
    call.scores = score_out.data();
    const DType type = ctx.input(0).dtype();
    if (type == DType::Float16 || type == DType::BFloat16) call.precision = type;
    call.softmax_precision = softmax_precision_;
    call.offsets.assign(call.batch, past);
    if (const Tensor* lengths = ctx.optional_input(6)) {
      if (lengths->shape() != Shape{q.batch})
        fail(ErrorCode::ShapeMismatch, cat("nonpad_kv_seqlen is ", lengths->to_string(), " for ", q.batch, " batches"));
      call.lengths = tensor::to_int64_vector(*lengths);
      for (std::size_t b = 0; b < call.batch; ++b) {
        if (call.lengths[b] < 0 || call.lengths[b] > k.rows) {
          fail(ErrorCode::InvalidArgument,
               cat("nonpad_kv_seqlen[", b, "] is ", call.lengths[b], " of ", k.rows, " keys"));
        }
        if (past == 0) call.offsets[b] = call.lengths[b] - q.rows;
      }
    }
    const Tensor mask = mask_values<T>(ctx, call);
    run_attention(ctx, kernels_, call);
    out.store();
    score_out.store();
  }

  /// The mask as T, and how `call` reads it. Boolean masks shut out where they are false.
  template <class T>
  Tensor mask_values(KernelContext& ctx, AttentionCall<T>& call) const {
    const Tensor* mask = ctx.optional_input(3);
    if (mask == nullptr) return {};
    if (mask->rank() == 0 || mask->rank() > 4)
      fail(ErrorCode::ShapeMismatch, cat("Attention: attn_mask is ", mask->to_string()));
    Shape target{static_cast<std::int64_t>(call.batch), static_cast<std::int64_t>(call.q_heads),
                 static_cast<std::int64_t>(call.q_len), mask->shape().back()};
    if (mask->shape().back() > static_cast<std::int64_t>(call.kv_len))
      fail(ErrorCode::ShapeMismatch,
           cat("Attention: attn_mask ", mask->to_string(), " is wider than ", call.kv_len, " keys"));
    const Shape strides = tensor::broadcast_strides(mask->shape(), target);
    const Tensor out = Tensor::make(tensor::kDTypeOf<T>, mask->shape(), *ctx.run().allocator);
    if (mask->dtype() == DType::Bool) {
      const bool* from = mask->data<bool>();
      T* to = out.mutable_data<T>();
      ctx.parallel_for(static_cast<std::size_t>(mask->numel()), 0.5,
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         for (std::size_t i = begin; i < end; ++i)
                           to[i] = from[i] ? T{0} : -std::numeric_limits<T>::infinity();
                       });
    } else if (tensor::is_floating(mask->dtype())) {
      convert_reals(ctx.run(), kernels_, mask->dtype(), mask->raw(), out.dtype(), out.mutable_raw(),
                    static_cast<std::size_t>(mask->numel()));
    } else {
      const kernel::Numbers<std::int64_t> values(ctx.run(), *mask);
      T* to = out.mutable_data<T>();
      ctx.parallel_for(values.size(), 0.5, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i) to[i] = static_cast<T>(values[i]);
      });
    }
    call.mask = {out.data<T>(), static_cast<std::size_t>(strides[0]), static_cast<std::size_t>(strides[1]),
                 static_cast<std::size_t>(strides[2])};
    call.mask_columns = static_cast<std::size_t>(mask->shape().back());
    return out;
  }

  const microkernels::KernelSet& kernels_;
  std::int64_t q_heads_, kv_heads_;
  bool causal_;
  std::optional<float> scale_;
  float softcap_;
  std::int64_t left_, right_, stage_;
  DType softmax_precision_ = DType::Undefined;
};

void infer_attention(InferContext& ctx) {
  const DType q_type = ctx.input_dtype(0);
  ctx.set_output_dtype(0, q_type);
  if (ctx.has_output(1)) ctx.set_output_dtype(1, ctx.input_dtype(1));
  if (ctx.has_output(2)) ctx.set_output_dtype(2, ctx.input_dtype(2));
  if (ctx.has_output(3)) ctx.set_output_dtype(3, q_type);
  const graph::SymShape *q = ctx.input_shape(0), *k = ctx.input_shape(1), *v = ctx.input_shape(2);
  if (q == nullptr || k == nullptr || v == nullptr) return;
  const bool flat = q->size() == 3;
  if ((!flat && q->size() != 4) || k->size() != q->size() || v->size() != q->size())
    fail(ErrorCode::ShapeMismatch, "Attention: Q, K and V must all have rank 3 or all rank 4");
  const Dim q_heads = flat ? Dim(ctx.attributes().get_int("q_num_heads")) : (*q)[1];
  const Dim kv_heads = flat ? Dim(ctx.attributes().get_int("kv_num_heads")) : (*k)[1];
  const Dim head = flat ? floor_div((*k)[2], kv_heads) : (*k)[3],
            v_head = flat ? floor_div((*v)[2], kv_heads) : (*v)[3];
  const Dim rows = (*q)[flat ? 1 : 2], fresh = (*k)[flat ? 1 : 2];
  ctx.set_output_shape(
      0, flat ? graph::SymShape{(*q)[0], rows, q_heads * v_head} : graph::SymShape{(*q)[0], q_heads, rows, v_head});
  Dim total = fresh;
  if (ctx.has_input(4)) {
    const graph::SymShape* past = ctx.input_shape(4);
    total = past != nullptr && past->size() == 4 ? (*past)[2] + fresh : Dim::unknown();
  }
  if (ctx.has_output(1)) ctx.set_output_shape(1, graph::SymShape{(*q)[0], kv_heads, total, head});
  if (ctx.has_output(2)) ctx.set_output_shape(2, graph::SymShape{(*q)[0], kv_heads, total, v_head});
  if (ctx.has_output(3)) ctx.set_output_shape(3, graph::SymShape{(*q)[0], q_heads, rows, total});
}

}  // namespace

void register_attention(kernel::OpRegistrar& r) {
  constexpr const char* kWithLengths =
      "Q:T1, K:T1, V:T2, attn_mask:U?, past_key:T1?, past_value:T2?, nonpad_kv_seqlen:int64? -> Y:T1, present_key:T1?, "
      "present_value:T2?, qk_matmul_output:T1?; T1 = floats_bf16, T2 = floats_bf16, U = floats_bf16|ints|bool";
  r.op("Attention")
      .version(23,
               "Q:T1, K:T1, V:T2, attn_mask:U?, past_key:T1?, past_value:T2? -> Y:T1, present_key:T1?, "
               "present_value:T2?, qk_matmul_output:T1?; T1 = floats_bf16, T2 = floats_bf16, U = floats_bf16|ints|bool")
      .version(24, kWithLengths)
      .version(25, kWithLengths)
      .infer(infer_attention)
      .kernel<Attention>();
}

}  // namespace infernode::ops
