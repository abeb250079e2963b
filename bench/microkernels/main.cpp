// Rates of the microkernels on one thread, for every target of the CPU: GFLOP/s of products and convolutions, GB/s of
// streaming loops. `bench_microkernels [filter [target]]` runs the benchmarks whose names contain the filter, of
// targets whose names contain the other.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_features.h"
#include "microkernels/blocked/blocked.h"
#include "microkernels/conv/conv.h"
#include "microkernels/elementwise/elementwise.h"
#include "microkernels/gemm/gemm.h"
#include "microkernels/qgemm/qgemm.h"
#include "microkernels/reduce/reduce.h"
#include "microkernels/winograd/winograd.h"
#include "timing.h"

using namespace infernode;
using namespace infernode::microkernels;
using namespace infernode::bench;

namespace {

struct Bench {
  std::string filter;
  CpuRung rung;
  Float32Precision precision;
  std::string target;  // the rung, and the precision where it is not `highest`

  template <typename Fn>
  void run(const std::string& name, double amount, const char* unit, Fn fn) const {
    if (name.find(filter) == std::string::npos) return;
    const double seconds = best_seconds(fn);
    std::printf("%-10s %-40s %10.1f %-8s %10.1f us\n", target.c_str(), name.c_str(), amount / seconds * 1e-9, unit,
                seconds * 1e6);
  }
};

void gemm(const Bench& bench, std::size_t m, std::size_t n, std::size_t k, bool packed, bool trans_b) {
  const GemmTable& table = gemm_table(bench.rung, bench.precision);
  Buffer a(m * k), b(n * k), c(m * n), scratch(table.scratch_floats), pack(table.weights.bytes(n, k) / sizeof(float));
  GemmArgs args;
  args.m = m;
  args.n = n;
  args.k = k;
  args.a = a.data();
  args.lda = k;
  args.b = b.data();
  args.ldb = trans_b ? k : n;
  args.trans_b = trans_b;
  args.c = c.data();
  args.ldc = n;
  if (packed) {
    table.weights.pack(n, k, args.b, FloatType::kF32, args.ldb, trans_b, pack.data(), 0, n);
    args.packed_b = table.weights.packed(n, k, pack.data());
    args.b = nullptr;
  }
  const std::string name = "gemm " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
                           (packed    ? " packed"
                            : trans_b ? " trans_b"
                                      : " plain");
  const auto call = [&] { table.gemm(args, {0, m, 0, n}, scratch.data()); };
  bench.run(name, 2.0 * static_cast<double>(m * n) * static_cast<double>(k), "GFLOP/s", call);
  if (m <= 4)
    bench.run(name + " (read B)",
              (packed ? static_cast<double>(table.weights.bytes(n, k)) : 4.0 * static_cast<double>(n * k)), "GB/s",
              call);
}

// Of square windows on square images, padded on all sides by half a window.
ConvShape square_conv(std::size_t in, std::size_t out, std::size_t size, std::size_t kernel, std::size_t stride) {
  ConvShape s;
  s.in_channels = in;
  s.out_channels = out;
  s.in_h = s.in_w = size;
  s.kernel_h = s.kernel_w = kernel;
  s.stride_h = s.stride_w = stride;
  s.pad_top = s.pad_left = static_cast<std::ptrdiff_t>(kernel / 2);
  s.out_h = s.out_w = (size + kernel / 2 * 2 - kernel) / stride + 1;
  return s;
}

void conv(const Bench& bench, std::size_t in, std::size_t out, std::size_t size, std::size_t kernel,
          std::size_t stride) {
  const ConvTable& table = conv_table(bench.rung);
  ConvArgs args;
  const ConvShape s = args.shape = square_conv(in, out, size, kernel, stride);
  Buffer input(in * size * size), weight(out * s.depth()), packed(table.packed_weight_floats(out, in, kernel * kernel));
  Buffer output(out * s.positions()), scratch(table.scratch_floats);
  table.pack_weight(out, in, kernel * kernel, weight.data(), packed.data());
  args.precision = bench.precision;
  args.input = input.data();
  args.packed_weight = packed.data();
  args.output = output.data();
  bench.run("conv " + std::to_string(in) + "->" + std::to_string(out) + " " + std::to_string(size) + "^2 k" +
                std::to_string(kernel) + " s" + std::to_string(stride),
            2.0 * static_cast<double>(out * s.positions()) * static_cast<double>(s.depth()), "GFLOP/s", [&] {
              table.conv(args, {0, out, 0, s.positions()}, scratch.data());
            });
}

void blocked(const Bench& bench, std::size_t in, std::size_t out, std::size_t size, std::size_t kernel,
             std::size_t stride) {
  const BlockedConvTable& table = blocked_conv_table(bench.rung, bench.precision);
  BlockedConvArgs args;
  const ConvShape s = args.shape = square_conv(in, out, size, kernel, stride);
  args.planar = in <= 8;
  if (!table.fits(s)) return;
  const std::size_t outputs = channel_blocks(out) * kChannelBlock;
  Buffer input(channel_blocks(in) * kChannelBlock * size * size), weight(out * s.depth());
  Buffer packed(table.packed_weight_floats(s)), output(outputs * s.positions()), scratch(table.scratch_floats);
  table.pack_weight(s, args.planar, weight.data(), packed.data());
  args.input = input.data();
  args.packed_weight = packed.data();
  args.output = output.data();
  const BlockedGrid grid = table.grid(s);
  bench.run("blocked " + std::to_string(in) + "->" + std::to_string(out) + " " + std::to_string(size) + "^2 k" +
                std::to_string(kernel) + " s" + std::to_string(stride),
            2.0 * static_cast<double>(out * s.positions()) * static_cast<double>(s.depth()), "GFLOP/s", [&] {
              table.conv(args, {0, grid.rows, 0, grid.panels}, scratch.data());
            });
}

void blocked_depthwise(const Bench& bench, std::size_t channels, std::size_t size, std::size_t kernel,
                       std::size_t stride) {
  BlockedConvArgs args;
  ConvShape& s = args.shape;
  s.in_channels = s.out_channels = channels;
  s.in_h = s.in_w = size;
  s.kernel_h = s.kernel_w = kernel;
  s.stride_h = s.stride_w = stride;
  s.pad_top = s.pad_left = static_cast<std::ptrdiff_t>(kernel / 2);
  s.out_h = s.out_w = (size + kernel / 2 * 2 - kernel) / stride + 1;
  const std::size_t blocks = channel_blocks(channels), all = blocks * kChannelBlock;
  Buffer input(all * size * size), weight(all * kernel * kernel), output(all * s.positions());
  args.activation = {Activation::kClip, 0, 6};
  args.input = input.data();
  args.packed_weight = weight.data();
  args.output = output.data();
  bench.run("blocked depthwise " + std::to_string(channels) + " " + std::to_string(size) + "^2 k" +
                std::to_string(kernel) + " s" + std::to_string(stride),
            2.0 * static_cast<double>(channels * s.positions() * kernel * kernel), "GFLOP/s",
            [&] { blocked_conv_table(bench.rung).depthwise(args, 0, blocks); });
}

// Counted in the operations of the definition, so that rates compare with conv's.
void winograd(const Bench& bench, std::size_t in, std::size_t out, std::size_t size) {
  const WinogradTable& table = winograd_table(bench.rung);
  ConvArgs args;
  ConvShape& s = args.shape;
  s.in_channels = in;
  s.out_channels = out;
  s.in_h = s.in_w = s.out_h = s.out_w = size;
  s.kernel_h = s.kernel_w = 3;
  s.pad_top = s.pad_left = 1;
  Buffer input(in * size * size), weight(out * s.depth()), output(out * s.positions());
  Buffer packed(table.packed_weight_floats(out, in)), transformed(table.transformed_floats(out, in));
  const WinogradSplit split = split_winograd(table, s, 1);
  Buffer scratch(table.scratch_floats(s, split.block(0)));
  table.pack_weight(out, in, weight.data(), packed.data());
  args.input = input.data();
  args.packed_weight = packed.data();
  args.output = output.data();
  const std::string name =
      "winograd " + std::to_string(in) + "->" + std::to_string(out) + " " + std::to_string(size) + "^2";
  const double amount = 2.0 * static_cast<double>(out * s.positions()) * static_cast<double>(s.depth());
  const auto run = [&](const float* weights) {
    for (std::size_t i = 0; i < split.count(); ++i) table.conv(args, weights, split.block(i), scratch.data());
  };
  bench.run(name, amount, "GFLOP/s", [&] {
    table.transform_weight(out, in, packed.data(), 0, out, transformed.data());
    run(transformed.data());
  });
  bench.run(name + " directly", amount, "GFLOP/s", [&] { run(nullptr); });
}

void depthwise(const Bench& bench, std::size_t channels, std::size_t size, std::size_t kernel, std::size_t stride) {
  const ConvTable& table = conv_table(bench.rung);
  DepthwiseArgs args;
  ConvShape& s = args.shape;
  s.in_h = s.in_w = size;
  s.kernel_h = s.kernel_w = kernel;
  s.stride_h = s.stride_w = stride;
  s.pad_top = s.pad_left = static_cast<std::ptrdiff_t>(kernel / 2);
  s.out_h = s.out_w = (size + kernel / 2 * 2 - kernel) / stride + 1;
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

void qgemm(const Bench& bench, std::size_t m, std::size_t n, std::size_t k) {
  const QgemmTable& table = qgemm_table(bench.rung);
  std::vector<std::uint8_t> a(m * k, 3), b(n * k, 5), packed(table.packed_b_bytes(n, k));
  Buffer scratch(table.scratch_bytes(k) / 4 + 1), c(m * n);
  table.pack_b(n, k, b.data(), true, n, false, packed.data(), 0, n);
  QgemmArgs args;
  args.m = m;
  args.n = n;
  args.k = k;
  args.a = a.data();
  args.lda = k;
  args.packed_b = packed.data();
  args.c = c.data();
  args.ldc = n;
  bench.run("qgemm " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k),
            2.0 * static_cast<double>(m * n) * static_cast<double>(k), "GOP/s", [&] {
              table.qgemm(args, {0, m, 0, n}, scratch.data());
            });
}

void rows(const Bench& bench) {
  const std::size_t n = 4096;
  Buffer x(n), y(n), z(n);
  const ElementwiseTable& table = elementwise_table(bench.rung);
  const std::pair<const char*, UnaryOp> ops[] = {
      {"exp", UnaryOp::kExp},         {"log", UnaryOp::kLog},   {"erf", UnaryOp::kErf}, {"tanh", UnaryOp::kTanh},
      {"sigmoid", UnaryOp::kSigmoid}, {"gelu", UnaryOp::kGelu}, {"sin", UnaryOp::kSin}, {"relu", UnaryOp::kRelu}};
  for (const auto& [name, op] : ops) {
    bench.run(std::string("unary ") + name, static_cast<double>(n) * 8, "Gelem/s", [&] {
      for (int i = 0; i < 8; ++i) table[op](x.data(), y.data(), n, 0, 0);
    });
  }
  bench.run("binary add", static_cast<double>(n) * 8, "Gelem/s", [&] {
    for (int i = 0; i < 8; ++i) table.vector_vector[0](x.data(), y.data(), z.data(), n);
  });
  const ReduceTable& reduce = reduce_table(bench.rung);
  bench.run("softmax 4096", static_cast<double>(n), "Gelem/s", [&] { reduce.softmax(x.data(), y.data(), n); });
  constexpr int kTimes = 64;  // what is short is repeated: the clock takes a part of a microsecond
  bench.run("softmax 128", 128.0 * kTimes, "Gelem/s", [&] {
    for (int i = 0; i < kTimes; ++i) reduce.softmax(x.data(), y.data(), 128);
  });
  bench.run("layer_norm 768", 768.0 * kTimes, "Gelem/s", [&] {
    for (int i = 0; i < kTimes; ++i)
      reduce.layer_norm(x.data(), z.data(), z.data(), y.data(), 768, 1e-5f, nullptr, nullptr);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string filter = argc > 1 ? argv[1] : "", wanted = argc > 2 ? argv[2] : "";
  constexpr Float32Precision kHighest = Float32Precision::kHighest, kMedium = Float32Precision::kMedium;
  constexpr std::pair<CpuRung, Float32Precision> kTargets[] = {{CpuRung::Baseline, kHighest},
                                                               {CpuRung::Avx2, kHighest},
                                                               {CpuRung::Avx512, kHighest},
                                                               {CpuRung::Vnni, kHighest},
                                                               {CpuRung::Bf16, kMedium},
                                                               {CpuRung::Amx, kHighest},
                                                               {CpuRung::Amx, Float32Precision::kHigh},
                                                               {CpuRung::Amx, kMedium}};
  for (const auto& [rung, precision] : kTargets) {
    if (rung > detect_cpu_rung()) continue;
    const char* const suffix = precision == kHighest ? "" : precision == kMedium ? ".medium" : ".high";
    const Bench bench{filter, rung, precision, to_string(rung) + std::string(suffix)};
    if (bench.target.find(wanted) == std::string::npos) continue;
    gemm(bench, 1024, 1024, 1024, true, false);
    gemm(bench, 1024, 1024, 1024, false, false);
    gemm(bench, 128, 3072, 768, true, false);
    gemm(bench, 128, 768, 3072, true, false);
    gemm(bench, 197, 3072, 768, true, false);
    gemm(bench, 1500, 2048, 512, true, false);
    gemm(bench, 256, 50257, 768, true, false);
    gemm(bench, 128, 128, 64, false, true);
    gemm(bench, 128, 64, 128, false, false);
    gemm(bench, 48, 1500, 64, true, true);
    gemm(bench, 48, 64, 1500, true, false);
    gemm(bench, 43, 1500, 64, false, true);
    gemm(bench, 43, 64, 1500, false, false);
    gemm(bench, 1500, 1500, 64, false, true);
    gemm(bench, 1500, 64, 1500, false, false);
    for (const std::size_t m : {1u, 4u}) {
      gemm(bench, m, 3072, 768, true, false);
      gemm(bench, m, 3072, 768, false, false);
      gemm(bench, m, 3072, 768, false, true);
    }
    for (const std::size_t m : {8u, 16u, 24u}) gemm(bench, m, 1536, 384, true, false);
    gemm(bench, 1, 32000, 2048, true, false);
    constexpr std::size_t kConvs[][5] = {
        // channels in and out, size, kernel, stride
        {3, 64, 224, 7, 2},  {24, 24, 160, 3, 1},  {32, 32, 160, 3, 1},  {64, 64, 56, 3, 1},   {64, 64, 80, 3, 1},
        {64, 256, 56, 1, 1}, {128, 128, 28, 3, 1}, {128, 128, 40, 3, 1}, {256, 256, 14, 3, 1}, {256, 256, 20, 3, 1},
        {512, 512, 7, 3, 1}, {512, 2048, 7, 1, 1}, {256, 512, 56, 1, 2}, {32, 16, 112, 1, 1},  {16, 96, 112, 1, 1},
        {16, 96, 28, 1, 1},  {24, 144, 56, 1, 1},  {144, 24, 56, 1, 1},  {384, 64, 14, 1, 1},  {160, 960, 7, 1, 1},
    };
    for (const auto& [in, out, size, kernel, stride] : kConvs) {
      conv(bench, in, out, size, kernel, stride);
      blocked(bench, in, out, size, kernel, stride);
    }
    for (const auto& [channels, size] : std::initializer_list<std::pair<std::size_t, std::size_t>>{
             {24, 160}, {32, 160}, {64, 56}, {64, 80}, {128, 28}, {128, 40}, {256, 14}, {256, 20}}) {
      winograd(bench, channels, channels, size);
    }
    constexpr std::size_t kDepthwise[][4] = {
        {32, 112, 3, 1}, {96, 112, 3, 2}, {576, 14, 3, 1}, {960, 7, 3, 1}, {240, 28, 5, 1}};
    for (const auto& [channels, size, kernel, stride] : kDepthwise) {
      depthwise(bench, channels, size, kernel, stride);
      blocked_depthwise(bench, channels, size, kernel, stride);
    }
    qgemm(bench, 128, 3072, 768);
    qgemm(bench, 1500, 384, 384);
    qgemm(bench, 1500, 384, 1536);
    qgemm(bench, 1, 3072, 768);
    qgemm(bench, 1, 384, 384);
    qgemm(bench, 1, 1536, 384);
    qgemm(bench, 1, 384, 1536);
    rows(bench);
  }
}
