#include <string>
#include <vector>

#include "base/error.h"
#include "kernel/op_registrar.h"
#include "microkernels/reduce.h"
#include "ops/reals.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

/// com.microsoft's EmbedLayerNormalization: LayerNormalization of the sum of word, position and segment embeddings. The
/// second output counts the tokens that a mask leaves in each sequence.
class EmbedLayerNorm final : public kernel::Kernel {
 public:
  explicit EmbedLayerNorm(KernelInfo& info)
      : rung_(info.cpu_rung()),
        table_(microkernels::reduce_table(rung_)),
        epsilon_(info.attributes().get_float("epsilon", 1e-12f)),
        counts_(info.attributes().get_int("mask_index_type", 1) != 0) {}

  void run(KernelContext& ctx) const override {
    const Tensor& ids = ctx.input(0);
    const Tensor &words = ctx.input(2), &places = ctx.input(3);
    const Tensor *segment_ids = ctx.optional_input(1), *segments = ctx.optional_input(4);
    if (ids.rank() != 2 || words.rank() != 2 || places.rank() != 2 || places.dim(1) != words.dim(1) ||
        (segments != nullptr && (segments->rank() != 2 || segments->dim(1) != words.dim(1)))) {
      fail(ErrorCode::ShapeMismatch,
           cat("EmbedLayerNormalization: input_ids ", ids.to_string(), ", word_embedding ", words.to_string(),
               ", position_embedding ", places.to_string(), " do not fit"));
    }
    const std::int64_t batch = ids.dim(0), length = ids.dim(1), width = words.dim(1);
    for (const std::size_t i : {5, 6}) {
      if (ctx.input(i).numel() != width)
        fail(ErrorCode::ShapeMismatch, cat("EmbedLayerNormalization: input ", i, " is ", ctx.input(i).to_string()));
    }
    const auto count = static_cast<std::size_t>(batch * length), n = static_cast<std::size_t>(width);
    const std::vector<std::size_t> word_rows = rows(ids, words, count, "word"),
                                   place_rows = position_rows(ctx, places, count, length);
    std::vector<std::size_t> segment_rows;
    if (segment_ids != nullptr && segments != nullptr) segment_rows = rows(*segment_ids, *segments, count, "segment");
    const Tensor y = ctx.output(0, Shape{batch, length, width});
    const Tensor sum = ctx.wants_output(2) ? ctx.output(2, y.shape()) : Tensor();
    count_tokens(ctx, batch, length);
    const RealInput<float> word(ctx, rung_, words), place(ctx, rung_, places), segment(ctx, rung_, segments),
        gamma(ctx, rung_, ctx.input(5)), beta(ctx, rung_, ctx.input(6));
    const RealOutput<float> out(ctx, rung_, y), sums(ctx, rung_, sum);
    ctx.parallel_for(count, static_cast<double>(n), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) {
        float* row = (sums ? sums : out) + i * n;
        for (std::size_t c = 0; c < n; ++c) row[c] = word[word_rows[i] * n + c] + place[place_rows[i] * n + c];
        for (std::size_t c = 0; c < n && !segment_rows.empty(); ++c) row[c] += segment[segment_rows[i] * n + c];
        table_.layer_norm(row, gamma, beta, out + i * n, n, epsilon_, nullptr, nullptr);
      }
    });
    out.store();
    sums.store();
  }

 private:
  static std::vector<std::size_t> rows(const Tensor& ids, const Tensor& table, std::size_t count, const char* what) {
    std::vector<std::size_t> out;
    for (const std::int64_t id : tensor::to_int64_vector(ids)) {
      if (id < 0 || id >= table.dim(0)) {
        fail(ErrorCode::InvalidArgument,
             cat("EmbedLayerNormalization: ", what, " ", id, " lies outside a table of ", table.dim(0), " rows"));
      }
      out.push_back(static_cast<std::size_t>(id));
    }
    if (out.size() != count)
      fail(ErrorCode::ShapeMismatch,
           cat("EmbedLayerNormalization: ", out.size(), " ", what, " ids for ", count, " tokens"));
    return out;
  }

  static std::vector<std::size_t> position_rows(const KernelContext& ctx, const Tensor& table, std::size_t count,
                                                std::int64_t length) {
    if (const Tensor* given = ctx.optional_input(8); given != nullptr && given->numel() != length)
      return rows(*given, table, count, "position");
    std::vector<std::size_t> line(static_cast<std::size_t>(length)), out;
    if (const Tensor* given = ctx.optional_input(8)) {
      line = rows(*given, table, line.size(), "position");
    } else {
      if (length > table.dim(0))
        fail(ErrorCode::InvalidArgument,
             cat("EmbedLayerNormalization: ", length, " tokens, but ", table.dim(0), " positions"));
      for (std::size_t i = 0; i < line.size(); ++i) line[i] = i;
    }
    for (std::size_t i = 0; i < count; ++i) out.push_back(line[i % line.size()]);
    return out;
  }

  void count_tokens(KernelContext& ctx, std::int64_t batch, std::int64_t length) const {
    if (!ctx.wants_output(1)) return;
    const Tensor out = ctx.output(1, Shape{batch});
    const Tensor* mask = ctx.optional_input(7);
    if (mask != nullptr && mask->numel() != batch * length)
      fail(ErrorCode::ShapeMismatch, cat("EmbedLayerNormalization: the mask is ", mask->to_string()));
    for (std::int64_t b = 0; b < batch; ++b) {
      std::int32_t tokens = 0;
      for (std::int64_t i = 0; mask != nullptr && counts_ && i < length; ++i)
        tokens += mask->data<std::int32_t>()[b * length + i] != 0 ? 1 : 0;
      out.mutable_data<std::int32_t>()[b] = tokens;
    }
  }

  CpuRung rung_;
  const microkernels::ReduceTable& table_;
  float epsilon_;
  bool counts_;
};

void infer_embed_layer_norm(InferContext& ctx) {
  const DType type = ctx.input_dtype(2);
  ctx.set_output_dtype(0, type);
  if (ctx.has_output(1)) ctx.set_output_dtype(1, DType::Int32);
  if (ctx.has_output(2)) ctx.set_output_dtype(2, type);
  const graph::SymShape *ids = ctx.input_shape(0), *words = ctx.input_shape(2);
  if (ids == nullptr || words == nullptr || ids->size() != 2 || words->size() != 2) return;
  const graph::SymShape out{(*ids)[0], (*ids)[1], (*words)[1]};
  ctx.set_output_shape(0, out);
  if (ctx.has_output(1)) ctx.set_output_shape(1, graph::SymShape{(*ids)[0]});
  if (ctx.has_output(2)) ctx.set_output_shape(2, out);
}

}  // namespace

void register_embed_layer_norm(kernel::OpRegistrar& r) {
  r.op("EmbedLayerNormalization", "com.microsoft")
      .version(1,
               "input_ids:T1, segment_ids:T1?, word_embedding:T, position_embedding:T, segment_embedding:T?, gamma:T, "
               "beta:T, mask:T1?, position_ids:T1? -> output:T, mask_index:T1?, embedding_sum:T?; T1 = int32, "
               "T = float|float16")
      .infer(infer_embed_layer_norm)
      .kernel<EmbedLayerNorm>();
}

}  // namespace infernode::ops
