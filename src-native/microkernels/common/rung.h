#pragma once

#include <cstdint>

namespace infernode {

// base/cpu_features.h; declared here so that *.simd.cpp files see no library header through a table's header.
enum class CpuRung : std::uint8_t;

}  // namespace infernode
