#include "ops/image/prepare_image.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "kernel/watch.h"
#include "microkernels/convert/convert.h"
#include "microkernels/elementwise/elementwise.h"
#include "microkernels/transpose/transpose.h"

namespace infernode::ops {

namespace {

/// The pixels along one axis that make each element of the result, and their shares.
struct Taps {
  std::vector<std::size_t> first, count;  ///< by element
  std::vector<float> weights;             ///< `most` for each element
  std::size_t most = 1;
};

/// A triangle over the pixels around each element's center, as wide as the scale where the axis shrinks.
Taps make_taps(std::size_t from, std::size_t to, bool nearest) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = nearest ? 0 : std::max(scale, 1.0);
  Taps taps;
  taps.most = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
  taps.first.resize(to);
  taps.count.resize(to);
  taps.weights.resize(to * taps.most);
  for (std::size_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    float* weights = &taps.weights[i * taps.most];
    if (nearest) {
      taps.first[i] = std::min(static_cast<std::size_t>(center), from - 1);
      taps.count[i] = 1;
      weights[0] = 1;
      continue;
    }
    auto low = static_cast<std::size_t>(std::max(0.0, std::floor(center - support + 0.5)));
    auto high = std::min(from, static_cast<std::size_t>(std::floor(center + support + 0.5)));
    const auto share = [&](std::size_t j) { return 1 - std::abs((static_cast<double>(j) + 0.5 - center) / support); };
    while (high - low > 1 && share(low) <= 0) ++low;
    while (high - low > 1 && share(high - 1) <= 0) --high;
    double sum = 0;
    for (std::size_t j = low; j < high; ++j) {
      const double weight = std::max(0.0, share(j));
      weights[j - low] = static_cast<float>(weight);
      sum += weight;
    }
    taps.first[i] = low;
    taps.count[i] = high - low;
    for (std::size_t j = 0; j < high - low; ++j) weights[j] = static_cast<float>(weights[j] / sum);
  }
  return taps;
}

/// A band of rows of the result at a time: every step is a loop over many contiguous numbers, those along a row too,
/// since there the band lies column by column.
class Bands {
 public:
  Bands(const ImagePreparation& how, const microkernels::KernelSet& kernels, const kernel::RunContext& run)
      : how_(how),
        kernels_(kernels),
        watch_(run),
        columns_(make_taps(how.part_width, how.to_width, how.nearest)),
        rows_(make_taps(how.part_height, how.to_height, how.nearest)),
        line_(how.part_width * how.channels),
        scaled_line_(how.to_width * how.channels),
        band_(
            std::clamp<std::size_t>(kBandElements / std::max(line_, scaled_line_), 1, std::min(kBand, how.to_height))),
        row_(line_),
        summed_(line_ * band_),
        turned_(line_ * band_),
        scaled_(scaled_line_ * band_),
        planes_(how.to_width * how.to_channels * band_) {}

  std::size_t band() const { return band_; }

  /// Channels one after another, of `count` rows of the result from `y` on.
  std::span<const float> make(const std::uint8_t* pixels, std::size_t y, std::size_t count) {
    sum_rows(pixels, y, count);
    const bool same_width = how_.part_width == how_.to_width;
    if (!same_width) scale_columns(count);
    const std::size_t n = count * how_.to_width;
    if (same_width) transpose(summed_.data(), how_.channels, scaled_.data(), n, n, how_.channels);
    for (std::size_t c = 0; c < how_.to_channels; ++c) {
      float* const to = &planes_[c * n];
      const std::size_t from = how_.order[c];
      if (from == ImagePreparation::kOpaque) {
        std::fill_n(to, n, 255.0F);
      } else if (same_width) {
        std::copy_n(&scaled_[from * n], n, to);
      } else {
        transpose(&scaled_[from * count], how_.channels * count, to, how_.to_width, how_.to_width, count);
      }
      kernels_.elementwise[microkernels::UnaryOp::kAffine](to, to, n, how_.factor[c], how_.shift[c]);
    }
    return std::span(planes_).first(n * how_.to_channels);
  }

 private:
  static constexpr std::size_t kBand = 16;
  static constexpr std::size_t kBandElements = std::size_t{1} << 20;
  static constexpr std::size_t kPiece = 1024;
  static constexpr double kNsPerElement = 1;

  void transpose(const float* x, std::size_t ld_x, float* y, std::size_t ld_y, std::size_t rows, std::size_t cols) {
    static_assert(sizeof(float) == sizeof(std::uint32_t));
    kernels_.transpose.bytes4(reinterpret_cast<const std::uint32_t*>(x), ld_x, reinterpret_cast<std::uint32_t*>(y),
                              ld_y, rows, cols);
  }

  /// to = x * weight, or more of it.
  void add(const float* x, float weight, float* to, std::size_t n, bool first) {
    using microkernels::BinaryOp;
    const auto times = kernels_.elementwise.vector_scalar[static_cast<std::size_t>(BinaryOp::kMul)];
    const auto plus = kernels_.elementwise.vector_vector[static_cast<std::size_t>(BinaryOp::kAdd)];
    if (first) times(x, &weight, to, n);
    for (std::size_t i = 0; i < n && !first; i += kPiece) {
      const std::size_t piece = std::min(kPiece, n - i);
      times(x + i, &weight, share_.data(), piece);
      plus(to + i, share_.data(), to + i, piece);
    }
    watch_.did(kNsPerElement * static_cast<double>(n));
  }

