#pragma once

#include <cstddef>
#include <cstdint>

// The powers of a softmax for products of bfloat16: as exact as those need.
namespace infernode::microkernels {

struct PowerTable {
  const char* name;
  // y = exp(scale * (x - the greatest of x)), scale > 0, as bfloat16; returns their sum, before they were rounded. y
  // may begin where x does. NaN in x, and a row of only -infinity, give a sum of NaN.
  float (*powers)(const float* x, std::uint16_t* y, std::size_t n, float scale) noexcept;
};

}  // namespace infernode::microkernels
