#include <algorithm>

#include "ops/image/jpeg.h"

namespace infernode::ops::image::jpeg {
namespace {

constexpr int kBits = 13;  ///< fraction of the constants below
constexpr int kExtra = 2;  ///< fraction kept between the two passes

/// Inverse DCT of 8 numbers after Loeffler, Ligtenberg and Moschytz with 11 multiplications, in fixed point; the order
/// of its roundings is what "accurate integer" decoders agree on. `step`: distance of inputs and outputs.
template <class In, class Out>
void transform8(const In* in, Out* out, std::size_t step, int shift) {
  using Wide = std::int64_t;
  const auto x = [&](std::size_t i) { return static_cast<Wide>(in[i * step]); };
  const Wide shared = (x(2) + x(6)) * 4433;
  const Wide e2 = shared - x(6) * 15137, e3 = shared + x(2) * 6270;
  const Wide e0 = (x(0) + x(4)) * (1 << kBits), e1 = (x(0) - x(4)) * (1 << kBits);
  const Wide even[4] = {e0 + e3, e1 + e2, e1 - e2, e0 - e3};

  const Wide a = x(7) + x(1), b = x(5) + x(3), c = x(7) + x(3), d = x(5) + x(1);
  const Wide turn = (c + d) * 9633;
  const Wide az = a * -7373, bz = b * -20995, cz = c * -16069 + turn, dz = d * -3196 + turn;
  const Wide odd[4] = {x(1) * 12299 + az + dz, x(3) * 25172 + bz + cz, x(5) * 16819 + bz + dz, x(7) * 2446 + az + cz};

  const Wide half = Wide{1} << (shift - 1);
  for (std::size_t i = 0; i < 4; ++i) {
    out[i * step] = static_cast<Out>((even[i] + odd[i] + half) >> shift);
    out[(7 - i) * step] = static_cast<Out>((even[i] - odd[i] + half) >> shift);
  }
}

}  // namespace

std::vector<std::uint8_t> inverse_transform(Component& c) {
  const std::size_t stride = c.block_columns * 8;
  std::vector<std::uint8_t> out(stride * c.block_rows * 8);
  for (std::size_t row = 0; row < c.block_rows; ++row) {
    for (std::size_t column = 0; column < c.block_columns; ++column) {
      const std::int16_t* block = c.block(row, column);
      std::uint8_t* to = out.data() + row * 8 * stride + column * 8;
      std::array<std::int32_t, 64> values;
      bool flat = true;
      for (std::size_t i = 0; i < 64; ++i) {
        values[i] = block[i] * c.table[i];
        flat = flat && (i == 0 || values[i] == 0);
      }
      if (flat) {
        // All samples alike: what the two passes below come to.
        const std::int64_t level =
            ((std::int64_t{values[0]} * (1 << kExtra) + (1 << (kExtra + 2))) >> (kExtra + 3)) + 128;
        for (std::size_t y = 0; y < 8; ++y) {
          std::fill_n(to + y * stride, 8, static_cast<std::uint8_t>(std::clamp<std::int64_t>(level, 0, 255)));
        }
        continue;
      }
      std::array<std::int64_t, 64> between, samples;
      for (std::size_t x = 0; x < 8; ++x) transform8(values.data() + x, between.data() + x, 8, kBits - kExtra);
      for (std::size_t y = 0; y < 8; ++y) {
        transform8(between.data() + y * 8, samples.data() + y * 8, 1, kBits + kExtra + 3);
        for (std::size_t x = 0; x < 8; ++x) {
          to[y * stride + x] = static_cast<std::uint8_t>(std::clamp<std::int64_t>(samples[y * 8 + x] + 128, 0, 255));
        }
      }
    }
  }
  c.coefficients = {};
  return out;
}

Upsampler::Upsampler(const Frame& frame, Component& component)
    : columns_(component.columns),
      rows_(component.rows),
      stride_(component.block_columns * 8),
      h_(frame.most_h / component.h),
      v_(frame.most_v / component.v),
      // The standard's smooth upsampling by two; columns need two neighbours.
      smooth_((h_ == 2 && v_ <= 2 && columns_ > 2) || (h_ == 1 && v_ == 2)),
      samples_(inverse_transform(component)),
      out_(columns_ * h_ + 2 * h_) {}

const std::uint8_t* Upsampler::row(std::size_t y) {
  const std::size_t at = std::min(y / v_, rows_ - 1);
  const std::uint8_t* near = source(at);
  if (smooth_) {
    const bool upper = y % v_ == 0;
    const std::uint8_t* far = v_ == 1 ? near : source(upper ? (at == 0 ? 0 : at - 1) : std::min(at + 1, rows_ - 1));
    if (h_ == 1) {
      for (std::size_t x = 0; x < columns_; ++x) {
        out_[x] = static_cast<std::uint8_t>((near[x] * 3 + far[x] + (upper ? 1 : 2)) >> 2);
      }
    } else {
      widen_smoothly(near, v_ == 1 ? nullptr : far);
    }
    return out_.data();
  }
  if (h_ == 1) return near;
  for (std::size_t x = 0; x < columns_; ++x) std::fill_n(out_.data() + x * h_, h_, near[x]);
  return out_.data();
}

/// Twice as many columns: each output weighs its sample by 3/4 and the nearer neighbour by 1/4, and rows likewise where
/// `far` is given. Halves are rounded down and up in turn.
void Upsampler::widen_smoothly(const std::uint8_t* near, const std::uint8_t* far) {
  const int scale = far ? 16 : 4, down = far ? 8 : 1, up = far ? 7 : 2;
  const auto column = [&](std::size_t x) { return far ? near[x] * 3 + far[x] : int{near[x]}; };
  // At the edges the missing neighbour is the sample itself.
  const int last_rounding = far ? 7 : 0, first_rounding = far ? 8 : 0;
  int before = column(0), here = before;
  for (std::size_t x = 0; x < columns_; ++x) {
    const bool first = x == 0, last = x + 1 == columns_;
    const int after = last ? here : column(x + 1);
    out_[2 * x] =
        static_cast<std::uint8_t>(first ? (here * 4 + first_rounding) / scale : (here * 3 + before + down) / scale);
    out_[2 * x + 1] =
        static_cast<std::uint8_t>(last ? (here * 4 + last_rounding) / scale : (here * 3 + after + up) / scale);
    before = here;
    here = after;
  }
}

}  // namespace infernode::ops::image::jpeg
