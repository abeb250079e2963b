#pragma once

#include <cmath>
#include <initializer_list>
#include <random>

namespace infernode::bench {

/// Random sizes, the same for the same seed.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  template <class T>
  T pick(std::initializer_list<T> values) {
    return *(values.begin() + std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random_));
  }
  bool chance(double share) { return std::uniform_real_distribution<double>(0, 1)(random_) < share; }
  /// Small sizes are as likely as large ones: their logarithms are even.
  std::size_t between(double least, double most) {
    const double power = std::uniform_real_distribution<double>(std::log(least), std::log(most))(random_);
    return static_cast<std::size_t>(std::lround(std::exp(power)));
  }

 private:
  std::mt19937 random_;
};

}  // namespace infernode::bench
