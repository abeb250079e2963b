// Blocks of bfloat16 numbers: what comes of them is what comes of the same numbers as float32, rounded.
#include "microkernels/activations.h"
#include "microkernels/blocked/blocked.h"
#include "microkernels/blocked_winograd/blocked_winograd.h"
#include "microkernels/conv/conv_shapes.h"
#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

// A convolution whose inputs and residuals bfloat16 holds; numbers of the last block beyond the channels are NaN.
class Problem {
 public:
  Problem(const ConvShape& s, std::size_t depth, std::uint64_t seed)
      : weight(s.out_channels * depth),
        x_(channel_blocks(s.in_channels) * kChannelBlock * s.in_h * s.in_w),
        bias_(channel_blocks(s.out_channels) * kChannelBlock),
        z_(bias_.size() * s.positions()),
        y_(z_.size()),
        x16_(x_.size()),
        z16_(z_.size()),
        y16_(y_.size()) {
    Random random(seed);
    random.fill(weight);
    random.fill(bias_);
    random.fill(x_);
    random.fill(z_);
    const std::size_t plane = s.in_h * s.in_w;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const bool inside = i / (plane * kChannelBlock) * kChannelBlock + i % kChannelBlock < s.in_channels;
      if (!inside) x_[i] = std::numeric_limits<float>::quiet_NaN();
    }
    if (seed % 3 == 0 && x_.size() > 40) x_[32] = std::numeric_limits<float>::infinity();
    round(x_, x16_);
    round(z_, z16_);
    args.shape = s;
    args.bias = bias_.data();
  }

  // How many outputs differ with some of the blocks in bfloat16; bit 0: input, 1: residual, 2: output. `quick`: they
  // may be off by as much as quick activations are, and so rounded to the next number.
  template <typename Run>
  std::size_t wrong(unsigned kinds, const Run& run, bool quick = false) {
    run(with(0));
    std::vector<float> expected(y_.begin(), y_.end());
    std::fill(y_.begin(), y_.end(), -7.0f);
    run(with(kinds));
    std::size_t count = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const bool narrow = (kinds & 4u) != 0;
      const float value = narrow ? rounded(expected[i]) : expected[i];
      const float made = narrow ? static_cast<float>(BFloat16::from_bits(y16_[i])) : y_[i];
      // Of minus infinity the quick Gelu makes NaN, the other one nothing.
      const bool lost = std::isnan(made) && std::abs(value) < 1e-20f;
      const bool near = quick && (lost || std::abs(made - value) <= 2e-4f + std::abs(value) / 128);
      count += std::isnan(value) ? !std::isnan(made) : made != value && !near;
    }
    return count;
  }

  std::vector<float> weight;
  BlockedConvArgs args;

 private:
  static void round(Guarded<float>& x, Guarded<std::uint16_t>& out) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = rounded(x[i]);
      out[i] = BFloat16(x[i]).bits;
    }
  }
  BlockedConvArgs with(unsigned kinds) {
    BlockedConvArgs out = args;
    if ((kinds & 1u) != 0) {
      out.input_bf16 = x16_.data();
    } else {
      out.input = x_.data();
    }
    if ((kinds & 2u) != 0) {
      out.residual_bf16 = z16_.data();
    } else {
      out.residual = z_.data();
    }
    if ((kinds & 4u) != 0) {
      out.output_bf16 = y16_.data();
    } else {
      out.output = y_.data();
    }
    return out;
  }

  Guarded<float> x_, bias_, z_, y_;
  Guarded<std::uint16_t> x16_, z16_, y16_;
};

