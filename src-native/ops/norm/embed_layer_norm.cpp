#include <string>
#include <vector>

#include "base/error.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "microkernels/convert/convert.h"
#include "ops/common/reals.h"
#include "ops/norm/float_rows.h"
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

/// Which row of a table belongs to each token: as numbers say, one a token or one a place in the sequence, or the place
/// itself.
class Rows {
 public:
  Rows() = default;
  explicit Rows(std::size_t length) : period_(length) {}
  Rows(kernel::Numbers<std::int64_t> given, std::size_t period) : given_(std::move(given)), period_(period) {}
  std::size_t operator[](std::size_t token) const {
    const std::size_t place = token % period_;
    return given_.empty() ? place : static_cast<std::size_t>(given_[place]);
  }

 private:
  kernel::Numbers<std::int64_t> given_;
  std::size_t period_ = 1;
};

/// com.microsoft's EmbedLayerNormalization: LayerNormalization of the sum of word, position and segment embeddings. The
/// second output counts the tokens that a mask leaves in each sequence. QEmbedLayerNormalization has 8-bit tables,
/// whose scales are inputs 8 to 12 and whose zero points are inputs 13 to 17, and no positions of its own.
template <bool Quantized>
class EmbedLayerNorm final : public kernel::Kernel {
 public:
  explicit EmbedLayerNorm(KernelInfo& info)
      : kernels_(info.kernels()),
        norm_(kernels_),
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
    const Rows word_rows = rows(ctx, ids, words, count, "word"), place_rows = position_rows(ctx, places, count, length);
    const bool segmented = segment_ids != nullptr && segments != nullptr;
    const Rows segment_rows = segmented ? rows(ctx, *segment_ids, *segments, count, "segment") : Rows();
    const Table word = table(ctx, 2), place = table(ctx, 3), segment = table(ctx, 4), gamma = table(ctx, 5),
                beta = table(ctx, 6);
    std::vector<float> factor_hold(n), shift_hold(n);
    const float *factor = gamma.row(0, n, factor_hold.data()), *shift = beta.row(0, n, shift_hold.data());
    const RealOutput<float> out(ctx, kernels_, y), sums(ctx, kernels_, sum);
    ctx.parallel_for(count, static_cast<double>(n), [&](std::size_t begin, std::size_t end, std::size_t) {
      std::vector<float> holds(3 * n);
      kernel::Watch watch(ctx.run());
      for (std::size_t i = begin; i < end; ++i) {
        float* row = (sums ? sums : out) + i * n;
        const float* first = word.row(word_rows[i], n, holds.data());
        const float* second = place.row(place_rows[i], n, holds.data() + n);
        each_in_pieces(watch, n, 0.5, [&](std::size_t c) { row[c] = first[c] + second[c]; });
        if (segmented) {
          const float* third = segment.row(segment_rows[i], n, holds.data() + 2 * n);
          each_in_pieces(watch, n, 0.5, [&](std::size_t c) { row[c] += third[c]; });
        }
        norm_.layer_norm(watch, row, factor, shift, out + i * n, n, epsilon_, nullptr, nullptr);
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

  static Rows rows(const KernelContext& ctx, const Tensor& ids, const Tensor& table, std::size_t count,
                   const char* what) {
    kernel::Numbers<std::int64_t> given(ctx.run(), ids);
    kernel::Watch watch(ctx.run());
    for (const std::int64_t id : given) {
      watch.did(kNsPerToken);
      if (id < 0 || id >= table.dim(0)) {
        fail(ErrorCode::InvalidArgument,
             cat("EmbedLayerNormalization: ", what, " ", id, " lies outside a table of ", table.dim(0), " rows"));
      }
    }
    if (given.size() != count)
      fail(ErrorCode::ShapeMismatch,
           cat("EmbedLayerNormalization: ", given.size(), " ", what, " ids for ", count, " tokens"));
    return {std::move(given), count};
  }

  static Rows position_rows(const KernelContext& ctx, const Tensor& table, std::size_t count, std::int64_t length) {
    const auto line = static_cast<std::size_t>(length);
    if (const Tensor* given = Quantized ? nullptr : ctx.optional_input(8))
      return rows(ctx, *given, table, given->numel() == length ? line : count, "position");
    if (length > table.dim(0))
      fail(ErrorCode::InvalidArgument,
           cat("EmbedLayerNormalization: ", length, " tokens, but ", table.dim(0), " positions"));
    return Rows(line);
  }

  static constexpr double kNsPerToken = 2;

  void count_tokens(KernelContext& ctx, std::int64_t batch, std::int64_t length) const {
    if (!ctx.wants_output(1)) return;
    const Tensor out = ctx.output(1, Shape{batch});
    const Tensor* mask = ctx.optional_input(7);
    if (mask != nullptr && mask->numel() != batch * length)
      fail(ErrorCode::ShapeMismatch, cat("EmbedLayerNormalization: the mask is ", mask->to_string()));
    kernel::Watch watch(ctx.run());
    for (std::int64_t b = 0; b < batch; ++b) {
      std::int32_t tokens = 0;
      for (std::int64_t i = 0; mask != nullptr && counts_ && i < length; ++i) {
        tokens += mask->data<std::int32_t>()[b * length + i] != 0 ? 1 : 0;
        watch.did(kNsPerToken);
      }
      out.mutable_data<std::int32_t>()[b] = tokens;
    }
  }

  const microkernels::KernelSet& kernels_;
  FloatRows norm_;
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
