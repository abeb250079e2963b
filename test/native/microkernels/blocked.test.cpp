#include "microkernels/blocked.h"

#include "conv_shapes.h"
#include "support.h"

namespace infernode::microkernels::test {
namespace {

// Index of channel c at a position.
std::size_t place(std::size_t c, std::size_t position, std::size_t positions) {
  return (c / kChannelBlock * positions + position) * kChannelBlock + c % kChannelBlock;
}

// Blocks of `channels` planes; what lies in the last block beyond them must not matter.
std::vector<float> to_blocks(const float* planes, std::size_t channels, std::size_t positions) {
  std::vector<float> out(channel_blocks(channels) * kChannelBlock * positions, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = 0; i < positions; ++i) out[place(c, i, positions)] = planes[c * positions + i];
  }
  return out;
}

struct Case {
  std::vector<float> planes, weight;
  Guarded<float> input, bias, residual, output;
  BlockedConvArgs args;

  Case(const ConvShape& s, std::size_t depth, bool planar, std::size_t seed, bool bfloat16 = false)
      : planes(s.in_channels * s.in_h * s.in_w),
        weight(s.out_channels * depth),
        input(planar ? planes.size() : channel_blocks(s.in_channels) * kChannelBlock * s.in_h * s.in_w),
        bias(channel_blocks(s.out_channels) * kChannelBlock),
        residual(bias.size() * s.positions()),
        output(residual.size()) {
    Random random(seed);
    random.fill(planes);
    random.fill(weight);
    random.fill(bias);
    random.fill(residual);
    if (bfloat16) {
      for (float& x : planes) x = rounded(x);
      for (float& x : weight) x = rounded(x);
    }
    const std::vector<float> laid_out = planar ? planes : to_blocks(planes.data(), s.in_channels, s.in_h * s.in_w);
    std::copy(laid_out.begin(), laid_out.end(), input.data());
    args.shape = s;
    args.planar = planar;
    args.input = input.data();
    args.bias = bias.data();
    args.residual = residual.data();
    args.output = output.data();
  }

