#pragma once

#include "microkernels/simd_file.h"

// The register tile of float32 products inside *.simd.cpp files: accumulators, one row of B and one element of A fill
// the vector registers.
namespace infernode::microkernels {
namespace {

#if INFERNODE_SIMD_ID == 3
constexpr std::size_t kMr = 12, kNv = 2;
#elif INFERNODE_SIMD_ID == 2
constexpr std::size_t kMr = 6, kNv = 2;
#elif INFERNODE_SIMD_ID == 4
constexpr std::size_t kMr = 6, kNv = 4;
#else
constexpr std::size_t kMr = 4, kNv = 2;
#endif
constexpr std::size_t kNr = kNv * kLanes;

}  // namespace
}  // namespace infernode::microkernels
