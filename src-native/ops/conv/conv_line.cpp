#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "ops/conv/conv_line.h"

namespace infernode::ops {

namespace {

using tensor::Tensor;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

}  // namespace

ConvLine::ConvLine(kernel::KernelInfo& info, const Window& window, std::int64_t groups) : rung_(info.cpu_rung()) {
  const Tensor* w = info.constant(1);
  if (w == nullptr || groups != 1 || w->rank() != 3 || w->dtype() != tensor::DType::Float32) return;
  constexpr std::int64_t kFewChannels = 16;
  constexpr std::int64_t kShortSum = 32;  // is not rounded
  if (w->dim(0) < kFewChannels || w->dim(1) < kFewChannels || w->dim(1) * w->dim(2) < kShortSum) return;
  if (std::any_of(window.dilations.begin(), window.dilations.end(), [](std::int64_t d) { return d != 1; })) return;
  const microkernels::GemmTable& table = info.kernels().gemm;
  if (!table.rounds) return;
  table_ = &table;
  const std::size_t n = size(w->dim(0)), channels = size(w->dim(1)), points = size(w->dim(2)), k = channels * points;
  packed_ = info.packer().pack(info.node(), 1, cat("conv.line.", table.weights.name), [&](const Tensor& weight) {
    std::vector<float> rows(n * k);  // of a product's right side: [out_channels][points][channels]
    const float* from = weight.data<float>();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t c = 0; c < channels; ++c) {
        for (std::size_t p = 0; p < points; ++p) rows[i * k + p * channels + c] = *from++;
      }
    }
    tensor::Buffer out = tensor::host_allocator().allocate(table.weights.bytes(n, k));
    table.weights.pack(n, k, rows.data(), microkernels::FloatType::kF32, k, true, out.data(), 0, n);
    return out;
  });
  info.release_constant(1);
}

void ConvLine::run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
                   const microkernels::ActivationArgs& activation) const {
  const microkernels::ConvShape& s = p.shape;
  const std::size_t positions = s.positions(), channels = s.in_channels, made = s.out_channels;
  const std::size_t seen = (positions - 1) * s.stride_w + s.kernel_w;
  const std::size_t left = s.pad_left > 0 ? std::min(size(s.pad_left), seen) : 0,
                    skipped = s.pad_left < 0 ? size(-s.pad_left) : 0;
  const std::size_t count = std::min(s.in_w > skipped ? s.in_w - skipped : 0, seen - left);
  const std::size_t input = checked_mul(seen, channels), output = checked_mul(positions, made);
  const tensor::Buffer hold = ctx.scratch(checked_mul(checked_add(input, output), sizeof(float)));
  auto* const rows = reinterpret_cast<float*>(hold.data());
  microkernels::GemmArgs args{.m = positions, .n = made, .k = s.depth(), .lda = s.stride_w * channels, .epilogue = {}};
  args.a = rows;
  args.packed_b = table_->weights.packed(made, s.depth(), packed_.data());
  args.c = rows + input;
  args.ldc = made;
  args.accumulate = o.residual != nullptr;
  args.epilogue.bias_n = o.bias;
  args.epilogue.activation = activation;
  for (std::size_t i = 0; i < size(p.images); ++i) {
    ctx.run().check();
    std::fill_n(rows, left * channels, 0.0f);
    std::fill(rows + (left + count) * channels, rows + input, 0.0f);
    transpose_rows(ctx, rung_, o.x + i * channels * s.in_w + skipped, s.in_w, rows + left * channels, channels,
                   channels, count);
    if (args.accumulate) transpose_rows(ctx, rung_, o.residual + i * output, positions, args.c, made, made, positions);
    run_gemm(ctx, *table_, args);
    transpose_rows(ctx, rung_, args.c, made, o.y + i * output, positions, positions, made);
  }
}

}  // namespace infernode::ops
