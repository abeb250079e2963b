#pragma once
// Rows of scores and what is done to them, in float or double, by the loops of a set.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "base/half.h"
#include "microkernels/attention/attention.h"
#include "microkernels/elementwise/elementwise.h"
#include "microkernels/gemm/gemm.h"
#include "microkernels/kernel_set.h"
#include "microkernels/reduce/reduce.h"
#include "ops/math/softmax16.h"
#include "ops/norm/float_rows.h"
#include "tensor/tensor.h"

namespace infernode::ops {

/// Multiplies numbers of type T in parts of so many multiply-adds, with a look between two: columns by columns, or
/// where sums are long, and B is not `packed`, by parts of the sums.
template <class T, class Args, class Multiply>
void multiply_in_parts(const kernel::RunContext& run, Args args, bool packed, const Multiply& multiply) {
  constexpr std::size_t kMost = std::size_t{1} << 26, kLeastDepth = 1 << 12, kLeastColumns = 64;
  const bool deep = !packed && args.k > kLeastDepth;
  constexpr std::size_t kLeastEach = 64;  // products in the time that a short sum takes, or a row of few columns
  const auto fit = [&](std::size_t each) {
    return kMost / (std::max<std::size_t>(1, args.m) * std::max(kLeastEach, each));
  };
  const std::size_t columns = deep ? args.n : std::max(fit(args.k) / kLeastColumns * kLeastColumns, kLeastColumns);
  const std::size_t depth = deep ? std::max(fit(args.n), kLeastDepth) : args.k;
  for (std::size_t left = args.k;;) {
    args.k = std::min(left, depth);
    for (std::size_t first = 0; first < args.n; first += columns) {
      if (first > 0) run.check();
      multiply(args, microkernels::GemmRange{0, args.m, first, std::min(first + columns, args.n)});
    }
    left -= args.k;
    if (left == 0) return;
    run.check();
    args.a = static_cast<const T*>(args.a) + args.k;
    args.b = static_cast<const T*>(args.b) + (args.trans_b ? args.k : args.k * args.ldb);
    args.accumulate = true;
  }
}

template <class T>
class AttentionLoops;

template <>
class AttentionLoops<float> {
 public:
  explicit AttentionLoops(const microkernels::KernelSet& kernels) : kernels_(kernels), gemm_(kernels.gemm) {}
  std::size_t scratch_floats() const { return gemm_.scratch_floats; }
  std::size_t tile_rows() const { return gemm_.mr; }
  /// Whether products are of operands that are split into pieces first.
  bool splits() const { return gemm_.splits; }
  /// The form in which operands are kept that several blocks multiply by; `memory` is to hold it.
  microkernels::PackedOperand operand(std::size_t n, std::size_t k, const void* memory = nullptr) const {
    return gemm_.operand.packed(n, k, memory);
  }
  void pack(const microkernels::PackedOperand& operand, const float* b, std::size_t ldb, bool trans_b,
            void* memory) const {
    gemm_.operand.pack(operand.n, operand.k, b, microkernels::FloatType::kF32, ldb, trans_b, memory, 0, operand.n);
  }

  /// Whether the first k rows of what is packed can be multiplied by.
  bool takes_depth(std::size_t k, const microkernels::PackedOperand& packed) const {
    return k % gemm_.operand.depth_unit == 0 || k == packed.k;
  }

