#include <string>
#include <vector>

#include "base/error.h"
#include "kernel/op_registrar.h"
#include "microkernels/elementwise/convert.h"
#include "microkernels/reduce/reduce.h"
#include "ops/common/reals.h"
#include "ops/quant/qlinear.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

/// A table of rows of a floating type or of quantized bytes.
class Table {
 public:
  /// `scale` and `zero` are null for floating types. An absent tensor gives an empty table.
  Table(const microkernels::KernelSet& kernels, const Tensor* t, const Tensor* scale, const Tensor* zero)
      : convert_(kernels.convert), tensor_(t) {
    if (t != nullptr && scale != nullptr) codes_ = Quantized8(*scale, zero, t->dtype());
  }

  /// Row `r` of `n` elements, in place or in `hold`.
  const float* row(std::size_t r, std::size_t n, float* hold) const {
    const std::size_t at = r * n;
    switch (tensor_->dtype()) {
      case DType::Float32:
        return tensor_->data<float>() + at;
      case DType::Float16:
        convert_.f16_to_f32(static_cast<const std::uint16_t*>(tensor_->raw()) + at, hold, n);
        return hold;
      default:
        codes_.load(convert_, bytes_of(*tensor_) + at, hold, n);
        return hold;
    }
  }

 private:
  const microkernels::ConvertTable& convert_;
  const Tensor* tensor_;
  Quantized8 codes_;
};

/// com.microsoft's EmbedLayerNormalization: LayerNormalization of the sum of word, position and segment embeddings. The
/// second output counts the tokens that a mask leaves in each sequence. QEmbedLayerNormalization has 8-bit tables,
/// whose scales are inputs 8 to 12 and whose zero points are inputs 13 to 17, and no positions of its own.
template <bool Quantized>
class EmbedLayerNorm final : public kernel::Kernel {
 public:
  explicit EmbedLayerNorm(KernelInfo& info)
      : kernels_(info.kernels()),
        table_(kernels_.reduce),
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
    const Tensor y = ctx.output(0, Shape{batch, length, width});
    const Tensor sum = ctx.wants_output(2) ? ctx.output(2, y.shape()) : Tensor();
    count_tokens(ctx, batch, length);
    if (count == 0) return;
    const std::vector<std::size_t> word_rows = rows(ids, words, count, "word"),
                                   place_rows = position_rows(ctx, places, count, length);
    std::vector<std::size_t> segment_rows;
    if (segment_ids != nullptr && segments != nullptr) segment_rows = rows(*segment_ids, *segments, count, "segment");
    const Table word = table(ctx, 2), place = table(ctx, 3), segment = table(ctx, 4), gamma = table(ctx, 5),
                beta = table(ctx, 6);
    std::vector<float> factor_hold(n), shift_hold(n);
    const float *factor = gamma.row(0, n, factor_hold.data()), *shift = beta.row(0, n, shift_hold.data());
    const RealOutput<float> out(ctx, kernels_, y), sums(ctx, kernels_, sum);
    ctx.parallel_for(count, static_cast<double>(n), [&](std::size_t begin, std::size_t end, std::size_t) {
      std::vector<float> holds(3 * n);
      for (std::size_t i = begin; i < end; ++i) {
        float* row = (sums ? sums : out) + i * n;
        const float* first = word.row(word_rows[i], n, holds.data());
        const float* second = place.row(place_rows[i], n, holds.data() + n);
        for (std::size_t c = 0; c < n; ++c) row[c] = first[c] + second[c];
        if (!segment_rows.empty()) {
          const float* third = segment.row(segment_rows[i], n, holds.data() + 2 * n);
          for (std::size_t c = 0; c < n; ++c) row[c] += third[c];
        }
        table_.layer_norm(row, factor, shift, out + i * n, n, epsilon_, nullptr, nullptr);
      }
    });
    out.store();
    sums.store();
  }

 private:
  Table table(const KernelContext& ctx, std::size_t input) const {
    const Tensor* scale = Quantized ? ctx.optional_input(input + 6) : nullptr;
    return Table(kernels_, ctx.optional_input(input), scale, Quantized ? ctx.optional_input(input + 11) : nullptr);
  }

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
    const Tensor* given = Quantized ? nullptr : ctx.optional_input(8);
    if (given != nullptr && given->numel() != length) return rows(*given, table, count, "position");
    std::vector<std::size_t> line(static_cast<std::size_t>(length)), out;
    if (given != nullptr) {
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

  const microkernels::KernelSet& kernels_;
  const microkernels::ReduceTable& table_;
  float epsilon_;
  bool counts_;
};

void infer_embed_layer_norm(InferContext& ctx) {
  const DType type = ctx.node().op_type == "QEmbedLayerNormalization" ? DType::Float32 : ctx.input_dtype(2);
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
      .kernel<EmbedLayerNorm<false>>();
  r.op("QEmbedLayerNormalization", "com.microsoft")
      .version(1,
               "input_ids:T1, segment_ids:T1?, word_embedding_quant:T2, position_embedding_quant:T2, "
               "segment_embedding:T2?, gamma_quant:T2, beta_quant:T2, mask:T1?, word_embedding_scale:T, "
               "position_embedding_scale:T, segment_embedding_scale:T?, gamma_scale:T, beta_scale:T, "
               "word_embedding_zero_point:T2, position_embedding_zero_point:T2, segment_embedding_zero_point:T2?, "
               "gamma_zero_point:T2, beta_zero_point:T2 -> layernorm_out:T, mask_index_out:T1; T1 = int32, "
               "T2 = int8|uint8, T = float")
      .infer(infer_embed_layer_norm)
      .kernel<EmbedLayerNorm<true>>();
}

}  // namespace infernode::ops