  /// Rows of the picture become those of the result, as wide as the part still is.
  void sum_rows(const std::uint8_t* pixels, std::size_t y, std::size_t count) {
    const std::size_t end = rows_.first[y + count - 1] + rows_.count[y + count - 1];
    std::size_t low = 0;  // the first row of the band that still needs rows of the picture
    for (std::size_t from = rows_.first[y]; from < end; ++from) {
      const std::size_t at = ((how_.top + from) * how_.width + how_.left) * how_.channels;
      kernels_.convert.u8_to_f32(pixels + at, row_.data(), line_);
      watch_.did(kNsPerElement * static_cast<double>(line_));
      while (rows_.first[y + low] + rows_.count[y + low] <= from) ++low;
      for (std::size_t r = low; r < count && rows_.first[y + r] <= from; ++r) {
        const std::size_t tap = from - rows_.first[y + r];
        if (tap >= rows_.count[y + r]) continue;
        add(row_.data(), rows_.weights[(y + r) * rows_.most + tap], &summed_[r * line_], line_, tap == 0);
      }
    }
  }

  void scale_columns(std::size_t count) {
    transpose(summed_.data(), line_, turned_.data(), count, count, line_);
    const std::size_t column = how_.channels * count;
    for (std::size_t x = 0; x < how_.to_width; ++x) {
      for (std::size_t j = 0; j < columns_.count[x]; ++j) {
        add(&turned_[(columns_.first[x] + j) * column], columns_.weights[x * columns_.most + j], &scaled_[x * column],
            column, j == 0);
      }
    }
  }

  const ImagePreparation& how_;
  const microkernels::KernelSet& kernels_;
  kernel::Watch watch_;
  const Taps columns_, rows_;
  const std::size_t line_, scaled_line_;  ///< elements of a row of the part, and of one as wide as the result
  const std::size_t band_;                ///< rows at a time
  std::vector<float> row_;
  std::array<float, kPiece> share_;  ///< a piece of a product, which stays in the nearest cache
  std::vector<float> summed_;        ///< [band][line]
  std::vector<float> turned_;        ///< [line][band]
  std::vector<float> scaled_;  ///< [to_width][channels][band], or where the width stays [channels][band][to_width]
  std::vector<float> planes_;  ///< [to_channels][band][to_width]
};

/// Channels of n elements each, one after another, become pixels.
template <class T>
void interleave(const microkernels::TransposeTable& table, const T* from, std::size_t n, T* to, std::size_t channels) {
  if constexpr (std::is_same_v<T, float>) {
    table.bytes4(reinterpret_cast<const std::uint32_t*>(from), n, reinterpret_cast<std::uint32_t*>(to), channels,
                 channels, n);
  } else {
    table.bytes1(from, n, to, channels, channels, n);
  }
}

}  // namespace

std::size_t checked_elements(const ImagePreparation& how, std::size_t pixel_bytes) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) fail(ErrorCode::InvalidArgument, cat("an image cannot be prepared: ", what));
  };
  require(how.channels >= 1 && how.channels <= 4 && how.to_channels >= 1 && how.to_channels <= 4,
          "it has from 1 to 4 channels");
  require(how.part_width > 0 && how.part_height > 0 && how.to_width > 0 && how.to_height > 0, "a side is 0");
  require(how.left <= how.width && how.part_width <= how.width - how.left && how.top <= how.height &&
              how.part_height <= how.height - how.top,
          "the part is not within the picture");
  const auto checked = [](std::size_t a, std::size_t b) {
    std::size_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) fail(ErrorCode::OutOfMemory, "an image is too large for memory");
    return product;
  };
  require(checked(checked(how.width, how.height), how.channels) <= pixel_bytes, "there are too few pixels");
  for (std::size_t c = 0; c < how.to_channels; ++c) {
    require(how.order[c] < how.channels || how.order[c] == ImagePreparation::kOpaque, "a channel is not there");
  }
  return checked(checked(how.to_width, how.to_height), how.to_channels);
}

template <class T>
void prepare_image(const ImagePreparation& how, std::span<const std::uint8_t> pixels, std::span<T> out,
                   const microkernels::KernelSet& kernels, const kernel::RunContext& run) {
  Bands bands(how, kernels, run);
  std::vector<T> codes;
  const std::size_t plane = how.to_width * how.to_height;
  for (std::size_t y = 0; y < how.to_height; y += bands.band()) {
    const std::size_t count = std::min(bands.band(), how.to_height - y), n = count * how.to_width;
    const std::span<const float> made = bands.make(pixels.data(), y, count);
    const T* from = nullptr;
    if constexpr (std::is_same_v<T, float>) {
      from = made.data();
    } else {
      codes.resize(made.size());
      kernels.convert.quantize_u8(made.data(), codes.data(), made.size(), 1.0F, 0);
      from = codes.data();
    }
    if (how.planar) {
      for (std::size_t c = 0; c < how.to_channels; ++c)
        std::copy_n(from + c * n, n, &out[c * plane + y * how.to_width]);
    } else {
      interleave(kernels.transpose, from, n, &out[y * how.to_width * how.to_channels], how.to_channels);
    }
  }
}

template void prepare_image<float>(const ImagePreparation&, std::span<const std::uint8_t>, std::span<float>,
                                   const microkernels::KernelSet&, const kernel::RunContext&);
template void prepare_image<std::uint8_t>(const ImagePreparation&, std::span<const std::uint8_t>,
                                          std::span<std::uint8_t>, const microkernels::KernelSet&,
                                          const kernel::RunContext&);

}  // namespace infernode::ops
