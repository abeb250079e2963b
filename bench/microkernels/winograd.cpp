#include <initializer_list>
#include <string>
#include <utility>

#include "bench.h"
#include "conv_cases.h"
#include "microkernels/winograd/winograd.h"

namespace infernode::bench {
namespace {

using namespace microkernels;

// Counted in the operations of the definition, so that rates compare with conv's.
void convolution(const Bench& bench, std::size_t in, std::size_t out, std::size_t size) {
  const WinogradTable& table = bench.kernels.winograd;
  ConvArgs args;
  const ConvShape s = args.shape = square_conv(in, out, size, 3, 1);
  Buffer input(in * size * size), weight(out * s.depth()), output(out * s.positions());
  Buffer packed(table.weights.bytes(s) / sizeof(float)), transformed(table.transformed_floats(out, in));
  const WinogradSplit split = split_winograd(table, s, 1);
  Buffer scratch(table.scratch_floats(s, split.block(0)));
  table.weights.pack(s, weight.data(), packed.data());
  args.input = input.data();
  args.weights = table.weights.packed(s, packed.data());
  args.output = output.data();
  const std::string name =
      "winograd " + std::to_string(in) + "->" + std::to_string(out) + " " + std::to_string(size) + "^2";
  const double amount = 2.0 * static_cast<double>(out * s.positions()) * static_cast<double>(s.depth());
  const auto run = [&](const float* weights) {
    for (std::size_t i = 0; i < split.count(); ++i) table.conv(args, weights, split.block(i), scratch.data());
  };
  bench.run(name, amount, "GFLOP/s", [&] {
    table.transform_weight(args.weights, 0, out, transformed.data());
    run(transformed.data());
  });
  bench.run(name + " directly", amount, "GFLOP/s", [&] { run(nullptr); });
}

}  // namespace

void bench_winograd(const Bench& bench) {
  for (const auto& [channels, size] : std::initializer_list<std::pair<std::size_t, std::size_t>>{
           {24, 160}, {32, 160}, {64, 56}, {64, 80}, {128, 28}, {128, 40}, {256, 14}, {256, 20}}) {
    convolution(bench, channels, channels, size);
  }
}

}  // namespace infernode::bench