/// One after the other, all of them.
ActivationArgs activation_of(std::size_t index) {
  static const std::vector<ActivationCase> all = every_activation();
  return all[index % all.size()].args;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStep = 16;  // all of them take minutes
#else
constexpr std::size_t kStep = 1;
#endif

TEST_CASE("blocked conv takes and makes bfloat16 as it does float32") {
  for_each_bfloat16_target([](CpuRung rung) {
    const BlockedConvTable& table = kernel_set(rung, Float32Precision::kMedium).blocked_conv;
    REQUIRE(table.takes_bf16);
    Scratch<float> scratch(table.scratch_floats);
    std::size_t index = 0;
    for (const auto& [in, out] : {std::pair<std::size_t, std::size_t>{3, 16}, {16, 7}, {45, 51}, {46, 33}, {64, 97}}) {
      std::vector<ConvShape> all = shapes(in, out);
      all.push_back(make_shape(in, out, {1, 14, 13}, {1, 1, 1}, {1, 2, 2}, {1, 1, 1}, 0, 0));
      all.push_back(make_shape(in, out, {1, 20, 21}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, 0));
      all.push_back(make_shape(in, out, {1, 9, 23}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, 0, 0));
      for (ConvShape s : all) {
        if (++index % (in * out > 1000 ? 5 * kStep : kStep) != 0 && s.kernel_points() > 1) continue;
        if (s.kernel_points() > 30) s.in_channels = std::min<std::size_t>(in, 24);
        if (!table.fits(s)) continue;
        CAPTURE(index);
        Problem problem(s, s.depth(), index);
        Guarded<std::uint8_t> packed(table.weights.bytes(s));
        table.weights.pack(s, problem.weight.data(), packed.data());
        problem.args.weights = table.weights.packed(s, packed.data());
        problem.args.activation = activation_of(index);
        const BlockedGrid grid = table.grid(s);
        const unsigned kinds = 1 + index % 7;
        CHECK(problem.wrong(kinds, [&](const BlockedConvArgs& args) {
          const std::size_t row = grid.rows / 2, panel = grid.panels / 2;
          for (const BlockedRange& range :
               {BlockedRange{0, row, 0, grid.panels}, {row, grid.rows, 0, panel}, {row, grid.rows, panel, grid.panels}})
            table.conv(args, range, scratch.data());
        }) == 0);
      }
    }
  });
}

TEST_CASE("blocked depthwise conv takes and makes bfloat16 as it does float32") {
  for_each_bfloat16_target([](CpuRung rung) {
    const BlockedConvTable& table = kernel_set(rung, Float32Precision::kMedium).blocked_conv;
    std::vector<ConvShape> all = shapes(37, 37);
    for (const std::size_t kernel : {3, 5, 7}) {
      const auto pad = static_cast<std::ptrdiff_t>(kernel / 2);
      for (const std::size_t width : {1, 5, 7, 14, 15, 29, 43}) {
        for (const std::size_t stride : {1, 2})
          all.push_back(
              make_shape(37, 37, {1, 9, width}, {1, kernel, kernel}, {1, stride, stride}, {1, 1, 1}, pad, pad));
      }
    }
    std::size_t index = 0;
    for (const ConvShape& s : all) {
      if (s.in_d > 1) continue;
      CAPTURE(index);
      const std::size_t points = s.kernel_points();
      Problem problem(s, points, ++index);
      ConvShape weights = s;
      weights.in_channels = 1;
      Guarded<std::uint8_t> packed(depthwise_packing().bytes(weights));
      depthwise_packing().pack(weights, problem.weight.data(), packed.data());
      problem.args.weights = depthwise_packing().packed(weights, packed.data());
      problem.args.activation = activation_of(index);
      CHECK(problem.wrong(
                7,
                [&](const BlockedConvArgs& args) {
                  table.depthwise(args, 0, 1);
                  table.depthwise(args, 1, channel_blocks(s.in_channels));
                },
                true) == 0);
    }
  });
}

TEST_CASE("blocked winograd takes and makes bfloat16 as it does float32") {
  with_bfloat16([](CpuRung rung) {
    const BlockedWinogradTable& table = kernel_set(rung, Float32Precision::kMedium).blocked_winograd;
    const ConvShape all[] = {window(24, 24, 14, 14, 1, 1, 1, 1), window(33, 25, 13, 17, 1, 1, 1, 1),
                             window(20, 7, 9, 40, 0, 0, 0, 0),   window(17, 70, 8, 35, 2, 1, 0, 2),
                             window(40, 50, 7, 7, 1, 1, 1, 1),   window(18, 5, 1, 70, 1, 1, 1, 1),
                             window(64, 33, 40, 8, 1, 1, 1, 1),  window(300, 26, 10, 10, 1, 1, 1, 1)};
    std::size_t index = 0;
    for (const ConvShape& s : all) {
      for (unsigned kinds = 1; kinds < 8; ++kinds) {
        CAPTURE(index);
        Problem problem(s, s.depth(), ++index);
        Guarded<std::uint8_t> packed(table.weights->bytes(s));
        Guarded<float> scratch(table.scratch_floats(s));
        table.weights->pack(s, problem.weight.data(), packed.data());
        problem.args.weights = table.weights->packed(s, packed.data());
        problem.args.activation = activation_of(index);
        const BlockedGrid grid = table.grid(s);
        CHECK(problem.wrong(kinds, [&](const BlockedConvArgs& args) {
          table.conv(args, {0, grid.rows / 2, 0, grid.panels}, scratch.data());
          table.conv(args, {grid.rows / 2, grid.rows, 0, grid.panels}, scratch.data());
        }) == 0);
      }
    }
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
