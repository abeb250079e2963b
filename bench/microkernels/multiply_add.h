#pragma once

// The rate at which this CPU multiplies and adds, with nothing read or written in between: what the loops that multiply
// matrices are measured against.

#include <cstddef>

namespace infernode::bench {

inline constexpr std::size_t kSums = 12;  ///< vectors of sums in flight: more than latency times units
std::size_t multiply_add_avx2(std::size_t turns, float& sum) noexcept;
std::size_t multiply_add_avx512(std::size_t turns, float& sum) noexcept;
/// Operations on bfloat16 numbers in tiles.
std::size_t multiply_add_amx(std::size_t turns, float& sum) noexcept;

}  // namespace infernode::bench
