#include <limits>
#include <utility>

#include "kernel/op_registrar.h"
#include "ops/attention/methods/method.h"
#include "ops/common/definition.h"
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

/// infernode.FusedAttention: Y = softmax(scale * Q * K' + mask) * V over [batch, heads, rows, columns]; where attribute
/// `q_rows_first` (k_, v_, y_) is set, that operand is [batch, rows, heads, columns]. K and V may have fewer heads than
/// Q: each then serves a group of neighbours. Scores and mask broadcast to each other in their last two dims; to the
/// scores' first two the mask broadcasts. Rows of probabilities that are NaN become zeros where `zero_nan` is set.
/// Operands may all be [batch, rows, columns], too: heads of which each is a batch of its own. The second output holds
/// the probabilities.
class FusedAttention final : public kernel::Kernel {
 public:
  explicit FusedAttention(KernelInfo& info)
      : kernels_(info.kernels()),
        scale_(info.attributes().get_float("scale", 1)),
        zero_nan_(info.attributes().get_int("zero_nan", 0) != 0),
        method_(info.method()) {
    constexpr const char* kNames[] = {"q_rows_first", "k_rows_first", "v_rows_first", "y_rows_first"};
    for (std::size_t i = 0; i < 4; ++i) rows_first_[i] = info.attributes().get_int(kNames[i], 0) != 0;
  }

  void run(KernelContext& ctx) const override {
    Shape q = dims(ctx, 0), k = dims(ctx, 1);
    const Shape v = dims(ctx, 2);
    const Tensor* given = ctx.optional_input(3);
    const bool one_query = q[2] == 1 && given != nullptr && given->rank() >= 2 && given->dim(given->rank() - 2) > 1;
    const bool one_key = k[2] == 1 && given != nullptr && v[2] > 1;
    const Shape stored_q = q, stored_k = k;
    if (one_query) q[2] = given->dim(given->rank() - 2);
    if (one_key) k[2] = v[2];
    if (k[0] != q[0] || v[0] != q[0] || k[3] != q[3] || v[2] != k[2] || k[1] != v[1] || k[1] == 0 || q[1] % k[1] != 0) {
      fail(ErrorCode::ShapeMismatch, cat("attention over Q ", q.to_string(), ", K ", k.to_string(), " and V ",
                                         v.to_string(), " of [batch, heads, rows, columns]"));
    }
    Shape out{q[0], q[1], q[2], v[3]};
    if (rows_first_[3]) std::swap(out[1], out[2]);
    const Tensor y = ctx.output(0, ctx.input(0).rank() == 3 ? Shape{out[0], out[2], out[3]} : out);
    const Shape scores = ctx.input(0).rank() == 3 ? Shape{q[0], q[2], k[2]} : Shape{q[0], q[1], q[2], k[2]};
    const Tensor kept = ctx.wants_output(1) ? ctx.output(1, scores) : Tensor();
    if (y.numel() == 0 && kept.numel() == 0) return;
    const RealInput<float> query(ctx, kernels_, ctx.input(0)), key(ctx, kernels_, ctx.input(1)),
        value(ctx, kernels_, ctx.input(2));
    const RealOutput<float> result(ctx, kernels_, y);
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    AttentionCall<float> call;
    call.batch = size(q[0]);
    call.q_heads = size(q[1]);
    call.kv_heads = size(k[1]);
    call.q_len = size(q[2]);
    call.kv_len = size(k[2]);
    call.head = size(q[3]);
    call.v_head = size(v[3]);
    call.q = heads(query.data(), stored_q, rows_first_[0]);
    call.k = heads(key.data(), stored_k, rows_first_[1]);
    if (one_query) call.q.row = 0;
    if (one_key) call.k.row = 0;
    call.v = heads(value.data(), v, rows_first_[2]);
    call.y = heads(result.data(), {q[0], q[1], q[2], v[3]}, rows_first_[3]);
    call.scale = static_cast<double>(scale_);
    call.zero_nan = zero_nan_;
    if (!zero_nan_) call.shut_row = std::numeric_limits<float>::quiet_NaN();  // as Softmax gives
    const RealOutput<float> probabilities(ctx, kernels_, kept);
    call.scores = probabilities.data();
    call.stage = AttentionCall<float>::Stage::Probabilities;
    const Tensor mask = read_mask(ctx, {q[0], q[1], q[2], k[2]}, call);
    run_attention(ctx, kernels_, call, method_);
    result.store();
    probabilities.store();
  }

