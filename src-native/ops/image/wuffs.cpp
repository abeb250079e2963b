// PNG, JPEG and Deflate by Wuffs, a library in a language whose compiler proves that nothing outside of a buffer is
// touched and no number overflows. What memory it needs is held against the size of the file first.

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "ops/image/image.h"

// NOLINTBEGIN(bugprone-reserved-identifier,bugprone-suspicious-include): the names are its own
#define WUFFS_IMPLEMENTATION
#define WUFFS_CONFIG__STATIC_FUNCTIONS
#define WUFFS_CONFIG__MODULES
#define WUFFS_CONFIG__MODULE__ADLER32
#define WUFFS_CONFIG__MODULE__BASE
#define WUFFS_CONFIG__MODULE__CRC32
#define WUFFS_CONFIG__MODULE__DEFLATE
#define WUFFS_CONFIG__MODULE__JPEG
#define WUFFS_CONFIG__MODULE__PNG
#define WUFFS_CONFIG__MODULE__ZLIB
#include <wuffs-unsupported-snapshot.c>
// NOLINTEND(bugprone-reserved-identifier,bugprone-suspicious-include)

namespace infernode::ops::image {
namespace {

constexpr std::string_view kPng = "PNG", kJpeg = "JPEG";
/// Most bytes that a byte of Deflate makes, and most bytes of samples and coefficients (3 to a sample where it is
/// progressive, at least a bit to a block of 64) that a byte of JPEG makes.
constexpr std::size_t kDeflateGrowth = 1040, kJpegGrowth = 1536;

/// "#png: bad header" without what the message says anyway; a wait for more input is the end of the file.
void check(std::string_view format, wuffs_base__status status) {
  if (status.is_ok()) return;
  if (status.is_suspension()) fail_image(format, "the file is cut off");
  const std::string_view text(status.message());
  const std::size_t colon = text.find(": ");
  fail_image(format, colon == std::string_view::npos ? text : text.substr(colon + 2));
}

wuffs_base__io_buffer reader(Bytes bytes) {
  return wuffs_base__ptr_u8__reader(const_cast<std::uint8_t*>(bytes.data()), bytes.size(), true);
}

/// Calls step() for as long as it wants more of the file, which it gets in pieces, with a look between two.
template <class Step>
wuffs_base__status in_pieces(wuffs_base__io_buffer& source, std::size_t size, const RunContext& run, const Step& step) {
  constexpr std::size_t kPiece = std::size_t{4} << 10;
  for (;;) {
    run.check();
    source.meta.wi = std::min(size, source.meta.wi + kPiece);
    source.meta.closed = source.meta.wi == size;
    const wuffs_base__status status = step();
    if (status.repr != wuffs_base__suspension__short_read || source.meta.closed) return status;
  }
}
wuffs_base__slice_u8 slice(std::vector<std::uint8_t>& bytes) {
  return wuffs_base__make_slice_u8(bytes.data(), bytes.size());
}

/// Writes so many bytes, with looks between.
void fill(std::uint8_t* to, std::size_t count, std::uint8_t value, const RunContext& run) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  for (std::size_t i = 0; i < count; i += kPiece) {
    run.check();
    std::fill_n(to + i, std::min(kPiece, count - i), value);
  }
}

/// Keeps the first `channels` bytes of each pixel.
void narrow(Image& image, std::size_t channels, const RunContext& run) {
  kernel::Watch watch(run);
  const std::size_t count = image.width * image.height;
  for (std::size_t i = 0; i < count; ++i) {
    watch.did(1);
    std::copy_n(image.pixels.data() + i * image.channels, channels, image.pixels.data() + i * channels);
  }
  image.pixels.resize(count * channels);
  image.channels = channels;
}

/// A decoder of JPEG whose inverse transforms look whether the run is to end: those of a progressive file come all
/// together, at its end.
class JpegDecoder {
 public:
  explicit JpegDecoder(const RunContext& run) : watch_(run), state_(std::make_unique<State>()) {
    check(kJpeg, state_->decoder.initialize(sizeof state_->decoder, WUFFS_VERSION, 0));
    state_->watch = &watch_;
  }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  wuffs_jpeg__decoder* operator->() const { return &state_->decoder; }

  /// All scans, and then the picture of them; the library's own function makes one after each.
  wuffs_base__status decode_frame(wuffs_base__pixel_buffer& pixels, wuffs_base__io_buffer& source, std::size_t size,
                                  wuffs_base__slice_u8 work, const RunContext& run) const {
    wuffs_jpeg__decoder* const self = &state_->decoder;
    auto& state = self->private_impl;
    state_->transform = std::exchange(state.choosy_decode_idct, transform);
    const auto decode = [&] {
      return wuffs_jpeg__decoder__do_decode_frame(self, &pixels, &source, WUFFS_BASE__PIXEL_BLEND__SRC, work, nullptr);
    };
    // Before the first byte it fills all samples with grey, and all coefficients with zeros, which they are: not in one
    // go.
    const auto offsets = std::to_array(state.f_components_workbuf_offsets);
    std::ranges::fill(state.f_components_workbuf_offsets, 0);
    wuffs_base__status status = decode();
    std::ranges::copy(offsets, state.f_components_workbuf_offsets);
    if (status.repr != wuffs_base__suspension__short_read) return status;
    fill(work.ptr, static_cast<std::size_t>(offsets[4]), std::uint8_t{128}, run);
    status = in_pieces(source, size, run, decode);
    if (!status.is_ok()) return status;
    constexpr std::uint32_t kFirstProgressive = 0xC2;
    if (state.f_sof_marker >= kFirstProgressive) wuffs_jpeg__decoder__apply_progressive_idct(self, work);
    run.check();
    return state.f_num_components > 1 ? to_colors(pixels, work, run) : to_gray(pixels, work, run);
  }

