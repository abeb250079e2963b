#pragma once

#include <cstdint>

namespace infernode::microkernels {

// How exact float32 products must be where there is a faster way: as plain float32 arithmetic, to about 16 bits, to
// bfloat16's 8. A matrix unit has a way for each, vectors of bfloat16 one for the last; other targets are always exact.
enum class Float32Precision : std::uint8_t { kHighest, kHigh, kMedium };

}  // namespace infernode::microkernels
