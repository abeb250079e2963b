#include "microkernels/winograd/winograd.h"

#include "microkernels/conv/conv_shapes.h"
#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

struct Sum {
  double value = 0, magnitude = 0;
};

// The definition at one output, without bias and the rest.
Sum sum_at(const ConvShape& s, const float* input, const float* weight, std::size_t m, std::size_t h, std::size_t w) {
  Sum sum;
  for (std::size_t c = 0; c < s.in_channels; ++c) {
    for (std::size_t k = 0; k < 9; ++k) {
      const std::ptrdiff_t y = static_cast<std::ptrdiff_t>(h + k / 3) - s.pad_top;
      const std::ptrdiff_t x = static_cast<std::ptrdiff_t>(w + k % 3) - s.pad_left;
      if (y < 0 || x < 0 || y >= static_cast<std::ptrdiff_t>(s.in_h) || x >= static_cast<std::ptrdiff_t>(s.in_w))
        continue;
      const double product = static_cast<double>(weight[(m * s.in_channels + c) * 9 + k]) *
                             input[(c * s.in_h + static_cast<std::size_t>(y)) * s.in_w + static_cast<std::size_t>(x)];
      sum.value += product;
      sum.magnitude += std::abs(product);
    }
  }
  return sum;
}

// A convolution's operands, packed for a target.
class Problem {
 public:
  Problem(CpuRung rung, const ConvShape& s, std::uint64_t seed)
      : shape(s),
        input(s.in_channels * s.in_h * s.in_w),
        weight(s.out_channels * s.depth()),
        bias(s.out_channels),
        residual(s.out_channels * s.positions()),
        table_(kernel_set(rung).winograd),
        packed_(table_.weights.bytes(s)) {
    Random random(seed);
    random.fill(input);
    random.fill(weight);
    random.fill(bias);
    random.fill(residual);
  }

  // Packs the weights and computes all blocks of the split for `workers`.
  void run(std::size_t workers, bool transformed, Guarded<float>& output) {
    table_.weights.pack(shape, weight.data(), packed_.data());
    const PackedOperand packed = table_.weights.packed(shape, packed_.data());
    Guarded<float> weights(table_.transformed_floats(shape.out_channels, shape.in_channels));
    const std::size_t half = shape.out_channels / 2;
    for (const auto& [begin, end] : {std::pair{std::size_t{0}, half}, {half, shape.out_channels}})
      table_.transform_weight(packed, begin, end, weights.data());
    const ConvArgs args{.shape = shape,
                        .input = input.data(),
                        .weights = packed,
                        .bias = with_bias ? bias.data() : nullptr,
                        .residual = with_residual ? residual.data() : nullptr,
                        .activation = activation,
                        .output = output.data()};
    const WinogradSplit split = split_winograd(table_, shape, workers);
    blocks = split.count();
    for (std::size_t i = 0; i < split.count(); ++i) {
      Guarded<float> scratch(table_.scratch_floats(shape, split.block(i)));
      table_.conv(args, transformed ? weights.data() : nullptr, split.block(i), scratch.data());
    }
  }

  // The same by the convolution kernel of the target.
  void run_plain(CpuRung rung, Guarded<float>& output) {
    const ConvTable& table = kernel_set(rung == CpuRung::Amx ? CpuRung::Vnni : rung).conv;
    Guarded<std::uint8_t> packed(table.weights.bytes(shape));
    table.weights.pack(shape, weight.data(), packed.data());
    const ConvArgs args{.shape = shape,
                        .input = input.data(),
                        .weights = table.weights.packed(shape, packed.data()),
                        .activation = {},
                        .output = output.data()};
    Scratch<float> scratch(table.scratch_floats);
    table.conv(args, {0, shape.out_channels, 0, shape.positions()}, scratch.data());
  }

  // Largest |error| / sum |a||b| of an output without bias and the rest.
  double error(const Guarded<float>& output) const {
    double worst = 0;
    for (std::size_t i = 0; i < output.size(); ++i) {
      const std::size_t m = i / shape.positions(), at = i % shape.positions();
      const Sum sum = sum_at(shape, input.data(), weight.data(), m, at / shape.out_w, at % shape.out_w);
      if (sum.magnitude > 0) worst = std::max(worst, std::abs(output[i] - sum.value) / sum.magnitude);
    }
    return worst;
  }

  ConvShape shape;
  Guarded<float> input, weight, bias, residual;
  ActivationArgs activation;
  bool with_bias = false, with_residual = false;
  std::size_t blocks = 0;

 private:
  const WinogradTable& table_;
  Guarded<std::uint8_t> packed_;
};

bool same(const Guarded<float>& a, const Guarded<float>& b) {
  return std::equal(a.data(), a.data() + a.size(), b.data());
}

