#pragma once
// What a method of computing something is expected to take. A method counts what a call of it does (Terms:
// multiply-adds, floats moved, calls, ...); a table says how long one of each takes on a kind of CPU. bench/calibrate
// measures methods over many shapes, fits the tables (cost/fit.h) and writes them into cost/tables/.

#include <array>
#include <span>
#include <string_view>

#include "base/cpu_features.h"
#include "microkernels/common/precision.h"

namespace infernode::cost {

/// How often a call does what each of the method's rates is for; those it has no use for are 0.
using Terms = std::array<double, 8>;

/// One method on one kind of CPU.
struct Row {
  std::string_view method;
  Terms rates;      ///< nanoseconds of one of each term, on one thread
  double residual;  ///< of the fit: root of the mean square of (expected - measured) / measured
};

/// Rows of the CPUs whose loops are those of `rung` at `precision`. Rungs that no table was measured for have those of
/// the nearest one: baseline and those of AArch64 have AVX2's, AVX512-VNNI has AVX-512's.
std::span<const Row> table(CpuRung rung, microkernels::Float32Precision precision) noexcept;

/// The row of a method; nullptr where it was not measured there.
const Row* find(std::span<const Row> table, std::string_view method) noexcept;

double nanoseconds(const Terms& terms, const Terms& rates) noexcept;

/// How many times less a method of the matrix unit has to promise than one of vectors: others on the host slow the unit
/// down, and its rates keep less well. `INFERNODE_CPU=amx bench_calibrate judge conv highest TIMES MARGIN` says what a
/// margin gives. On a Xeon, of 3,145 choices of convolutions (400 1, 100 2 and 1300 3), those slower by more than a
/// tenth than with vectors were 109 at 1, 32 at 1.2 and 10 at 1.4, and vectors took 1.12, 1.11 and 1.07 times as long
/// in all; of 900 products (300 1 and 600 3) 2, 0 and 0, and 1.19, 1.16 and 1.05 times. Attention has no margin: of 69
/// calls at medium (80 1) 3, 0 and 0, and 1.26, 1.13 and 1.03 times; at highest strips of vectors are chosen for 90
/// of 91.
constexpr double kUnitConvMargin = 1.4, kUnitProductMargin = 1.2;

/// The same of a convolution in plain order beside one in blocks: between blocks it costs its neighbours more than the
/// two conversions, and near ties are many.
constexpr double kPlainConvMargin = 1.05;

}  // namespace infernode::cost
