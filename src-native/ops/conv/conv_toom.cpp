#include <algorithm>
#include <array>
#include <vector>

#include "base/checked.h"
#include "microkernels/common/evenness.h"
#include "ops/conv/conv_toom.h"

namespace infernode::ops {

namespace {

using microkernels::FloatType;
using microkernels::GemmArgs;
using tensor::Tensor;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// Of five taps those of y0's own product, those of y1's, and the one that only sums of taps hold; of three likewise.
constexpr std::array<std::size_t, 5> kOrder5{0, 3, 2, 4, 1};
constexpr std::array<std::size_t, 3> kOrder3{0, 2, 1};
std::size_t tap_at(std::size_t taps, std::size_t place) { return taps == 5 ? kOrder5[place] : kOrder3[place]; }

bool all_are(const std::vector<std::int64_t>& values, std::int64_t value) {
  return std::all_of(values.begin(), values.end(), [=](std::int64_t v) { return v == value; });
}

/// Whether the images of a kernel [.., points, 1] or [.., 1, points] have one position along its other axis.
bool is_line(const kernel::KernelInfo& info, const Window& window, const Tensor& w) {
  if (w.rank() == 3) return true;
  const std::size_t other = w.dim(2) == 1 ? 0 : 1;
  const graph::ValueType& x = info.input_type(0);
  const bool padded = !window.pads.empty() && (window.pads[other] != 0 || window.pads[other + 2] != 0);
  return !padded && x.shape && x.shape->size() == 4 && (*x.shape)[other + 2].is(1);
}

}  // namespace

/// Sizes of a run. `segment`: channels times the taps of y0's own product, and of y1's.
struct ConvToom::Line {
  std::size_t channels, made, positions, pairs, segment, depth;
  std::size_t rows;  ///< of padded input that pairs see
};

ConvToom::ConvToom(kernel::KernelInfo& info, const Window& window, std::int64_t groups) : rung_(info.cpu_rung()) {
  using microkernels::kToomChannels;
  const Tensor* w = info.constant(1);
  // The matrix unit multiplies faster than this saves multiplications.
  if (w == nullptr || groups != 1 || rung_ == CpuRung::Amx || w->dtype() != tensor::DType::Float32 || w->rank() < 3 ||
      w->rank() > 4 || info.has_input(3) || info.float32_precision() == microkernels::Float32Precision::kMedium)
    return;
  const std::size_t points = size(w->shape().numel(2, w->rank())), made = size(w->dim(0)), channels = size(w->dim(1));
  const auto seen_along = size(std::max(w->dim(2), w->dim(w->rank() - 1)));
  if ((points != 3 && points != 5) || seen_along != points || channels < kToomChannels || channels % 2 != 0 ||
      made < kToomChannels || !all_are(window.strides, 1) || !all_are(window.dilations, 1) ||
      !is_line(info, window, *w) || !microkernels::many_weights_matter(made, channels * points, w->data<float>()))
    return;
  table_ = &microkernels::gemm_table(rung_);
  toom_ = &microkernels::toom_table(rung_);
  const microkernels::ElementwiseTable& elementwise = microkernels::elementwise_table(rung_);
  add_ = elementwise.vector_vector[static_cast<std::size_t>(microkernels::BinaryOp::kAdd)];
  subtract_ = elementwise.vector_vector[static_cast<std::size_t>(microkernels::BinaryOp::kSub)];
  taps_ = points;
  microkernels::toom_shares(made, channels, points, w->data<float>(), shares_.data());
  packed_ = info.packer().pack(info.node(), 1, cat("conv.toom.", table_->weights.name), [&](const Tensor& weight) {
    const std::size_t k = channels * points;
    std::vector<float> rows(made * k);
    const float* from = weight.data<float>();
    for (std::size_t i = 0; i < made; ++i) {
      for (std::size_t place = 0; place < points; ++place) {
        for (std::size_t c = 0; c < channels; ++c)
          rows[i * k + place * channels + c] = from[i * k + c * points + tap_at(points, place)];
      }
    }
    tensor::Buffer out = tensor::host_allocator().allocate(table_->weights.bytes(made, k));
    table_->weights.pack(made, k, rows.data(), FloatType::kF32, k, true, out.data(), 0, made);
    return out;
  });
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
    transpose_rows(ctx, rung_, o.x + i * channels * in + skipped, in, rows + left * channels, channels, channels,
                   count);
    if (line.pairs < kFewPairs || !even(ctx, line, rows)) {
      direct(ctx, line, args, rows);
    } else {
      if (!middle) middle = middle_weights(ctx, line);
      pairs(ctx, line, args, rows, reinterpret_cast<const float*>(middle.data()), args.c + output);
    }
    transpose_rows(ctx, rung_, args.c, made, o.y + i * made * positions, positions, positions, made);
  }
}

}  // namespace infernode::ops
