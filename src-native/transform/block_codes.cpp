#include "transform/block_codes.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/checked.h"
#include "base/error.h"
#include "base/half.h"
#include "base/packed.h"

namespace infernode::transform {

namespace {

using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// Columns that are copied at a time: a cache line of float32.
constexpr std::size_t kTogether = 16;

/// One line of a matrix of T: its codes a byte each, with scales and zeros by block.
template <class T>
class LineCoder {
 public:
  LineCoder(const BlockFormat& format, std::size_t length) : format_(format), codes_(length) {}

  /// `scales`, and `zeros` where the format has them, are by block.
  void code(std::span<const float> values, T* scales, std::uint8_t* zeros, std::uint8_t* packed) {
    std::size_t b = 0;
    const float largest = most();
    for (std::size_t begin = 0; begin < codes_.size(); begin += format_.block, ++b) {
      const std::size_t end = std::min(begin + format_.block, values.size());
      const float zero = choose(values.subspan(begin, end - begin), scales[b]);
      // Of the smallest numbers there are the factor is infinite: they become 0.
      const float inverse = 1 / static_cast<float>(scales[b]), factor = std::isfinite(inverse) ? inverse : 0;
      for (std::size_t i = begin; i < end; ++i)
        codes_[i] = static_cast<std::uint8_t>(std::clamp(values[i] * factor + zero, 0.0f, largest) + 0.5f);
      std::fill(codes_.begin() + static_cast<std::ptrdiff_t>(end),
                codes_.begin() + static_cast<std::ptrdiff_t>(begin + format_.block), static_cast<std::uint8_t>(zero));
      if (!format_.symmetric) zeros[b] = static_cast<std::uint8_t>(zero);
    }
    if (format_.bits == 4) {
      pack_4(codes_.data(), codes_.size(), packed);
    } else {
      std::ranges::copy(codes_, packed);
    }
  }

 private:
  float most() const { return static_cast<float>((1 << format_.bits) - 1); }

  /// Sets the block's scale and returns its zero.
  float choose(std::span<const float> values, T& scale) const {
    float least = values[0], largest = values[0], odd = 0;  // 0 as long as all are finite
    for (const float v : values) {
      least = v < least ? v : least;
      largest = v > largest ? v : largest;
      odd += v - v;
    }
    if (odd != 0) fail(ErrorCode::InvalidModel, "an element is no finite number");
    const float middle = static_cast<float>(1 << (format_.bits - 1));
    if (format_.symmetric) {
      scale = T((std::abs(largest) > std::abs(least) ? largest : least) / -middle);
      return middle;
    }
    const float low = std::min(least, 0.0f) / most(), high = std::max(largest, 0.0f) / most();
    scale = T(high - low);  // apart: the whole range may be beyond float32
    return high - low != 0 ? std::clamp(std::round(-low / (high - low) * most()), 0.0f, most()) : 0;
  }

  const BlockFormat& format_;
  std::vector<std::uint8_t> codes_;  ///< whole blocks
};

/// `count` lines from `first` on, one after the other.
template <class T>
void copy_lines(const T* from, Lines lines, std::size_t first, std::size_t count, std::size_t all, std::size_t length,
                float* to) {
  if (lines == Lines::Rows) {
    for (std::size_t i = 0; i < count * length; ++i) to[i] = static_cast<float>(from[first * length + i]);
    return;
  }
  for (std::size_t i = 0; i < length; ++i) {
    for (std::size_t line = 0; line < count; ++line)
      to[line * length + i] = static_cast<float>(from[i * all + first + line]);
  }
}

template <class T>
void code_lines(const Tensor& matrix, Lines lines, const BlockFormat& format, const kernel::RunContext& run,
                BlockCodes& out) {
  const auto* from = static_cast<const T*>(matrix.raw());
  auto* scales = static_cast<T*>(out.scales.mutable_raw());
  auto* codes = reinterpret_cast<std::uint8_t*>(out.codes.data());
  const std::size_t length = size(matrix.numel()) / out.lines;
  constexpr double kCost = 4;  // nanoseconds an element
  run.parallel_for(ceil_div(out.lines, kTogether), static_cast<double>(length * kTogether) * kCost,
                   [&](std::size_t begin, std::size_t end, std::size_t) {
                     LineCoder<T> coder(format, out.blocks * format.block);
                     std::vector<float> values(length * kTogether);
                     for (std::size_t group = begin; group < end; ++group) {
                       run.check();
                       const std::size_t first = group * kTogether, count = std::min(kTogether, out.lines - first);
                       copy_lines(from, lines, first, count, out.lines, length, values.data());
                       for (std::size_t i = 0; i < count; ++i) {
                         const std::size_t line = first + i;
                         coder.code(std::span(values).subspan(i * length, length), scales + line * out.blocks,
                                    out.zeros.empty() ? nullptr : out.zeros.data() + line * out.blocks,
                                    codes + line * out.line_bytes);
                       }
                     }
                   });
}

}  // namespace

bool can_have_codes(const Tensor& matrix) {
  const DType type = matrix.dtype();
  return matrix.rank() == 2 && matrix.numel() > 0 &&
         (type == DType::Float32 || type == DType::Float16 || type == DType::BFloat16);
}

BlockCodes make_block_codes(const Tensor& matrix, Lines lines, const BlockFormat& format,
                            const kernel::RunContext& run) {
  INFERNODE_CHECK(can_have_codes(matrix), ErrorCode::Internal, "codes of ", matrix.to_string());
  BlockCodes out;
  out.lines = size(matrix.dim(lines == Lines::Rows ? 0 : 1));
  const std::size_t length = size(matrix.numel()) / out.lines;
  out.blocks = ceil_div(length, format.block);
  out.line_bytes = out.blocks * format.block * static_cast<std::size_t>(format.bits) / 8;
  out.codes = tensor::host_allocator().allocate(checked_mul(out.lines, out.line_bytes));
  out.scales =
      Tensor::make(matrix.dtype(), {static_cast<std::int64_t>(out.lines), static_cast<std::int64_t>(out.blocks)});
  if (!format.symmetric) out.zeros.resize(out.lines * out.blocks);
  switch (matrix.dtype()) {
    case DType::Float16:
      code_lines<Float16>(matrix, lines, format, run, out);
      break;
    case DType::BFloat16:
      code_lines<BFloat16>(matrix, lines, format, run, out);
      break;
    default:
      code_lines<float>(matrix, lines, format, run, out);
  }
  return out;
}

Tensor packed_zeros(const BlockCodes& codes, int bits) {
  const std::size_t line = ceil_div(codes.blocks * static_cast<std::size_t>(bits), std::size_t{8});
  const Tensor out =
      Tensor::make(DType::UInt8, {static_cast<std::int64_t>(codes.lines), static_cast<std::int64_t>(line)});
  auto* to = static_cast<std::uint8_t*>(out.mutable_raw());
  std::fill_n(to, codes.lines * line, std::uint8_t{0});
  for (std::size_t i = 0; i < codes.lines; ++i) {
    const std::uint8_t* from = codes.zeros.data() + i * codes.blocks;
    if (bits == 4) {
      pack_4(from, codes.blocks, to + i * line);
    } else {
      std::copy_n(from, codes.blocks, to + i * line);
    }
  }
  return out;
}

}  // namespace infernode::transform
