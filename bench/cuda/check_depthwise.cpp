#include <cmath>
#include <cstdio>
#include <vector>

#include "bench/cuda/check.h"
#include "providers/cuda/kernels/channelwise/depthwise.h"

namespace infernode::cuda::bench {

namespace {

void random_sizes(Random& r, DepthwiseProblem& d) {
  d.images = r.in(1, 3);
  d.channels = r.chance(60) ? r.in(1, 30) * 8 : r.in(1, 100);
  const bool square = r.chance(70);
  const std::int64_t k = r.of<std::int64_t>({3, 3, 5, 5, 7}), s = r.in(1, 2);
  for (int i = 0; i < 2; i++) {
    d.kernel[i] = square ? k : r.in(1, 6);
    d.stride[i] = square ? s : r.in(1, 3);
    d.dilation[i] = square || r.chance(70) ? 1 : 2;
    const std::int64_t reach = (d.kernel[i] - 1) * d.dilation[i];
    d.in[i] = r.in(1, 40) + reach;
    d.pad[i] = r.in(0, reach);
    d.out[i] = (d.in[i] + d.pad[i] + r.in(0, reach) - reach - 1) / d.stride[i] + 1;
  }
}

/// How far sums over pixels are from those of the reference.
Difference compare_sums(Device& device, const DepthwiseProblem& d, const DepthwiseSums& layout, const Output& o) {
  const std::int64_t pixels = d.out[0] * d.out[1];
  std::vector<float> parts(static_cast<std::size_t>(d.images * layout.parts * layout.row));
  std::vector<double> reference(static_cast<std::size_t>(d.images * pixels * d.channels));
  device.download(parts.data(), d.sums, parts.size() * sizeof(float));
  device.download(reference.data(), o.compare.ref, reference.size() * sizeof(double));
  double apart = 0, whole = 0;
  for (std::int64_t i = 0; i < d.images * d.channels; i++) {
    const std::int64_t image = i / d.channels, channel = i % d.channels;
    double sum = 0, expected = 0, size = 0;
    for (std::int64_t p = 0; p < layout.parts; p++) {
      sum += parts[static_cast<std::size_t>((image * layout.parts + p) * layout.row + channel)];
    }
    for (std::int64_t p = 0; p < pixels; p++) {
      const double v = reference[static_cast<std::size_t>((image * pixels + p) * d.channels + channel)];
      expected += v, size += std::abs(v);
    }
    apart += (sum - expected) * (sum - expected), whole += size * size;
  }
  return {std::sqrt(apart / (whole + 1e-30)), 0, 0};
}

}  // namespace

bool check_depthwise(Device& device, Arena& arena, int problems, std::uint32_t seed) {
  Random r(seed);
  Tally tally("depthwise");
  for (int i = 0; i < problems; i++) {
    arena.reset();
    DepthwiseProblem d;
    random_sizes(r, d);
    d.type = r.of({Element::f16, Element::f16, Element::bf16, Element::f32});
    d.pixel = r.chance(70) ? (d.channels + 7) / 8 * 8 : d.channels + r.in(0, 3);
    d.input = arena.random(r, d.type, d.images * d.in[0] * d.in[1] * d.pixel);
    const std::int64_t taps = d.kernel[0] * d.kernel[1];
    const DevicePtr weights = arena.random(r, d.type, d.channels * taps);
    const WeightLayout layout = depthwise_weights(d.channels, taps);
    d.weights = arena.take(layout.bytes);
    device.launch(plan_pack_weight(layout, {weights, d.type, 1, 0, taps}, d.weights));
    const Element out = r.chance(80) ? d.type : r.of({Element::f16, Element::bf16, Element::f32});
    const Output o =
        make_output(arena, out, d.images * d.out[0] * d.out[1], d.channels, r.of<std::int64_t>({0, 0, 8, 5}), 1, 1, 0);
    ReferenceConv ref{};
    ref.input = d.input, ref.weights = weights, ref.ref = o.compare.ref, ref.type = ref.weights_type = d.type;
    ConvParams& p = ref.conv;
    p.channels = 1, p.taps = int(taps), p.in_d = p.out_d = 1, p.in_h = int(d.in[0]), p.in_w = int(d.in[1]);
    p.out_h = int(d.out[0]), p.out_w = int(d.out[1]), p.kernel_h = int(d.kernel[0]), p.kernel_w = int(d.kernel[1]);
    p.stride_d = 1, p.stride_h = int(d.stride[0]), p.stride_w = int(d.stride[1]);
    p.pad_h = int(d.pad[0]), p.pad_w = int(d.pad[1]);
    p.dilation_d = 1, p.dilation_h = int(d.dilation[0]), p.dilation_w = int(d.dilation[1]);
    p.pixel = d.pixel;
    ref.pixels = o.compare.rows, ref.outputs = 1, ref.groups = d.channels;
    random_epilogue(r, arena, o, 0, d.epilogue, ref.e);
    device.launch(elementwise("reference_conv", ref, ref.pixels * d.channels));
    poison(device, o);
    const auto sums = depthwise_sums(device.target(), d);
    if (sums) d.sums = arena.random(r, Element::f32, d.images * sums->parts * sums->row);
    const std::vector<Launch> launches = plan_depthwise(device.target(), d);
    device.launch(launches);
    char what[160];
    std::snprintf(what, sizeof(what),
                  "%s images %d channels %d in %dx%d out %dx%d kernel %dx%d pixel %d type %d out %d",
                  launches[0].kernel.c_str(), int(d.images), int(d.channels), int(d.in[0]), int(d.in[1]), int(d.out[0]),
                  int(d.out[1]), int(d.kernel[0]), int(d.kernel[1]), int(d.pixel), int(d.type), int(out));
    tally.add(compare(device, o), allowed(d.type, out, 0), launches[0].kernel, what);
    if (sums) tally.add(compare_sums(device, d, *sums, o), 1e-5, "sums", what);
  }
  return tally.report();
}

void time_depthwise(Device& device, Arena& arena) {
  std::printf("depthwise, f16, us each in a chain of 12 (floor: bytes at 4.3 TB/s)\n");
  struct Shape {
    std::int64_t images, size, channels, kernel, stride;
  };
  for (const Shape& s : {Shape{1, 190, 48, 3, 1},
                         {1, 190, 144, 3, 2},
                         {1, 95, 192, 3, 1},
                         {1, 48, 336, 5, 1},
                         {1, 24, 960, 5, 1},
                         {1, 12, 1632, 5, 1},
                         {1, 56, 96, 7, 1},
                         {8, 56, 144, 3, 1}}) {
    arena.reset();
    Random r(3);
    DepthwiseProblem d;
    d.images = s.images, d.channels = d.pixel = s.channels;
    for (int i = 0; i < 2; i++) {
      d.in[i] = s.size, d.kernel[i] = s.kernel, d.stride[i] = s.stride, d.pad[i] = s.kernel / 2;
      d.out[i] = (s.size - 1) / s.stride + 1;
    }
    d.input = arena.random(r, d.type, s.images * s.size * s.size * s.channels);
    d.weights = arena.random(r, Element::f32, s.channels * s.kernel * s.kernel);
    const std::int64_t outs = s.images * d.out[0] * d.out[1] * s.channels;
    d.epilogue.out = arena.take(static_cast<std::size_t>(outs * 2));
    d.epilogue.out_row = s.channels;
    d.epilogue.bias = arena.random(r, Element::f32, s.channels);
    d.epilogue.activation = Activation::silu;
    std::vector<Launch> chain;
    for (int i = 0; i < 12; i++) chain.push_back(plan_depthwise(device.target(), d)[0]);
    std::printf("  %d %dx%d %d k%d s%d: %.2f (floor %.2f)\n", int(s.images), int(s.size), int(s.size), int(s.channels),
                int(s.kernel), int(s.stride), device.time(chain) / 12,
                static_cast<double>(s.images * s.size * s.size * s.channels + outs) * 2 / 4.3e6);
  }
  std::fflush(stdout);
}

}  // namespace infernode::cuda::bench
