#pragma once

#include "base/cpu_rung.h"
#include "microkernels/common/precision.h"

// The microkernels of one CPU and precision. Who has a set asks no more what the CPU is or how exact products must be:
// its tables are chosen, and their members say what they need and do.
namespace infernode::microkernels {

struct BlockedConvTable;
struct BlockedWinogradTable;
struct ConvertTable;
struct ConvTable;
struct DftTable;
struct ElementwiseTable;
struct GemmTable;
struct PoolTable;
struct PowerTable;
struct QgemmTable;
struct ReduceTable;
struct RnnTable;
struct ToomTable;
struct TransposeTable;
struct TreesTable;
struct WinogradTable;

struct KernelSet {
  CpuRung rung;
  Float32Precision precision;  // of float32 products

  const GemmTable& gemm;          // packs B for `precision`
  const GemmTable& gemm_float32;  // packs B as float32 numbers
  const QgemmTable& qgemm;
  const ConvTable& conv;
  const BlockedConvTable& blocked_conv;
  const BlockedWinogradTable& blocked_winograd;
  const WinogradTable& winograd;
  const ToomTable& toom;
  const PowerTable* powers;  // null where products are not of bfloat16
  const ConvertTable& convert;
  const ElementwiseTable& elementwise;
  const ReduceTable& reduce;
  const PoolTable& pool;
  const RnnTable& rnn;
  const DftTable& dft;
  const TransposeTable& transpose;
  const TreesTable& trees;

  // The set of the same CPU whose products are as exact as float32 arithmetic.
  const KernelSet& exact() const noexcept;
};

// A constant of the program. A rung of another architecture has the loops of this one's oldest CPUs.
const KernelSet& kernel_set(CpuRung rung, Float32Precision precision = Float32Precision::kHighest) noexcept;

}  // namespace infernode::microkernels
