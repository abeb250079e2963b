#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "ops/common/packed_weight.h"
#include "ops/conv/methods/counts.h"
#include "ops/conv/methods/method.h"
#include "ops/matmul/product.h"

// Convolutions along one axis as a product whose rows are positions: where an input's channels follow each other, what
// the kernel sees at a position is one run of numbers, and such runs overlap as they lie.
namespace infernode::ops {

namespace {

using tensor::Tensor;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

class ConvLine final : public ConvRunner {
 public:
  ConvLine(kernel::KernelInfo& info, const ConvSite& site) : kernels_(site.kernels()), table_(site.kernels().gemm) {
    const std::size_t n = site.shape.out_channels, channels = site.shape.in_channels, k = site.shape.depth(),
                      points = site.shape.kernel_w;
    const auto pack = [&](const Tensor& weight, std::size_t, std::byte* to) {
      std::vector<float> rows(n * k);  // of a product's right side: [out_channels][points][channels]
      const float* from = weight.data<float>();
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t c = 0; c < channels; ++c) {
          for (std::size_t p = 0; p < points; ++p) rows[i * k + p * channels + c] = *from++;
        }
      }
      table_.weights.pack(n, k, rows.data(), microkernels::FloatType::kF32, k, true, to, 0, n);
    };
    packed_ = PackedWeight(info, 1, "conv.line", table_.weights.packed(n, k, nullptr), 1, pack);
    info.release_constant(1);
  }

  void run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
           const microkernels::ActivationArgs& activation) const override {
    const microkernels::ConvShape& s = p.shape;
    const std::size_t positions = s.positions(), channels = s.in_channels, made = s.out_channels;
    const std::size_t seen = (positions - 1) * s.stride_w + s.kernel_w;
    const std::size_t left = s.pad_left > 0 ? std::min(size(s.pad_left), seen) : 0,
                      skipped = s.pad_left < 0 ? size(-s.pad_left) : 0;
    const std::size_t count = std::min(s.in_w > skipped ? s.in_w - skipped : 0, seen - left);
    const std::size_t input = checked_mul(seen, channels), output = checked_mul(positions, made);
    const tensor::Buffer hold = ctx.scratch(checked_mul(checked_add(input, output), sizeof(float)));
    auto* const rows = reinterpret_cast<float*>(hold.data());
    microkernels::GemmArgs args{
        .m = positions, .n = made, .k = s.depth(), .lda = s.stride_w * channels, .epilogue = {}};
    args.a = rows;
    args.packed_b = packed_.read(table_.weights.name);
    args.c = rows + input;
    args.ldc = made;
    args.accumulate = o.residual != nullptr;
    args.epilogue.bias_n = o.bias;
    args.epilogue.activation = activation;
    for (std::size_t i = 0; i < size(p.images); ++i) {
      ctx.run().check();
      std::fill_n(rows, left * channels, 0.0f);
      std::fill(rows + (left + count) * channels, rows + input, 0.0f);
      transpose_rows(ctx, kernels_, o.x + i * channels * s.in_w + skipped, s.in_w, rows + left * channels, channels,
                     channels, count);
      if (args.accumulate)
        transpose_rows(ctx, kernels_, o.residual + i * output, positions, args.c, made, made, positions);
      run_gemm(ctx, table_, args);
      transpose_rows(ctx, kernels_, args.c, made, o.y + i * output, positions, positions, made);
    }
  }

 private:
  const microkernels::KernelSet& kernels_;
  const microkernels::GemmTable& table_;
  PackedWeight packed_;
};

/// Lines of their own rank only: their one axis is certain to be the last.
bool can_run(const ConvSite& site) {
  // Where small taps alone see anything, sums of pieces on the matrix unit err by more than float32's.
  const microkernels::KernelSet& kernels = site.kernels();
  const bool pieces = kernels.gemm.splits && &kernels == &kernels.exact();
  return !pieces && site.weight != nullptr && site.groups == 1 && site.axes == 1 && site.shape.dilation_w == 1;
}

/// Calls, multiply-adds, floats turned, weights read, floats from far away.
cost::Terms terms(const ConvSite& site) {
  const microkernels::ConvShape& s = site.shape;
  return {1, product_adds(site, number(s.depth() * s.positions())), turned_floats(site),
          number(s.out_channels) * number(s.depth()), far_floats(site)};
}

std::unique_ptr<ConvRunner> make(kernel::KernelInfo& info, const ConvSite& site) {
  return std::make_unique<ConvLine>(info, site);
}

}  // namespace

void register_conv_line(ConvMethods& methods) {
  methods.add_unit({"line", "products along one spatial axis, without gathering", 40, can_run, terms, make});
}

}  // namespace infernode::ops
