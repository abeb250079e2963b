#include "kernel/op_registrar.h"
#include "ops/image/image.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

enum class PixelFormat { kRgb, kBgr, kGrayscale };

PixelFormat pixel_format(const graph::Attributes& attributes) {
  const std::string name = attributes.get_string("pixel_format", "RGB");
  if (name == "RGB") return PixelFormat::kRgb;
  if (name == "BGR") return PixelFormat::kBgr;
  INFERNODE_CHECK(name == "Grayscale", ErrorCode::InvalidModel, "pixel_format must be RGB, BGR or Grayscale, got \"",
                  name, "\"");
  return PixelFormat::kGrayscale;
}

void infer_image_decoder(InferContext& ctx) {
  ctx.set_output_dtype(0, tensor::DType::UInt8);
  const std::int64_t channels = pixel_format(ctx.attributes()) == PixelFormat::kGrayscale ? 1 : 3;
  ctx.set_output_shape(0, graph::SymShape{Dim::unknown(), Dim::unknown(), channels});
}

/// Encoded bytes to [height, width, channels].
class ImageDecoder final : public Kernel {
 public:
  explicit ImageDecoder(KernelInfo& info) : format_(pixel_format(info.attributes())) {}

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    INFERNODE_CHECK(in.rank() == 1, ErrorCode::ShapeMismatch, "the encoded image must be one row of bytes, got ",
                    in.shape().dims());
    const image::Image decoded = image::decode_image(in.span<std::uint8_t>(), ctx.run());
    const std::size_t channels = format_ == PixelFormat::kGrayscale ? 1 : 3, from = decoded.channels;
    const Tensor out = ctx.output(0, tensor::DType::UInt8,
                                  Shape{static_cast<std::int64_t>(decoded.height),
                                        static_cast<std::int64_t>(decoded.width), static_cast<std::int64_t>(channels)});
    auto* y = out.mutable_data<std::uint8_t>();
    ctx.parallel_for(decoded.width * decoded.height, 2, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) {
        const std::uint8_t* x = decoded.pixels.data() + i * from;
        const std::uint8_t r = x[0], g = from == 1 ? r : x[1], b = from == 1 ? r : x[2];
        if (format_ == PixelFormat::kGrayscale) {
          // Luma of ITU-R 601 in 16-bit fixed point.
          y[i] = from == 1 ? r : static_cast<std::uint8_t>((r * 19595u + g * 38470u + b * 7471u + 0x8000u) >> 16);
        } else {
          y[3 * i] = format_ == PixelFormat::kRgb ? r : b;
          y[3 * i + 1] = g;
          y[3 * i + 2] = format_ == PixelFormat::kRgb ? b : r;
        }
      }
    });
  }

 private:
  PixelFormat format_;
};

}  // namespace

void register_image_decoder(kernel::OpRegistrar& r) {
  r.op("ImageDecoder")
      .version(20, "encoded_stream:T1 -> image:T2; T1 = uint8, T2 = uint8")
      .infer(infer_image_decoder)
      .kernel<ImageDecoder>();
}

}  // namespace infernode::ops
