#include <algorithm>
#include <array>
#include <vector>

#include "base/checked.h"
#include "microkernels/common/evenness.h"
#include "microkernels/elementwise/elementwise.h"
#include "microkernels/toom/toom.h"
#include "ops/common/packed_weight.h"
#include "ops/conv/methods/counts.h"
#include "ops/conv/methods/method.h"
#include "ops/matmul/product.h"

// Convolutions along one axis, of stride 1 and three or five weights a channel, in fewer multiplications than the
// definition says, at no loss of accuracy: as products whose rows are pairs of positions
// (microkernels/toom/toom.h).
namespace infernode::ops {

namespace {

using microkernels::FloatType;
using microkernels::GemmArgs;
using tensor::Tensor;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// In which order taps lie: first those of y0's own product, then those of y1's, last the one that only sums hold.
constexpr std::array<std::size_t, 5> kOrder5{0, 3, 2, 4, 1};
constexpr std::array<std::size_t, 3> kOrder3{0, 2, 1};
std::size_t tap_at(std::size_t taps, std::size_t place) { return taps == 5 ? kOrder5[place] : kOrder3[place]; }

/// Sizes of a run. `segment`: channels times the taps of y0's own product, and of y1's.
struct Line {
  std::size_t channels, made, positions, pairs, segment, depth;
  std::size_t rows;  ///< of padded input that pairs see
};

class ConvToom final : public ConvRunner {
 public:
  ConvToom(kernel::KernelInfo& info, const ConvSite& site);

  /// `o.residual` is null.
  void run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
           const microkernels::ActivationArgs& activation) const override;

 private:
  bool even(kernel::KernelContext& ctx, const Line& line, const float* rows) const;
  void direct(kernel::KernelContext& ctx, const Line& line, microkernels::GemmArgs args, const float* rows) const;
  tensor::Buffer middle_weights(kernel::KernelContext& ctx, const Line& line) const;
  void pairs(kernel::KernelContext& ctx, const Line& line, microkernels::GemmArgs args, const float* rows,
             const float* middle, float* scratch) const;
  const float* weights() const { return packed_.read(table_->weights.name).floats(); }

  const microkernels::KernelSet& kernels_;
  const microkernels::GemmTable* table_;
  const microkernels::ToomTable* toom_;
  microkernels::BinaryLoop add_, subtract_;
  std::size_t taps_;
  std::array<float, 5> shares_{};  ///< of the taps: toom_shares
  PackedWeight packed_;            ///< of the product's right side, [taps in kOrder][channels], whole
};

ConvToom::ConvToom(kernel::KernelInfo& info, const ConvSite& site)
    : kernels_(site.kernels()),
      table_(&site.kernels().gemm),
      toom_(&site.kernels().toom),
      taps_(site.shape.kernel_points()) {
  const std::size_t made = site.shape.out_channels, channels = site.shape.in_channels, points = taps_;
  const Tensor* const w = site.weight;
  const microkernels::ElementwiseTable& elementwise = site.kernels().elementwise;
  add_ = elementwise.vector_vector[static_cast<std::size_t>(microkernels::BinaryOp::kAdd)];
  subtract_ = elementwise.vector_vector[static_cast<std::size_t>(microkernels::BinaryOp::kSub)];
  microkernels::toom_shares(made, channels, points, w->data<float>(), shares_.data());
  const std::size_t k = channels * points;
  const auto pack = [&](const Tensor& weight, std::size_t, std::byte* to) {
    std::vector<float> rows(made * k);
    const float* from = weight.data<float>();
    for (std::size_t i = 0; i < made; ++i) {
      for (std::size_t place = 0; place < points; ++place) {
        for (std::size_t c = 0; c < channels; ++c)
          rows[i * k + place * channels + c] = from[i * k + c * points + tap_at(points, place)];
      }
    }
    table_->weights.pack(made, k, rows.data(), FloatType::kF32, k, true, to, 0, made);
  };
  packed_ = PackedWeight(info, 1, "conv.toom", table_->weights.packed(made, k, nullptr), 1, pack);
  info.release_constant(1);
}

/// Whether enough numbers matter in each pair's inputs, to both of its positions, and all are finite.
bool ConvToom::even(kernel::KernelContext& ctx, const Line& line, const float* rows) const {
  std::vector<float> sums(line.rows), squares(line.rows);
  ctx.parallel_for(line.rows, 0.1 * static_cast<double>(line.channels),
                   [&](std::size_t begin, std::size_t end, std::size_t) {
                     for (std::size_t r = begin; r < end; ++r)
                       toom_->measure(rows + r * line.channels, line.channels, sums[r], squares[r]);
                   });
  for (std::size_t t = 0; t < line.pairs; ++t) {
    const float* const of_pair = sums.data() + 2 * t;
    float sum = 0, square = 0;
    for (std::size_t r = 0; r <= taps_; ++r) {
      sum += of_pair[r];
      square += squares[2 * t + r];
    }
    if (!microkernels::toom_even(sum, square)) return false;
    const float most = *std::max_element(of_pair, of_pair + taps_ + 1);
    for (std::size_t i = 0; i < std::min<std::size_t>(2, line.positions - 2 * t); ++i) {
      if (!microkernels::toom_sees_enough(taps_, shares_.data(), of_pair + i, most)) return false;
    }
  }
  return true;
}

/// By the definition, tap by tap.
void ConvToom::direct(kernel::KernelContext& ctx, const Line& line, GemmArgs args, const float* rows) const {
  const microkernels::GemmEpilogue epilogue = args.epilogue;
  args.m = line.positions;
  args.k = line.channels;
  args.lda = line.channels;
  for (std::size_t place = 0; place < taps_; ++place) {
    args.a = rows + tap_at(taps_, place) * line.channels;
    args.packed_b = table_->weights.packed(line.made, line.depth, weights() + place * line.channels * table_->nr);
    args.accumulate = place > 0;
    args.epilogue = place + 1 == taps_ ? epilogue : microkernels::GemmEpilogue{};
    run_gemm(ctx, *table_, args);
  }
}

/// Right sides of p's product and of q's, packed, the one behind the other.
tensor::Buffer ConvToom::middle_weights(kernel::KernelContext& ctx, const Line& line) const {
  const std::size_t nr = table_->nr, panels = ceil_div(line.made, nr), tap = line.channels * nr;
  const std::size_t segment = line.segment * nr;
  tensor::Buffer hold = ctx.scratch(checked_mul(panels * (segment + tap), sizeof(float)));
  auto* const sums = reinterpret_cast<float*>(hold.data());
  float* const differences = sums + panels * segment;
  ctx.parallel_for(panels, 0.3 * static_cast<double>(segment), [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      const float* const w = weights() + i * taps_ * tap;
      const float *const w2 = w + (taps_ == 5 ? 2 : 1) * tap, *const w1 = w + (taps_ - 1) * tap;
      toom_->middle(w, w1, w2, tap, sums + i * segment, differences + i * tap);
      if (taps_ == 5) add_(w + tap, w + 3 * tap, sums + i * segment + tap, tap);
    }
  });
  return hold;
}