 private:
  /// [batch, heads, rows, columns] of input `i`.
  Shape dims(KernelContext& ctx, std::size_t i) const {
    Shape shape = ctx.input(i).shape();
    if (shape.rank() == 3 && ctx.input(0).rank() == 3) return with_one_head(shape);
    if (shape.rank() != 4) fail(ErrorCode::ShapeMismatch, cat("attention takes rank 4, got ", shape.to_string()));
    if (rows_first_[i]) std::swap(shape[1], shape[2]);
    return shape;
  }

  static Shape with_one_head(const Shape& shape) { return Shape{shape[0], 1, shape[1], shape[2]}; }

  template <class T>
  static Heads<T> heads(T* data, const Shape& shape, bool rows_first) {
    const auto h = static_cast<std::size_t>(shape[1]), r = static_cast<std::size_t>(shape[2]),
               c = static_cast<std::size_t>(shape[3]);
    return rows_first ? Heads<T>::bsnh(data, h, r, c) : Heads<T>::bnsh(data, h, r, c);
  }

  /// The mask as float32 whose last dim is whole; the returned tensor holds its memory.
  Tensor read_mask(KernelContext& ctx, const Shape& scores, AttentionCall<float>& call) const {
    const Tensor* given = ctx.optional_input(3);
    if (given == nullptr) return {};
    Tensor mask =
        ctx.input(0).rank() == 3 && given->rank() == 3 ? given->reshaped(with_one_head(given->shape())) : *given;
    Shape strides = tensor::broadcast_strides(mask.shape(), scores);
    if (strides[3] == 0 && scores[3] > 1) {
      Shape whole = scores;
      for (std::size_t i = 0; i < 3; ++i) whole[i] = strides[i] == 0 ? 1 : scores[i];
      const Tensor copy = Tensor::make(mask.dtype(), whole, *ctx.run().allocator);
      strided_copy(ctx.run(), whole, {mask, 0, strides}, {copy, 0, whole.strides()});
      mask = copy;
      strides = tensor::broadcast_strides(whole, scores);
    }
    if (mask.dtype() != DType::Float32) {
      const Tensor wide = Tensor::make(DType::Float32, mask.shape(), *ctx.run().allocator);
      convert_reals(ctx.run(), kernels_, mask.dtype(), mask.raw(), wide.dtype(), wide.mutable_raw(),
                    static_cast<std::size_t>(mask.numel()));
      mask = wide;
    }
    call.mask = {mask.data<float>(), static_cast<std::size_t>(strides[0]), static_cast<std::size_t>(strides[1]),
                 static_cast<std::size_t>(strides[2])};
    call.mask_columns = call.kv_len;
    return mask;
  }

  const microkernels::KernelSet& kernels_;
  float scale_;
  bool zero_nan_;
  bool rows_first_[4];
  std::string method_;  ///< empty: the quickest
};

/// Of float32 nodes whose sizes are known, but for the batch.
std::vector<std::string> fused_attention_methods(const KernelInfo& info) {
  constexpr const char* kNames[] = {"q_rows_first", "k_rows_first", "v_rows_first"};
  std::size_t sizes[3][4] = {};  // of Q, K and V: batch, heads, rows, columns
  for (std::size_t i = 0; i < 3; ++i) {
    const graph::ValueType& type = info.input_type(i);
    if (type.elem != DType::Float32 || !type.shape || (type.shape->size() != 4 && type.shape->size() != 3)) return {};
    const std::size_t missing = 4 - type.shape->size();
    sizes[i][0] = sizes[i][1] = 1;
    for (std::size_t d = 0; d < type.shape->size(); ++d) {
      const graph::Dim& dim = (*type.shape)[d];
      if (!dim.known() && d > 0) return {};
      const std::size_t at = d == 0 ? 0 : d + missing;
      sizes[i][at] = dim.known() ? static_cast<std::size_t>(dim.value()) : 1;
    }
    if (info.attributes().get_int(kNames[i], 0) != 0) std::swap(sizes[i][1], sizes[i][2]);
  }
  const auto& [q, k, v] = sizes;
  if (q[2] == 0 || k[2] == 0 || k[2] != v[2]) return {};
  const bool kept = info.node().outputs.size() > 1;
  return attention_method_names({.heads = q[0] * q[1],
                                 .groups = k[0] * k[1],
                                 .q_len = q[2],
                                 .kv_len = k[2],
                                 .head = q[3],
                                 .v_head = v[3],
                                 .plain = !kept && info.attributes().get_float("scale", 1) > 0,
                                 .values_lie = info.attributes().get_int("v_rows_first", 0) == 0 || v[1] == 1},
                                info.kernels());
}

