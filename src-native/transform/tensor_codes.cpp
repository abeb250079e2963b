#include "transform/tensor_codes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "base/packed.h"

namespace infernode::transform {

namespace {

using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

/// The least and the largest code.
struct CodeRange {
  int least, largest;
};

int bits_of(DType type) {
  switch (type) {
    case DType::Int4:
    case DType::UInt4:
      return 4;
    case DType::Int8:
    case DType::UInt8:
      return 8;
    default:
      return 16;
  }
}

bool is_signed(DType type) { return type == DType::Int4 || type == DType::Int8 || type == DType::Int16; }

/// As the Python tool has them: reduced ranges of 8 and 16 signed bits have an odd number of codes, symmetric ones too.
CodeRange code_range(const TensorFormat& format) {
  const int bits = bits_of(format.type), half = 1 << (bits - 1);
  if (!is_signed(format.type)) return {0, format.reduced ? half - 1 : half * 2 - 1};
  if (format.reduced) return {-half / 2, bits == 4 ? half / 2 - 1 : half / 2};
  return {format.symmetric && bits > 4 ? 1 - half : -half, half - 1};
}

/// A loop over rows: channels stand side by side in a row.
struct Rows {
  std::size_t count, length;
  double cost() const { return static_cast<double>(length) * 2; }
};

/// How many elements a loop takes at a time, each into an accumulator of its own.
constexpr std::size_t kTogether = 16;

/// Widens ranges[i % kTogether] by values[i], and gives a number that is 0 where all are finite.
float widen(const float* values, std::size_t count, Range* ranges) {
  float least[kTogether], largest[kTogether], odd[kTogether] = {};
  for (std::size_t i = 0; i < kTogether; ++i) {
    least[i] = ranges[i].least;
    largest[i] = ranges[i].largest;
  }
  const auto take = [&](std::size_t i, float v) {
    least[i] = v < least[i] ? v : least[i];
    largest[i] = v > largest[i] ? v : largest[i];
    odd[i] += v - v;
  };
  const std::size_t whole = count / kTogether * kTogether;
  for (std::size_t begin = 0; begin < whole; begin += kTogether) {
    for (std::size_t i = 0; i < kTogether; ++i) take(i, values[begin + i]);
  }
  for (std::size_t i = whole; i < count; ++i) take(i - whole, values[i]);
  float sum = 0;
  for (std::size_t i = 0; i < kTogether; ++i) {
    ranges[i] = {least[i], largest[i]};
    sum += odd[i];
  }
  return sum;
}

/// Widens ranges[i] by values[i], likewise.
float widen_each(const float* values, std::size_t count, Range* ranges) {
  float odd = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ranges[i].least = std::min(ranges[i].least, values[i]);
    ranges[i].largest = std::max(ranges[i].largest, values[i]);
    odd += values[i] - values[i];
  }
  return odd;
}

void join(Range& range, const Range& other) {
  range.least = std::min(range.least, other.least);
  range.largest = std::max(range.largest, other.largest);
}

/// Ranges of `channels` that stand side by side in a row, or of all elements of the rows where it is 1.
std::vector<Range> ranges_of_rows(const float* values, const Rows& rows, std::size_t channels,
                                  const kernel::RunContext& run) {
  const bool each = channels > 1;
  const std::size_t together = each ? channels : kTogether;
  std::vector<Range> ranges(checked_mul(together, run.max_threads));
  std::vector<std::uint8_t> odd(run.max_threads, 0);
  run.parallel_for(rows.count, rows.cost(), [&](std::size_t begin, std::size_t end, std::size_t slot) {
    const auto take = each ? widen_each : widen;
    for (std::size_t row = begin; row < end; ++row) {
      run.check();
      if (take(values + row * rows.length, rows.length, ranges.data() + slot * together) != 0) odd[slot] = 1;
    }
  });
  if (std::ranges::count(odd, 1) > 0) fail(ErrorCode::InvalidModel, "an element is no finite number");
  for (std::size_t i = channels; i < ranges.size(); ++i) join(ranges[i % channels], ranges[i]);
  ranges.resize(channels);
  return ranges;
}

/// How elements lie around an axis; around none, the first two are 1.
struct Layout {
  std::size_t outer = 1, channels = 1, inner = 1;
};

Layout layout_of(const Tensor& tensor, std::optional<std::size_t> axis) {
  Layout layout;
  for (std::size_t i = 0; i < tensor.rank(); ++i) {
    const auto dim = static_cast<std::size_t>(tensor.dim(i));
    (axis && i < *axis ? layout.outer : axis && i == *axis ? layout.channels : layout.inner) *= dim;
  }
  return layout;
}

/// Rows of a layout without channels, or of one whose channels stand side by side.
Rows rows_of(const Layout& layout) {
  if (layout.channels > 1) return {layout.outer, layout.channels};
  constexpr std::size_t kPart = 4096;  // where it does not matter what a row is
  const std::size_t count = layout.outer * layout.inner;
  const std::size_t length = count % kPart == 0 ? kPart : std::max<std::size_t>(count, 1);
  return {count / length, length};
}

/// The nearest whole number, the even one of two, of a number that is small enough to be a code: by the sum with one
/// from which on floats are whole.
float round_code(float value) {
  constexpr float kWhole = 0x1.8p23f;
  return value + kWhole - kWhole;
}

/// Codes of 4 bits, two in a byte; what is left of the last is 0.
void pack(const std::vector<std::uint8_t>& codes, std::uint8_t* to) {
  if (!codes.empty()) to[(codes.size() - 1) / 2] = 0;
  pack_4(codes.data(), codes.size(), to);
}

/// The code of a number, the low bits of which are what is stored.
template <class Code>
Code code_of(float value, Scale scale, float least, float largest) {
  const float code = round_code(value / scale.scale) + static_cast<float>(scale.zero);
  return static_cast<Code>(static_cast<int>(std::clamp(code, least, largest)));
}

/// Codes of `count` numbers.
template <class Code>
void encode_row(const float* values, std::size_t count, Scale scale, CodeRange codes, Code* to) {
  const auto least = static_cast<float>(codes.least), largest = static_cast<float>(codes.largest);
  for (std::size_t i = 0; i < count; ++i) to[i] = code_of<Code>(values[i], scale, least, largest);
}

/// The same of one number of each channel.
template <class Code>
void encode_each(const float* values, const std::vector<Scale>& scales, CodeRange codes, Code* to) {
  const auto least = static_cast<float>(codes.least), largest = static_cast<float>(codes.largest);
  for (std::size_t i = 0; i < scales.size(); ++i) to[i] = code_of<Code>(values[i], scales[i], least, largest);
}

template <class Code>
void encode_all(const Tensor& tensor, const TensorFormat& format, const std::vector<Scale>& scales, Code* to,
                const kernel::RunContext& run) {
  const float* values = tensor.data<float>();
  const Layout layout = layout_of(tensor, format.axis);
  const bool each = layout.channels > 1 && layout.inner == 1;
  const Rows rows = each || layout.channels == 1 ? rows_of(layout) : Rows{layout.outer * layout.channels, layout.inner};
  const CodeRange codes = code_range(format);
  run.parallel_for(rows.count, rows.cost() * 2, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t row = begin; row < end; ++row) {
      run.check();
      const std::size_t at = row * rows.length;
      if (each) {
        encode_each(values + at, scales, codes, to + at);
      } else {
        encode_row(values + at, rows.length, scales[row % layout.channels], codes, to + at);
      }
    }
  });
}

}  // namespace