TEST_CASE("winograd agrees with the definition for many shapes, however it is cut, transformed or not") {
  for_each_target([](CpuRung rung) {
    const ConvShape shapes[] = {
        window(24, 24, 14, 14, 1, 1, 1, 1), window(33, 25, 13, 17, 1, 1, 1, 1), window(20, 7, 9, 40, 0, 0, 0, 0),
        window(17, 13, 8, 35, 2, 1, 0, 2),  window(40, 50, 7, 7, 1, 1, 1, 1),   window(25, 1, 12, 11, -1, -1, -2, 0),
        window(19, 3, 1, 1, 1, 1, 1, 1),    window(18, 5, 3, 3, 0, 0, 0, 0),    window(18, 5, 1, 70, 1, 1, 1, 1),
        window(18, 5, 70, 1, 1, 1, 1, 1),   window(17, 2, 3, 600, 1, 1, 1, 1),  window(1, 1, 6, 6, 1, 1, 1, 1),
        window(1, 30, 20, 20, 1, 1, 1, 1),  window(3, 2, 2, 2, 4, 5, 6, 7),     window(130, 26, 20, 20, 1, 1, 1, 1),
    };
    std::size_t index = 0;
    for (const ConvShape& s : shapes) {
      CAPTURE(index);
      ++index;
      Problem problem(rung, s, index);
      problem.with_bias = problem.with_residual = true;
      problem.activation = index % 2 != 0 ? ActivationArgs{Activation::kClip, -2.0f, 2.0f}
                                          : ActivationArgs{Activation::kLeakyRelu, 0.5f, 0};
      Guarded<float> whole(s.out_channels * s.positions()), cut(whole.size()), direct(whole.size());
      problem.run(1, true, whole);
      problem.run(3, true, cut);
      problem.run(3, false, direct);
      CHECK(same(whole, cut));
      double worst = 0, worst_direct = 0;
      for (std::size_t i = 0; i < whole.size(); ++i) {
        const std::size_t m = i / s.positions(), at = i % s.positions();
        const double sum = problem.bias[m] + problem.residual[i] +
                           sum_at(s, problem.input.data(), problem.weight.data(), m, at / s.out_w, at % s.out_w).value;
        const double expected = index % 2 != 0 ? std::clamp(sum, -2.0, 2.0) : sum < 0 ? 0.5 * sum : sum;
        worst = std::max(worst, std::abs(whole[i] - expected));
        worst_direct = std::max(worst_direct, std::abs(direct[i] - expected));
      }
      CHECK(worst < 5e-5);
      CHECK(worst_direct < 5e-5);
    }
  });
}

TEST_CASE("winograd cuts small images by channels for many workers, to the same bits") {
  for_each_target([](CpuRung rung) {
    Problem problem(rung, window(32, 64, 8, 8, 1, 1, 1, 1), 3);
    problem.activation = {Activation::kSilu, 0, 0};
    Guarded<float> one(64 * 64), many(one.size()), direct(one.size());
    problem.run(1, true, one);
    const std::size_t blocks = problem.blocks;
    problem.run(8, true, many);
    CHECK(problem.blocks > blocks);
    CHECK(same(one, many));
    problem.run(1, false, direct);
    CHECK_FALSE(same(one, direct));  // the transformed way was taken
  });
}

TEST_CASE("winograd keeps infinities and NaN where the definition has them, and the rest as it was") {
  for_each_target([](CpuRung rung) {
    const ConvShape s = window(24, 13, 16, 18, 1, 1, 1, 1);
    Problem problem(rung, s, 5);
    Guarded<float> before(s.out_channels * s.positions()), after(before.size());
    problem.run(1, true, before);
    const float inf = std::numeric_limits<float>::infinity();
    problem.input[(3 * 16 + 6) * 18 + 7] = inf;
    problem.input[(20 * 16 + 7) * 18 + 9] = -inf;
    problem.input[(9 * 16 + 15) * 18 + 17] = std::numeric_limits<float>::quiet_NaN();
    problem.run(2, true, after);
    std::size_t finite = 0, wrong = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      const std::size_t m = i / s.positions(), h = i % s.positions() / s.out_w, w = i % s.out_w;
      const double sum = sum_at(s, problem.input.data(), problem.weight.data(), m, h, w).value;
      if (std::isfinite(sum)) {
        ++finite;
        wrong += std::abs(after[i] - before[i]) > 1e-5 ? 1 : 0;
      } else {
        wrong += std::isnan(sum) ? !std::isnan(after[i]) : after[i] != static_cast<float>(sum);
      }
    }
    CHECK(wrong == 0);
    CHECK(finite > after.size() / 2);
    CHECK(finite < after.size());
  });
}

