#pragma once

#include "simd/simd.h"

// What every *.simd.cpp includes. Such a file defines one symbol, its table, named by INFERNODE_TABLE; all else is in
// unnamed namespaces or forced inline, and no standard library function may be instantiated.
#define INFERNODE_TABLE(name) INFERNODE_SIMD_CAT(INFERNODE_SIMD_CAT(name, _), INFERNODE_TARGET)
#define INFERNODE_TARGET_NAME_(x) #x
#define INFERNODE_TARGET_NAME(x) INFERNODE_TARGET_NAME_(x)

#if defined(__clang__)
#define INFERNODE_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define INFERNODE_UNROLL _Pragma("GCC unroll 64")
#else
#define INFERNODE_UNROLL
#endif

namespace infernode::microkernels {
namespace {
using namespace simd::INFERNODE_TARGET;

template <typename T>
constexpr T smaller(T a, T b) noexcept {
  return a < b ? a : b;
}
template <typename T>
constexpr T larger(T a, T b) noexcept {
  return a < b ? b : a;
}
constexpr std::size_t divide_up(std::size_t a, std::size_t b) noexcept { return (a + b - 1) / b; }
}  // namespace
}  // namespace infernode::microkernels