  /// c[m, n] = alpha * a[m, k] * b, b [n, k] where `trans_b`, else [k, n]; `packed`, where it is, holds b. Looks in
  /// between whether the run is to end, where that may take long.
  void multiply(const kernel::RunContext& run, std::size_t m, std::size_t n, std::size_t k, double alpha,
                const float* a, std::size_t lda, const float* b, std::size_t ldb, bool trans_b,
                const microkernels::PackedOperand& packed, float* c, std::size_t ldc, float* scratch) const {
    microkernels::GemmArgs args{
        .m = m, .n = n, .k = k, .alpha = static_cast<float>(alpha), .a = a, .lda = lda, .epilogue = {}};
    args.b = b;
    args.ldb = ldb;
    args.trans_b = trans_b;
    args.packed_b = packed;
    args.c = c;
    args.ldc = ldc;
    multiply_in_parts<float>(run, args, static_cast<bool>(packed),
                             [&](const auto& part, const auto& range) { gemm_.gemm(part, range, scratch); });
  }
  /// Whether rows of scores may become powers of 16 bits, whose products are divided by their sums.
  bool makes_powers() const { return kernels_.powers != nullptr; }
  /// The same powers, in the first half of x.
  float powers(float* x, std::size_t n, double scale) const {
    return kernels_.powers->powers(x, reinterpret_cast<std::uint16_t*>(x), n, static_cast<float>(scale));
  }
  /// Powers in the first half of x become float32.
  static void widen(float* x, std::size_t n) {
    for (std::size_t i = n; i-- > 0;) {
      std::uint16_t bits;
      std::memcpy(&bits, reinterpret_cast<const std::uint16_t*>(x) + i, sizeof bits);
      x[i] = static_cast<float>(BFloat16::from_bits(bits));
    }
  }
  /// The sum of magnitudes: not finite where an element is not, or if they are very large.
  float magnitude(const float* x, std::size_t n) const {
    return kernels_.reduce.row[static_cast<std::size_t>(microkernels::ReduceOp::kSumAbs)](x, n);
  }
  /// c[m, n] = powers[m, k] * packed, the rows of powers `lda` floats apart.
  void multiply_powers(std::size_t m, std::size_t n, std::size_t k, const float* powers, std::size_t lda,
                       const microkernels::PackedOperand& packed, float* c, std::size_t ldc, float* scratch) const {
    microkernels::GemmArgs args{.m = m, .n = n, .k = k, .a = powers, .lda = 2 * lda, .epilogue = {}};
    args.a_type = microkernels::FloatType::kBf16;
    args.packed_b = packed;
    args.c = c;
    args.ldc = ldc;
    gemm_.gemm(args, {0, m, 0, n}, scratch);
  }
  void scale(float* x, std::size_t n, double factor) const {
    kernels_.elementwise[microkernels::UnaryOp::kAffine](x, x, n, static_cast<float>(factor), 0);
  }
  void divide(float* x, std::size_t n, double divisor) const {
    const auto d = static_cast<float>(divisor);
    kernels_.elementwise.vector_scalar[static_cast<std::size_t>(microkernels::BinaryOp::kDiv)](x, &d, x, n);
  }
  void tanh(float* x, std::size_t n) const { kernels_.elementwise[microkernels::UnaryOp::kTanh](x, x, n, 0, 0); }
  /// x += mask where no element of the mask is -infinity (or NaN); else does nothing and returns false.
  bool add_open(const float* mask, float* x, std::size_t n) const {
    if (!(kernels_.reduce.row[static_cast<std::size_t>(microkernels::ReduceOp::kMin)](mask, n) >
          -std::numeric_limits<float>::infinity()))
      return false;
    kernels_.elementwise.vector_vector[static_cast<std::size_t>(microkernels::BinaryOp::kAdd)](x, mask, x, n);
    return true;
  }
  /// Rounding to `type` at each step where it is a 16-bit one.
  void softmax(kernel::Watch& watch, tensor::DType type, float* x, std::size_t n) const {
    if (type != tensor::DType::Float16 && type != tensor::DType::BFloat16)
      return FloatRows(kernels_).softmax(watch, x, x, n);
    const Softmax16 steps(kernels_, type);
    in_pieces(watch, n, 1.0, [&](std::size_t begin, std::size_t end) { steps.round(x + begin, end - begin); });
    steps(watch, x, n);
  }
  /// x = exp(scale * (x - the greatest x)); returns their sum.
  float exponentials(kernel::Watch& watch, float* x, std::size_t n, double scale) const {
    return FloatRows(kernels_).exponentials(watch, x, n, static_cast<float>(scale));
  }
  void round(tensor::DType type, float* x, std::size_t n) const { Softmax16(kernels_, type).round(x, n); }

 private:
  const microkernels::KernelSet& kernels_;
  const microkernels::GemmTable& gemm_;
};

template <>
class AttentionLoops<double> {
 public:
  explicit AttentionLoops(const microkernels::KernelSet& kernels) : gemm_(kernels.gemm_float32) {}
  static bool splits() { return false; }
  std::size_t scratch_floats() const { return gemm_.scratch_floats; }
  static std::size_t tile_rows() { return 1; }
  static microkernels::PackedOperand operand(std::size_t, std::size_t, const void* = nullptr) { return {}; }
  static void pack(const microkernels::PackedOperand&, const double*, std::size_t, bool, void*) {}
  static bool takes_depth(std::size_t, const microkernels::PackedOperand&) { return true; }

  void multiply(const kernel::RunContext& run, std::size_t m, std::size_t n, std::size_t k, double alpha,
                const double* a, std::size_t lda, const double* b, std::size_t ldb, bool trans_b,
                const microkernels::PackedOperand&, double* c, std::size_t ldc, float* scratch) const {
    const microkernels::DgemmArgs args{.m = m,
                                       .n = n,
                                       .k = k,
                                       .alpha = alpha,
                                       .a = a,
                                       .lda = lda,
                                       .b = b,
                                       .ldb = ldb,
                                       .trans_b = trans_b,
                                       .c = c,
                                       .ldc = ldc};
    multiply_in_parts<double>(run, args, false,
                              [&](const auto& part, const auto& range) { gemm_.dgemm(part, range, scratch); });
  }
  static bool makes_powers() { return false; }
  static float powers(double*, std::size_t, double) { return 0; }
  static void widen(double*, std::size_t) {}
  static double magnitude(const double* x, std::size_t n) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += std::abs(x[i]);
    return sum;
  }
  static void multiply_powers(std::size_t, std::size_t, std::size_t, const double*, std::size_t,
                              const microkernels::PackedOperand&, double*, std::size_t, float*) {}
  static void scale(double* x, std::size_t n, double factor) {
    for (std::size_t i = 0; i < n; ++i) x[i] *= factor;
  }
  static void divide(double* x, std::size_t n, double divisor) {
    for (std::size_t i = 0; i < n; ++i) x[i] /= divisor;
  }
  static bool add_open(const double*, double*, std::size_t) { return false; }
  static void tanh(double* x, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) x[i] = std::tanh(x[i]);
  }
  static double exponentials(kernel::Watch& watch, double* x, std::size_t n, double scale) {
    double most = x[0];
    each_in_pieces(watch, n, 1.0, [&](std::size_t i) { most = std::max(most, x[i]); });
    return kernel::sum_in_pieces<double>(watch, n, 10.0, [&](std::size_t i) {
      x[i] = std::exp(scale * (x[i] - most));
      return x[i];
    });
  }
  static void softmax(kernel::Watch& watch, tensor::DType, double* x, std::size_t n) {
    const double sum = exponentials(watch, x, n, 1);
    in_pieces(watch, n, 2.0, [&](std::size_t begin, std::size_t end) { divide(x + begin, end - begin, sum); });
  }
  static void round(tensor::DType, double*, std::size_t) {}

 private:
  const microkernels::GemmTable& gemm_;
};

}  // namespace infernode::ops
