#include "microkernels/blocked_winograd/blocked_winograd.h"

#include "microkernels/conv/conv_shapes.h"
#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

// Index of channel c at a position.
std::size_t place(std::size_t c, std::size_t position, std::size_t positions) {
  return (c / kChannelBlock * positions + position) * kChannelBlock + c % kChannelBlock;
}

struct Way {
  CpuRung rung;
  Float32Precision precision;
  // Of sums of `depth` products of numbers between -1 and 1.
  double tolerance(std::size_t depth) const {
    return precision == Float32Precision::kMedium ? 0.006 * std::sqrt(static_cast<double>(depth) + 30) : 5e-5;
  }
};

template <typename Fn>
void for_each_way(Fn fn) {
  for_each_target([&](CpuRung rung) { fn(Way{rung, Float32Precision::kHighest}); });
  with_bfloat16([&](CpuRung rung) {
    INFO("medium precision");
    fn(Way{rung, Float32Precision::kMedium});
  });
}

class Problem {
 public:
  Problem(const Way& way, const ConvShape& s, std::uint64_t seed)
      : shape(s),
        planes(s.in_channels * s.in_h * s.in_w),
        weight(s.out_channels * s.depth()),
        bias(channel_blocks(s.out_channels) * kChannelBlock),
        residual(bias.size() * s.positions()),
        table_(kernel_set(way.rung, way.precision).blocked_winograd),
        direct_(kernel_set(way.rung == CpuRung::Amx ? CpuRung::Bf16 : way.rung, way.precision)
                    .blocked_conv),  // that it shares
        input_(channel_blocks(s.in_channels) * kChannelBlock * s.in_h * s.in_w),
        packed_(table_.weights->bytes(s)) {
    Random random(seed);
    random.fill(planes);
    random.fill(weight);
    random.fill(bias);
    random.fill(residual);
  }

  std::size_t outputs() const { return residual.size(); }

  // Computes the output in `rows` by `panels` parts; where `again`, parts of the same rows know of each other.
  void run(std::size_t rows, std::size_t panels, Guarded<float>& output, bool again = false) {
    prepare(output);
    const BlockedGrid grid = table_.grid(shape);
    Guarded<float> scratch(table_.scratch_floats(shape));
    KeptInput kept;
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < panels; ++j) {
        if (!again || j == 0) kept.ready = false;
        args_.kept_input = again ? &kept : nullptr;
        if (!kept.ready) std::fill_n(scratch.data(), scratch.size(), std::numeric_limits<float>::quiet_NaN());
        table_.conv(args_,
                    {i * grid.rows / rows, (i + 1) * grid.rows / rows, j * grid.panels / panels,
                     (j + 1) * grid.panels / panels},
                    scratch.data());
      }
    }
  }
  void run_directly(Guarded<float>& output) {
    prepare(output);
    const BlockedGrid grid = direct_.grid(shape);
    Scratch<float> scratch(direct_.scratch_floats);
    direct_.conv(args_, {0, grid.rows, 0, grid.panels}, scratch.data());
  }

  std::vector<double> sums() const { return sums_of(shape, weight.data(), planes.data()); }
  // Largest error of an output against `value` of the sum, with bias and residual where there are.
  template <typename Value>
  double worst(const Guarded<float>& output, Value value) const {
    const std::vector<double> all = sums();
    double error = 0;
    for (std::size_t m = 0; m < shape.out_channels; ++m) {
      for (std::size_t p = 0; p < shape.positions(); ++p) {
        const std::size_t at = place(m, p, shape.positions());
        const double sum = all[m * shape.positions() + p] + (plain ? 0.0 : static_cast<double>(bias[m]) + residual[at]);
        error = std::max(error, std::abs(output[at] - value(sum)));
      }
    }
    return error;
  }

  ConvShape shape;
  std::vector<float> planes, weight;
  Guarded<float> bias, residual;
  ActivationArgs activation;
  bool plain = false;  // without bias and residual

 private:
  void prepare(Guarded<float>& output) {
    table_.weights->pack(shape, weight.data(), packed_.data());
    // What lies in the last block beyond the channels must not matter.
    std::fill_n(input_.data(), input_.size(), std::numeric_limits<float>::quiet_NaN());
    const std::size_t positions = shape.in_h * shape.in_w;
    for (std::size_t c = 0; c < shape.in_channels; ++c) {
      for (std::size_t i = 0; i < positions; ++i) input_[place(c, i, positions)] = planes[c * positions + i];
    }
    args_ = {};
    args_.shape = shape;
    args_.input = input_.data();
    args_.weights = table_.weights->packed(shape, packed_.data());
    args_.bias = plain ? nullptr : bias.data();
    args_.residual = plain ? nullptr : residual.data();
    args_.activation = activation;
    args_.output = output.data();
  }

  const BlockedWinogradTable& table_;
  const BlockedConvTable& direct_;
  Guarded<float> input_;
  Guarded<std::uint8_t> packed_;
  BlockedConvArgs args_;
};

