#include <algorithm>
#include <array>

#include "ops/image/image.h"

namespace infernode::ops::image {
namespace {

constexpr unsigned kMaxBits = 15, kFastBits = 10;

/// Canonical Huffman code, codes read from their highest bit on.
class HuffmanCode {
 public:
  /// Lengths of the symbols' codes, 0: not used. False where they are over-subscribed.
  bool build(std::span<const std::uint8_t> lengths) {
    counts_.fill(0);
    for (const std::uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    int room = 1;
    std::array<std::uint16_t, kMaxBits + 2> offsets{};
    std::array<std::uint32_t, kMaxBits + 2> codes{};
    for (unsigned bits = 1; bits <= kMaxBits; ++bits) {
      room = room * 2 - counts_[bits];
      if (room < 0) return false;
      offsets[bits + 1] = static_cast<std::uint16_t>(offsets[bits] + counts_[bits]);
      codes[bits + 1] = (codes[bits] + counts_[bits]) << 1;
    }
    symbols_.assign(lengths.size(), 0);
    fast_.fill(0);
    for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      const unsigned length = lengths[symbol];
      if (length == 0) continue;
      symbols_[offsets[length]++] = static_cast<std::uint16_t>(symbol);
      const std::uint32_t code = codes[length]++;
      if (length > kFastBits) continue;
      // The stream holds codes bit-reversed.
      std::uint32_t reversed = 0;
      for (unsigned b = 0; b < length; ++b) reversed |= (code >> b & 1) << (length - 1 - b);
      for (std::uint32_t at = reversed; at < fast_.size(); at += 1u << length) {
        fast_[at] = static_cast<std::uint16_t>(symbol << 4 | length);
      }
    }
    return true;
  }

  /// The next symbol of `bits` (at least 15 ahead, zeros behind the end) and the length of its code; length 0: no code.
  unsigned decode(std::uint32_t bits, unsigned& length) const {
    if (const std::uint16_t fast = fast_[bits & (fast_.size() - 1)]) {
      length = fast & 15;
      return fast >> 4;
    }
    int code = 0, first = 0, index = 0;
    for (length = 1; length <= kMaxBits; ++length) {
      code |= static_cast<int>(bits & 1);
      bits >>= 1;
      const int count = counts_[length];
      if (code - count < first) return symbols_[static_cast<std::size_t>(index + code - first)];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    length = 0;
    return 0;
  }

 private:
  std::array<std::uint16_t, kMaxBits + 1> counts_{};
  std::array<std::uint16_t, 1 << kFastBits> fast_{};  ///< symbol << 4 | length
  std::vector<std::uint16_t> symbols_;
};

class Inflater {
 public:
  Inflater(Bytes in, std::vector<std::uint8_t>& out, std::size_t size, std::string_view format)
      : in_(in), out_(out), size_(size), format_(format) {}

  void run() {
    bool last = false;
    while (!last && out_.size() < size_) {
      last = take(1) != 0;
      switch (take(2)) {
        case 0:
          stored();
          break;
        case 1:
          fixed();
          break;
        case 2:
          dynamic();
          break;
        default:
          bad();
      }
    }
    if (out_.size() < size_) fail_image(format_, "its compressed data ends too early");
  }

 private:
  [[noreturn]] void bad() const { fail_image(format_, "its compressed data is damaged"); }

  void fill() {
    while (held_ <= 24 && at_ < in_.size()) {
      bits_ |= static_cast<std::uint32_t>(in_[at_++]) << held_;
      held_ += 8;
    }
  }
  unsigned take(unsigned count) {
    if (count == 0) return 0;
    fill();
    if (held_ < count) bad();
    const unsigned value = bits_ & ((1u << count) - 1);
    bits_ >>= count;
    held_ -= count;
    return value;
  }
  unsigned symbol(const HuffmanCode& code) {
    fill();
    unsigned length;
    const unsigned value = code.decode(bits_, length);
    if (length == 0 || length > held_) bad();
    bits_ >>= length;
    held_ -= length;
    return value;
  }

