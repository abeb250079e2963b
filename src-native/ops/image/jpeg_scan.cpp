#include <algorithm>

#include "ops/image/jpeg.h"

namespace infernode::ops::image::jpeg {

HuffmanTable::HuffmanTable(Bytes counts, Bytes symbols) : symbols_(symbols.begin(), symbols.end()) {
  std::int32_t code = 0, index = 0;
  for (unsigned length = 1; length <= 16; ++length, code <<= 1) {
    offset_[length] = index - code;
    for (unsigned i = 0; i < counts[length - 1]; ++i, ++code, ++index) {
      if (code >> length != 0) fail_image(kJpeg, "a Huffman table is damaged");
      if (length > 9) continue;
      const auto entry = static_cast<std::uint16_t>(symbols_[static_cast<std::size_t>(index)] << 4 | length);
      std::fill_n(fast_.begin() + (code << (9 - length)), 1 << (9 - length), entry);
    }
    last_[length] = code - 1;  // below every code of this length where there is none
  }
}

unsigned HuffmanTable::decode_long(unsigned bits, unsigned& length) const {
  for (length = 10; length <= 16; ++length) {
    const auto code = static_cast<std::int32_t>(bits >> (16 - length));
    if (code <= last_[length] && code + offset_[length] >= 0) {
      const auto at = static_cast<std::size_t>(code + offset_[length]);
      if (at < symbols_.size()) return symbols_[at];
      break;
    }
  }
  length = 0;
  return 0;
}

namespace {

[[noreturn]] void bad() { fail_image(kJpeg, "its compressed data is damaged or cut off"); }

/// Bits up to the next marker; behind it there are a few zeros, and then an error.
class BitReader {
 public:
  explicit BitReader(Bytes data) : data_(data) {}

  unsigned peek16() {
    while (held_ < 16) fill();
    return bits_ >> (held_ - 16) & 0xFFFF;
  }
  void skip(unsigned count) { held_ -= count; }
  unsigned take(unsigned count) {
    if (count == 0) return 0;
    while (held_ < count) fill();
    held_ -= count;
    return bits_ >> held_ & ((1u << count) - 1);
  }
  unsigned symbol(const HuffmanTable& table) {
    unsigned length;
    const unsigned value = table.decode(peek16(), length);
    if (length == 0) bad();
    skip(length);
    return value;
  }
  /// A number of `size` bits whose first bit tells its sign.
  int number(unsigned size) {
    if (size == 0) return 0;
    const int value = static_cast<int>(take(size));
    return value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
  }
  /// Drops what is left before the next restart marker and passes that.
  void restart() {
    if (padding_ > held_) bad();
    held_ = bits_ = padding_ = 0;
    while (at_ + 1 < data_.size() && data_[at_] == 0xFF && data_[at_ + 1] == 0xFF) ++at_;
    if (at_ + 1 >= data_.size() || data_[at_] != 0xFF || (data_[at_ + 1] & 0xF8) != 0xD0) bad();
    at_ += 2;
  }
  std::size_t finish() const {
    if (padding_ > held_) bad();
    return at_;
  }

 private:
  void fill() {
    std::uint32_t byte = 0;
    if (at_ < data_.size() && data_[at_] != 0xFF) {
      byte = data_[at_++];
    } else if (at_ + 1 < data_.size() && data_[at_ + 1] == 0) {
      byte = 0xFF;
      at_ += 2;
    } else {
      // A look ahead may pass the end; what is used of it must not.
      padding_ += 8;
      if (padding_ > 64) bad();
    }
    bits_ = bits_ << 8 | byte;
    held_ += 8;
  }

  Bytes data_;
  std::size_t at_ = 0;
  std::uint32_t bits_ = 0;
  unsigned held_ = 0, padding_ = 0;
};

class ScanDecoder {
 public:
  ScanDecoder(const Frame& frame, const Scan& scan, Bytes data) : frame_(frame), scan_(scan), bits_(data) {}

  std::size_t run() {
    if (scan_.parts.size() == 1) {
      const Scan::Part& part = scan_.parts[0];
      const Component& c = *part.component;
      for (std::size_t i = 0, n = c.block_columns * c.block_rows; i < n; ++i) {
        begin_unit(i);
        block(0, part.component->block(i / c.block_columns, i % c.block_columns));
      }
      return bits_.finish();
    }
    for (std::size_t i = 0, n = frame_.mcu_columns * frame_.mcu_rows; i < n; ++i) {
      begin_unit(i);
      const std::size_t row = i / frame_.mcu_columns, column = i % frame_.mcu_columns;
      for (std::size_t p = 0; p < scan_.parts.size(); ++p) {
        Component& c = *scan_.parts[p].component;
        for (unsigned y = 0; y < c.v; ++y) {
          for (unsigned x = 0; x < c.h; ++x) block(p, c.block(row * c.v + y, column * c.h + x));
        }
      }
    }
    return bits_.finish();
  }

