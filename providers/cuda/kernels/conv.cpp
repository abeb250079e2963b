#include "providers/cuda/kernels/conv.h"

#include "providers/cuda/kernels/pack.h"

namespace infernode::cuda {

namespace {

struct Prepared {
  Product product;
  std::vector<Launch> copies;
  std::size_t used = 0;
};

std::int64_t pixels(const std::int64_t (&size)[3]) { return size[0] * size[1] * size[2]; }

/// A 1x1 convolution that reads every pixel once is a matrix product.
bool plain(const ConvProblem& c) {
  for (int i = 0; i < 3; i++) {
    if (c.kernel[i] != 1 || c.stride[i] != 1 || c.pad[i] != 0 || c.in[i] != c.out[i]) return false;
  }
  return true;
}

ConvParams walk(const ConvProblem& c) {
  const auto narrow = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
  ConvParams p{};
  p.channels = narrow(c.channels);
  p.channels_padded = narrow(c.weights.channels_padded);
  p.taps = narrow(pixels(c.kernel));
  p.in_d = narrow(c.in[0]), p.in_h = narrow(c.in[1]), p.in_w = narrow(c.in[2]);
  p.out_d = narrow(c.out[0]), p.out_h = narrow(c.out[1]), p.out_w = narrow(c.out[2]);
  p.kernel_h = narrow(c.kernel[1]), p.kernel_w = narrow(c.kernel[2]);
  p.stride_d = narrow(c.stride[0]), p.stride_h = narrow(c.stride[1]), p.stride_w = narrow(c.stride[2]);
  p.pad_d = narrow(c.pad[0]), p.pad_h = narrow(c.pad[1]), p.pad_w = narrow(c.pad[2]);
  p.dilation_d = narrow(c.dilation[0]), p.dilation_h = narrow(c.dilation[1]), p.dilation_w = narrow(c.dilation[2]);
  p.transposed = c.transposed;
  p.pixel = c.pixel;
  p.per_channels = 1.0f / static_cast<float>(p.channels_padded);
  p.per_kernel_w = 1.0f / static_cast<float>(p.kernel_w);
  p.per_kernel_h = 1.0f / static_cast<float>(p.kernel_h);
  return p;
}

/// Copies the image into scratch memory with pixels that begin at multiples of 16 bytes.
void align_pixels(Prepared& to, const ConvProblem& c) {
  Product& p = to.product;
  const std::int64_t size = element_size(c.type), channels = c.channels * c.groups;
  const bool reached = c.input % 16 == 0 && c.pixel * size % 16 == 0;
  if (reached || (p.b.pieces == 1 && c.type == Element::f32 && c.precision != Precision::medium)) return;
  PackParams q{};
  q.in = c.input;
  q.out = c.workspace;
  q.in_row = c.pixel;
  q.in_channel = 1;
  q.rows = static_cast<std::int32_t>(c.images * pixels(c.in));
  q.taps = q.batch_inner = q.pieces = 1;
  q.channels = static_cast<std::int32_t>(channels);
  q.columns = q.channels_padded = static_cast<std::int32_t>((channels + 7) / 8 * 8);
  q.out_row = q.columns;
  q.in_type = q.out_type = c.type;
  to.copies.push_back(pack_launch(q, 1));
  to.used = static_cast<std::size_t>((q.rows * q.out_row * size + 255) / 256 * 256);
  p.a.address = q.out;
  p.a.row = q.out_row;
  if (p.conv.taps) p.conv.pixel = q.out_row;
}

/// A matrix product for each image.
void separate_images(Product& p, const ConvProblem& c) {
  p.m = pixels(c.out);
  p.batch[1] = c.images;
  p.a.batch[1] = p.m * c.pixel;
  p.b.batch[1] = c.outputs * c.weights.row;
  p.b_constant = false;
  p.epilogue.out_batch[1] = p.m * c.epilogue.out_row;
  p.epilogue.residual_batch[1] = p.m * c.epilogue.residual_row;
}

Prepared prepare(const ConvProblem& c) {
  Prepared r;
  Product& p = r.product;
  p.m = c.images * pixels(c.out);
  p.n = c.outputs;
  p.k = c.weights.taps * c.weights.channels_padded;
  p.batch[0] = c.groups;
  p.images = c.images;
  p.groups = c.groups;
  p.precision = c.precision;
  p.a = {c.input, c.type, c.pixel, {c.groups > 1 ? c.channels : 0, 0}, 1, 0};
  p.b = {c.weights_address, c.weights.type, c.weights.row, {c.groups > 1 ? c.outputs * c.weights.row : 0, 0},
         c.weights.pieces,  c.weights.plane};
  if (plain(c)) {
    p.k = c.channels;
  } else {
    p.conv = walk(c);
  }
  p.epilogue = c.epilogue;
  p.epilogue.out_batch[0] = p.epilogue.residual_batch[0] = c.groups > 1 ? c.outputs : 0;
  p.epilogue.out_batch[1] = p.epilogue.residual_batch[1] = 0;
  if (c.weights_by_image) separate_images(p, c);
  p.column_batch = static_cast<std::int32_t>(c.outputs);
  align_pixels(r, c);
  return r;
}

ConvChoice chosen(const Target& target, const Product& p, const std::optional<ConvChoice>& choice) {
  return choice ? *choice : product_choices(target, p).front();
}

}  // namespace

std::vector<ConvChoice> conv_choices(const Target& target, const ConvProblem& c) {
  return product_choices(target, prepare(c).product);
}

std::size_t conv_workspace(const Target& target, const ConvProblem& c, const std::optional<ConvChoice>& choice) {
  const Prepared r = prepare(c);
  return r.used + product_workspace(r.product, chosen(target, r.product, choice));
}

std::vector<Launch> plan_conv(const Target& target, const ConvProblem& c, const std::optional<ConvChoice>& choice) {
  Prepared r = prepare(c);
  plan_product(target, r.product, chosen(target, r.product, choice), c.workspace + r.used, r.copies);
  return r.copies;
}

}  // namespace infernode::cuda
