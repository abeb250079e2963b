#include <algorithm>

#include "base/checked.h"
#include "microkernels/transforms/transpose.h"
#include "ops/conv/conv_rows.h"

namespace infernode::ops {

namespace {

using microkernels::ConvShape;

constexpr std::int64_t kFewPositions = 64;

/// Output positions of the node where its shape is known.
std::optional<std::int64_t> known_positions(const graph::ValueType& type) {
  if (!type.shape || type.shape->size() < 3) return std::nullopt;
  std::int64_t count = 1;
  for (std::size_t i = 2; i < type.shape->size(); ++i) {
    const graph::Dim& dim = (*type.shape)[i];
    if (!dim.known() || dim.value() > kFewPositions) return std::nullopt;
    count *= dim.value();
  }
  return count;
}

bool sees_input_as_it_is(const ConvShape& s) {
  return s.kernel_points() == 1 && s.pad_front == 0 && s.pad_top == 0 && s.pad_left == 0 &&
         s.positions() == s.in_d * s.in_h * s.in_w;
}

/// What the kernel sees at one position: out[channel][kernel point].
void gather(const ConvShape& s, const float* x, std::size_t position, float* out) {
  const auto start = [](std::size_t at, std::size_t stride, std::ptrdiff_t pad) {
    return static_cast<std::ptrdiff_t>(at * stride) - pad;
  };
  const std::ptrdiff_t w0 = start(position % s.out_w, s.stride_w, s.pad_left),
                       h0 = start(position / s.out_w % s.out_h, s.stride_h, s.pad_top),
                       d0 = start(position / s.out_w / s.out_h, s.stride_d, s.pad_front);
  const auto inside = [](std::ptrdiff_t i, std::size_t n) { return i >= 0 && i < static_cast<std::ptrdiff_t>(n); };
  const bool all_columns = w0 >= 0 && inside(w0 + static_cast<std::ptrdiff_t>((s.kernel_w - 1) * s.dilation_w), s.in_w);
  for (std::size_t c = 0; c < s.in_channels; ++c, x += s.in_d * s.in_h * s.in_w) {
    for (std::size_t kd = 0; kd < s.kernel_d; ++kd) {
      const std::ptrdiff_t d = d0 + static_cast<std::ptrdiff_t>(kd * s.dilation_d);
      for (std::size_t kh = 0; kh < s.kernel_h; ++kh) {
        const std::ptrdiff_t h = h0 + static_cast<std::ptrdiff_t>(kh * s.dilation_h);
        const bool row = inside(d, s.in_d) && inside(h, s.in_h);
        const float* from = row ? x + (static_cast<std::size_t>(d) * s.in_h + static_cast<std::size_t>(h)) * s.in_w : x;
        if (row && all_columns) {
          from += w0;
          for (std::size_t kw = 0; kw < s.kernel_w; ++kw) *out++ = from[kw * s.dilation_w];
          continue;
        }
        for (std::size_t kw = 0; kw < s.kernel_w; ++kw) {
          const std::ptrdiff_t w = w0 + static_cast<std::ptrdiff_t>(kw * s.dilation_w);
          *out++ = row && inside(w, s.in_w) ? from[w] : 0.0f;
        }
      }
    }
  }
}

void transpose(CpuRung rung, const float* x, float* y, std::size_t rows, std::size_t cols) {
  microkernels::transpose_table(rung).bytes4(reinterpret_cast<const std::uint32_t*>(x), cols,
                                             reinterpret_cast<std::uint32_t*>(y), rows, rows, cols);
}

}  // namespace

ConvRows::ConvRows(kernel::KernelInfo& info, std::int64_t groups) : rung_(info.cpu_rung()) {
  const tensor::Tensor* w = info.constant(1);
  if (w == nullptr || groups != 1 || w->rank() < 3 || w->dtype() != tensor::DType::Float32 || w->numel() == 0) return;
  const auto positions = known_positions(info.output_type(0));
  // One position: a matrix by a vector. Few: gathering what they see must be cheap beside the product.
  const bool worth = positions == 1 || (positions && *positions <= kFewPositions && w->dim(0) >= 64);
  if (!worth) return;
  table_ = &product_table(info);
  packed_ = PackedMatrix(info, *table_, 1, true);
}

void ConvRows::run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
                   const microkernels::ActivationArgs& activation) const {
  const ConvShape& s = p.shape;
  const std::size_t positions = s.positions(), depth = s.depth(), channels = s.out_channels;
  const std::size_t in_size = s.in_channels * s.in_d * s.in_h * s.in_w, out_size = channels * positions;
  microkernels::GemmArgs args{.m = positions, .n = channels, .k = depth, .lda = depth, .epilogue = {}};
  args.packed_b = packed_.b();
  args.ldc = channels;
  args.epilogue.bias_n = o.bias;
  args.epilogue.activation = activation;
  if (positions == 1 && sees_input_as_it_is(s)) {  // images are rows
    args.m = static_cast<std::size_t>(p.images);
    args.a = o.x;
    args.c = o.y;
    args.epilogue.residual = o.residual;
    args.epilogue.ld_residual = channels;
    return run_gemm(ctx, *table_, args);
  }
  const std::size_t floats = checked_add(checked_mul(positions, depth), out_size);
  const tensor::Buffer hold = ctx.scratch(checked_mul(floats, sizeof(float)));
  auto* const rows = reinterpret_cast<float*>(hold.data());
  args.a = rows;
  args.c = rows + positions * depth;
  for (std::size_t i = 0; i < static_cast<std::size_t>(p.images); ++i) {
    ctx.run().check();
    const float* x = o.x + i * in_size;
    if (sees_input_as_it_is(s)) {
      transpose(rung_, x, rows, depth, positions);
    } else {
      ctx.parallel_for(positions, static_cast<double>(depth), [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t at = begin; at < end; ++at) gather(s, x, at, rows + at * depth);
      });
    }
    args.accumulate = o.residual != nullptr;
    if (args.accumulate) transpose(rung_, o.residual + i * out_size, args.c, channels, positions);
    run_gemm(ctx, *table_, args);
    transpose(rung_, args.c, o.y + i * out_size, positions, channels);
  }
}

}  // namespace infernode::ops
