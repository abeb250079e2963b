#pragma once

#include "base/cpu_features.h"

// For <family>.cpp: the tables that this architecture's build holds, and the choice between them.
#if defined(__x86_64__) || defined(_M_X64)
#define INFERNODE_DECLARE_TABLES(Type, name) extern const Type name##_sse42, name##_avx2, name##_avx512;
#define INFERNODE_PICK_TABLE(name, rung)                  \
  ((rung) >= ::infernode::CpuRung::Avx512 ? name##_avx512 \
   : (rung) >= ::infernode::CpuRung::Avx2 ? name##_avx2   \
                                          : name##_sse42)
#elif defined(__aarch64__) || defined(_M_ARM64)
#define INFERNODE_DECLARE_TABLES(Type, name) extern const Type name##_neon;
#define INFERNODE_PICK_TABLE(name, rung) (static_cast<void>(rung), name##_neon)
#else
#define INFERNODE_DECLARE_TABLES(Type, name) extern const Type name##_scalar;
#define INFERNODE_PICK_TABLE(name, rung) (static_cast<void>(rung), name##_scalar)
#endif

// Of families with a table for the matrix unit beside them.
#if defined(__x86_64__) || defined(_M_X64)
#define INFERNODE_DECLARE_TABLES_AND_AMX(Type, name) \
  INFERNODE_DECLARE_TABLES(Type, name)               \
  extern const Type name##_amx;
#define INFERNODE_PICK_TABLE_OR_AMX(name, rung) \
  ((rung) >= ::infernode::CpuRung::Amx ? name##_amx : INFERNODE_PICK_TABLE(name, rung))
#else
#define INFERNODE_DECLARE_TABLES_AND_AMX INFERNODE_DECLARE_TABLES
#define INFERNODE_PICK_TABLE_OR_AMX INFERNODE_PICK_TABLE
#endif

#define INFERNODE_TABLE_CHOICE_WITH_AMX(Type, name)                                           \
  namespace infernode::microkernels {                                                         \
  INFERNODE_DECLARE_TABLES_AND_AMX(Type, name)                                                \
  const Type& name(CpuRung rung) noexcept { return INFERNODE_PICK_TABLE_OR_AMX(name, rung); } \
  }  // namespace infernode::microkernels

// Of families with loops of medium precision for CPUs that multiply bfloat16. Both define
// `const Type& name(CpuRung, Float32Precision)`; the second is for those that have tables for the matrix unit, too.
#if defined(__x86_64__) || defined(_M_X64)
#define INFERNODE_TABLE_CHOICE_WITH_BF16(Type, name)                                         \
  namespace infernode::microkernels {                                                        \
  INFERNODE_DECLARE_TABLES(Type, name)                                                       \
  extern const Type name##_bf16;                                                             \
  const Type& name(CpuRung rung, Float32Precision precision) noexcept {                      \
    if (precision == Float32Precision::kMedium && rung == CpuRung::Bf16) return name##_bf16; \
    return INFERNODE_PICK_TABLE(name, rung);                                                 \
  }                                                                                          \
  }  // namespace infernode::microkernels
#define INFERNODE_TABLE_CHOICE_WITH_BF16_AND_AMX(Type, name) \
  INFERNODE_TABLE_CHOICE_WITH_AMX_HIGH(Type, name, name##_amx)
// `high`: the matrix unit's table of that precision.
#define INFERNODE_TABLE_CHOICE_WITH_AMX_HIGH(Type, name, high)                     \
  namespace infernode::microkernels {                                              \
  INFERNODE_DECLARE_TABLES_AND_AMX(Type, name)                                     \
  extern const Type name##_bf16, name##_amx_medium, high;                          \
  const Type& name(CpuRung rung, Float32Precision precision) noexcept {            \
    if (precision == Float32Precision::kMedium && rung >= CpuRung::Bf16)           \
      return rung == CpuRung::Bf16 ? name##_bf16 : name##_amx_medium;              \
    if (precision == Float32Precision::kHigh && rung >= CpuRung::Amx) return high; \
    return INFERNODE_PICK_TABLE_OR_AMX(name, rung);                                \
  }                                                                                \
  }  // namespace infernode::microkernels
#else
#define INFERNODE_TABLE_CHOICE_WITH_BF16(Type, name)                                                     \
  namespace infernode::microkernels {                                                                    \
  INFERNODE_DECLARE_TABLES(Type, name)                                                                   \
  const Type& name(CpuRung rung, Float32Precision) noexcept { return INFERNODE_PICK_TABLE(name, rung); } \
  }  // namespace infernode::microkernels
#define INFERNODE_TABLE_CHOICE_WITH_BF16_AND_AMX INFERNODE_TABLE_CHOICE_WITH_BF16
#define INFERNODE_TABLE_CHOICE_WITH_AMX_HIGH(Type, name, high) INFERNODE_TABLE_CHOICE_WITH_BF16(Type, name)
#endif

// Defines `const Type& name(CpuRung)`.
#define INFERNODE_TABLE_CHOICE(Type, name)                                             \
  namespace infernode::microkernels {                                                  \
  INFERNODE_DECLARE_TABLES(Type, name)                                                 \
  const Type& name(CpuRung rung) noexcept { return INFERNODE_PICK_TABLE(name, rung); } \
  }  // namespace infernode::microkernels
