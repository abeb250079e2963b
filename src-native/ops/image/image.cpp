#include <algorithm>
#include <cstring>

#include "base/system.h"
#include "ops/image/image.h"

namespace infernode::ops::image {
namespace {

bool starts_with(Bytes file, std::string_view text, std::size_t at = 0) {
  return file.size() >= at + text.size() && std::memcmp(file.data() + at, text.data(), text.size()) == 0;
}

constexpr ImageCodec kCodecs[] = {
    {"PNG", [](Bytes f) { return starts_with(f, "\x89PNG\r\n\x1A\n"); }, decode_png},
    {"JPEG", [](Bytes f) { return starts_with(f, "\xFF\xD8\xFF"); }, decode_jpeg},
    {"BMP", matches_bmp, decode_bmp},
    {"PNM", matches_pnm, decode_pnm},
    {"TIFF", matches_tiff, decode_tiff},
    {"WebP", [](Bytes f) { return starts_with(f, "RIFF") && starts_with(f, "WEBP", 8); }, nullptr},
    {"JPEG 2000", [](Bytes f) { return starts_with(f, "jP  \r\n", 4) || starts_with(f, "\xFF\x4F\xFF\x51"); }, nullptr},
    {"GIF", [](Bytes f) { return starts_with(f, "GIF8"); }, nullptr},
    {"AVIF or HEIC", [](Bytes f) { return starts_with(f, "ftyp", 4); }, nullptr},
};

}  // namespace

void fail_image(std::string_view format, std::string_view reason) {
  fail(ErrorCode::InvalidArgument, cat("the ", format, " image cannot be decoded: ", reason));
}

std::vector<std::uint8_t> zeros(const RunContext& run, std::size_t count) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::vector<std::uint8_t> out;
  out.reserve(count);
  if (count >= 2 * kHugePage) prefer_huge_pages(out.data(), count);  // an abort waits for their return
  while (out.size() < count) {
    run.check();
    out.resize(std::min(count, out.size() + kPiece));
  }
  return out;
}

Image make_image(const RunContext& run, std::string_view format, std::uint64_t width, std::uint64_t height,
                 std::size_t channels) {
  if (width == 0 || height == 0) fail_image(format, "it has no pixels");
  if (width > kMaxPixels || height > kMaxPixels / width) {
    fail_image(format, cat(width, " x ", height, " pixels are more than the limit of ", kMaxPixels));
  }
  Image out{static_cast<std::size_t>(width), static_cast<std::size_t>(height), channels};
  out.charge = std::make_unique<kernel::Charge>(run, out.width * out.height * channels);
  out.pixels = zeros(run, out.width * out.height * channels);
  return out;
}

Image decode_image(Bytes file, const RunContext& run) {
  for (const ImageCodec& codec : kCodecs) {
    if (!codec.matches(file)) continue;
    if (codec.decode) return codec.decode(file, run);
    fail(ErrorCode::UnsupportedOperator, cat(codec.name,
                                             " images are not supported by ImageDecoder: convert the image to PNG, "
                                             "JPEG, BMP, PNM or TIFF before feeding it"));
  }
  fail(ErrorCode::InvalidArgument,
       cat("the ", file.size(), " bytes fed to ImageDecoder are no PNG, JPEG, BMP, PNM or TIFF image"));
}

}  // namespace infernode::ops::image
