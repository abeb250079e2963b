#pragma once

#include <cstddef>
#include <cstdint>

// Two-dimensional transposes by element size: y[c * ld_y + r] = x[r * ld_x + c]. Arrays must not overlap;
// leading dimensions are counted in elements.
namespace infernode::microkernels {

template <typename T>
using Transpose2d = void (*)(const T* x, std::size_t ld_x, T* y, std::size_t ld_y, std::size_t rows,
                             std::size_t cols) noexcept;

struct TransposeTable {
  const char* name;
  Transpose2d<std::uint8_t> bytes1;
  Transpose2d<std::uint16_t> bytes2;
  Transpose2d<std::uint32_t> bytes4;
  Transpose2d<std::uint64_t> bytes8;
};

}  // namespace infernode::microkernels
