#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "bench/cuda/check.h"
#include "providers/cuda/kernels/conv.h"
#include "providers/cuda/kernels/gemm.h"

namespace infernode::cuda::bench {

namespace {

std::string text_of(const ProductChoice& c) {
  static const char* const kernels[] = {"block", "gemv", "mma", "simt"};
  char text[96];
  std::snprintf(text, sizeof(text), "%s %dx%dx%d stages %d split %d (model %.1f)", kernels[static_cast<int>(c.kernel)],
                c.bm, c.bn, c.kw, c.stages, c.split, c.microseconds);
  return text;
}

/// Times `plan(layer, choice)` in chains of `layers` dependent launches, over the choices that the model thinks best.
template <class Plan>
void time_choices(Device& device, const char* name, const char* before, int layers,
                  const std::vector<ProductChoice>& choices, Plan plan, double work, const std::string& key) {
  const char* file = std::getenv("TIMES");
  std::FILE* csv = file ? std::fopen(file, "a") : nullptr;
  std::vector<std::pair<double, ProductChoice>> times;
  for (std::size_t i = 0; i < choices.size() && (csv || i < 24); i++) {
    std::vector<Launch> chain;
    for (int l = 0; l < layers; l++) {
      for (Launch& launch : plan(l, choices[i])) chain.push_back(std::move(launch));
    }
    times.emplace_back(device.time(chain, 11) / layers, choices[i]);
    const ProductChoice& c = choices[i];
    if (csv) {
      std::fprintf(csv, "%s,%d,%d,%d,%d,%d,%d,%.3f,%.3f\n", key.c_str(), static_cast<int>(c.kernel), c.bm, c.bn, c.kw,
                   c.stages, c.split, times.back().first, c.microseconds);
    }
  }
  if (csv) std::fclose(csv);
  const double chosen = times.front().first;
  std::sort(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::printf("  %-26s prototype %-6s chosen %.2f us, best %.2f (%.0f TFLOP/s)", name, before, chosen, times[0].first,
              work / times[0].first / 1e6);
  for (std::size_t i = 0; i < times.size() && i < 3; i++) {
    std::printf("; %.2f %s", times[i].first, text_of(times[i].second).c_str());
  }
  std::printf("\n");
  std::fflush(stdout);
}

void time_gemm(Device& device, Arena& arena, const char* name, const char* before, std::int64_t m, std::int64_t n,
               std::int64_t k, Element type, Precision precision, Activation activation, bool residual) {
  arena.reset();
  Random r(5);
  const int layers = 12;
  const WeightLayout layout = weight_layout(device.target(), type, precision, n, 1, k);
  const DevicePtr a = arena.random(r, type, m * k), raw = arena.random(r, type, n * k, 0.05f);
  const DevicePtr bias = arena.random(r, Element::f32, n), add = arena.random(r, type, m * n);
  const DevicePtr out = arena.take(static_cast<std::size_t>(m * n) * element_size(type));
  std::vector<DevicePtr> weights;
  for (int i = 0; i < layers; i++) {
    weights.push_back(arena.take(layout.bytes));
    device.launch(plan_pack_weight(layout, {raw, type, k, 0, 1}, weights.back()));
  }
  GemmProblem g;
  g.m = m, g.n = n, g.k = k;
  g.a = {a, type, k, 1, {0, 0}};
  g.b_packed = &layout;
  g.precision = precision;
  g.epilogue.out = out, g.epilogue.out_type = type, g.epilogue.out_row = n;
  g.epilogue.bias = bias, g.epilogue.activation = activation;
  if (residual) g.epilogue.residual = add, g.epilogue.residual_type = type, g.epilogue.residual_row = n;
  g.workspace = arena.take(static_cast<std::size_t>(8 * m * (n + 8) * 4));
  g.b_address = weights[0];
  time_choices(
      device, name, before, layers, gemm_choices(device.target(), g),
      [&](int layer, const ProductChoice& c) {
        g.b_address = weights[static_cast<std::size_t>(layer)];
        return plan_gemm(device.target(), g, c);
      },
      2.0 * static_cast<double>(m * n) * static_cast<double>(k),
      std::to_string(m) + "," + std::to_string(n) + "," + std::to_string(k) + ",0," +
          std::to_string(static_cast<int>(activation)) + "," + std::to_string(residual) + "," +
          std::to_string(layout.pieces) + "," + std::to_string(element_size(type)));
}

void time_conv(Device& device, Arena& arena, const char* before, std::int64_t size, std::int64_t channels,
               std::int64_t outputs, std::int64_t kernel, std::int64_t stride, bool residual, std::int64_t images = 1,
               Activation activation = Activation::relu) {
  arena.reset();
  Random r(5);
  const int layers = 8;
  const Element type = Element::f16;
  ConvProblem c;
  c.images = images, c.channels = channels, c.outputs = outputs, c.type = type, c.pixel = channels;
  for (int i = 1; i < 3; i++) {
    c.in[i] = size, c.kernel[i] = kernel, c.stride[i] = stride, c.pad[i] = kernel / 2;
    c.out[i] = (size + 2 * c.pad[i] - kernel) / stride + 1;
  }
  const std::int64_t rows = images * c.out[1] * c.out[2], taps = kernel * kernel;
  c.input = arena.random(r, type, images * size * size * channels);
  c.weights = weight_layout(device.target(), type, c.precision, outputs, taps, channels);
  const DevicePtr raw = arena.random(r, type, outputs * taps * channels, 0.05f);
  std::vector<DevicePtr> weights;
  for (int i = 0; i < layers; i++) {
    weights.push_back(arena.take(c.weights.bytes));
    device.launch(plan_pack_weight(c.weights, {raw, type, taps * channels, channels, 1}, weights.back()));
  }
  c.epilogue.out = arena.take(static_cast<std::size_t>(rows * outputs * 2));
  c.epilogue.out_row = outputs;
  c.epilogue.bias = arena.random(r, Element::f32, outputs);
  c.epilogue.activation = activation;
  if (residual) c.epilogue.residual = arena.random(r, type, rows * outputs), c.epilogue.residual_row = outputs;
  c.workspace = arena.take(static_cast<std::size_t>(8 * rows * outputs * 4));
  c.weights_address = weights[0];
  char name[64];
  std::snprintf(name, sizeof(name), "%d %dx%d %d->%d k%d s%d%s", int(images), int(size), int(size), int(channels),
                int(outputs), int(kernel), int(stride), residual ? " +res" : "");
  time_choices(
      device, name, before, layers, conv_choices(device.target(), c),
      [&](int layer, const ProductChoice& k) {
        c.weights_address = weights[static_cast<std::size_t>(layer)];
        return plan_conv(device.target(), c, k);
      },
      2.0 * static_cast<double>(rows * outputs) * static_cast<double>(taps * channels),
      std::to_string(rows) + "," + std::to_string(outputs) + "," + std::to_string(taps * c.weights.channels_padded) +
          "," + std::to_string(taps) + "," + std::to_string(static_cast<int>(activation)) + "," +
          std::to_string(residual) + ",1,2");
}

}  // namespace

void time_products(Device& device, Arena& arena) {
  const auto gemm = [&](const char* name, const char* before, std::int64_t m, std::int64_t n, std::int64_t k,
                        Activation act, bool residual, Element type = Element::f16,
                        Precision precision = Precision::highest) {
    time_gemm(device, arena, name, before, m, n, k, type, precision, act, residual);
  };
  std::printf("matrix products, us each in a chain of 12 with cold weights\n");
  gemm("qkv 128x2304x768", "3.89", 128, 2304, 768, Activation::none, false);
  gemm("proj 128x768x768", "2.79", 128, 768, 768, Activation::none, true);
  gemm("ffn1 128x3072x768 gelu", "4.63", 128, 3072, 768, Activation::gelu, false);
  gemm("ffn2 128x768x3072", "4.85", 128, 768, 3072, Activation::none, true);
  gemm("qkv 197x2304x768", "5.71", 197, 2304, 768, Activation::none, false);
  gemm("ffn1 197x3072x768 gelu", "7.18", 197, 3072, 768, Activation::gelu, false);
  gemm("ffn2 197x768x3072", "7.74", 197, 768, 3072, Activation::none, true);
  gemm("qkv 256x2304x768", "6.05", 256, 2304, 768, Activation::none, false);
  gemm("ffn1 256x3072x768 gelu", "7.18", 256, 3072, 768, Activation::gelu_tanh, false);
  gemm("ffn2 256x768x3072", "7.65", 256, 768, 3072, Activation::none, true);
  gemm("qkv 1024x2304x768", "8.27c", 1024, 2304, 768, Activation::none, false);
  gemm("proj 1024x768x768", "5.64c", 1024, 768, 768, Activation::none, true);
  gemm("ffn1 1024x3072x768 gelu", "10.6c", 1024, 3072, 768, Activation::gelu, false);
  gemm("ffn2 1024x768x3072", "11.0c", 1024, 768, 3072, Activation::none, true);
  gemm("whisper 1500x2304x768", "-", 1500, 2304, 768, Activation::none, false);
  gemm("whisper 1500x768x768", "-", 1500, 768, 768, Activation::none, true);
  gemm("whisper 1500x3072x768", "13.4c", 1500, 3072, 768, Activation::gelu, false);
  gemm("whisper 1500x768x3072", "-", 1500, 768, 3072, Activation::none, true);
  gemm("qkv 1576x2304x768", "-", 1576, 2304, 768, Activation::none, false);
  gemm("proj 1576x768x768", "-", 1576, 768, 768, Activation::none, true);
  gemm("ffn1 1576x3072x768 gelu", "-", 1576, 3072, 768, Activation::gelu, false);
  gemm("ffn2 1576x768x3072", "-", 1576, 768, 3072, Activation::none, true);
  gemm("head 256x50257x768", "45", 256, 50257, 768, Activation::none, false);
  gemm("4096x4096x4096", "188c", 4096, 4096, 4096, Activation::none, false);
  gemm("f32 highest ffn1", "11c", 128, 3072, 768, Activation::gelu, false, Element::f32);
  gemm("f32 highest ffn2", "11c", 128, 768, 3072, Activation::none, true, Element::f32);
  gemm("f32 highest qkv", "-", 128, 2304, 768, Activation::none, false, Element::f32);
  gemm("f32 highest proj", "-", 128, 768, 768, Activation::none, true, Element::f32);
  gemm("f32 medium ffn1", "-", 128, 3072, 768, Activation::gelu, false, Element::f32, Precision::medium);
  gemm("decode qkv 1x2304x768", "1.5", 1, 2304, 768, Activation::none, false);
  gemm("decode proj 1x768x768", "1.5", 1, 768, 768, Activation::none, true);
  gemm("decode ffn2 1x768x3072", "2", 1, 768, 3072, Activation::none, true);
  gemm("decode head 1x50257x768", "22.8", 1, 50257, 768, Activation::none, false);
  std::printf("convolutions, us each in a chain of 8\n");
  time_conv(device, arena, "3.65", 56, 64, 64, 3, 1, false);
  time_conv(device, arena, "2.0", 56, 64, 256, 1, 1, true);
  time_conv(device, arena, "2.5", 56, 256, 64, 1, 1, false);
  time_conv(device, arena, "3.53", 28, 128, 128, 3, 1, false);
  time_conv(device, arena, "2.4", 28, 128, 512, 1, 1, true);
  time_conv(device, arena, "3.0", 28, 512, 128, 1, 1, false);
  time_conv(device, arena, "3.9", 28, 256, 256, 3, 2, false);
  time_conv(device, arena, "4.28", 14, 256, 256, 3, 1, false);
  time_conv(device, arena, "2.06", 14, 256, 1024, 1, 1, true);
  time_conv(device, arena, "2.53", 14, 1024, 256, 1, 1, false);
  time_conv(device, arena, "4.0", 14, 1024, 2048, 1, 2, false);
  time_conv(device, arena, "4.83", 7, 512, 512, 3, 1, false);
  time_conv(device, arena, "2.35", 7, 512, 2048, 1, 1, true);
  time_conv(device, arena, "3.25", 7, 2048, 512, 1, 1, false);
  time_conv(device, arena, "6.4", 224, 8, 64, 7, 2, false);
  time_conv(device, arena, "-", 28, 128, 128, 3, 1, false, 8);
  time_conv(device, arena, "-", 56, 64, 256, 1, 1, true, 8);
  time_conv(device, arena, "-", 14, 256, 256, 3, 1, false, 8);
  time_conv(device, arena, "-", 14, 1024, 256, 1, 1, false, 8);
  time_conv(device, arena, "-", 28, 128, 512, 1, 1, true, 8);
  for (const auto& [size, narrow, wide] :
       {std::array{190, 24, 144}, {95, 32, 192}, {48, 56, 336}, {24, 112, 672}, {24, 160, 960}, {12, 272, 1632}}) {
    time_conv(device, arena, "-", size, narrow, wide, 1, 1, false, 1, Activation::silu);
    time_conv(device, arena, "-", size, wide, narrow, 1, 1, true, 1, Activation::none);
  }
}

}  // namespace infernode::cuda::bench
