#include "ops/image/prepare_image.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "kernel/watch.h"

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
    const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(center - support + 0.5)));
    const auto high = std::min(from, static_cast<std::size_t>(std::floor(center + support + 0.5)));
    double sum = 0;
    for (std::size_t j = low; j < high; ++j) {
      const double weight = std::max(0.0, 1 - std::abs((static_cast<double>(j) + 0.5 - center) / support));
      weights[j - low] = static_cast<float>(weight);
      sum += weight;
    }
    taps.first[i] = low;
    taps.count[i] = high - low;
    for (std::size_t j = 0; j < high - low; ++j) weights[j] = static_cast<float>(weights[j] / sum);
  }
  return taps;
}

/// One row of the picture, scaled along it: each wanted channel by itself.
void scale_row(const ImagePreparation& how, const Taps& taps, const std::uint8_t* row, float* out) {
  for (std::size_t c = 0; c < how.to_channels; ++c, out += how.to_width) {
    if (how.order[c] == ImagePreparation::kOpaque) {
      std::fill_n(out, how.to_width, 255.0F);
      continue;
    }
    const std::uint8_t* channel = row + how.left * how.channels + how.order[c];
    if (how.part_width == how.to_width) {
      for (std::size_t x = 0; x < how.to_width; ++x) out[x] = channel[x * how.channels];
      continue;
    }
    for (std::size_t x = 0; x < how.to_width; ++x) {
      const std::uint8_t* from = channel + taps.first[x] * how.channels;
      const float* weights = &taps.weights[x * taps.most];
      float sum = 0;
      for (std::size_t j = 0; j < taps.count[x]; ++j) sum += weights[j] * static_cast<float>(from[j * how.channels]);
      out[x] = sum;
    }
  }
}

/// A row of one channel into its place.
template <class T>
void store(const float* from, T* to, std::size_t n, std::size_t step) {
  for (std::size_t x = 0; x < n; ++x) {
    if constexpr (std::is_same_v<T, float>) {
      to[x * step] = from[x];
    } else {
      to[x * step] = static_cast<T>(std::clamp(std::nearbyint(from[x]), 0.0F, 255.0F));
    }
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
                   const microkernels::ElementwiseTable& loops, const kernel::RunContext& run) {
  using microkernels::BinaryOp, microkernels::UnaryOp;
  const auto times = loops.vector_scalar[static_cast<std::size_t>(BinaryOp::kMul)];
  const auto plus = loops.vector_vector[static_cast<std::size_t>(BinaryOp::kAdd)];
  const Taps columns = make_taps(how.part_width, how.to_width, how.nearest);
  const Taps rows = make_taps(how.part_height, how.to_height, how.nearest);
  const std::size_t stride = how.to_width * how.to_channels;
  std::vector<float> scaled(rows.most * stride);  // row y of the part at y % rows.most
  std::vector<float> sum(stride), share(stride);
  std::size_t next = 0;  // row of the part that has not been scaled yet
  kernel::Watch watch(run);
  constexpr double kNsPerElement = 3;
  const double row_ns = kNsPerElement * static_cast<double>(stride);
  const double scaled_ns = row_ns * static_cast<double>(columns.most);
  const std::size_t plane = how.to_width * how.to_height;
  for (std::size_t y = 0; y < how.to_height; ++y) {
    const std::size_t end = rows.first[y] + rows.count[y];
    for (next = std::max(next, rows.first[y]); next < end; ++next) {
      const std::uint8_t* row = pixels.data() + (how.top + next) * how.width * how.channels;
      scale_row(how, columns, row, &scaled[next % rows.most * stride]);
      watch.did(scaled_ns);
    }
    for (std::size_t j = 0; j < rows.count[y]; ++j) {
      const float* row = &scaled[(rows.first[y] + j) % rows.most * stride];
      times(row, &rows.weights[y * rows.most + j], j == 0 ? sum.data() : share.data(), stride);
      if (j > 0) plus(sum.data(), share.data(), sum.data(), stride);
    }
    watch.did(row_ns * static_cast<double>(1 + rows.count[y]));
    for (std::size_t c = 0; c < how.to_channels; ++c) {
      float* row = &sum[c * how.to_width];
      loops[UnaryOp::kAffine](row, row, how.to_width, how.factor[c], how.shift[c]);
      T* to = how.planar ? &out[c * plane + y * how.to_width] : &out[y * stride + c];
      store(row, to, how.to_width, how.planar ? 1 : how.to_channels);
    }
  }
}

template void prepare_image<float>(const ImagePreparation&, std::span<const std::uint8_t>, std::span<float>,
                                   const microkernels::ElementwiseTable&, const kernel::RunContext&);
template void prepare_image<std::uint8_t>(const ImagePreparation&, std::span<const std::uint8_t>,
                                          std::span<std::uint8_t>, const microkernels::ElementwiseTable&,
                                          const kernel::RunContext&);

}  // namespace infernode::ops
