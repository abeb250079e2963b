#include "microkernels/conv/conv.h"

#include <numeric>
#include <vector>

#include "conv_shapes.h"
#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

// Compares with the definition; `tiny` numbers among the operands are such as the matrix unit cannot split.
void check_definition(const ConvTable& table, const ConvShape& s, std::size_t seed, bool tiny_input, bool tiny_weight) {
  const std::size_t depth = s.depth(), positions = s.positions();
  Guarded<float> input(s.in_channels * s.in_d * s.in_h * s.in_w), weight(s.out_channels * depth), bias(s.out_channels);
  Guarded<float> residual(s.out_channels * positions), output(s.out_channels * positions);
  Guarded<std::uint8_t> packed(table.weights.bytes(s));
  Random random(seed);
  random.fill(input);
  random.fill(weight);
  random.fill(bias);
  random.fill(residual);
  if (tiny_input) input[input.size() / 2] = 1e-36f;
  if (tiny_weight) weight[weight.size() / 3] = -1e-37f;
  table.weights.pack(s, weight.data(), packed.data());
  Scratch<float> scratch(table.scratch_floats);
  ConvArgs args;
  args.shape = s;
  args.input = input.data();
  args.weights = table.weights.packed(s, packed.data());
  args.bias = bias.data();
  args.residual = residual.data();
  args.activation = {Activation::kClip, -1.0f, 1.0f};
  args.output = output.data();
  const GemmSplit split = split_conv(table, s, 3);
  for (std::size_t i = 0; i < split.count(); ++i)
    table.conv(args, split.range(i, s.out_channels, positions), scratch.data());
  const std::vector<double> sums = sums_of(s, weight.data(), input.data());
  double worst = 0;
  for (std::size_t m = 0; m < s.out_channels; ++m) {
    for (std::size_t p = 0; p < positions; ++p) {
      const double sum = sums[m * positions + p] + static_cast<double>(bias[m]) + residual[m * positions + p];
      worst = std::max(worst, std::abs(output[m * positions + p] - std::clamp(sum, -1.0, 1.0)));
    }
  }
  CHECK(worst < 5e-8 * static_cast<double>(std::max<std::size_t>(200, depth)));
}

TEST_CASE("conv agrees with the definition for many shapes") {
  for_each_target([](CpuRung rung) {
    std::size_t index = 0;
    for (const ConvShape& s : shapes(5, 7)) {
      CAPTURE(index);
      check_definition(kernel_set(rung).conv, s, ++index, false, false);
    }
  });
}

TEST_CASE("conv of many channels agrees with the definition for many shapes") {
  for_each_target([](CpuRung rung) {
    std::size_t index = 0;
    for (ConvShape s : shapes(45, 51)) {
      if (s.kernel_points() > 30) s.in_channels = 24;
      CAPTURE(index);
      ++index;
      check_definition(kernel_set(rung).conv, s, index, index % 3 == 1, index % 4 == 2);
    }
    const auto wide = make_shape(33, 40, {1, 3, 200}, {1, 3, 5}, {1, 1, 1}, {1, 1, 40}, 2, 3);  // a long way around
    check_definition(kernel_set(rung).conv, wide, 7, true, false);
  });
}