bool same(const Guarded<float>& a, const Guarded<float>& b) {
  return std::equal(a.data(), a.data() + a.size(), b.data());
}

TEST_CASE("blocked winograd agrees with the definition for many shapes, however it is cut") {
  for_each_way([](const Way& way) {
    const ConvShape shapes[] = {
        window(24, 24, 14, 14, 1, 1, 1, 1), window(33, 25, 13, 17, 1, 1, 1, 1),  window(20, 7, 9, 40, 0, 0, 0, 0),
        window(17, 70, 8, 35, 2, 1, 0, 2),  window(40, 50, 7, 7, 1, 1, 1, 1),    window(25, 1, 12, 11, -1, -1, -2, 0),
        window(19, 3, 1, 1, 1, 1, 1, 1),    window(18, 5, 1, 70, 1, 1, 1, 1),    window(18, 5, 70, 1, 1, 1, 1, 1),
        window(17, 2, 3, 600, 1, 1, 1, 1),  window(1, 30, 20, 20, 1, 1, 1, 1),   window(3, 2, 2, 2, 4, 5, 6, 7),
        window(64, 33, 40, 8, 1, 1, 1, 1),  window(300, 26, 10, 10, 1, 1, 1, 1),
    };
    std::size_t index = 0;
    for (const ConvShape& s : shapes) {
      CAPTURE(index);
      ++index;
      Problem problem(way, s, index);
      const bool clips = index % 2 != 0;
      problem.activation =
          clips ? ActivationArgs{Activation::kClip, -2.0f, 2.0f} : ActivationArgs{Activation::kLeakyRelu, 0.5f, 0};
      Guarded<float> whole(problem.outputs()), cut(whole.size());
      problem.run(1, 1, whole);
      problem.run(3, 2, cut);
      CHECK(same(whole, cut));
      problem.run(2, 2, cut, true);
      CHECK(same(whole, cut));
      CHECK(problem.worst(whole, [&](double x) {
        return clips ? std::clamp(x, -2.0, 2.0) : x < 0 ? 0.5 * x : x;
      }) < way.tolerance(s.depth()));
    }
  });
}

TEST_CASE("blocked winograd keeps infinities and NaN where the definition has them, and the rest as it was") {
  for_each_way([](const Way& way) {
    Problem problem(way, window(24, 13, 16, 18, 1, 1, 1, 1), 5);
    problem.plain = true;
    Guarded<float> before(problem.outputs()), after(before.size()), direct(before.size());
    problem.run(1, 1, before);
    problem.run_directly(direct);
    CHECK_FALSE(same(before, direct));  // the transformed way was taken
    const float inf = std::numeric_limits<float>::infinity();
    problem.planes[(3 * 16 + 6) * 18 + 7] = inf;
    problem.planes[(20 * 16 + 7) * 18 + 9] = -inf;
    problem.planes[(9 * 16 + 15) * 18 + 17] = std::numeric_limits<float>::quiet_NaN();
    problem.run(2, 1, after);
    const std::vector<double> sums = problem.sums();
    std::size_t finite = 0, wrong = 0;
    for (std::size_t m = 0; m < problem.shape.out_channels; ++m) {
      for (std::size_t p = 0; p < problem.shape.positions(); ++p) {
        const std::size_t at = place(m, p, problem.shape.positions());
        const double sum = sums[m * problem.shape.positions() + p];
        if (std::isfinite(sum)) {
          ++finite;
          wrong += std::abs(after[at] - before[at]) > way.tolerance(problem.shape.depth()) ? 1 : 0;
        } else {
          wrong += std::isnan(sum) ? !std::isnan(after[at]) : after[at] != static_cast<float>(sum);
        }
      }
    }
    CHECK(finite > 0);
    CHECK(finite < problem.shape.out_channels * problem.shape.positions());
    CHECK(wrong == 0);
  });
}

TEST_CASE("blocked winograd convolves rows directly in which few inputs matter") {
  for_each_way([](const Way& way) {
    Problem problem(way, window(32, 40, 20, 20, 1, 1, 1, 1), 7);
    problem.plain = true;
    const ConvShape& s = problem.shape;
    problem.planes[(5 * s.in_h + 9) * s.in_w + 9] = 1e6f;
    Guarded<float> mixed(problem.outputs()), direct(mixed.size());
    problem.run(1, 2, direct);
    problem.run(1, 2, mixed, true);
    CHECK(same(mixed, direct));
    problem.run(2, 2, mixed);
    problem.run_directly(direct);
    // Row 9 of the input is seen by tiles of output rows 8 to 11 (padded by one).
    for (std::size_t m = 0; m < s.out_channels; ++m) {
      for (std::size_t h = 8; h < 11; ++h) {
        for (std::size_t w = 0; w < s.out_w; ++w) {
          const std::size_t at = place(m, h * s.out_w + w, s.positions());
          CHECK(mixed[at] == direct[at]);
        }
      }
    }
    CHECK_FALSE(same(mixed, direct));
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
