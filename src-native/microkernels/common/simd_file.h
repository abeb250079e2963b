#pragma once

#include "microkernels/tables.h"
#include "simd/simd.h"

// What every file of loops includes. Such a file defines its tables and no other symbol; all else is in unnamed
// namespaces or forced inline, and no standard library function may be instantiated. Its tables are
//   INFERNODE_TABLE(GemmTable, gemm) = {...};               gemm_table_<target>, for every precision
//   INFERNODE_TABLE_OF(GemmTable, gemm, medium) = {...};    gemm_table_<target>_medium, for one
// CMake finds these lines and writes microkernels/tables.h, which declares all tables and chooses between them.
// INFERNODE_TABLE_NAME(gemm) is the table that the same target has for every precision.
#define INFERNODE_TABLE_NAME(name) INFERNODE_SIMD_CAT(INFERNODE_SIMD_CAT(name, _table_), INFERNODE_LOOPS)
#define INFERNODE_TABLE(Type, name)             \
  extern const Type INFERNODE_TABLE_NAME(name); \
  constexpr Type INFERNODE_TABLE_NAME(name)
#define INFERNODE_TABLE_OF(Type, name, precision)                                 \
  extern const Type INFERNODE_SIMD_CAT(INFERNODE_TABLE_NAME(name), _##precision); \
  constexpr Type INFERNODE_SIMD_CAT(INFERNODE_TABLE_NAME(name), _##precision)
#define INFERNODE_TEXT_OF(x) #x
#define INFERNODE_TARGET_NAME(x) INFERNODE_TEXT_OF(x)

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
