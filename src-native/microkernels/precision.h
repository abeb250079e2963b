#pragma once

#include <cstdint>

namespace infernode::microkernels {

// How exact float32 products must be where a faster way exists: as plain float32 arithmetic, to about 16 bits, or to
// bfloat16's 8. Targets without a matrix unit are always exact.
enum class Float32Precision : std::uint8_t { kHighest, kHigh, kMedium };

}  // namespace infernode::microkernels