 private:
  void begin_unit(std::size_t i) {
    if (scan_.restart_interval == 0 || i == 0 || i % scan_.restart_interval != 0) return;
    bits_.restart();
    predicted_.fill(0);
    run_ = 0;
  }

  void block(std::size_t part, std::int16_t* out) {
    const Scan::Part& tables = scan_.parts[part];
    if (!frame_.progressive) {
      dc_first(part, out);
      for (unsigned k = 1; k < 64; ++k) {
        const unsigned symbol = bits_.symbol(*tables.ac), size = symbol & 15;
        if (size == 0) {
          if (symbol != 0xF0) break;
          k += 15;
          continue;
        }
        k += symbol >> 4;
        if (k > 63) bad();
        out[kZigzag[k]] = static_cast<std::int16_t>(bits_.number(size));
      }
    } else if (scan_.first == 0) {
      if (scan_.high == 0)
        dc_first(part, out);
      else if (bits_.take(1) != 0)
        out[0] = static_cast<std::int16_t>(out[0] | 1 << scan_.low);
    } else if (scan_.high == 0) {
      ac_first(*tables.ac, out);
    } else {
      ac_refine(*tables.ac, out);
    }
  }

  void dc_first(std::size_t part, std::int16_t* out) {
    const unsigned size = bits_.symbol(*scan_.parts[part].dc);
    if (size > 15) bad();
    predicted_[part] = (predicted_[part] + bits_.number(size)) & 0xFFFF;
    out[0] = static_cast<std::int16_t>(predicted_[part] << scan_.low);
  }

  void ac_first(const HuffmanTable& table, std::int16_t* out) {
    if (run_ > 0) {
      --run_;
      return;
    }
    for (unsigned k = scan_.first; k <= scan_.last; ++k) {
      const unsigned symbol = bits_.symbol(table), size = symbol & 15, skip = symbol >> 4;
      if (size == 0) {
        if (skip < 15) {
          run_ = (1u << skip) - 1 + bits_.take(skip);
          return;
        }
        k += 15;
        continue;
      }
      k += skip;
      if (k > scan_.last) bad();
      out[kZigzag[k]] = static_cast<std::int16_t>(bits_.number(size) * (1 << scan_.low));
    }
  }

  /// One more bit for a coefficient that is not zero yet known.
  void refine(std::int16_t& value) {
    if (bits_.take(1) == 0 || (value & 1 << scan_.low) != 0) return;
    value = static_cast<std::int16_t>(value + (value > 0 ? 1 << scan_.low : -(1 << scan_.low)));
  }

  void ac_refine(const HuffmanTable& table, std::int16_t* out) {
    unsigned k = scan_.first;
    if (run_ == 0) {
      for (; k <= scan_.last; ++k) {
        const unsigned symbol = bits_.symbol(table), size = symbol & 15;
        unsigned zeros = symbol >> 4;
        int fresh = 0;
        if (size == 0) {
          if (zeros < 15) {
            run_ = (1u << zeros) + bits_.take(zeros);
            break;
          }
        } else {
          if (size != 1) bad();
          fresh = bits_.take(1) != 0 ? 1 << scan_.low : -(1 << scan_.low);
        }
        for (; k <= scan_.last; ++k) {
          std::int16_t& value = out[kZigzag[k]];
          if (value != 0) {
            refine(value);
          } else if (zeros-- == 0) {
            if (fresh != 0) value = static_cast<std::int16_t>(fresh);
            break;
          }
        }
      }
    }
    if (run_ == 0) return;
    for (; k <= scan_.last; ++k) {
      if (out[kZigzag[k]] != 0) refine(out[kZigzag[k]]);
    }
    --run_;
  }

  const Frame& frame_;
  const Scan& scan_;
  BitReader bits_;
  std::array<int, 4> predicted_{};
  unsigned run_ = 0;  ///< blocks still to come that this band has nothing new for
};

}  // namespace

std::size_t decode_scan(const Frame& frame, const Scan& scan, Bytes data) {
  return ScanDecoder(frame, scan, data).run();
}

}  // namespace infernode::ops::image::jpeg