Scale scale_of(Range range, const TensorFormat& format) {
  const CodeRange codes = code_range(format);
  double least = range.least, largest = std::max(range.largest, range.least + format.least_length);
  if (format.symmetric) {
    largest = std::max(-least, largest);
    least = -largest;
  }
  const double scale = (largest - least) / (codes.largest - codes.least);
  if (scale < std::numeric_limits<float>::min()) return {1, 0};
  const double zero = format.symmetric ? (codes.least + codes.largest) / 2.0 : codes.least - least / scale;
  return {static_cast<float>(scale), static_cast<int>(std::nearbyint(zero))};
}

Scale restricted_scale_of(Range range, const TensorFormat& format) {
  const CodeRange codes = code_range(format);
  const int middle = (codes.least + codes.largest + 1) / 2;
  const double least = range.least, largest = std::max(range.largest, range.least + format.least_length);
  const int zero = least < 0 ? middle : codes.least;
  double scale = largest / (codes.largest - zero);
  if (least < 0) scale = std::max(scale, -least / (middle - codes.least));
  scale = std::max<double>(scale, format.least_length / static_cast<float>(codes.largest - codes.least));
  if (scale < std::numeric_limits<float>::min()) scale = 1.0 / (codes.largest - codes.least);
  return {static_cast<float>(scale), zero};
}

