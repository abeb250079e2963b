#include "bench/cuda/check.h"
#include "providers/cuda/kernels/conv.h"

namespace infernode::cuda::bench {

namespace {

std::string describe(const ConvProblem& c, const ConvChoice& k) {
  static const char* const kernels[] = {"block", "gemv", "mma", "simt"};
  char text[320];
  std::snprintf(
      text, sizeof(text),
      "images %d groups %d channels %d outputs %d in %dx%dx%d out %dx%dx%d kernel %dx%dx%d stride %d,%d,%d pad "
      "%d,%d,%d dilation %d,%d,%d%s type %d precision %d pixel %d: %s %dx%dx%d stages %d split %d",
      int(c.images), int(c.groups), int(c.channels), int(c.outputs), int(c.in[0]), int(c.in[1]), int(c.in[2]),
      int(c.out[0]), int(c.out[1]), int(c.out[2]), int(c.kernel[0]), int(c.kernel[1]), int(c.kernel[2]),
      int(c.stride[0]), int(c.stride[1]), int(c.stride[2]), int(c.pad[0]), int(c.pad[1]), int(c.pad[2]),
      int(c.dilation[0]), int(c.dilation[1]), int(c.dilation[2]), c.transposed ? " transposed" : "", int(c.type),
      int(c.precision), int(c.pixel), kernels[int(k.kernel)], k.bm, k.bn, k.kw, k.stages, k.split);
  return text;
}

void random_sizes(Random& r, ConvProblem& c) {
  const int dims = r.chance(70) ? 2 : r.chance(50) ? 1 : 3;
  c.images = r.chance(50) ? 1 : r.in(2, 4);
  c.groups = r.chance(80) ? 1 : r.in(2, 4);
  c.channels = r.chance(60) ? r.of<std::int64_t>({8, 16, 24, 32, 64, 64, 96, 128, 128, 192}) : r.in(1, 80);
  c.outputs = r.chance(60) ? r.of<std::int64_t>({16, 32, 64, 64, 128, 160}) : r.in(1, 100);
  c.transposed = r.chance(12);
  for (int i = 3 - dims; i < 3; i++) {
    c.kernel[i] = r.chance(25) ? 1 : r.chance(60) ? 3 : r.in(1, 7);
    c.stride[i] = r.chance(60) ? 1 : r.in(1, 3);
    c.dilation[i] = r.chance(80) ? 1 : r.in(2, 3);
    const std::int64_t reach = (c.kernel[i] - 1) * c.dilation[i];
    c.in[i] = r.in(1, dims == 3 ? 8 : dims == 2 ? 30 : 300) + (c.transposed ? 0 : reach);
    c.pad[i] = r.chance(60) ? reach / 2 : r.in(0, reach);
    const std::int64_t after = r.in(0, reach);
    c.out[i] = c.transposed ? (c.in[i] - 1) * c.stride[i] + reach + 1 - c.pad[i]
                            : (c.in[i] + c.pad[i] + after - reach - 1) / c.stride[i] + 1;
  }
}

ReferenceConv reference(const ConvProblem& c, DevicePtr weights, const Output& o) {
  ReferenceConv ref{};
  ref.input = c.input;
  ref.weights = weights;
  ref.ref = o.compare.ref;
  ref.type = ref.weights_type = c.type;
  ConvParams& p = ref.conv;
  p.channels = int(c.channels);
  p.taps = int(c.kernel[0] * c.kernel[1] * c.kernel[2]);
  p.in_d = int(c.in[0]), p.in_h = int(c.in[1]), p.in_w = int(c.in[2]);
  p.out_d = int(c.out[0]), p.out_h = int(c.out[1]), p.out_w = int(c.out[2]);
  p.kernel_h = int(c.kernel[1]), p.kernel_w = int(c.kernel[2]);
  p.stride_d = int(c.stride[0]), p.stride_h = int(c.stride[1]), p.stride_w = int(c.stride[2]);
  p.pad_d = int(c.pad[0]), p.pad_h = int(c.pad[1]), p.pad_w = int(c.pad[2]);
  p.dilation_d = int(c.dilation[0]), p.dilation_h = int(c.dilation[1]), p.dilation_w = int(c.dilation[2]);
  p.transposed = c.transposed;
  p.pixel = c.pixel;
  ref.pixels = o.compare.rows;
  ref.outputs = c.outputs;
  ref.groups = c.groups;
  return ref;
}

}  // namespace

bool check_conv(Device& device, Arena& arena, int problems, std::uint32_t seed) {
  Random r(seed);
  Tally tally("conv");
  for (int i = 0; i < problems; i++) {
    arena.reset();
    ConvProblem c;
    random_sizes(r, c);
    c.type = r.of({Element::f16, Element::f16, Element::bf16, Element::f32});
    c.precision = static_cast<Precision>(r.in(0, 2));
    const std::int64_t channels = c.groups * c.channels, taps = c.kernel[0] * c.kernel[1] * c.kernel[2];
    c.pixel = r.chance(80) ? (channels + 7) / 8 * 8 : channels + r.in(0, 5);
    c.input = arena.random(r, c.type, c.images * c.in[0] * c.in[1] * c.in[2] * c.pixel);
    const DevicePtr weights = arena.random(r, c.type, c.groups * c.outputs * taps * c.channels);
    c.weights = weight_layout(device.target(), c.type, c.precision, c.groups * c.outputs, taps, c.channels, c.groups);
    c.weights_address = arena.take(c.weights.bytes);
    device.fill(c.weights_address, 0xff, c.weights.bytes);
    device.launch(plan_pack_weight(c.weights, {weights, c.type, taps * c.channels, c.channels, 1}, c.weights_address));
    const Element out = r.chance(80) ? c.type : r.of({Element::f16, Element::bf16, Element::f32});
    const Output o = make_output(arena, out, c.images * c.out[0] * c.out[1] * c.out[2], c.groups * c.outputs,
                                 r.of<std::int64_t>({0, 0, 0, 8, 5}), 1, 1, 0);
    ReferenceConv ref = reference(c, weights, o);
    random_epilogue(r, arena, o, 0, c.epilogue, ref.e);
    device.launch(elementwise("reference_conv", ref, ref.pixels * c.groups * c.outputs));
    const std::vector<ConvChoice> choices = conv_choices(device.target(), c);
    for (int j = 0; j < 4; j++) {
      const ConvChoice k = j == 0 ? choices.front() : any_choice(r, choices);
      const std::size_t bytes = conv_workspace(device.target(), c, k);
      if (bytes) {
        c.workspace = arena.take(bytes);
        device.fill(c.workspace, 0xff, bytes);
      }
      poison(device, o);
      device.launch(plan_conv(device.target(), c, k));
      static const char* const kernels[] = {"block", "gemv", "mma", "simt"};
      static const char* const types[] = {"f16", "bf16", "f32"};
      const std::string group = std::string(kernels[int(k.kernel)]) + "/" + types[int(c.type)] +
                                (c.type == Element::f32 ? "-" + std::to_string(int(c.precision)) : "") + ">" +
                                types[int(out)];
      tally.add(compare(device, o), allowed(c.type, out, static_cast<int>(c.precision)), group, describe(c, k));
    }
  }
  return tally.report();
}

}  // namespace infernode::cuda::bench