 private:
  /// Rows of a step between two looks: 2 to 3 ms of colors, and a multiple of every subsampling.
  static std::uint32_t rows_of_step(std::uint32_t width) {
    constexpr std::uint32_t kPixels = std::uint32_t{1} << 18, kRows = 12;
    return kRows * std::max(std::uint32_t{1}, kPixels / width / kRows);
  }

  wuffs_base__status to_gray(wuffs_base__pixel_buffer& pixels, wuffs_base__slice_u8 work, const RunContext& run) const {
    const auto& state = state_->decoder.private_impl;
    const std::uint32_t rows = rows_of_step(state.f_width), stride = state.f_components_workbuf_widths[0];
    for (std::uint32_t top = 0; top < state.f_height; top += rows) {
      run.check();
      const wuffs_base__slice_u8 samples = wuffs_base__slice_u8__subslice_i(work, std::uint64_t{top} * stride);
      const wuffs_base__status status =
          wuffs_jpeg__decoder__swizzle_gray(&state_->decoder, &pixels, samples, 0, UINT32_MAX, top, top + rows, stride);
      if (!status.is_ok()) return status;
    }
    return wuffs_base__make_status(nullptr);
  }

  /// The library makes a whole picture in one call. Here each step is a picture of its own, of the samples from its
  /// first row on. Where colors have fewer samples than brightness, a row needs those of the rows beside it, and a
  /// picture's first and last row do without: steps overlap by two rows, of which the one before has the first right,
  /// and the one after the second. Leaves the decoder with the samples of the last step.
  wuffs_base__status to_colors(wuffs_base__pixel_buffer& pixels, wuffs_base__slice_u8 work,
                               const RunContext& run) const {
    constexpr std::uint32_t kOverlap = 2;
    auto& state = state_->decoder.private_impl;
    const std::uint32_t height = state.f_height, rows = rows_of_step(state.f_width);
    const wuffs_base__table_u8 all = wuffs_base__pixel_buffer__plane(&pixels, 0);
    const std::uint32_t tallest = *std::ranges::max_element(state.f_components_v);
    std::vector<std::uint8_t> first(all.width);
    for (std::uint32_t top = 0;; top += rows) {
      run.check();
      const std::uint32_t bottom = std::min(height, top + rows + kOverlap);
      std::uint8_t* const at = all.ptr + top * all.stride;
      wuffs_base__pixel_config config = pixels.pixcfg;
      config.set(config.pixel_format().repr, WUFFS_BASE__PIXEL_SUBSAMPLING__NONE, state.f_width, bottom - top);
      wuffs_base__pixel_buffer step;
      wuffs_base__status status =
          step.set_from_slice(&config, wuffs_base__make_slice_u8(at, (bottom - top) * all.stride));
      if (!status.is_ok()) return status;
      std::copy_n(at, first.size(), first.data());
      status = wuffs_jpeg__decoder__swizzle_colorful(&state_->decoder, &step, work, 0, UINT32_MAX, 0, bottom - top);
      if (!status.is_ok()) return status;
      if (top > 0) std::ranges::copy(first, at);
      if (bottom == height) return status;
      for (std::size_t i = 0; i < state.f_num_components; ++i) {
        const std::uint32_t passed = rows / (tallest / state.f_components_v[i]);
        state.f_components_workbuf_offsets[i] += std::uint64_t{passed} * state.f_components_workbuf_widths[i];
        state.f_components_workbuf_heights[i] -= std::min(passed, state.f_components_workbuf_heights[i]);
      }
    }
  }

  /// What a transform finds from the decoder's address.
  struct State {
    wuffs_jpeg__decoder decoder;
    kernel::Watch* watch;
    decltype(decoder.private_impl.choosy_decode_idct) transform;  ///< the library's
  };
  static_assert(std::is_standard_layout_v<State>);

  /// Of a block.
  static wuffs_base__empty_struct transform(wuffs_jpeg__decoder* self, wuffs_base__slice_u8 to, std::uint64_t stride,
                                            std::uint32_t quantizer) {
    constexpr double kNsPerBlock = 60;
    const auto* const state = reinterpret_cast<State*>(self);
    state->watch->did(kNsPerBlock);
    return state->transform(self, to, stride, quantizer);
  }

