#pragma once
// The parts of a JPEG decoder: the headers and coefficients (jpeg.cpp), the entropy-coded scans
// (jpeg_scan.cpp) and the samples made of them (jpeg_samples.cpp). Baseline and progressive, 8 bits.

#include <array>
#include <optional>

#include "ops/image/image.h"

namespace infernode::ops::image::jpeg {

inline constexpr std::string_view kJpeg = "JPEG";

inline constexpr std::uint8_t kZigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                             12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                             35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                             58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/// Huffman code, codes read from their highest bit on.
class HuffmanTable {
 public:
  /// counts[i]: codes of i + 1 bits. Throws where they are over-subscribed.
  HuffmanTable(Bytes counts, Bytes symbols);
  /// The symbol for the next 16 bits and the length of its code; length 0: no code.
  unsigned decode(unsigned bits, unsigned& length) const {
    const std::uint16_t fast = fast_[bits >> 7];
    if (fast != 0) {
      length = fast & 15;
      return fast >> 4;
    }
    return decode_long(bits, length);
  }

 private:
  unsigned decode_long(unsigned bits, unsigned& length) const;
  std::array<std::uint16_t, 512> fast_{};  ///< by the first 9 bits: symbol << 4 | length
  std::array<std::int32_t, 17> last_{}, offset_{};
  std::vector<std::uint8_t> symbols_;
};

struct Component {
  unsigned id = 0, h = 1, v = 1, quantization = 0;
  std::size_t columns = 0, rows = 0;              ///< samples
  std::size_t block_columns = 0, block_rows = 0;  ///< blocks that hold them
  std::size_t stride = 0, stored_rows = 0;        ///< blocks kept: whole MCUs
  std::vector<std::int16_t> coefficients{};       ///< [stored_rows][stride][64], natural order
  std::array<std::uint16_t, 64> table{};          ///< quantization in natural order
  std::int16_t* block(std::size_t row, std::size_t column) {
    return coefficients.data() + (row * stride + column) * 64;
  }
};

struct Frame {
  bool progressive = false;
  std::size_t width = 0, height = 0, mcu_columns = 0, mcu_rows = 0;
  unsigned most_h = 1, most_v = 1;
  std::vector<Component> components;
};

/// What a scan's header says.
struct Scan {
  struct Part {
    Component* component;
    const HuffmanTable *dc, *ac;  ///< nullptr where not defined
  };
  std::vector<Part> parts;
  unsigned first = 0, last = 63, high = 0, low = 0;  ///< spectral selection and successive approximation
  std::size_t restart_interval = 0;
};

/// Decodes the entropy-coded data at the start of `data`; returns how many bytes it took.
std::size_t decode_scan(const Frame& frame, const Scan& scan, Bytes data);

/// All samples of a component: [block_rows * 8][block_columns * 8].
std::vector<std::uint8_t> inverse_transform(Component& component);

/// The samples of one component at the picture's size, row by row.
class Upsampler {
 public:
  Upsampler(const Frame& frame, Component& component);
  /// Row y: at least frame.width samples, valid until the next call.
  const std::uint8_t* row(std::size_t y);

 private:
  const std::uint8_t* source(std::size_t y) const { return samples_.data() + y * stride_; }
  void widen_smoothly(const std::uint8_t* near, const std::uint8_t* far);

  std::size_t columns_, rows_, stride_;
  unsigned h_, v_;  ///< how often each sample is repeated, before smoothing
  bool smooth_;
  std::vector<std::uint8_t> samples_, out_;
};

}  // namespace infernode::ops::image::jpeg