TEST_CASE("conv to few positions agrees with the definition") {
  for_each_target([](CpuRung rung) {
    for (std::size_t positions = 1; positions <= 9; ++positions) {
      CAPTURE(positions);
      check_definition(kernel_set(rung).conv,
                       make_shape(129, 13, {1, 1, positions}, {1, 1, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1), positions, false,
                       false);
      check_definition(kernel_set(rung).conv,
                       make_shape(300, 18, {1, 1, 3 * positions}, {1, 1, 4}, {1, 1, 3}, {1, 1, 2}, 2, 2), positions,
                       false, false);
      check_definition(kernel_set(rung).conv,
                       make_shape(70, 7, {1, 4, positions}, {1, 3, 2}, {1, 3, 1}, {1, 1, 1}, 1, 0), positions, false,
                       false);
      check_definition(kernel_set(rung).conv,
                       make_shape(65, 5, {1, 1, positions}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, 0), positions, false,
                       false);
    }
    check_definition(kernel_set(rung).conv, make_shape(40, 9, {2, 3, 2}, {3, 3, 3}, {1, 2, 1}, {1, 1, 1}, 1, 1), 1,
                     false, false);
  });
}

TEST_CASE("conv sums K in blocks, and gives the same bits however it is cut") {
  for_each_target([](CpuRung rung) {
    const ConvTable& table = kernel_set(rung).conv;
    const ConvShape s = make_shape(120, 50, {1, 13, 14}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1);
    const std::size_t depth = s.depth(), positions = s.positions();
    std::vector<float> input(s.in_channels * s.in_h * s.in_w), weight(s.out_channels * depth);
    std::vector<float> one(s.out_channels * positions), many(one.size());
    Scratch<std::uint8_t> packed(table.weights.bytes(s));
    Random random(2);
    random.fill(input);
    random.fill(weight);
    table.weights.pack(s, weight.data(), packed.data());
    Scratch<float> scratch(table.scratch_floats);
    ConvArgs args;
    args.shape = s;
    args.input = input.data();
    args.weights = table.weights.packed(s, packed.data());
    args.activation = {Activation::kSilu, 0, 0};
    args.output = one.data();
    table.conv(args, {0, s.out_channels, 0, positions}, scratch.data());
    args.output = many.data();
    const GemmSplit split = split_conv(table, s, 5);
    CHECK(split.count() > 1);
    for (std::size_t i = 0; i < split.count(); ++i)
      table.conv(args, split.range(i, s.out_channels, positions), scratch.data());
    CHECK(one == many);
    const std::vector<double> sums = sums_of(s, weight.data(), input.data());
    double worst = 0;
    for (std::size_t i = 0; i < sums.size(); ++i)
      worst = std::max(worst, std::abs(one[i] - sums[i] / (1 + std::exp(-sums[i]))));
    CHECK(worst < 1e-4);
  });
}

std::vector<ConvShape> depthwise_shapes() {
  std::vector<ConvShape> all = shapes(1, 1);
  all.push_back(make_shape(1, 1, {1, 3, 9000}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, 1, 1));  // more than one strip
  all.push_back(make_shape(1, 1, {1, 5, 3000}, {1, 5, 7}, {1, 3, 4}, {1, 1, 2}, 2, 2));
  all.push_back(make_shape(1, 1, {1, 100, 40}, {1, 70, 3}, {1, 1, 1}, {1, 1, 1}, 3, 3));  // too tall for the buffer
  all.push_back(make_shape(1, 1, {1, 40, 40}, {1, 31, 31}, {1, 1, 1}, {1, 1, 1}, 15, 15));
  for (const std::size_t kernel : {2, 3, 5, 7, 9}) {  // rows in groups of every size, whole and partial vectors, bands
    for (const std::size_t h : {5, 6, 7, 8, 12, 13, 14, 22, 90}) {
      for (const std::size_t w : {7, 16, 17, 112})
        all.push_back(make_shape(1, 1, {1, h, w}, {1, kernel, kernel}, {1, 1, 1}, {1, 1, 1}, kernel / 2, kernel / 2));
    }
    all.push_back(make_shape(1, 1, {1, 5, 5}, {1, kernel, kernel}, {1, 1, 1}, {1, 1, 1}, 0, 3));
  }
  for (const std::size_t kernel : {2, 3, 4, 5, 6, 7, 9}) {  // rows that move by two, or lie apart
    for (const std::size_t h : {9, 12, 23, 40}) {
      for (const std::size_t w : {8, 17, 50}) {
        all.push_back(make_shape(1, 1, {1, h, w}, {1, kernel, 3}, {1, 2, 1}, {1, 1, 2}, kernel / 2, 1));
        all.push_back(make_shape(1, 1, {1, h, w}, {1, kernel, kernel}, {1, 2, 2}, {1, 1, 1}, kernel / 2, 2));
        all.push_back(make_shape(1, 1, {1, h, w}, {1, kernel, 4}, {1, 1, 3}, {1, 3, 1}, 2 * kernel, 1));
      }
    }
  }
  for (const std::size_t stride : {2, 3, 4}) {  // rows that are read where they lie
    for (const std::size_t kernel : {2, 3, 4, 5, 7}) {
      for (const std::size_t w : {7, 19, 33, 64, 133, 144}) {
        for (const std::size_t pad : {0, 1, 3}) {
          all.push_back(make_shape(1, 1, {1, 21, w}, {1, kernel, kernel}, {1, stride, stride}, {1, 1, 1}, pad, pad));
          all.push_back(make_shape(1, 1, {1, 9, w}, {1, 3, kernel}, {1, 1, stride}, {1, 2, 1}, 2, pad));
        }
      }
    }
  }
  for (const std::size_t stride : {1, 3, 4}) {  // wide windows, also such as move by many rows
    for (const std::size_t kernel : {5, 7, 9, 11}) {
      for (const std::size_t h : {11, 30, 47}) {
        for (const std::size_t w : {9, 35, 112}) {
          all.push_back(make_shape(1, 1, {1, h, w}, {1, kernel, 11}, {1, stride, stride}, {1, 1, 1}, 4, 5));
          all.push_back(make_shape(1, 1, {1, h, w}, {1, 11, kernel}, {1, 2, stride}, {1, 1, 1}, kernel / 2, 5));
        }
      }
    }
  }
  for (const std::size_t stride : {1, 2, 3, 5}) {  // two short rows in a vector
    for (const std::size_t kernel : {2, 3, 4, 5, 7}) {
      for (const std::size_t w : {7, 8, 13, 16}) {
        for (const std::size_t h : {1, 5, 16}) {
          all.push_back(make_shape(1, 1, {1, h, w}, {1, 3, kernel}, {1, stride, 2}, {1, 2, 1}, 3, 1));
          all.push_back(make_shape(1, 1, {1, h, w}, {1, kernel, 3}, {1, 2, stride}, {1, 1, 2}, 4, 3));
        }
      }
    }
  }
  return all;
}

TEST_CASE("depthwise agrees with the definition for many shapes") {
  const std::vector<ConvShape> all = depthwise_shapes();
  for_each_target([&](CpuRung rung) {
    const ConvTable& table = kernel_set(rung).conv;
    std::size_t index = 0;
    for (const ConvShape& s : all) {
      CAPTURE(index);
      ++index;
      const std::size_t positions = s.positions();
      Guarded<float> input(s.in_d * s.in_h * s.in_w), weight(s.kernel_points()), residual(positions), output(positions);
      Random random(index);
      random.fill(input);
      random.fill(weight);
      random.fill(residual);
      for (const bool leaky : {false, true}) {
        DepthwiseArgs args;
        args.shape = s;
        args.input = input.data();
        args.weight = weight.data();
        args.bias = 0.25f;
        args.residual = leaky ? nullptr : residual.data();
        args.activation =
            leaky ? ActivationArgs{Activation::kLeakyRelu, 0.1f, 0} : ActivationArgs{Activation::kRelu, 0, 0};
        args.output = output.data();
        table.depthwise(args);
        const std::vector<double> sums = sums_of(s, weight.data(), input.data());
        double worst = 0;
        for (std::size_t p = 0; p < positions; ++p) {
          const double sum = sums[p] + 0.25 + (leaky ? 0.0 : residual[p]);
          worst = std::max(worst, std::abs(output[p] - (sum > 0 ? sum : leaky ? 0.1 * sum : 0.0)));
        }
        CHECK(worst < 3e-5);
      }
    }
  });
}

TEST_CASE("depthwise of several planes gives what each plane alone does") {
  // Of each plane of the input one channel or two, the first of which is left out.
  for (const auto& [made, before] : {std::pair<std::size_t, std::size_t>{1, 0}, {2, 1}}) {
    for_each_target([made = made, before = before](CpuRung rung) {
      const ConvTable& table = kernel_set(rung).conv;
      for (const ConvShape& s : shapes(1, 1)) {
        DepthwiseArgs args;
        args.shape = s;
        args.activation = {Activation::kSilu, 0, 0};
        args.planes = 4;
        args.made = made;
        args.before = before;
        const std::size_t planes = args.planes, in_size = s.in_d * s.in_h * s.in_w, positions = s.positions();
        CHECK(args.input_planes() == (made == 1 ? 4 : 3));
        Guarded<float> input(args.input_planes() * in_size), weight(planes * s.kernel_points()), biases(planes);
        Guarded<float> residual(planes * positions), together(planes * positions), alone(planes * positions);
        Random random(11);
        random.fill(input);
        random.fill(weight);
        random.fill(biases);
        random.fill(residual);
        for (std::size_t i = 0; i < planes; ++i) {
          DepthwiseArgs one;
          one.shape = s;
          one.activation = args.activation;
          one.input = input.data() + (before + i) / made * in_size;
          one.weight = weight.data() + i * s.kernel_points();
          one.bias = biases[i];
          one.residual = residual.data() + i * positions;
          one.output = alone.data() + i * positions;
          table.depthwise(one);
        }
        args.input = input.data();
        args.weight = weight.data();
        args.biases = biases.data();
        args.residual = residual.data();
        args.output = together.data();
        table.depthwise(args);
        CHECK(std::equal(alone.begin(), alone.end(), together.begin()));
      }
    });
  }
}

TEST_CASE("sums of taps hold every product where conv read it") {
  for_each_target([](CpuRung rung) {
    std::vector<ConvShape> all = shapes(1, 1);
    // Windows side by side, with some of the image left over or none.
    all.push_back(make_shape(1, 1, {1, 39, 41}, {1, 3, 3}, {1, 3, 3}, {1, 1, 1}, 0, 0));
    all.push_back(make_shape(1, 1, {1, 5, 70}, {1, 2, 2}, {1, 2, 2}, {1, 1, 1}, 0, 0));
    all.push_back(make_shape(1, 1, {5, 6, 18}, {2, 3, 4}, {2, 3, 4}, {1, 1, 1}, 0, 0));
    all.push_back(make_shape(1, 1, {1, 9, 23}, {1, 1, 8}, {1, 1, 8}, {1, 1, 1}, 0, 0));
    for (const std::size_t stride : {1, 2, 3, 4, 7}) {  // and apart
      for (const std::size_t kernel : {1, 2, 3}) {
        for (const std::ptrdiff_t pad : {-1, 0, 1, 5})
          all.push_back(
              make_shape(1, 1, {1, 21, 95}, {1, kernel, kernel}, {1, stride, stride}, {1, 1, kernel}, pad, 9));
      }
    }
    all.push_back(make_shape(1, 1, {1, 3, 95}, {1, 1, 18}, {1, 1, 20}, {1, 1, 1}, 3, 9));
    for (const ConvShape& s : all) {
      const std::size_t points = s.kernel_points(), positions = s.positions();
      Guarded<float> products(points * positions), image(s.in_d * s.in_h * s.in_w), residual(image.size()),
          scratch(tap_sum_floats(s));
      Random random(4);
      random.fill(products);
      random.fill(residual);
      kernel_set(rung).conv.sum_taps({.shape = s,
                                      .products = products.data(),
                                      .bias = 0.5f,
                                      .residual = residual.data(),
                                      .activation = {.kind = Activation::kRelu},
                                      .output = image.data()},
                                     scratch.data());
      // An image of its own places, counted from 1, tells where conv reads: 0 is the padding.
      std::vector<float> places(image.size());
      std::iota(places.begin(), places.end(), 1.0f);
      std::vector<double> sums(residual.begin(), residual.end());
      for (std::size_t k = 0; k < points; ++k) {
        std::vector<float> tap(points);
        tap[k] = 1;
        std::vector<double> read(positions);
        add_plane(s, tap.data(), places.data(), read.data());
        for (std::size_t p = 0; p < positions; ++p)
          if (read[p] > 0)
            sums[static_cast<std::size_t>(read[p]) - 1] += static_cast<double>(products[k * positions + p]);
      }
      for (std::size_t i = 0; i < image.size(); ++i)
        CHECK(std::abs(std::max(0.0, sums[i] + 0.5) - static_cast<double>(image[i])) < 1e-5);
    }
  });
}

TEST_CASE("sums of taps of all channels of a place are those of each channel") {
  for_each_target([](CpuRung rung) {
    std::vector<ConvShape> all = shapes(1, 1);
    all.push_back(make_shape(1, 1, {1, 20, 22}, {1, 3, 4}, {1, 3, 4}, {1, 1, 1}, 0, 0));
    all.push_back(make_shape(1, 1, {1, 9, 11}, {1, 5, 6}, {1, 2, 3}, {1, 1, 1}, 2, 1));
    all.push_back(make_shape(1, 1, {1, 13, 3}, {1, 2, 2}, {1, 4, 1}, {1, 1, 1}, 0, 0));
    std::size_t channels = 1;
    for (const ConvShape& s : all) {
      channels = channels % 40 + 7;
      const std::size_t points = s.kernel_points(), positions = s.positions(), places = s.in_d * s.in_h * s.in_w;
      Guarded<float> products(positions * points * channels), rows(places * channels), bias(channels);
      Guarded<float> plane(positions * points), image(places), scratch(tap_sum_floats(s));
      Random random(4);
      random.fill(products);
      random.fill(bias);
      TapRowArgs args{.shape = s,
                      .channels = channels,
                      .products = products.data(),
                      .bias = bias.data(),
                      .activation = {.kind = Activation::kRelu},
                      .rows = rows.data()};
      kernel_set(rung).conv.sum_tap_rows(args, 0, places / 3);
      kernel_set(rung).conv.sum_tap_rows(args, places / 3, places);
      for (std::size_t c = 0; c < channels; ++c) {
        for (std::size_t i = 0; i < plane.size(); ++i)
          plane[i] = products[(i % positions * points + i / positions) * channels + c];
        kernel_set(rung).conv.sum_taps({.shape = s,
                                        .products = plane.data(),
                                        .bias = bias[c],
                                        .activation = {.kind = Activation::kRelu},
                                        .output = image.data()},
                                       scratch.data());
        double most = 0;
        for (std::size_t i = 0; i < places; ++i)
          most = std::max(most, static_cast<double>(std::abs(image[i] - rows[i * channels + c])));
        CHECK(most < 1e-5);
      }
    }
  });
}

TEST_CASE("rows take turns") {
  for_each_target([](CpuRung rung) {
    for (const std::size_t count : {1u, 2u, 3u, 4u, 5u}) {
      for (const std::size_t n : {1u, 7u, 32u, 64u, 131u}) {
        const std::size_t ld = (n + count - 1) / count;
        Guarded<float> rows(count * ld), out(n);
        for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
        kernel_set(rung).conv.interleave(rows.data(), ld, count, n, out.data());
        for (std::size_t i = 0; i < n; ++i) CHECK(out[i] == rows[i % count * ld + i / count]);
      }
    }
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