/// By pairs of positions; `scratch` holds the rows of one product.
void ConvToom::pairs(kernel::KernelContext& ctx, const Line& line, GemmArgs args, const float* rows,
                     const float* middle, float* scratch) const {
  const std::size_t channels = line.channels, segment = line.segment, nr = table_->nr, ld = args.ldc;
  float* const y = args.c;
  const microkernels::GemmEpilogue epilogue = args.epilogue;
  // Makes rows of `scratch` by each(a pair's inputs, its row) and multiplies by `packed`.
  const auto product = [&](std::size_t k, const float* packed, std::size_t packed_k, std::size_t first, bool add,
                           auto each) {
    ctx.parallel_for(line.pairs, 0.2 * static_cast<double>(k), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t t = begin; t < end; ++t) each(rows + 2 * t * channels, scratch + t * k);
    });
    args.m = line.pairs;
    args.k = args.lda = k;
    args.a = scratch;
    args.packed_b = table_->weights.packed(line.made, packed_k, packed);
    args.c = y + first * ld;
    args.ldc = 2 * ld;
    args.accumulate = add;
    args.epilogue = add ? epilogue : microkernels::GemmEpilogue{};
    run_gemm(ctx, *table_, args);
  };
  const bool five = taps_ == 5;
  const std::size_t panels = ceil_div(line.made, nr);
  product(segment, middle, segment, 0, false, [&](const float* x, float* to) {
    add_(x + channels, x + 2 * channels, to, channels);
    if (five) std::copy_n(x + 4 * channels, channels, to + channels);
  });
  product(channels, middle + panels * segment * nr, channels, 1, false,
          [&](const float* x, float* to) { subtract_(x + 2 * channels, x + channels, to, channels); });
  ctx.parallel_for(line.pairs, 0.2 * static_cast<double>(ld), [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t t = begin; t < end; ++t) toom_->butterfly(y + 2 * t * ld, y + (2 * t + 1) * ld, line.made);
  });
  product(segment, weights(), line.depth, 0, true, [&](const float* x, float* to) {
    subtract_(x, x + 2 * channels, to, channels);
    if (five) subtract_(x + 3 * channels, x + 4 * channels, to + channels, channels);
  });
  product(segment, weights() + segment * nr, line.depth, 1, true, [&](const float* x, float* to) {
    subtract_(x + 3 * channels, x + channels, to, channels);
    if (five) subtract_(x + 5 * channels, x + 4 * channels, to + channels, channels);
  });
}