  kernel::Watch watch_;
  std::unique_ptr<State> state_;
};

class PngDecoder {
 public:
  explicit PngDecoder(const RunContext&) : decoder_(wuffs_png__decoder::alloc()) {
    if (!decoder_) fail(ErrorCode::OutOfMemory, "there is no memory for a decoder of PNG images");
  }
  wuffs_png__decoder* operator->() const { return decoder_.get(); }
  wuffs_base__status decode_frame(wuffs_base__pixel_buffer& pixels, wuffs_base__io_buffer& source, std::size_t size,
                                  wuffs_base__slice_u8 work, const RunContext& run) const {
    return in_pieces(source, size, run, [&] {
      return decoder_->decode_frame(&pixels, &source, WUFFS_BASE__PIXEL_BLEND__SRC, work, nullptr);
    });
  }

 private:
  wuffs_png__decoder::unique_ptr decoder_;
};

/// The file's picture, grey or red, green, blue, as if every pixel were opaque. `growth`: most bytes of work that a
/// byte of the file makes.
template <class Decoder>
Image decode(std::string_view name, Bytes file, std::size_t growth, const RunContext& run) {
  const Decoder decoder(run);
  wuffs_base__io_buffer source = reader(file);
  wuffs_base__image_config config;
  check(name, decoder->decode_image_config(&config, &source));
  const std::uint32_t width = config.pixcfg.width(), height = config.pixcfg.height();
  const std::uint64_t needed = decoder->workbuf_len().max_incl;
  if (needed / growth > file.size()) fail_image(name, "the file is too short for its dimensions");

  const wuffs_base__pixel_format format = config.pixcfg.pixel_format();
  const bool grey = format.coloration() == WUFFS_BASE__PIXEL_COLORATION__GRAY;
  const bool opaque = format.transparency() == WUFFS_BASE__PIXEL_ALPHA_TRANSPARENCY__OPAQUE;
  Image out = make_image(run, name, width, height, !opaque ? 4 : grey ? 1 : 3);
  config.pixcfg.set(!opaque ? WUFFS_BASE__PIXEL_FORMAT__RGBA_NONPREMUL
                    : grey  ? WUFFS_BASE__PIXEL_FORMAT__Y
                            : WUFFS_BASE__PIXEL_FORMAT__RGB,
                    WUFFS_BASE__PIXEL_SUBSAMPLING__NONE, width, height);
  const kernel::Charge charge(run, static_cast<std::size_t>(needed));
  std::vector<std::uint8_t> work = zeros(run, static_cast<std::size_t>(needed));
  wuffs_base__pixel_buffer pixels;
  check(name, pixels.set_from_slice(&config.pixcfg, slice(out.pixels)));
  source.meta.wi = source.meta.ri;
  check(name, decoder.decode_frame(pixels, source, file.size(), slice(work), run));
  if (!opaque) narrow(out, grey ? 1 : 3, run);
  return out;
}

/// A PNG file without its tRNS chunk, which says what is transparent: pixels keep their colors.
std::vector<std::uint8_t> without_transparency(Bytes file) {
  Reader in(file, kPng, true);
  std::vector<std::uint8_t> out;
  out.reserve(file.size());
  const auto append = [&](Bytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); };
  append(in.take(8));
  while (in.left() >= 12) {
    const std::size_t at = in.at();
    const std::uint64_t size = in.u32() + std::uint64_t{8};
    const bool dropped = std::memcmp(file.data() + in.at(), "tRNS", 4) == 0;
    in.take(std::min<std::uint64_t>(size, in.left()));
    if (!dropped) append(file.subspan(at, in.at() - at));
  }
  return out;
}

}  // namespace

Image decode_png(Bytes file, const RunContext& run) {
  const kernel::Charge charge(run, file.size());
  return decode<PngDecoder>(kPng, without_transparency(file), kDeflateGrowth, run);
}
Image decode_jpeg(Bytes file, const RunContext& run) { return decode<JpegDecoder>(kJpeg, file, kJpegGrowth, run); }

std::vector<std::uint8_t> zlib_decompress(const RunContext& run, Bytes stream, std::size_t size,
                                          std::string_view format) {
  if (size / kDeflateGrowth > stream.size()) fail_image(format, "its compressed data is too short for its dimensions");
  const auto decoder = wuffs_zlib__decoder::alloc();
  if (!decoder) fail(ErrorCode::OutOfMemory, cat("there is no memory for a decoder of ", format, " images"));
  std::vector<std::uint8_t> out = zeros(run, size), work(static_cast<std::size_t>(decoder->workbuf_len().max_incl));
  wuffs_base__io_buffer source = reader(stream);
  wuffs_base__io_buffer sink = wuffs_base__slice_u8__writer(slice(out));
  source.meta.wi = 0;
  const wuffs_base__status status =
      in_pieces(source, stream.size(), run, [&] { return decoder->transform_io(&sink, &source, slice(work)); });
  if (sink.meta.wi < size) {
    check(format, status);
    fail_image(format, "its compressed data ends too early");
  }
  return out;
}

}  // namespace infernode::ops::image
