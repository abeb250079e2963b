#include "microkernels/blocked/blocked.h"

#include <cstring>
#include <tuple>

#include "microkernels/activations.h"
#include "microkernels/conv/conv_shapes.h"
#include "microkernels/support.h"

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

  // Largest error of an output against `value` of what is summed up, [out_channels, positions].
  template <typename Value>
  double worst(const std::vector<double>& sums, Value value) const {
    const std::size_t positions = args.shape.positions();
    double error = 0;
    for (std::size_t m = 0; m < args.shape.out_channels; ++m) {
      for (std::size_t p = 0; p < positions; ++p) {
        const std::size_t at = place(m, p, positions);
        error = std::max(error, std::abs(output[at] - value(sums[m * positions + p] + bias[m] + residual[at])));
      }
    }
    return error;
  }
};

/// Whether what fills up the last block of an output is numbers.
bool filled(const Case& c) {
  const std::size_t positions = c.args.shape.positions(), first = c.args.shape.out_channels;
  for (std::size_t m = first; m < channel_blocks(first) * kChannelBlock; ++m) {
    for (std::size_t p = 0; p < positions; ++p) {
      if (!std::isfinite(c.output[place(m, p, positions)])) return false;
    }
  }
  return true;
}

const auto kClamped = [](double x) { return std::clamp(x, -1.0, 1.0); };

// What the loops make of a case, whole and in parts.
void check_case(const BlockedConvTable& table, Case& c, const ConvPacking& packing, bool bfloat16, double slack) {
  const ConvShape& s = c.args.shape;
  Guarded<std::uint8_t> packed(packing.bytes(s));
  packing.pack(s, c.weight.data(), packed.data());
  c.args.weights = packing.packed(s, packed.data());
  Scratch<float> scratch(table.scratch_floats);
  const BlockedGrid grid = table.grid(s);
  const auto run = [&](Activation kind) {
    c.args.activation = {kind, -1.0f, 1.0f};
    const std::size_t row = grid.rows / 2, panel = grid.panels / 2;
    for (const BlockedRange& range :
         {BlockedRange{0, row, 0, grid.panels}, {row, grid.rows, 0, panel}, {row, grid.rows, panel, grid.panels}})
      table.conv(c.args, range, scratch.data());
  };
  const std::vector<double> sums = sums_of(s, c.weight.data(), c.planes.data());
  const double tolerance = slack * 5e-8 * static_cast<double>(std::max<std::size_t>(200, s.depth()));
  std::fill_n(c.output.data(), c.output.size(), std::numeric_limits<float>::quiet_NaN());
  run(Activation::kClip);
  CHECK(filled(c));
  CHECK(c.worst(sums, kClamped) < tolerance);
  run(Activation::kSilu);
  const double quick = bfloat16 ? 1e-3 : 0;  // activations beside such products are less exact
  CHECK(c.worst(sums, [](double x) { return x / (1 + std::exp(-x)); }) < 2 * tolerance + quick);
}

void check_dense(const BlockedConvTable& table, const ConvShape& s, bool planar, std::size_t seed,
                 bool bfloat16 = false, double slack = 1) {
  REQUIRE(table.fits(s) == (s.in_d == 1));
  if (s.in_d > 1) return;
  Case c(s, s.depth(), planar, seed, bfloat16);
  check_case(table, c, planar ? table.plane_weights : table.weights, bfloat16, slack);
}