void infer_fused_attention(InferContext& ctx) {
  const graph::SymShape *q = ctx.input_shape(0), *v = ctx.input_shape(2);
  if (q == nullptr || v == nullptr || q->size() != v->size() || (q->size() != 4 && q->size() != 3)) return;
  graph::SymShape y = *q;
  const std::size_t rows = q->size() - 2;
  if (ctx.attributes().get_int("q_rows_first", 0) != 0) std::swap(y[1], y[2]);
  y[rows + 1] = (*v)[rows + 1];
  if (ctx.has_input(3)) {
    const graph::SymShape* mask = ctx.input_shape(3);
    const graph::SymShape queries{y[rows]};
    const graph::SymShape mask_rows{mask == nullptr    ? graph::Dim::unknown()
                                    : mask->size() < 2 ? graph::Dim(1)
                                                       : mask->end()[-2]};
    const graph::SymShape* both[] = {&queries, &mask_rows};
    y[rows] = kernel::broadcast_shapes(both)[0];
  }
  if (const graph::SymShape* k = ctx.input_shape(1); k != nullptr && k->size() == y.size() && ctx.has_output(1)) {
    graph::SymShape p = y;
    p[rows + 1] = (*v)[ctx.attributes().get_int("v_rows_first", 0) != 0 ? rows - 1 : rows];
    ctx.set_output_shape(1, std::move(p));
  }
  if (ctx.attributes().get_int("y_rows_first", 0) != 0) std::swap(y[1], y[2]);
  ctx.set_output_shape(0, std::move(y));
}

std::string define_attention(const graph::Graph& graph, const graph::Node& node) {
  Definition body(graph.value(node.inputs[0]).type.elem);
  const auto exchanged = [&](const std::string& t, const char* flag) {
    const bool other = node.attributes.get_int(flag, 0) != 0;
    return other ? body.call("Transpose<perm = [0, 2, 1, 3]>", {t}) : t;
  };
  const auto dims = [&](std::size_t input, const char* flag) {
    graph::SymShape shape = graph.value(node.inputs[input]).type.shape.value();
    if (node.attributes.get_int(flag, 0) != 0) std::swap(shape.at(1), shape.at(2));
    return shape;
  };
  const graph::SymShape q = dims(0, "q_rows_first");
  const char* const turn = q.size() == 3 ? "Transpose<perm = [0, 2, 1]>" : "Transpose<perm = [0, 1, 3, 2]>";
  /// Each head of a tensor of fewer heads as often as there are queries for it.
  const auto repeated = [&](const std::string& t, const graph::SymShape& shape) {
    if (q.size() == 3 || shape[1] == q[1]) return t;
    if (!shape[1].known() || !q[1].known() || !shape[3].known())
      fail(ErrorCode::Internal, "grouped attention over unknown numbers of heads has no definition");
    const std::string alone = body.call("Unsqueeze", {t, body.integers({2})});
    return body.call("Reshape", {body.repeat(alone, q[1].value() / shape[1].value()),
                                 body.integers({0, q[1].value(), -1, shape[3].value()})});
  };
  const std::string query = exchanged(definition_input(node, 0), "q_rows_first");
  const std::string key = repeated(exchanged(definition_input(node, 1), "k_rows_first"), dims(1, "k_rows_first"));
  const std::string value = repeated(exchanged(definition_input(node, 2), "v_rows_first"), dims(2, "v_rows_first"));
  std::string t = body.call("MatMul", {query, body.call(turn, {key})});
  t = body.call("Mul", {t, body.constant(node.attributes.get_float("scale", 1))});
  if (const std::string mask = definition_input(node, 3); !mask.empty()) t = body.call("Add", {t, mask});
  t = body.call("Softmax<axis = -1>", {t});
  const std::string probabilities = t;
  if (node.attributes.get_int("zero_nan", 0) != 0)
    t = body.call("Where", {body.call("IsNaN", {t}), body.constant(0), t});
  t = body.call("MatMul", {t, value});
  body.finish(exchanged(t, "y_rows_first"));
  if (node.outputs.size() > 1) body.finish(probabilities, "p");
  return body.text();
}

}  // namespace

void register_fused_attention(kernel::OpRegistrar& r) {
  r.op("FusedAttention", "infernode")
      .version(1, "Q:T, K:T, V:T, mask:T? -> Y:T, P:T?; T = float|float16|bfloat16")
      .infer(infer_fused_attention)
      .kernel<FusedAttention>()
      .methods(fused_attention_methods)
      .definition(define_attention);
}

}  // namespace infernode::ops