TEST_CASE("winograd is as exact as the plain kernel, relative to the terms of each sum") {
  const auto scale = [](Random& random, float most) { return std::exp2(random.uniform(-most, most)); };
  using Fill = void (*)(Guarded<float>&, std::size_t plane, Random&, decltype(scale)&);
  const std::pair<const char*, Fill> inputs[] = {
      {"normal", [](Guarded<float>&, std::size_t, Random&, decltype(scale)&) {}},
      {"positive",
       [](Guarded<float>& x, std::size_t, Random&, decltype(scale)&) {
         for (float& v : x) v = std::abs(v);
       }},
      {"sparse",
       [](Guarded<float>& x, std::size_t, Random& random, decltype(scale)&) {
         for (float& v : x) v = random.uniform(0, 1) < 0.1f ? std::abs(v) : 0;
       }},
      {"very sparse",
       [](Guarded<float>& x, std::size_t, Random& random, decltype(scale)&) {
         for (float& v : x) v = random.uniform(0, 1) < 0.01f ? v : 0;
       }},
      {"wide",
       [](Guarded<float>& x, std::size_t, Random& random, decltype(scale)& s) {
         for (float& v : x) v *= s(random, 20);
       }},
      {"very wide",
       [](Guarded<float>& x, std::size_t, Random& random, decltype(scale)& s) {
         for (float& v : x) v *= s(random, 60);
       }},
      {"spikes",
       [](Guarded<float>& x, std::size_t, Random& random, decltype(scale)&) {
         for (float& v : x) v *= random.uniform(0, 1) < 0.003f ? 1e6f : 1.0f;
       }},
      {"channels of many scales",
       [](Guarded<float>& x, std::size_t plane, Random& random, decltype(scale)& s) {
         for (std::size_t i = 0; i < x.size(); i += plane) {
           const float by = s(random, 20);
           for (std::size_t j = 0; j < plane; ++j) x[i + j] *= by;
         }
       }},
      {"tiny",
       [](Guarded<float>& x, std::size_t, Random&, decltype(scale)&) {
         for (float& v : x) v *= 0x1p-100f;
       }},
      {"huge",
       [](Guarded<float>& x, std::size_t, Random&, decltype(scale)&) {
         for (float& v : x) v *= 0x1p100f;
       }},
  };
  for_each_target([&](CpuRung rung) {
    for (const std::size_t channels : {24u, 64u}) {
      for (const auto& [name, fill] : inputs) {
        for (const bool cancel : {false, true}) {
          INFO(std::string(name), ", ", channels, " channels, cancelling ", cancel);
          Problem problem(rung, window(channels, 13, 14, 14, 1, 1, 1, 1), channels);
          Random random(channels + 1);
          fill(problem.input, 14 * 14, random, scale);
          if (cancel) {  // half of the channels take back what the others give
            const std::size_t half = problem.input.size() / 2;
            for (std::size_t i = 0; i < half; ++i) problem.input[half + i] = -problem.input[i];
            for (std::size_t m = 0; m < 13; ++m) {
              float* w = problem.weight.data() + m * channels * 9;
              std::copy(w, w + channels * 9 / 2, w + channels * 9 / 2);
            }
          }
          CHECK(winograd_holds(13, channels, problem.weight.data()));
          Guarded<float> output(13 * 14 * 14), plain(output.size());
          problem.run(1, true, output);
          problem.run_plain(rung, plain);
          CHECK(problem.error(output) <= 2 * problem.error(plain));
        }
      }
    }
  });
}

TEST_CASE("winograd refuses weights of which few matter, or that are not finite") {
  const std::size_t out = 6, in = 64, depth = in * 9;
  std::vector<float> plain(out * depth);
  Random random(8);
  random.fill(plain);
  CHECK(winograd_holds(out, in, plain.data()));
  const auto with = [&](auto change) {
    std::vector<float> weight = plain;
    for (std::size_t i = 0; i < depth; ++i) change(weight[3 * depth + i], i);
    return winograd_holds(out, in, weight.data());
  };
  CHECK(with([](float& w, std::size_t) { w = 0; }));  // nothing to lose
  CHECK_FALSE(with([](float& w, std::size_t i) { w = i % 10 == 0 ? w : 0; }));
  CHECK_FALSE(with([&](float& w, std::size_t) { w *= std::exp2(random.uniform(-20, 20)); }));
  CHECK_FALSE(with([](float& w, std::size_t i) { w = i == 77 ? 1e6f : w; }));
  CHECK_FALSE(with([](float& w, std::size_t i) { w = i == 5 ? std::numeric_limits<float>::infinity() : w; }));
  CHECK_FALSE(with([](float& w, std::size_t i) { w = i == 5 ? std::numeric_limits<float>::quiet_NaN() : w; }));
  CHECK_FALSE(with([](float& w, std::size_t) { w *= 1e-30f; }));
  CHECK_FALSE(winograd_holds(1, 8, plain.data()));  // too few to be sure
}

}  // namespace
}  // namespace infernode::microkernels::test