// Of planes that are put into blocks.
void check_turned(const BlockedConvTable& table, const ConvShape& s, std::size_t seed) {
  if (s.in_d > 1 || s.kernel_points() == 1) return;
  Case c(s, s.depth(), true, seed);
  c.args.planar = false;
  c.args.turned = true;
  check_case(table, c, table.weights, false, 1);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStep = 16;  // all of them take minutes
#else
constexpr std::size_t kStep = 1;
#endif

void check_many(const BlockedConvTable& table, bool bfloat16, double tolerance = 1) {
  std::size_t index = 0;
  for (const auto& [in, out] : {std::pair<std::size_t, std::size_t>{3, 16}, {16, 7}, {45, 51}, {64, 97}}) {
    for (ConvShape s : shapes(in, out)) {
      if (++index % (in * out > 1000 ? 7 * kStep : kStep) != 0) continue;
      if (s.kernel_points() > 30) s.in_channels = std::min<std::size_t>(in, 24);
      CAPTURE(index);
      check_dense(table, s, false, index, bfloat16, tolerance);
      check_dense(table, s, true, index, bfloat16, tolerance);
    }
  }
  check_dense(table, make_shape(1700, 40, {1, 3, 5}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, 0), false, 1, bfloat16,
              tolerance);
  if (kStep == 1)
    check_dense(table, make_shape(48, 7, {1, 40, 60}, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, 2, 2), false, 2, bfloat16,
                tolerance);
}

// Of which parts of the output see only some of the kernel, or none of it.
void check_parts(const BlockedConvTable& table, bool bfloat16, double tolerance = 1) {
  const std::tuple<ConvShape, bool> cases[] = {
      {make_shape(40, 33, {1, 13, 13}, {1, 3, 3}, {1, 1, 1}, {1, 4, 4}, 4, 4), false},
      {make_shape(32, 16, {1, 9, 50}, {1, 3, 5}, {1, 1, 1}, {1, 6, 9}, 18, 18), false},
      {make_shape(20, 40, {1, 6, 7}, {1, 3, 3}, {1, 1, 1}, {1, 9, 9}, 9, 9), false},
      {make_shape(48, 40, {1, 5, 5}, {1, 7, 7}, {1, 1, 1}, {1, 1, 1}, 3, 3), false},
      {make_shape(3, 40, {1, 15, 31}, {1, 3, 3}, {1, 2, 2}, {1, 5, 7}, 6, 9), true},
      {make_shape(16, 16, {1, 2, 2}, {1, 3, 3}, {1, 1, 1}, {1, 3, 3}, 4, 4), false},
      {make_shape(16, 40, {1, 7, 9}, {1, 1, 1}, {1, 2, 2}, {1, 3, 3}, 2, 2), false},
      {make_shape(70, 49, {1, 30, 20}, {1, 3, 3}, {1, 1, 1}, {1, 12, 6}, 12, 6), false},
      {make_shape(35, 16, {1, 40, 21}, {1, 5, 2}, {1, 3, 2}, {1, 7, 11}, 13, 5), false},
  };
  std::size_t seed = 8;
  for (const auto& [shape, planar] : cases) {
    CAPTURE(seed);
    check_dense(table, shape, planar, seed++, bfloat16, tolerance);
  }
}

TEST_CASE("blocked conv agrees with the definition for many shapes") {
  for_each_target([](CpuRung rung) {
    const BlockedConvTable& table = kernel_set(rung).blocked_conv;
    check_many(table, false);
    check_parts(table, false);
    // In strips of columns.
    check_dense(table, make_shape(520, 3, {1, 3, 150}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1), false, 6);
    check_dense(table, make_shape(520, 3, {1, 4, 301}, {1, 3, 5}, {1, 2, 2}, {1, 1, 1}, 1, 2), false, 7);
    // Of one point, into parts of a block, for tiles of every size.
    for (const std::size_t width : {1, 4, 5, 6, 7, 13, 23, 31, 47, 100})
      check_dense(table,
                  make_shape(width + 9, width % 2 == 0 ? 24 : 39, {1, 1, width}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, 0),
                  false, width);
    // Of every second position of an input, some of them at a time.
    check_dense(table, make_shape(40, 33, {1, 29, 31}, {1, 1, 1}, {1, 2, 2}, {1, 1, 1}, 0, 0), false, 3);
    check_dense(table, make_shape(1800, 33, {1, 14, 13}, {1, 1, 1}, {1, 2, 2}, {1, 1, 1}, 0, 0), false, 4);
    check_dense(table, make_shape(17, 16, {1, 12, 13}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, -2), false, 5);
  });
}

TEST_CASE("blocked conv of planes that become blocks agrees with the definition") {
  for_each_target([](CpuRung rung) {
    if (rung == CpuRung::Amx) return;
    const BlockedConvTable& table = kernel_set(rung).blocked_conv;
    std::size_t seed = 0;
    for (const ConvShape& s : shapes(45, 51)) {
      if (++seed % (5 * kStep) == 0) check_turned(table, s, seed);
    }
    for (const ConvShape& s : {
             make_shape(40, 33, {1, 13, 13}, {1, 3, 3}, {1, 1, 1}, {1, 4, 4}, 4, 4),
             make_shape(70, 49, {1, 30, 20}, {1, 3, 3}, {1, 1, 1}, {1, 12, 6}, 12, 6),
             make_shape(35, 16, {1, 40, 21}, {1, 5, 2}, {1, 3, 2}, {1, 7, 11}, 13, 5),
             make_shape(20, 40, {1, 20, 20}, {1, 2, 2}, {1, 3, 3}, {1, 1, 1}, 0, 0),  // rows that no kernel sees
             make_shape(33, 20, {1, 31, 17}, {1, 2, 3}, {1, 4, 3}, {1, 1, 1}, 1, 1),
             make_shape(16, 12, {1, 30, 70}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, 0, -20),  // far less than whole rows
             make_shape(520, 3, {1, 4, 301}, {1, 3, 5}, {1, 2, 2}, {1, 1, 1}, 1, 2),    // in strips
             make_shape(520, 3, {1, 3, 300}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 0, 0),
         })
      check_turned(table, s, ++seed);
  });
}

TEST_CASE("blocked conv whose rows of output are short agrees with the definition") {
  for_each_target([](CpuRung rung) {
    if (rung == CpuRung::Amx) return;  // its tiles are other ones
    const BlockedConvTable& table = kernel_set(rung).blocked_conv;
    for (std::size_t width = 1; width <= 8; ++width) {
      CAPTURE(width);
      for (const std::size_t stride : {1u, 3u}) {
        const std::size_t length = (width - 1) * stride + 3;
        check_dense(table, make_shape(20, 48, {1, 19, length}, {1, 3, 3}, {1, stride, stride}, {1, 1, 1}, 0, 0), false,
                    width);
        check_dense(table, make_shape(20, 20, {1, 15, length}, {1, 3, 5}, {1, stride, stride}, {1, 1, 1}, 1, 1), false,
                    width);
      }
      check_dense(table, make_shape(18, 33, {1, 2 * width, width}, {1, 3, 3}, {1, 1, 1}, {1, 4, 3}, 4, 3), false,
                  width);
    }
  });
}

TEST_CASE("blocked conv of bfloat16 numbers agrees with the definition for many shapes") {
  for_each_bfloat16_target([](CpuRung rung) {
    check_many(kernel_set(rung, Float32Precision::kMedium).blocked_conv, true);
    check_parts(kernel_set(rung, Float32Precision::kMedium).blocked_conv, true);
  });
}

TEST_CASE("blocked conv of high precision agrees with the definition for many shapes") {
  for_each_target([](CpuRung rung) {
    if (rung != CpuRung::Amx) return;
    check_many(kernel_set(rung, Float32Precision::kHigh).blocked_conv, false, 16);
    check_parts(kernel_set(rung, Float32Precision::kHigh).blocked_conv, false, 16);
  });
}

// A convolution with an output of its own: as a whole and in the smallest parts, whose bits must be the same.
class Problem {
 public:
  Problem(const BlockedConvTable& table, const ConvShape& s, std::size_t seed, bool planar = false)
      : c(s, s.depth(), planar, seed),
        table_(table),
        packing_(planar ? table.plane_weights : table.weights),
        packed_(packing_.bytes(s)) {}

  std::vector<float> run() {
    const ConvShape& s = c.args.shape;
    const BlockedGrid grid = table_.grid(s);
    Scratch<float> scratch(table_.scratch_floats);
    packing_.pack(s, c.weight.data(), packed_.data());
    c.args.weights = packing_.packed(s, packed_.data());
    table_.conv(c.args, {0, grid.rows, 0, grid.panels}, scratch.data());
    std::vector<float> whole(c.output.begin(), c.output.end());
    std::fill(c.output.begin(), c.output.end(), 0.0f);
    for (std::size_t row = 0; row < grid.rows; ++row) {
      for (std::size_t panel = 0; panel < grid.panels; ++panel)
        table_.conv(c.args, {row, row + 1, panel, panel + 1}, scratch.data());
    }
    CHECK(std::memcmp(whole.data(), c.output.data(), whole.size() * sizeof(float)) == 0);
    return whole;
  }
  float& input(std::size_t channel, std::size_t position) {
    const std::size_t plane = c.args.shape.in_h * c.args.shape.in_w;
    return c.input[c.args.planar ? channel * plane + position : place(channel, position, plane)];
  }

  Case c;

 private:
  const BlockedConvTable& table_;
  const ConvPacking& packing_;
  Guarded<std::uint8_t> packed_;
};

template <typename Fn>
void for_each_precision(Fn fn) {
  for_each_target([&](CpuRung rung) {
    for (const Float32Precision precision :
         {Float32Precision::kHighest, Float32Precision::kHigh, Float32Precision::kMedium}) {
      const int number = static_cast<int>(precision);
      CAPTURE(number);
      fn(rung, precision);
    }
  });
}

TEST_CASE("blocked conv gives the same bits however it is cut") {
  for_each_precision([](CpuRung rung, Float32Precision precision) {
    const BlockedConvTable& table = kernel_set(rung, precision).blocked_conv;
    const ConvShape shapes[] = {
        make_shape(100, 70, {1, 31, 29}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, 0),
        make_shape(100, 70, {1, 31, 29}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1),
        make_shape(40, 49, {1, 14, 14}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, 1, 1),
        make_shape(300, 33, {1, 7, 7}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1),
        make_shape(70, 20, {1, 28, 9}, {1, 5, 3}, {1, 1, 1}, {1, 2, 1}, 2, 1),
        make_shape(64, 160, {1, 40, 26}, {1, 1, 1}, {1, 2, 2}, {1, 1, 1}, 0, 0),
        make_shape(520, 3, {1, 3, 700}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1),
        make_shape(520, 33, {1, 4, 1201}, {1, 3, 5}, {1, 2, 2}, {1, 1, 1}, 1, 2),
        make_shape(1024, 300, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, 0),
        make_shape(70, 49, {1, 30, 20}, {1, 3, 3}, {1, 1, 1}, {1, 12, 6}, 12, 6),
    };
    std::size_t index = 0;
    for (const ConvShape& s : shapes) {
      CAPTURE(index);
      if (!table.fits(s)) continue;  // some tables take whole rows
      Problem problem(table, s, ++index);
      problem.run();
    }
    for (const std::size_t channels : {1u, 3u, 8u}) {
      for (const std::size_t stride : {1u, 2u}) {
        Problem problem(table, make_shape(channels, 40, {1, 33, 41}, {1, 3, 5}, {1, stride, stride}, {1, 1, 1}, 1, 1),
                        3, true);
        problem.run();
      }
    }
  });
}

TEST_CASE("blocked conv of planes gives the same numbers for any count of them") {
  for_each_precision([](CpuRung rung, Float32Precision precision) {
    const BlockedConvTable& table = kernel_set(rung, precision).blocked_conv;
    const bool halves = precision == Float32Precision::kHigh && rung == CpuRung::Amx;
    std::size_t index = 0;
    for (std::size_t channels = 1; channels <= 9; ++channels) {
      for (const std::size_t kernel : {1u, 2u, 3u, 7u, 11u, 17u}) {
        ++index;
        const ConvShape s = make_shape(channels, 20, {1, 19, 43}, {1, kernel > 11 ? 3 : kernel, kernel},
                                       {1, 1 + index % 3, 1 + index % 3}, {1, 1 + index % 5 / 4, 1}, 1, 2);
        CAPTURE(channels);
        CAPTURE(kernel);
        check_dense(table, s, true, index, true, halves ? 16 : 1);
      }
    }
  });
}

TEST_CASE("blocked conv of planes makes bfloat16 as it does float32") {
  for_each_bfloat16_target([](CpuRung rung) {
    const BlockedConvTable& table = kernel_set(rung, Float32Precision::kMedium).blocked_conv;
    for (const Activation kind : {Activation::kRelu, Activation::kSilu, Activation::kNone}) {
      Problem problem(table, make_shape(3, 40, {1, 33, 41}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, 1, 1), 3, true);
      problem.c.args.activation = {kind, 0, 0};
      const std::vector<float> expected = problem.run();
      Guarded<std::uint16_t> out(expected.size());
      problem.c.args.output = nullptr;
      problem.c.args.output_bf16 = out.data();
      Scratch<float> scratch(table.scratch_floats);
      const BlockedGrid grid = table.grid(problem.c.args.shape);
      table.conv(problem.c.args, {0, grid.rows, 0, grid.panels}, scratch.data());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < out.size(); ++i)
        wrong += static_cast<float>(BFloat16::from_bits(out[i])) == rounded(expected[i]) ? 0 : 1;
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("blocked conv keeps infinities, NaN and tiny numbers where the definition has them, and the rest as it was") {
  for_each_precision([](CpuRung rung, Float32Precision precision) {
    const BlockedConvTable& table = kernel_set(rung, precision).blocked_conv;
    const bool rounds = precision == Float32Precision::kMedium && rung >= CpuRung::Bf16;
    for (const ConvShape& s : {make_shape(4, 35, {1, 12, 18}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, 1, 1),
                               make_shape(40, 35, {1, 12, 18}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1),
                               make_shape(40, 20, {1, 12, 18}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, 1, 1),
                               make_shape(40, 35, {1, 12, 18}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, 0),
                               make_shape(700, 35, {1, 7, 7}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1)}) {
      const bool planar = s.in_channels < kChannelBlock;
      Problem problem(table, s, 3, planar);
      problem.c.args.residual = nullptr;
      const std::vector<float> before = problem.run();
      const std::size_t plane = s.in_h * s.in_w;
      const auto put = [&](std::size_t channel, std::size_t position, float x) {
        problem.input(channel, position) = problem.c.planes[channel * plane + position] = x;
      };
      put(3, plane / 2, std::numeric_limits<float>::infinity());
      put(planar ? 1 : 33, plane - 1, std::numeric_limits<float>::quiet_NaN());
      put(planar ? 0 : 17, 2, 1e-40f);
      put(planar ? 1 : 18, 2, 0x1p-110f);
      const std::vector<float> after = problem.run();
      const std::vector<double> sums = sums_of(s, problem.c.weight.data(), problem.c.planes.data());
      std::size_t finite = 0, wrong = 0;
      for (std::size_t m = 0; m < s.out_channels; ++m) {
        for (std::size_t p = 0; p < s.positions(); ++p) {
          const double sum = problem.c.bias[m] + sums[m * s.positions() + p];
          const std::size_t at = place(m, p, s.positions());
          if (std::isfinite(sum)) {
            ++finite;
            wrong += std::abs(after[at] - sum) < (rounds ? 0.5 : 1e-3) ? 0 : 1;
            wrong += std::abs(after[at] - before[at]) < 3 ? 0 : 1;
          } else {
            wrong += std::isnan(sum) ? !std::isnan(after[at]) : after[at] != static_cast<float>(sum);
          }
        }
      }
      CHECK(finite > 0);
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("blocked conv takes weights and inputs of any size") {
  for_each_precision([](CpuRung rung, Float32Precision precision) {
    const BlockedConvTable& table = kernel_set(rung, precision).blocked_conv;
    const bool rounds = precision == Float32Precision::kMedium && rung >= CpuRung::Bf16;
    const double tolerance = rounds ? 2e-2 : precision == Float32Precision::kHigh && rung == CpuRung::Amx ? 1e-4 : 2e-6;
    for (const auto& [input, weight] : {std::pair{0x1p-120f, 0x1p60f}, {0x1p60f, 0x1p-120f}, {0x1p100f, 0x1p-90f}}) {
      const ConvShape s = make_shape(40, 35, {1, 5, 18}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1);
      Problem problem(table, s, 3);
      problem.c.args.residual = problem.c.args.bias = nullptr;
      for (float& x : problem.c.planes) x *= input;
      for (float& x : problem.c.input) x *= input;
      for (float& x : problem.c.weight) x *= weight;
      const std::vector<float> out = problem.run();
      const std::vector<double> sums = sums_of(s, problem.c.weight.data(), problem.c.planes.data());
      double most = 0, worst = 0;
      for (std::size_t m = 0; m < s.out_channels; ++m) {
        for (std::size_t p = 0; p < s.positions(); ++p) {
          const double sum = sums[m * s.positions() + p];
          most = std::max(most, std::abs(sum));
          worst = std::max(worst, std::abs(out[place(m, p, s.positions())] - sum));
        }
      }
      CHECK(worst < tolerance * most);
    }
  });
}

TEST_CASE("blocked conv applies every activation") {
  for_each_precision([&](CpuRung rung, Float32Precision precision) {
    const BlockedConvTable& table = kernel_set(rung, precision).blocked_conv;
    Problem problem(table, make_shape(40, 35, {1, 5, 18}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1), 3);
    const std::vector<float> plain = problem.run();
    for (const ActivationCase& activation : every_activation()) {
      CAPTURE(activation.name);
      problem.c.args.activation = activation.args;
      const std::vector<float> out = problem.run();
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < out.size(); ++i) {
        const double expected = activation.formula(plain[i], activation.args.a, activation.args.b);
        // Activations of medium precision are quick ones.
        const double size = std::max(1.0, std::abs(expected));
        const double most = precision == Float32Precision::kMedium ? 3e-4 * size : 1e-4 * std::max(1.0, size / 8);
        wrong += std::abs(out[i] - expected) < most ? 0 : 1;
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("a window that does not fit scratch is refused") {
  for_each_target([](CpuRung rung) {
    const BlockedConvTable& table = kernel_set(rung).blocked_conv;
    CHECK(table.fits(make_shape(512, 16, {1, 20, 20}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1)));
    CHECK_FALSE(table.fits(make_shape(512, 16, {1, 20, 20}, {1, 15, 15}, {1, 1, 1}, {1, 1, 1}, 7, 7)));
    CHECK_FALSE(table.fits(make_shape(16, 16, {4, 20, 20}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1)));
  });
}

TEST_CASE("blocked depthwise conv agrees with the definition for many shapes") {
  for_each_target([](CpuRung rung) {
    const BlockedConvTable& table = kernel_set(rung).blocked_conv;
    std::size_t index = 0;
    std::vector<ConvShape> all = shapes(37, 37);
    for (const std::size_t kernel : {3, 5, 7, 9}) {
      const auto pad = static_cast<std::ptrdiff_t>(kernel / 2);
      for (const std::size_t dilation : {2, 5}) {
        for (const std::size_t width : {1, 4, 13, 37})
          all.push_back(make_shape(37, 37, {1, 9, width}, {1, kernel, kernel}, {1, 1, 1}, {1, dilation, dilation},
                                   pad * static_cast<std::ptrdiff_t>(dilation),
                                   pad * static_cast<std::ptrdiff_t>(dilation)));
      }
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
      ConvShape weights = s;
      weights.in_channels = 1;
      Guarded<std::uint8_t> packed(depthwise_packing().bytes(weights));
      depthwise_packing().pack(weights, c.weight.data(), packed.data());
      c.args.weights = depthwise_packing().packed(weights, packed.data());
      c.args.activation = {Activation::kClip, -1.0f, 1.0f};
      table.depthwise(c.args, 0, 1);
      table.depthwise(c.args, 1, channel_blocks(s.in_channels));
      std::vector<double> sums(s.out_channels * s.positions());
      for (std::size_t m = 0; m < s.out_channels; ++m)
        add_plane(s, &c.weight[m * points], &c.planes[m * s.in_h * s.in_w], &sums[m * s.positions()]);
      CHECK(c.worst(sums, kClamped) < 1e-5);
    }
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
