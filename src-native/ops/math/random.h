#pragma once
// The generator behind every random draw: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy
// as 1, 2, 3", SC'11). Draw i is a function of the key and i alone, so draws do not depend on how a loop is split. The
// arithmetic behind a draw is plain integer and IEEE double operations, so they do not depend on the platform's
// mathematical library either.

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>

namespace infernode::ops {

class Philox {
 public:
  using Block = std::array<std::uint32_t, 4>;
  explicit Philox(std::uint64_t key) : key_(key) {}

  static Block block(Block counter, std::uint32_t key0, std::uint32_t key1) {
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0], b = std::uint64_t{0xCD9E8D57} * counter[2];
      counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(b),
                 static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(a)};
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    return counter;
  }

  /// Uniform numbers 2 * pair and 2 * pair + 1, multiples of 2^-53 in [0, 1).
  std::pair<double, double> uniform_pair(std::uint64_t pair) const {
    const Block b = block({static_cast<std::uint32_t>(pair), static_cast<std::uint32_t>(pair >> 32), 0, 0},
                          static_cast<std::uint32_t>(key_), static_cast<std::uint32_t>(key_ >> 32));
    return {to_unit(b[0], b[1]), to_unit(b[2], b[3])};
  }
  double uniform(std::uint64_t i) const {
    const auto [first, second] = uniform_pair(i / 2);
    return i % 2 == 0 ? first : second;
  }
  /// Standard normal numbers 2 * pair and 2 * pair + 1, by Box and Muller's transformation of the uniform ones.
  std::pair<double, double> normal_pair(std::uint64_t pair) const;

  /// f(i, draw i) for i in [begin, end); `pairs` is uniform_pair or normal_pair.
  template <class F>
  void each(std::pair<double, double> (Philox::*pairs)(std::uint64_t) const, std::size_t begin, std::size_t end,
            F f) const {
    for (std::size_t i = begin; i < end;) {
      const auto [first, second] = (this->*pairs)(i / 2);
      if (i % 2 == 0) f(i++, first);
      if (i < end) f(i++, second);
    }
  }

 private:
  static double to_unit(std::uint32_t low, std::uint32_t high) {
    return static_cast<double>((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
  }
  std::uint64_t key_;
};

/// exp(x) for x <= 0, within a few units in the last place, the same on every platform.
inline double portable_exp(double x) {
  if (!(x > -700)) return x != x ? x : 0;
  const double k = std::floor(x * 1.4426950408889634 + 0.5);
  const double r = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;  // ln 2 in two parts, the first short
  double sum = 1;
  for (int n = 14; n > 0; --n) sum = 1 + sum * r / n;
  return std::ldexp(sum, static_cast<int>(k));
}

/// Natural logarithm of a normal positive number, likewise.
inline double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), square = s * s;  // ln m = 2 artanh s, |s| < 0.172
  double sum = 0;
  for (int n = 23; n > 0; n -= 2) sum = sum * square + 1.0 / n;
  return exponent * 0x1.62e42fefa39efp-1 + 2 * s * sum;
}

/// {cos, sin} of 2 pi u for u in [0, 1), likewise.
inline std::pair<double, double> portable_turn(double u) {
  const double octants = std::floor(u * 8 + 1);  // the nearest quarter turn is octants / 2
  const int quarter = static_cast<int>(octants) / 2;
  const double x = (u - quarter * 0.25) * 6.283185307179586, square = x * x;  // |x| <= pi / 4
  double sine = 0, cosine = 0;
  for (int n = 17; n > 1; n -= 2) {
    sine = (1 + sine) * -square / (n * (n - 1));
    cosine = (1 + cosine) * -square / ((n - 1) * (n - 2));
  }
  sine = x * (1 + sine);
  cosine = 1 + cosine;
  switch (quarter % 4) {
    case 0:
      return {cosine, sine};
    case 1:
      return {-sine, cosine};
    case 2:
      return {-cosine, -sine};
    default:
      return {sine, -cosine};
  }
}

inline std::pair<double, double> Philox::normal_pair(std::uint64_t pair) const {
  const auto [u, v] = uniform_pair(pair);
  const double radius = std::sqrt(-2 * portable_log(1 - u));
  const auto [cosine, sine] = portable_turn(v);
  return {radius * cosine, radius * sine};
}

/// The generator of one run of a node: by its seed, or by fresh entropy of the system.
inline Philox philox_of(const std::optional<std::uint64_t>& seed) {
  if (seed) return Philox(*seed);
  std::random_device entropy;
  const std::uint64_t high = entropy();
  return Philox(high << 32 | entropy());
}

/// The key that a float attribute `seed` stands for: its bits.
inline std::uint64_t seed_key(float seed) { return std::bit_cast<std::uint32_t>(seed); }

}  // namespace infernode::ops