std::vector<Range> ranges_of(const Tensor& tensor, std::optional<std::size_t> axis, const kernel::RunContext& run) {
  const float* values = tensor.data<float>();
  const Layout layout = layout_of(tensor, axis);
  if (layout.channels == 1 || layout.inner == 1) return ranges_of_rows(values, rows_of(layout), layout.channels, run);
  std::vector<Range> ranges;
  for (std::size_t channel = 0; channel < layout.channels; ++channel) {
    Range lanes[kTogether];
    float odd = 0;
    for (std::size_t i = 0; i < layout.outer; ++i) {
      run.check();
      odd += widen(values + (i * layout.channels + channel) * layout.inner, layout.inner, lanes);
    }
    if (odd != 0) fail(ErrorCode::InvalidModel, "an element is no finite number");
    for (const Range& lane : lanes) join(lanes[0], lane);
    ranges.push_back(lanes[0]);
  }
  return ranges;
}

Tensor codes_tensor(DType type, const Shape& shape, const std::vector<int>& codes) {
  const Tensor out = Tensor::make(type, shape);
  if (bits_of(type) == 16) {
    std::ranges::transform(codes, static_cast<std::uint16_t*>(out.mutable_raw()),
                           [](int code) { return static_cast<std::uint16_t>(code); });
    return out;
  }
  std::vector<std::uint8_t> bytes;
  for (const int code : codes) bytes.push_back(static_cast<std::uint8_t>(code));
  auto* to = static_cast<std::uint8_t*>(out.mutable_raw());
  if (bits_of(type) == 4) {
    pack(bytes, to);
  } else {
    std::ranges::copy(bytes, to);
  }
  return out;
}

TensorCodes encode(const Tensor& tensor, const TensorFormat& format, const std::vector<Scale>& scales,
                   const kernel::RunContext& run) {
  const Shape shape = format.axis ? Shape{tensor.dim(*format.axis)} : Shape{};
  TensorCodes out{Tensor::make(format.type, tensor.shape()), Tensor::make(DType::Float32, shape), {}};
  std::vector<int> zeros;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    out.scale.mutable_data<float>()[i] = scales[i].scale;
    zeros.push_back(scales[i].zero);
  }
  out.zero = codes_tensor(format.type, shape, zeros);
  void* to = out.codes.mutable_raw();
  if (bits_of(format.type) == 16) {
    encode_all(tensor, format, scales, static_cast<std::uint16_t*>(to), run);
  } else if (bits_of(format.type) == 8) {
    encode_all(tensor, format, scales, static_cast<std::uint8_t*>(to), run);
  } else {
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(tensor.numel()));
    encode_all(tensor, format, scales, codes.data(), run);
    pack(codes, static_cast<std::uint8_t*>(to));
  }
  return out;
}

TensorCodes make_tensor_codes(const Tensor& tensor, const TensorFormat& format, const kernel::RunContext& run) {
  std::vector<Scale> scales;
  for (const Range& range : ranges_of(tensor, format.axis, run)) scales.push_back(scale_of(range, format));
  return encode(tensor, format, scales, run);
}

}  // namespace infernode::transform
