#pragma once
// Encoded images: one codec per format. Files are hostile until proven otherwise: every read is bounded, sizes are
// checked before memory is asked for, and what is wrong ends in an InvalidArgument error that names the format.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kernel/charge.h"
#include "kernel/watch.h"

namespace infernode::ops::image {

using Bytes = std::span<const std::uint8_t>;
using kernel::RunContext;

/// 8 bits per sample, rows from top to bottom, 1 (grey) or 3 (red, green, blue) samples per pixel.
struct Image {
  std::size_t width = 0, height = 0, channels = 0;
  std::unique_ptr<kernel::Charge> charge{};  ///< of the pixels
  std::vector<std::uint8_t> pixels{};
};

/// Of a file of any format.
inline constexpr std::size_t kMaxPixels = std::size_t{1} << 27;

[[noreturn]] void fail_image(std::string_view format, std::string_view reason);
/// So many zeros, written with looks between.
std::vector<std::uint8_t> zeros(const RunContext& run, std::size_t count);
/// An image of these dims, black. Throws where a dim is zero or there are more than kMaxPixels.
Image make_image(const RunContext& run, std::string_view format, std::uint64_t width, std::uint64_t height,
                 std::size_t channels);

struct ImageCodec {
  std::string_view name;
  bool (*matches)(Bytes file);
  Image (*decode)(Bytes file, const RunContext& run);  ///< nullptr: known by its signature only
};

Image decode_png(Bytes file, const RunContext& run);
Image decode_jpeg(Bytes file, const RunContext& run);
bool matches_bmp(Bytes file);
Image decode_bmp(Bytes file, const RunContext& run);
bool matches_pnm(Bytes file);
Image decode_pnm(Bytes file, const RunContext& run);
bool matches_tiff(Bytes file);
Image decode_tiff(Bytes file, const RunContext& run);

/// Decodes whichever format the first bytes tell. Throws InvalidArgument for unknown and refused formats. What decoding
/// needs counts against the run's memory limit, and it looks whether the run is to end.
Image decode_image(Bytes file, const RunContext& run);

/// Bounded access to a file.
class Reader {
 public:
  Reader(Bytes bytes, std::string_view format, bool big_endian) : bytes_(bytes), format_(format), big_(big_endian) {}
  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  void seek(std::uint64_t at) {
    if (at > bytes_.size()) fail_image(format_, "the file is cut off");
    at_ = static_cast<std::size_t>(at);
  }
  Bytes take(std::uint64_t count) {
    if (count > left()) fail_image(format_, "the file is cut off");
    at_ += static_cast<std::size_t>(count);
    return bytes_.subspan(at_ - static_cast<std::size_t>(count), static_cast<std::size_t>(count));
  }
  std::uint8_t u8() { return take(1)[0]; }
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(take(2))); }
  std::uint32_t u32() { return number(take(4)); }

 private:
  std::uint32_t number(Bytes b) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < b.size(); ++i) value = value << 8 | b[big_ ? i : b.size() - 1 - i];
    return value;
  }
  Bytes bytes_;
  std::string_view format_;
  bool big_;
  std::size_t at_ = 0;
};

/// Reads samples of 1 to 16 bits, the highest bits of a byte first, of one row.
class BitSamples {
 public:
  BitSamples(const std::uint8_t* row, unsigned bits) : row_(row), bits_(bits) {}
  /// Sample i as it stands in the file.
  unsigned operator[](std::size_t i) const {
    if (bits_ == 8) return row_[i];
    if (bits_ == 16) return static_cast<unsigned>(row_[2 * i] << 8 | row_[2 * i + 1]);
    const std::size_t bit = i * bits_;
    return row_[bit / 8] >> (8 - bits_ - bit % 8) & ((1u << bits_) - 1);
  }
  /// Scaled to 8 bits.
  std::uint8_t scaled(std::size_t i) const {
    const unsigned value = (*this)[i];
    if (bits_ == 16) return static_cast<std::uint8_t>(value >> 8);
    return static_cast<std::uint8_t>(value * 255 / ((1u << bits_) - 1));
  }

 private:
  const std::uint8_t* row_;
  unsigned bits_;
};

/// Decompresses a zlib stream (RFC 1950, 1951) into exactly `size` bytes; what the stream holds beyond is ignored.
std::vector<std::uint8_t> zlib_decompress(const RunContext& run, Bytes stream, std::size_t size,
                                          std::string_view format);

}  // namespace infernode::ops::image
