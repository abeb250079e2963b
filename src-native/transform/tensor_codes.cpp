#include "transform/tensor_codes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "base/error.h"

namespace infernode::transform {

namespace {

using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

struct Range {
  float least = 0, largest = 0;  // 0 has a code
};

/// The least and the largest code.
struct CodeRange {
  int least, largest;
};

CodeRange code_range(const TensorFormat& format) {
  if (format.type == DType::UInt8) return {0, format.reduced ? 127 : 255};
  if (format.reduced) return {-64, 64};
  return {format.symmetric ? -127 : -128, 127};
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

std::vector<Range> ranges_of(const float* values, const Rows& rows, const TensorFormat& format,
                             const kernel::RunContext& run) {
  const std::size_t together = format.per_channel ? rows.length : kTogether;
  std::vector<Range> ranges(checked_mul(together, run.max_threads));
  std::vector<std::uint8_t> odd(run.max_threads, 0);
  run.parallel_for(rows.count, rows.cost(), [&](std::size_t begin, std::size_t end, std::size_t slot) {
    const auto take = format.per_channel ? widen_each : widen;
    for (std::size_t row = begin; row < end; ++row) {
      run.check();
      if (take(values + row * rows.length, rows.length, ranges.data() + slot * together) != 0) odd[slot] = 1;
    }
  });
  if (std::ranges::count(odd, 1) > 0) fail(ErrorCode::InvalidModel, "an element is no finite number");
  const std::size_t channels = format.per_channel ? together : 1;
  for (std::size_t i = channels; i < ranges.size(); ++i) {
    Range& range = ranges[i % channels];
    range.least = std::min(range.least, ranges[i].least);
    range.largest = std::max(range.largest, ranges[i].largest);
  }
  ranges.resize(channels);
  return ranges;
}

struct Scale {
  float scale;
  int zero;
};

Scale scale_of(Range range, const TensorFormat& format) {
  const CodeRange codes = code_range(format);
  double least = range.least, largest = range.largest;
  if (format.symmetric) {
    largest = std::max(-least, largest);
    least = -largest;
  }
  const double scale = (largest - least) / (codes.largest - codes.least);
  if (scale < std::numeric_limits<float>::min()) return {1, 0};
  const double zero = format.symmetric ? (codes.least + codes.largest) / 2.0 : codes.least - least / scale;
  return {static_cast<float>(scale), static_cast<int>(std::nearbyint(zero))};
}

/// The nearest whole number, the even one of two, of a number that is small enough to be a code: by the sum with one
/// from which on floats are whole.
float round_code(float value) {
  constexpr float kWhole = 0x1.8p23f;
  return value + kWhole - kWhole;
}

}  // namespace

TensorCodes make_tensor_codes(const Tensor& tensor, const TensorFormat& format, const kernel::RunContext& run) {
  const float* values = tensor.data<float>();
  const auto count = static_cast<std::size_t>(tensor.numel());
  constexpr std::size_t kPart = 4096;  // where it does not matter what a row is
  const std::size_t length = format.per_channel   ? static_cast<std::size_t>(tensor.shape().back())
                             : count % kPart == 0 ? kPart
                                                  : std::max<std::size_t>(count, 1);
  const Rows rows{count / length, length};
  const std::vector<Range> ranges = ranges_of(values, rows, format, run);
  const Shape shape = format.per_channel ? Shape{static_cast<std::int64_t>(length)} : Shape{};
  TensorCodes out{Tensor::make(format.type, tensor.shape()), Tensor::make(DType::Float32, shape),
                  Tensor::make(format.type, shape)};
  std::vector<float> scales, zeros;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Scale scale = scale_of(ranges[i], format);
    scales.push_back(scale.scale);
    zeros.push_back(static_cast<float>(scale.zero));
    out.scale.mutable_data<float>()[i] = scale.scale;
    // The low 8 bits are the code, signed or not.
    static_cast<std::uint8_t*>(out.zero.mutable_raw())[i] = static_cast<std::uint8_t>(scale.zero);
  }
  const CodeRange codes = code_range(format);
  const auto least = static_cast<float>(codes.least), largest = static_cast<float>(codes.largest);
  auto* to = static_cast<std::uint8_t*>(out.codes.mutable_raw());
  run.parallel_for(rows.count, rows.cost() * 2, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t row = begin; row < end; ++row) {
      run.check();
      for (std::size_t i = 0; i < rows.length; ++i) {
        const std::size_t at = row * rows.length + i, channel = format.per_channel ? i : 0;
        const float code = round_code(values[at] / scales[channel]) + zeros[channel];
        to[at] = static_cast<std::uint8_t>(static_cast<int>(std::clamp(code, least, largest)));
      }
    }
  });
  return out;
}

}  // namespace infernode::transform
