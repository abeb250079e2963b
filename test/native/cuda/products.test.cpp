#include <algorithm>
#include <cmath>
#include <random>

#include "base/half.h"
#include "double/double.h"
#include "providers/cuda/kernels/attention.h"
#include "providers/cuda/kernels/channelwise/channel_gate.h"
#include "providers/cuda/kernels/conv.h"
#include "providers/cuda/kernels/gemm.h"

#include <doctest/doctest.h>

using namespace infernode::cuda;

namespace {

/// A GPU without tensor cores, whose kernels the double has.
constexpr Target kPlain{70, 4, 96 * 1024, 1 << 20, nullptr};

class Random {
 public:
  std::int64_t in(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  std::vector<float> floats(std::int64_t count) {
    std::vector<float> v(static_cast<std::size_t>(count));
    for (float& x : v) x = std::uniform_real_distribution<float>(-1, 1)(engine_);
    return v;
  }

 private:
  std::mt19937 engine_{7};
};

DevicePtr address(const void* p) { return reinterpret_cast<DevicePtr>(p); }

void run(const std::vector<Launch>& launches) {
  for (const Launch& l : launches) {
    const infernode::cuda_double::HostKernel* kernel = infernode::cuda_double::find_kernel(l.kernel);
    REQUIRE_MESSAGE(kernel, l.kernel);
    REQUIRE(l.params.size() == kernel->param_bytes);
    const unsigned grid[3] = {l.grid.x, l.grid.y, l.grid.z}, block[3] = {l.block.x, l.block.y, l.block.z};
    kernel->run(l.params.data(), grid, block);
  }
}

void check_close(const std::vector<float>& out, const std::vector<double>& expected, double tolerance = 1e-5) {
  REQUIRE(out.size() == expected.size());
  double error = 0, size = 1e-30;
  for (std::size_t i = 0; i < out.size(); i++) {
    error += (out[i] - expected[i]) * (out[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  CHECK(std::sqrt(error / size) < tolerance);
}

std::vector<float> unwritten(std::int64_t count) { return std::vector<float>(static_cast<std::size_t>(count), NAN); }

}  // namespace

TEST_CASE("matrix products of odd sizes, strides and batches") {
  Random r;
  for (int trial = 0; trial < 12; trial++) {
    GemmProblem g;
    g.m = r.in(1, 90), g.n = r.in(1, 90), g.k = r.in(1, 60);
    g.batch[0] = r.in(1, 2), g.batch[1] = r.in(1, 2);
    const std::int64_t batches = g.batch[0] * g.batch[1];
    const bool transposed = r.in(0, 1);
    const std::vector<float> a = r.floats(batches * g.m * g.k), b = r.floats(g.n * g.k), bias = r.floats(g.n);
    g.a = {address(a.data()),
           Element::f32,
           transposed ? 1 : g.k,
           transposed ? g.m : 1,
           {g.m * g.k, g.batch[0] * g.m * g.k}};
    g.b = {address(b.data()), Element::f32, 1, g.n, {0, 0}};
    std::vector<float> out = unwritten(batches * g.m * g.n);
    Epilogue& e = g.epilogue;
    e.out = address(out.data()), e.out_type = Element::f32, e.out_row = g.n;
    e.out_batch[0] = g.m * g.n, e.out_batch[1] = g.batch[0] * g.m * g.n;
    e.bias = address(bias.data()), e.activation = Activation::gelu, e.alpha = 0.5f;
    std::vector<std::byte> workspace(gemm_workspace(kPlain, g) + 256);
    g.workspace = (address(workspace.data()) + 255) / 256 * 256;
    run(plan_gemm(kPlain, g));
    std::vector<double> expected;
    for (std::int64_t i = 0; i < batches * g.m * g.n; i++) {
      const std::int64_t n = i % g.n, m = i / g.n % g.m, batch = i / g.n / g.m;
      double sum = 0;
      for (std::int64_t k = 0; k < g.k; k++) {
        sum += double{a[batch * g.m * g.k + m * g.a.row_stride + k * g.a.k_stride]} * b[k * g.n + n];
      }
      const double v = sum * 0.5 + bias[n];
      expected.push_back(0.5 * v * (1 + std::erf(v / std::sqrt(2.0))));
    }
    check_close(out, expected);
  }
}

TEST_CASE("convolutions with groups, strides and dilation, and depthwise ones, agree") {
  Random r;
  for (int trial = 0; trial < 10; trial++) {
    ConvProblem c;
    DepthwiseProblem d;
    c.groups = d.channels = r.in(1, 20);
    c.channels = c.outputs = 1;
    c.images = d.images = r.in(1, 2);
    std::int64_t taps = 1, pixels = c.images, outputs = c.images;
    for (int i = 0; i < 2; i++) {
      c.kernel[i + 1] = d.kernel[i] = r.in(1, 4);
      c.stride[i + 1] = d.stride[i] = r.in(1, 2);
      c.dilation[i + 1] = d.dilation[i] = r.in(1, 2);
      c.pad[i + 1] = d.pad[i] = r.in(0, 2);
      const std::int64_t reach = (d.kernel[i] - 1) * d.dilation[i];
      c.in[i + 1] = d.in[i] = reach + r.in(1, 7);
      c.out[i + 1] = d.out[i] = (d.in[i] + 2 * d.pad[i] - reach - 1) / d.stride[i] + 1;
      taps *= d.kernel[i], pixels *= d.in[i], outputs *= d.out[i];
    }
    const std::vector<float> image = r.floats(pixels * d.channels), raw = r.floats(d.channels * taps);
    c.type = d.type = Element::f32;
    c.pixel = d.pixel = d.channels;
    c.input = d.input = address(image.data());
    c.weights = weight_layout(kPlain, Element::f32, c.precision, c.groups, taps, 1, c.groups);
    const WeightLayout layout = depthwise_weights(d.channels, taps);
    std::vector<float> grouped = unwritten(static_cast<std::int64_t>(c.weights.bytes / 4)),
                       columns = unwritten(layout.bytes / 4);
    c.weights_address = address(grouped.data());
    d.weights = address(columns.data());
    run(plan_pack_weight(c.weights, {address(raw.data()), Element::f32, taps, 1, 1}, c.weights_address));
    run(plan_pack_weight(layout, {address(raw.data()), Element::f32, 1, 0, taps}, d.weights));
    std::vector<float> first = unwritten(outputs * d.channels), second = first;
    c.epilogue.out = address(first.data()), c.epilogue.out_type = Element::f32, c.epilogue.out_row = d.channels;
    d.epilogue = c.epilogue;
    d.epilogue.out = address(second.data());
    run(plan_conv(kPlain, c));
    run(plan_depthwise(kPlain, d));
    check_close(first, std::vector<double>(second.begin(), second.end()));
  }
}

TEST_CASE("depthwise kernels of 16-bit pixels agree with those of any") {
  Random r;
  using infernode::Float16;
  for (const auto& [kernel, stride] : {std::pair{3, 1}, {3, 2}, {5, 1}, {5, 2}, {7, 1}}) {
    DepthwiseProblem d;
    d.images = 2, d.channels = 20, d.pixel = 24;
    for (int i = 0; i < 2; i++) {
      d.kernel[i] = kernel, d.stride[i] = stride, d.pad[i] = kernel / 2, d.in[i] = r.in(5, 37);
      d.out[i] = (d.in[i] - 1) / stride + 1;
    }
    const std::int64_t pixels = d.out[0] * d.out[1];
    const std::vector<float> wide = r.floats(d.images * d.in[0] * d.in[1] * d.pixel);
    std::vector<Float16> narrow(wide.begin(), wide.end());
    const std::vector<float> exact(narrow.begin(), narrow.end()), weights = r.floats(kernel * kernel * 24);
    d.weights = address(weights.data());
    std::vector<float> first = unwritten(d.images * pixels * d.channels), second = first;
    d.epilogue.out_type = Element::f32, d.epilogue.out_row = d.channels;
    d.epilogue.out = address(first.data());
    d.epilogue.activation = Activation::silu;
    d.input = address(narrow.data());
    REQUIRE(d.input % 16 == 0);
    const auto layout = depthwise_sums(kPlain, d);
    REQUIRE(layout);
    std::vector<float> parts = unwritten(d.images * layout->parts * layout->row);
    d.sums = address(parts.data());
    CHECK(plan_depthwise(kPlain, d)[0].kernel != "depthwise_any");
    run(plan_depthwise(kPlain, d));
    d.type = Element::f32, d.input = address(exact.data()), d.epilogue.out = address(second.data()), d.sums = 0;
    CHECK(!depthwise_sums(kPlain, d));
    CHECK(plan_depthwise(kPlain, d)[0].kernel == "depthwise_any");
    run(plan_depthwise(kPlain, d));
    check_close(first, std::vector<double>(second.begin(), second.end()));
    std::vector<float> sums(static_cast<std::size_t>(d.images * d.channels));
    std::vector<double> expected(sums.size());
    for (std::int64_t i = 0; i < std::ssize(sums); i++) {
      const std::int64_t image = i / d.channels, channel = i % d.channels;
      for (std::int64_t p = 0; p < layout->parts; p++)
        sums[i] += parts[(image * layout->parts + p) * layout->row + channel];
      for (std::int64_t p = 0; p < pixels; p++) expected[i] += second[(image * pixels + p) * d.channels + channel];
    }
    check_close(sums, expected);
  }
}

TEST_CASE("gates of channels, and weights that they scale") {
  Random r;
  using infernode::Float16;
  const auto halves = [&](std::int64_t count) {
    const std::vector<float> wide = r.floats(count);
    return std::vector<Float16>(wide.begin(), wide.end());
  };
  for (const auto& [channels, hidden] : {std::pair{24, 6}, {72, 13}, {136, 30}}) {
    ChannelGate g;
    g.images = 2, g.pixels = 9, g.channels = channels, g.hidden = hidden;
    g.layout = {.parts = 11, .row = (channels + 7) / 8 * 8};
    const std::vector<float> sums = r.floats(g.images * g.layout.parts * g.layout.row), bias = r.floats(channels);
    g.sums = address(sums.data());
    const auto layer = [&](std::vector<Float16>& weights, std::int64_t rows, std::int64_t columns) {
      ChannelGate::Layer l{.layout = weight_layout(kPlain, Element::f16, Precision::highest, rows, 1, columns)};
      weights = halves(rows * l.layout.row);
      for (std::int64_t i = 0; i < rows * l.layout.row; i++) {
        if (i % l.layout.row >= columns) weights[i] = Float16(0.0f);
      }
      l.weights = address(weights.data()), l.bias = address(bias.data());
      return l;
    };
    std::vector<Float16> first, second, behind;
    g.first = layer(first, hidden, channels), g.second = layer(second, channels, hidden);
    g.first.activation = Activation::relu, g.second.activation = Activation::sigmoid;
    const ChannelGate::Layer scaled_layer = layer(behind, 5, channels);
    const std::int64_t row = scaled_layer.layout.row;
    std::vector<Float16> out(g.images * channels), scaled(g.images * 5 * row);
    g.out = address(out.data()), g.out_row = channels;
    REQUIRE(can_gate_channels(kPlain, g));
    run({plan_channel_gate(kPlain, g),
         plan_scaled_weights(kPlain, g, {scaled_layer.layout, scaled_layer.weights, address(scaled.data())})});
    std::vector<double> expected, products;
    for (std::int64_t image = 0; image < g.images; image++) {
      std::vector<double> mean(channels), inner(hidden);
      for (std::int64_t c = 0; c < channels; c++) {
        for (std::int64_t p = 0; p < 11; p++) mean[c] += sums[(image * 11 + p) * g.layout.row + c] / 9.0;
      }
      for (std::int64_t h = 0; h < hidden; h++) {
        inner[h] = bias[h];
        for (std::int64_t c = 0; c < channels; c++) inner[h] += mean[c] * float(first[h * g.first.layout.row + c]);
        inner[h] = std::max(0.0, inner[h]);
      }
      for (std::int64_t c = 0; c < channels; c++) {
        double v = bias[c];
        for (std::int64_t h = 0; h < hidden; h++) v += inner[h] * float(second[c * g.second.layout.row + h]);
        expected.push_back(1 / (1 + std::exp(-v)));
      }
      for (std::int64_t i = 0; i < 5 * row; i++) {
        products.push_back(i % row < channels ? float(behind[i]) * expected[image * channels + i % row] : 0.0);
      }
    }
    check_close(std::vector<float>(out.begin(), out.end()), expected, 1e-3);
    check_close(std::vector<float>(scaled.begin(), scaled.end()), products, 1e-3);
  }
}

TEST_CASE("plans stay within what each GPU allows") {
  Random r;
  for (const int sm : {70, 75, 80, 86, 89, 90}) {
    const std::size_t shared = sm == 90 ? 227 : sm == 80 ? 163 : sm == 75 ? 64 : 99;
    const Target target{sm, 100, shared * 1024, 40 << 20, nullptr};
    for (int trial = 0; trial < 60; trial++) {
      GemmProblem g;
      g.m = r.in(1, 3000), g.n = r.in(1, 3000), g.k = r.in(1, 3000);
      g.batch[0] = r.in(1, 3), g.batch[1] = trial % 20 ? r.in(1, 3) : 100000;
      g.precision = static_cast<Precision>(r.in(0, 2));
      const auto type = static_cast<Element>(r.in(0, 2));
      const std::int64_t a_row = g.k + r.in(0, 8), b_row = g.k + r.in(0, 8);
      g.a = {0x1000, type, a_row, 1, {g.m * a_row, 0}};
      g.b = {0x2000, type, b_row, 1, {0, g.n * b_row}};
      g.epilogue.out = 0x3000, g.epilogue.out_row = g.n;
      g.workspace = 0x10000;
      const std::vector<GemmChoice> choices = gemm_choices(target, g);
      REQUIRE(!choices.empty());
      for (const GemmChoice& choice : choices) {
        for (const Launch& l : plan_gemm(target, g, choice)) {
          const std::uint64_t cluster = std::uint64_t{l.cluster.x} * l.cluster.y * l.cluster.z;
          const bool fits = l.shared_bytes <= target.shared_per_block && l.block.x <= 1024 && l.grid.x > 0 &&
                            l.grid.y <= 65535 && l.grid.z <= 65535 && cluster <= 8 && l.grid.z % l.cluster.z == 0;
          if (!fits) FAIL_CHECK("sm ", sm, ": ", l.kernel);
        }
      }
    }
  }
}

TEST_CASE("products of whole words take the kernels that know it") {
  const Target hopper{90, 132, 227 * 1024, 50 << 20, nullptr};
  GemmProblem whole;
  whole.m = 128, whole.n = whole.k = 768;
  whole.a = {0x1000, Element::f16, 768, 1, {0, 0}};
  whole.b = {0x2000, Element::f16, 768, 1, {0, 0}};
  whole.epilogue.out = 0x3000, whole.epilogue.out_row = 768;
  whole.epilogue.bias = 0x4000;
  whole.epilogue.residual = 0x5000, whole.epilogue.residual_row = 768;
  const auto knows = [&](const GemmProblem& g) {
    const std::string kernel = plan_gemm(hopper, g, ProductChoice{ProductKernel::block, 64, 64, 2, 3, 1, 0})[0].kernel;
    return kernel.ends_with("_whole");
  };
  CHECK(knows(whole));
  const auto differs = [&](auto change) {
    GemmProblem g = whole;
    change(g);
    return !knows(g);
  };
  CHECK(differs([](GemmProblem& g) { g.n = 771; }));
  CHECK(differs([](GemmProblem& g) { g.epilogue.out += 2; }));
  CHECK(differs([](GemmProblem& g) { g.epilogue.out_type = Element::f32; }));
  CHECK(differs([](GemmProblem& g) { g.epilogue.residual_row = 769; }));
  CHECK(differs([](GemmProblem& g) { g.epilogue.bias += 4; }));
  CHECK(differs([](GemmProblem& g) { g.epilogue.activation = Activation::tanh; }));
  CHECK(!differs([](GemmProblem& g) { g.epilogue.bias = g.epilogue.residual = 0; }));
}

TEST_CASE("wide tiles of whole words and whole K finish in registers") {
  const Target hopper{90, 132, 227 * 1024, 50 << 20, nullptr};
  GemmProblem g;
  g.m = 1024, g.n = 768, g.k = 3072;
  g.a = {0x1000, Element::f16, 3072, 1, {0, 0}};
  g.b = {0x2000, Element::f16, 3072, 1, {0, 0}};
  g.epilogue.out = 0x3000, g.epilogue.out_row = 768;
  const auto kernel = [&](int split) {
    return plan_gemm(hopper, g, ProductChoice{ProductKernel::block, 128, 96, 1, 3, split, 0})[0].kernel;
  };
  CHECK(kernel(1) == "gemm_block_f16_128x96x1_whole");
  CHECK(kernel(2) == "gemm_block_f16_128x96x1");
  g.epilogue.out += 2;
  CHECK(kernel(1) == "gemm_block_f16_128x96x1");
}

TEST_CASE("attention of long rows takes Hopper's matrix units") {
  const Target hopper{90, 132, 227 * 1024, 50 << 20, nullptr}, ampere{80, 108, 163 * 1024, 40 << 20, nullptr};
  AttentionProblem a;
  a.heads = a.kv_heads = 12, a.queries = a.keys = 1500, a.d = a.dv = 64;
  a.q = a.k = a.v = a.out = {0x1000, HeadStrides{64, 1500 * 64, 12 * 1500 * 64}};
  const auto takes_wgmma = [](const Target& target, const AttentionProblem& problem) {
    return std::ranges::any_of(attention_choices(target, problem),
                               [](const AttentionChoice& c) { return c.kernel == AttentionKernel::wgmma; });
  };
  const AttentionChoice first = attention_choices(hopper, a).front();
  CHECK(first.kernel == AttentionKernel::wgmma);
  const Launch launch = plan_attention(hopper, a, first)[0];
  CHECK(launch.kernel == "attention_wgmma_f16_64_192x128");
  CHECK(launch.grid.x == 8);
  CHECK(launch.block.x == 512);
  CHECK(launch.params.size() == sizeof(AttentionTmaParams));
  CHECK(!takes_wgmma(ampere, a));
  const auto differs = [&](auto change) {
    AttentionProblem other = a;
    change(other);
    return !takes_wgmma(hopper, other);
  };
  AttentionProblem masked = a;
  masked.bias = a.q;
  CHECK(plan_attention(hopper, masked)[0].kernel == "attention_wgmma_f16_64_64x64_masked");
  CHECK(differs([](AttentionProblem& p) { p.bias = p.q, p.bias_type = Element::f32; }));
  CHECK(differs([](AttentionProblem& p) { p.bias = p.q, p.bias.at.row = 0; }));
  CHECK(differs([](AttentionProblem& p) { p.lengths = 0x2000; }));
  CHECK(differs([](AttentionProblem& p) { p.type = Element::f32; }));
  CHECK(differs([](AttentionProblem& p) { p.queries = 8; }));
  CHECK(differs([](AttentionProblem& p) { p.d = p.dv = 256; }));
  CHECK(differs([](AttentionProblem& p) { p.k.at.row = 0; }));
}

TEST_CASE("a decoder's step shares its keys among the blocks of a cluster") {
  const Target hopper{90, 132, 227 * 1024, 50 << 20, nullptr}, ampere{80, 108, 163 * 1024, 40 << 20, nullptr};
  AttentionProblem a;
  a.heads = 32, a.kv_heads = 8, a.queries = 1, a.keys = 4096, a.d = a.dv = 128;
  const HeadStrides at{128, 4096 * 128, 32 * 4096 * 128};
  a.q = a.k = a.v = a.out = {0x1000, at};
  AttentionChoice eight = attention_choices(hopper, a).front();
  CHECK(eight.kernel == AttentionKernel::few);
  eight.splits = 8;
  const std::vector<Launch> one = plan_attention(hopper, a, eight);
  CHECK(one.size() == 1);
  CHECK(one[0].kernel == "attention_few_f16_128");
  CHECK(one[0].cluster.z == 8);
  CHECK(attention_workspace(hopper, a, eight) == 0);
  CHECK(plan_attention(ampere, a, eight).back().kernel == "attention_combine");
  CHECK(attention_workspace(ampere, a, eight) > 0);
  a.join = AttentionJoin{.k = a.k, .v = a.v, .all_k = a.k, .all_v = a.v, .past = 4095};
  const Launch joined = plan_attention(hopper, a, eight)[0];
  CHECK(std::int64_t{joined.grid.x - 1} * eight.splits * kJoinRows >= a.keys);
  a.join.reset();
  a.queries = 300;
  CHECK(attention_choices(ampere, a).front().kernel == AttentionKernel::tile);
  a.type = Element::f32;
  CHECK(attention_choices(hopper, a).front().kernel == AttentionKernel::few);
}

TEST_CASE("attention with causal masks, lengths, groups of heads and split keys") {
  Random r;
  for (int trial = 0; trial < 8; trial++) {
    AttentionProblem a;
    a.batch = 2, a.kv_heads = r.in(1, 2), a.heads = a.kv_heads * r.in(1, 3);
    a.queries = r.in(1, 20), a.keys = a.queries + r.in(0, 300), a.d = r.in(1, 40), a.dv = r.in(1, 40);
    a.type = Element::f32, a.scale = 0.3f, a.causal = r.in(0, 1), a.causal_offset = a.keys - a.queries;
    const std::vector<float> q = r.floats(a.batch * a.queries * a.heads * a.d),
                             k = r.floats(a.batch * a.keys * a.kv_heads * a.d),
                             v = r.floats(a.batch * a.keys * a.kv_heads * a.dv);
    const std::int32_t lengths[2] = {static_cast<std::int32_t>(a.keys),
                                     static_cast<std::int32_t>(r.in(a.queries, a.keys))};
    const auto heads = [](const void* p, std::int64_t rows, std::int64_t count, std::int64_t d) {
      return Heads{address(p), {count * d, d, rows * count * d}};
    };
    std::vector<float> out = unwritten(a.batch * a.queries * a.heads * a.dv);
    a.q = heads(q.data(), a.queries, a.heads, a.d), a.k = heads(k.data(), a.keys, a.kv_heads, a.d);
    a.v = heads(v.data(), a.keys, a.kv_heads, a.dv), a.out = heads(out.data(), a.queries, a.heads, a.dv);
    a.lengths = address(lengths);
    AttentionChoice choice = attention_choices(kPlain, a).front();
    choice.splits = trial % 2 ? 3 : 1;
    std::vector<std::byte> workspace(attention_workspace(kPlain, a, choice) + 256);
    a.workspace = (address(workspace.data()) + 255) / 256 * 256;
    run(plan_attention(kPlain, a, choice));
    std::vector<double> expected;
    for (std::int64_t i = 0; i < a.batch * a.queries * a.heads; i++) {
      const std::int64_t head = i % a.heads, query = i / a.heads % a.queries, batch = i / a.heads / a.queries;
      const std::int64_t kv = head / (a.heads / a.kv_heads);
      const std::int64_t seen = a.causal ? query + lengths[batch] - a.queries + 1 : lengths[batch];
      std::vector<double> sums(static_cast<std::size_t>(a.dv));
      double total = 0;
      for (std::int64_t key = 0; key < seen; key++) {
        double s = 0;
        for (std::int64_t e = 0; e < a.d; e++) {
          s += double{q[i * a.d + e]} * k[((batch * a.keys + key) * a.kv_heads + kv) * a.d + e];
        }
        const double w = std::exp(s * a.scale);
        total += w;
        for (std::int64_t e = 0; e < a.dv; e++) sums[e] += w * v[((batch * a.keys + key) * a.kv_heads + kv) * a.dv + e];
      }
      for (double s : sums) expected.push_back(s / total);
    }
    check_close(out, expected);
  }
}
