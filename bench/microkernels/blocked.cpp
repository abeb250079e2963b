#include <string>

#include "bench.h"
#include "conv_cases.h"
#include "microkernels/blocked/blocked.h"

namespace infernode::bench {
namespace {

using namespace microkernels;

void dense(const Bench& bench, std::size_t in, std::size_t out, std::size_t size, std::size_t kernel,
           std::size_t stride) {
  const BlockedConvTable& table = bench.kernels.blocked_conv;
  BlockedConvArgs args;
  const ConvShape s = args.shape = square_conv(in, out, size, kernel, stride);
  args.planar = in <= 8;
  if (!table.fits(s)) return;
  const std::size_t outputs = channel_blocks(out) * kChannelBlock;
  Buffer input(channel_blocks(in) * kChannelBlock * size * size), weight(out * s.depth());
  const ConvPacking& packing = args.planar ? table.plane_weights : table.weights;
  Buffer packed(packing.bytes(s) / sizeof(float)), output(outputs * s.positions()), scratch(table.scratch_floats);
  packing.pack(s, weight.data(), packed.data());
  args.input = input.data();
  args.weights = packing.packed(s, packed.data());
  args.output = output.data();
  const BlockedGrid grid = table.grid(s);
  bench.run("blocked " + std::to_string(in) + "->" + std::to_string(out) + " " + std::to_string(size) + "^2 k" +
                std::to_string(kernel) + " s" + std::to_string(stride),
            2.0 * static_cast<double>(out * s.positions()) * static_cast<double>(s.depth()), "GFLOP/s", [&] {
              table.conv(args, {0, grid.rows, 0, grid.panels}, scratch.data());
            });
}

void depthwise(const Bench& bench, std::size_t channels, std::size_t size, std::size_t kernel, std::size_t stride) {
  BlockedConvArgs args;
  const ConvShape s = args.shape = square_conv(channels, channels, size, kernel, stride);
  const std::size_t blocks = channel_blocks(channels), all = blocks * kChannelBlock;
  Buffer input(all * size * size), weight(all * kernel * kernel), output(all * s.positions());
  args.activation = {Activation::kClip, 0, 6};
  args.input = input.data();
  ConvShape of_one = s;
  of_one.in_channels = 1;
  args.weights = depthwise_packing().packed(of_one, weight.data());
  args.output = output.data();
  bench.run("blocked depthwise " + std::to_string(channels) + " " + std::to_string(size) + "^2 k" +
                std::to_string(kernel) + " s" + std::to_string(stride),
            2.0 * static_cast<double>(channels * s.positions() * kernel * kernel), "GFLOP/s",
            [&] { bench.kernels.exact().blocked_conv.depthwise(args, 0, blocks); });
}

}  // namespace

void bench_blocked(const Bench& bench) {
  for (const auto& [in, out, size, kernel, stride] : kConvs) dense(bench, in, out, size, kernel, stride);
  for (const auto& [channels, size, kernel, stride] : kDepthwise) depthwise(bench, channels, size, kernel, stride);
}

}  // namespace infernode::bench
