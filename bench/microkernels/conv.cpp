#include <string>

#include "bench.h"
#include "conv_cases.h"
#include "microkernels/conv/conv.h"

namespace infernode::bench {
namespace {

using namespace microkernels;

void dense(const Bench& bench, std::size_t in, std::size_t out, std::size_t size, std::size_t kernel,
           std::size_t stride) {
  const ConvTable& table = bench.kernels.conv;
  ConvArgs args;
  const ConvShape s = args.shape = square_conv(in, out, size, kernel, stride);
  Buffer input(in * size * size), weight(out * s.depth()), packed(table.weights.bytes(s) / sizeof(float));
  Buffer output(out * s.positions()), scratch(table.scratch_floats);
  table.weights.pack(s, weight.data(), packed.data());
  args.input = input.data();
  args.weights = table.weights.packed(s, packed.data());
  args.output = output.data();
  bench.run("conv " + std::to_string(in) + "->" + std::to_string(out) + " " + std::to_string(size) + "^2 k" +
                std::to_string(kernel) + " s" + std::to_string(stride),
            2.0 * static_cast<double>(out * s.positions()) * static_cast<double>(s.depth()), "GFLOP/s", [&] {
              table.conv(args, {0, out, 0, s.positions()}, scratch.data());
            });
}

void depthwise(const Bench& bench, std::size_t channels, std::size_t size, std::size_t kernel, std::size_t stride) {
  const ConvTable& table = bench.kernels.conv;
  DepthwiseArgs args;
  const ConvShape s = args.shape = square_conv(1, 1, size, kernel, stride);
  Buffer input(channels * size * size), weight(channels * kernel * kernel), output(channels * s.positions());
  args.activation = {Activation::kClip, 0, 6};
  args.input = input.data();
  args.weight = weight.data();
  args.output = output.data();
  args.planes = channels;
  bench.run("depthwise " + std::to_string(channels) + " " + std::to_string(size) + "^2 k" + std::to_string(kernel) +
                " s" + std::to_string(stride),
            2.0 * static_cast<double>(channels * s.positions() * kernel * kernel), "GFLOP/s",
            [&] { table.depthwise(args); });
}

// Sums of products to images of size^2 places.
void sum_taps(const Bench& bench, std::size_t channels, std::size_t size, std::size_t kernel, std::size_t stride) {
  const ConvTable& table = bench.kernels.conv;
  TapSumArgs args;
  ConvShape& s = args.shape;
  s = square_conv(1, 1, size, kernel, stride);
  s.pad_top = s.pad_left = 0;
  s.out_h = s.out_w = (size - kernel) / stride + 1;
  const std::size_t products = s.kernel_points() * s.positions();
  Buffer from(channels * products), to(channels * size * size), scratch(tap_sum_floats(s));
  bench.run("sums of taps " + std::to_string(channels) + " " + std::to_string(size) + "^2 k" + std::to_string(kernel) +
                " s" + std::to_string(stride),
            static_cast<double>(channels * (products + size * size) * sizeof(float)), "GB/s", [&] {
              for (std::size_t c = 0; c < channels; ++c) {
                args.products = from.data() + c * products;
                args.output = to.data() + c * size * size;
                table.sum_taps(args, scratch.data());
              }
            });
}

}  // namespace

void bench_conv(const Bench& bench) {
  for (const auto& [in, out, size, kernel, stride] : kConvs) dense(bench, in, out, size, kernel, stride);
  for (const auto& [channels, size, kernel, stride] : kDepthwise) depthwise(bench, channels, size, kernel, stride);
  for (const auto& [channels, size, kernel, stride] : kTapSums) sum_taps(bench, channels, size, kernel, stride);
}

}  // namespace infernode::bench