void ConvToom::run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
                   const microkernels::ActivationArgs& activation) const {
  const microkernels::ConvShape& s = p.shape;
  const std::size_t in = s.in_h * s.in_w, positions = s.positions(), channels = s.in_channels, made = s.out_channels;
  const std::ptrdiff_t pad = s.kernel_h > 1 ? s.pad_top : s.pad_left;
  Line line{};
  line.channels = channels;
  line.made = made;
  line.positions = positions;
  line.pairs = ceil_div(positions, std::size_t{2});
  line.depth = taps_ * channels;
  line.segment = (taps_ == 5 ? 2 : 1) * channels;
  line.rows = 2 * line.pairs + taps_ - 1;
  const std::size_t left = pad > 0 ? std::min(size(pad), line.rows) : 0, skipped = pad < 0 ? size(-pad) : 0;
  const std::size_t count = std::min(in > skipped ? in - skipped : 0, line.rows - left);
  const std::size_t input = checked_mul(line.rows, channels), output = checked_mul(2 * line.pairs, made);
  const std::size_t products = checked_mul(line.pairs, line.segment);
  const tensor::Buffer hold =
      ctx.scratch(checked_mul(checked_add(checked_add(input, output), products), sizeof(float)));
  auto* const rows = reinterpret_cast<float*>(hold.data());
  tensor::Buffer middle;
  GemmArgs args{.n = made, .ldc = made, .epilogue = {}};
  args.c = rows + input;
  args.epilogue.bias_n = o.bias;
  args.epilogue.activation = activation;
  constexpr std::size_t kFewPairs = 24;  // weights would take longer to transform than to multiply by
  for (std::size_t i = 0; i < size(p.images); ++i) {
    ctx.run().check();
    std::fill_n(rows, left * channels, 0.0f);
    std::fill(rows + (left + count) * channels, rows + input, 0.0f);
    transpose_rows(ctx, kernels_, o.x + i * channels * in + skipped, in, rows + left * channels, channels, channels,
                   count);
    if (line.pairs < kFewPairs || !even(ctx, line, rows)) {
      direct(ctx, line, args, rows);
    } else {
      if (!middle) middle = middle_weights(ctx, line);
      pairs(ctx, line, args, rows, reinterpret_cast<const float*>(middle.data()), args.c + output);
    }
    transpose_rows(ctx, kernels_, args.c, made, o.y + i * made * positions, positions, positions, made);
  }
}

/// Where its channels are many.
bool can_run(const ConvSite& site) {
  using microkernels::kToomChannels;
  const microkernels::ConvShape& s = site.shape;
  const std::size_t points = s.kernel_points();
  // The matrix unit's packed weights cannot be read in parts; bfloat16 has no sums that keep the accuracy.
  const microkernels::GemmTable& products = site.kernels().gemm;
  return site.weight != nullptr && site.groups == 1 && !products.matrix_unit && !products.rounds && site.axes <= 2 &&
         !site.residual && (points == 3 || points == 5) && std::max(s.kernel_w, s.kernel_h) == points &&
         s.in_channels >= kToomChannels && s.in_channels % 2 == 0 && s.out_channels >= kToomChannels &&
         s.stride_h == 1 && s.stride_w == 1 && s.dilation_h == 1 && s.dilation_w == 1 && site.line;
}
bool fits_weight(const ConvSite& site) {
  return microkernels::many_weights_matter(site.shape.out_channels, site.shape.depth(), site.weight->data<float>());
}

/// Calls, multiply-adds, floats turned, weights transformed, inputs added up.
cost::Terms terms(const ConvSite& site) {
  const microkernels::ConvShape& s = site.shape;
  const double share = s.kernel_points() == 5 ? 0.7 : 4.0 / 6;
  return {1, share * multiply_adds(s), input_floats(s) + output_floats(s), number(s.out_channels) * number(s.depth()),
          number(s.depth() * s.positions())};
}

std::unique_ptr<ConvRunner> make(kernel::KernelInfo& info, const ConvSite& site) {
  return std::make_unique<ConvToom>(info, site);
}

}  // namespace

void register_conv_toom(ConvMethods& methods) {
  methods.add({"toom", "pairs of positions along one axis, windows of 3 or 5: 4 products instead of 6, 7 instead of 10",
               20, can_run, terms, make, nullptr, fits_weight});
}

}  // namespace infernode::ops
