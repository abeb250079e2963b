#pragma once

namespace infernode::runtime {

/// 64 digits that change with the sources of kernels and their loops, written by CMake: what a file keeps of packed
/// weights and measured methods means the same to builds from the same sources.
extern const char kPackingId[65];

}  // namespace infernode::runtime