  void stored() {
    take(held_ % 8);
    const unsigned length = take(16), check = take(16);
    if ((length ^ check) != 0xFFFF) bad();
    for (unsigned i = 0; i < length && out_.size() < size_; ++i) out_.push_back(static_cast<std::uint8_t>(take(8)));
  }

  void fixed() {
    std::array<std::uint8_t, 288> lengths;
    std::fill_n(lengths.begin(), 144, std::uint8_t{8});
    std::fill_n(lengths.begin() + 144, 112, std::uint8_t{9});
    std::fill_n(lengths.begin() + 256, 24, std::uint8_t{7});
    std::fill_n(lengths.begin() + 280, 8, std::uint8_t{8});
    literals_.build(lengths);
    std::array<std::uint8_t, 30> distances;
    distances.fill(5);
    distances_.build(distances);
    block();
  }

  void dynamic() {
    static constexpr std::uint8_t kOrder[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const unsigned literals = take(5) + 257, distances = take(5) + 1, codes = take(4) + 4;
    if (literals > 286 || distances > 30) bad();
    std::array<std::uint8_t, 19> code_lengths{};
    for (unsigned i = 0; i < codes; ++i) code_lengths[kOrder[i]] = static_cast<std::uint8_t>(take(3));
    if (!literals_.build(code_lengths)) bad();
    std::array<std::uint8_t, 286 + 30> lengths{};
    for (unsigned i = 0; i < literals + distances;) {
      const unsigned value = symbol(literals_);
      if (value < 16) {
        lengths[i++] = static_cast<std::uint8_t>(value);
        continue;
      }
      if (value == 16 && i == 0) bad();
      const std::uint8_t repeated = value == 16 ? lengths[i - 1] : std::uint8_t{0};
      const unsigned count = value == 16 ? 3 + take(2) : value == 17 ? 3 + take(3) : 11 + take(7);
      if (i + count > literals + distances) bad();
      std::fill_n(lengths.begin() + i, count, repeated);
      i += count;
    }
    const std::span<const std::uint8_t> all(lengths);
    if (!literals_.build(all.first(literals)) || !distances_.build(all.subspan(literals, distances))) bad();
    block();
  }

  void block() {
    static constexpr std::uint16_t kLengths[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                                   31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static constexpr std::uint8_t kLengthBits[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                     2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static constexpr std::uint16_t kDistances[30] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                                     33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                                     1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    while (out_.size() < size_) {
      const unsigned value = symbol(literals_);
      if (value < 256) {
        out_.push_back(static_cast<std::uint8_t>(value));
        continue;
      }
      if (value == 256) return;
      if (value > 285) bad();
      const std::size_t length = kLengths[value - 257] + take(kLengthBits[value - 257]);
      const unsigned code = symbol(distances_);
      if (code > 29) bad();
      const std::size_t distance = kDistances[code] + take(code < 2 ? 0 : code / 2 - 1);
      if (distance > out_.size()) bad();
      for (std::size_t i = 0; i < length && out_.size() < size_; ++i) out_.push_back(out_[out_.size() - distance]);
    }
  }

  Bytes in_;
  std::vector<std::uint8_t>& out_;
  std::size_t size_, at_ = 0;
  std::string_view format_;
  std::uint32_t bits_ = 0;
  unsigned held_ = 0;
  HuffmanCode literals_, distances_;
};

}  // namespace

std::vector<std::uint8_t> zlib_decompress(Bytes stream, std::size_t size, std::string_view format) {
  // No deflate stream grows by more than 1032: a small file cannot ask for much memory.
  if (size / 1040 > stream.size()) fail_image(format, "its compressed data is too short for its dimensions");
  if (stream.size() < 2 || (stream[0] & 15) != 8 || (stream[0] << 8 | stream[1]) % 31 != 0 || (stream[1] & 0x20) != 0) {
    fail_image(format, "its compressed data is no zlib stream");
  }
  std::vector<std::uint8_t> out;
  out.reserve(size);
  Inflater(stream.subspan(2), out, size, format).run();
  return out;
}

}  // namespace infernode::ops::image