  // Largest error of an output against `value` of what is summed up.
  template <typename Sum, typename Value>
  double worst(Sum sum, Value value) const {
    const std::size_t positions = args.shape.positions();
    double error = 0;
    for (std::size_t m = 0; m < args.shape.out_channels; ++m) {
      for (std::size_t p = 0; p < positions; ++p) {
        const std::size_t at = place(m, p, positions);
        error = std::max(error, std::abs(output[at] - value(sum(m, p) + bias[m] + residual[at])));
      }
    }
    return error;
  }
};

const auto kClamped = [](double x) { return std::clamp(x, -1.0, 1.0); };

void check_dense(const BlockedConvTable& table, const ConvShape& s, bool planar, std::size_t seed,
                 bool bfloat16 = false) {
  REQUIRE(table.fits(s) == (s.in_d == 1));
  if (s.in_d > 1) return;
  Case c(s, s.depth(), planar, seed, bfloat16);
  Guarded<float> packed(table.packed_weight_floats(s));
  table.pack_weight(s, planar, c.weight.data(), packed.data());
  c.args.packed_weight = packed.data();
  Scratch<float> scratch(table.scratch_floats);
  const BlockedGrid grid = table.grid(s);
  const auto run = [&](Activation kind) {
    c.args.activation = {kind, -1.0f, 1.0f};
    const std::size_t row = grid.rows / 2, panel = grid.panels / 2;
    for (const BlockedRange& range :
         {BlockedRange{0, row, 0, grid.panels}, {row, grid.rows, 0, panel}, {row, grid.rows, panel, grid.panels}})
      table.conv(c.args, range, scratch.data());
  };
  const auto sum = [&](std::size_t m, std::size_t p) {
    double total = 0;
    for (std::size_t i = 0; i < s.depth(); ++i) {
      total += static_cast<double>(c.weight[m * s.depth() + i]) *
               input_at(s, c.planes.data(), i / s.kernel_points(), i % s.kernel_points(), p);
    }
    return total;
  };
  const double tolerance = 5e-8 * static_cast<double>(std::max<std::size_t>(200, s.depth()));
  run(Activation::kClip);
  CHECK(c.worst(sum, kClamped) < tolerance);
  run(Activation::kSilu);
  const double quick = bfloat16 ? 1e-3 : 0;  // activations beside such products are less exact
  CHECK(c.worst(sum, [](double x) { return x / (1 + std::exp(-x)); }) < 2 * tolerance + quick);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStep = 16;  // all of them take minutes
#else
constexpr std::size_t kStep = 1;
#endif

void check_many(const BlockedConvTable& table, bool bfloat16) {
  std::size_t index = 0;
  for (const auto& [in, out] : {std::pair<std::size_t, std::size_t>{3, 16}, {16, 7}, {45, 51}, {64, 97}}) {
    for (ConvShape s : shapes(in, out)) {
      if (++index % (in * out > 1000 ? 7 * kStep : kStep) != 0) continue;
      if (s.kernel_points() > 30) s.in_channels = std::min<std::size_t>(in, 24);
      CAPTURE(index);
      check_dense(table, s, false, index, bfloat16);
      check_dense(table, s, true, index, bfloat16);
    }
  }
  check_dense(table, make_shape(1700, 40, {1, 3, 5}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, 0), false, 1, bfloat16);
  if (kStep == 1)
    check_dense(table, make_shape(48, 7, {1, 40, 60}, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, 2, 2), false, 2, bfloat16);
}

TEST_CASE("blocked conv agrees with the definition for many shapes") {
  for_each_target([](CpuRung rung) {
    const BlockedConvTable& table = blocked_conv_table(rung);
    check_many(table, false);
    // In strips of columns.
    check_dense(table, make_shape(520, 3, {1, 3, 150}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1), false, 6);
    check_dense(table, make_shape(520, 3, {1, 4, 301}, {1, 3, 5}, {1, 2, 2}, {1, 1, 1}, 1, 2), false, 7);
    // Of every second position of an input, some of them at a time.
    check_dense(table, make_shape(40, 33, {1, 29, 31}, {1, 1, 1}, {1, 2, 2}, {1, 1, 1}, 0, 0), false, 3);
    check_dense(table, make_shape(1800, 33, {1, 14, 13}, {1, 1, 1}, {1, 2, 2}, {1, 1, 1}, 0, 0), false, 4);
    check_dense(table, make_shape(17, 16, {1, 12, 13}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, -2), false, 5);
  });
}

TEST_CASE("blocked conv of bfloat16 numbers agrees with the definition for many shapes") {
  with_bfloat16([](CpuRung rung) { check_many(blocked_conv_table(rung, Float32Precision::kMedium), true); });
}

TEST_CASE("blocked conv of medium precision gives the same bits however it is cut") {
  with_bfloat16([](CpuRung rung) {
    const BlockedConvTable& table = blocked_conv_table(rung, Float32Precision::kMedium);
    for (const std::size_t kernel : {1u, 3u}) {
      const ConvShape s = make_shape(100, 70, {1, 31, 29}, {1, kernel, kernel}, {1, 1, 1}, {1, 1, 1},
                                     static_cast<std::ptrdiff_t>(kernel / 2), static_cast<std::ptrdiff_t>(kernel / 2));
      Case c(s, s.depth(), false, kernel);
      Guarded<float> packed(table.packed_weight_floats(s));
      table.pack_weight(s, false, c.weight.data(), packed.data());
      c.args.packed_weight = packed.data();
      Scratch<float> scratch(table.scratch_floats);
      const BlockedGrid grid = table.grid(s);
      table.conv(c.args, {0, grid.rows, 0, grid.panels}, scratch.data());
      const std::vector<float> whole(c.output.begin(), c.output.end());
      std::fill(c.output.begin(), c.output.end(), 0.0f);
      for (std::size_t row = 0; row < grid.rows; ++row) {
        for (std::size_t panel = 0; panel < grid.panels; ++panel)
          table.conv(c.args, {row, row + 1, panel, panel + 1}, scratch.data());
      }
      CHECK(std::equal(whole.begin(), whole.end(), c.output.begin()));
    }
  });
}

TEST_CASE("a window that does not fit scratch is refused") {
  for_each_target([](CpuRung rung) {
    const BlockedConvTable& table = blocked_conv_table(rung);
    CHECK(table.fits(make_shape(512, 16, {1, 20, 20}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1)));
    CHECK_FALSE(table.fits(make_shape(512, 16, {1, 20, 20}, {1, 15, 15}, {1, 1, 1}, {1, 1, 1}, 7, 7)));
    CHECK_FALSE(table.fits(make_shape(16, 16, {4, 20, 20}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1)));
  });
}

TEST_CASE("blocked depthwise conv agrees with the definition for many shapes") {
  for_each_target([](CpuRung rung) {
    const BlockedConvTable& table = blocked_conv_table(rung);
    std::size_t index = 0;
    std::vector<ConvShape> all = shapes(37, 37);
    for (const std::size_t kernel : {3, 5, 7}) {
      const auto pad = static_cast<std::ptrdiff_t>(kernel / 2);
      for (const std::size_t width : {1, 5, 7, 14, 15, 29, 43}) {
        for (const std::size_t stride : {1, 2})
          all.push_back(
              make_shape(37, 37, {1, 9, width}, {1, kernel, kernel}, {1, stride, stride}, {1, 1, 1}, pad, pad));
      }
    }
    for (const ConvShape& s : all) {
      if (s.in_d > 1) continue;
      CAPTURE(index);
      const std::size_t points = s.kernel_points();
      Case c(s, points, false, ++index);
      Guarded<float> packed(channel_blocks(s.in_channels) * points * kChannelBlock);
      const std::vector<float> blocks = to_blocks(c.weight.data(), s.in_channels, points);
      std::copy(blocks.begin(), blocks.end(), packed.data());
      c.args.packed_weight = packed.data();
      c.args.activation = {Activation::kClip, -1.0f, 1.0f};
      table.depthwise(c.args, 0, 1);
      table.depthwise(c.args, 1, channel_blocks(s.in_channels));
      const auto sum = [&](std::size_t m, std::size_t p) {
        double total = 0;
        for (std::size_t i = 0; i < points; ++i)
          total += static_cast<double>(c.weight[m * points + i]) * input_at(s, c.planes.data(), m, i, p);
        return total;
      };
      CHECK(c.worst(sum, kClamped) < 1e-5);
    }
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
