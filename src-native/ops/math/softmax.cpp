#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernel/counted.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "microkernels/elementwise/elementwise.h"
#include "microkernels/reduce/reduce.h"
#include "microkernels/transpose/transpose.h"
#include "ops/common/reals.h"
#include "ops/math/columns.h"
#include "ops/math/softmax16.h"
#include "ops/norm/float_rows.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using microkernels::BinaryOp;
using microkernels::UnaryOp;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

/// The input as [outer, n, inner], the operator working along n.
struct Axis {
  std::size_t outer, n, inner;
};

/// Attribute `axis`: before version 13 it splits the dims into rows and columns of a matrix, since then it is the one
/// axis that counts.
class AxisAttribute {
 public:
  explicit AxisAttribute(const KernelInfo& info)
      : flatten_(info.since_version() < 13), axis_(info.attributes().get_int("axis", flatten_ ? 1 : -1)) {}
  Axis of(const Shape& shape) const {
    const std::size_t rank = shape.rank();
    const bool whole = flatten_ && axis_ == static_cast<std::int64_t>(rank);  // rows of one element
    const std::size_t at = whole ? rank : tensor::normalize_axis(axis_, rank);
    const auto part = [&](std::size_t from, std::size_t to) { return static_cast<std::size_t>(shape.numel(from, to)); };
    if (flatten_) return {part(0, at), part(at, rank), 1};
    return {part(0, at), part(at, at + 1), part(at + 1, rank)};
  }

 private:
  bool flatten_;
  std::int64_t axis_;
};

/// Softmax and LogSoftmax.
template <bool Log>
class SoftmaxKernel final : public kernel::Kernel {
 public:
  explicit SoftmaxKernel(KernelInfo& info)
      : kernels_(info.kernels()),
        reduce_(kernels_.reduce),
        elementwise_(kernels_.elementwise),
        rows_(kernels_),
        axis_(info) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Axis axis = axis_.of(x.shape());
    const Tensor y = ctx.output(0, x.shape());
    if (x.numel() == 0) return;
    dispatch_reals(x.dtype(), "Softmax", [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, x);
      const RealOutput<T> out(ctx, kernels_, y);
      if (!Log && (x.dtype() == DType::Float16 || x.dtype() == DType::BFloat16)) {
        if constexpr (std::is_same_v<T, float>) steps16(ctx, axis, Softmax16(kernels_, x.dtype()), in, out);
      } else if (std::is_same_v<T, float> && short_rows(axis)) {
        if constexpr (std::is_same_v<T, float>) turned(ctx, axis, in, out);
      } else if (axis.inner == 1) {
        rows<T>(ctx, axis, in, out);
      } else {
        columns<T>(ctx, axis, in, out);
      }
      out.store();
    });
  }

 private:
  template <class T>
  void rows(KernelContext& ctx, const Axis& axis, const T* x, T* y) const {
    constexpr double kCost = std::is_same_v<T, float> ? 1 : 10;
    ctx.parallel_for(
        axis.outer, static_cast<double>(axis.n) * kCost, [&](std::size_t begin, std::size_t end, std::size_t) {
          kernel::Watch watch(ctx.run());
          for (std::size_t row = begin; row < end; ++row) {
            const std::size_t at = row * axis.n;
            if constexpr (std::is_same_v<T, float>) {
              Log ? rows_.log_softmax(watch, x + at, y + at, axis.n) : rows_.softmax(watch, x + at, y + at, axis.n);
            } else {
              strided(watch, x + at, y + at, axis.n, 1);
            }
          }
        });
  }

  static void steps16(KernelContext& ctx, const Axis& axis, const Softmax16& softmax, const float* x, float* y) {
    ctx.parallel_for(axis.outer * axis.inner, static_cast<double>(axis.n) * 4,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       kernel::CountedVector<float> row(axis.n, ctx.run());
                       kernel::Watch watch(ctx.run());
                       const double step = step_ns(axis.inner * sizeof(float));
                       for (std::size_t i = begin; i < end; ++i) {
                         const std::size_t at = i / axis.inner * axis.n * axis.inner + i % axis.inner;
                         each_in_pieces(watch, axis.n, step, [&](std::size_t k) { row[k] = x[at + k * axis.inner]; });
                         softmax(watch, row.data(), axis.n);
                         each_in_pieces(watch, axis.n, step, [&](std::size_t k) { y[at + k * axis.inner] = row[k]; });
                       }
                     });
  }

  /// Whether vectors along the rows in memory would be few or none.
  static bool short_rows(const Axis& axis) {
    constexpr std::size_t kFewColumns = 16, kFewElements = 32, kMostTurned = 2048;
    if (axis.inner == 1) return axis.n <= kFewElements;
    return axis.inner < kFewColumns && axis.n * axis.inner <= kMostTurned;
  }

  /// Several of the outer parts turned, so that their columns lie beside each other and vectors go across the parts.
  void turned(KernelContext& ctx, const Axis& axis, const float* x, float* y) const {
    constexpr std::size_t kFloats = 32768, kMultiple = 16;
    const std::size_t part = axis.n * axis.inner;
    const std::size_t most = std::min(kBlock / axis.inner, kFloats / part) / kMultiple * kMultiple;
    const std::size_t groups = (axis.outer + most - 1) / most;
    ctx.parallel_for(groups, static_cast<double>(part * most), [&](std::size_t begin, std::size_t end, std::size_t) {
      std::vector<float> columns(part * std::min(most, axis.outer));
      kernel::Watch watch(ctx.run());
      const auto turn = [&](const float* from, float* to, std::size_t count_rows, std::size_t count_columns) {
        kernels_.transpose.bytes4(reinterpret_cast<const std::uint32_t*>(from), count_columns,
                                  reinterpret_cast<std::uint32_t*>(to), count_rows, count_rows, count_columns);
      };
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t first = i * most, parts = std::min(most, axis.outer - first);
        turn(x + first * part, columns.data(), parts, part);
        block(watch, columns.data(), columns.data(), {1, axis.n, axis.inner * parts}, axis.inner * parts);
        turn(columns.data(), y + first * part, part, parts);
      }
    });
  }

  static constexpr std::size_t kBlock = 256;  ///< columns

  /// Columns in blocks that stay in the first-level cache together with their running maximum and sum.
  template <class T>
  void columns(KernelContext& ctx, const Axis& axis, const T* x, T* y) const {
    const std::size_t blocks = (axis.inner + kBlock - 1) / kBlock;
    constexpr double kCost = std::is_same_v<T, float> ? 1 : 10;
    ctx.parallel_for(axis.outer * blocks, static_cast<double>(axis.n * std::min(kBlock, axis.inner)) * kCost,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       kernel::Watch watch(ctx.run());
                       for (std::size_t i = begin; i < end; ++i) {
                         const std::size_t first = i % blocks * kBlock, count = std::min(kBlock, axis.inner - first);
                         const std::size_t at = i / blocks * axis.n * axis.inner + first;
                         if constexpr (std::is_same_v<T, float>) {
                           block(watch, x + at, y + at, axis, count);
                         } else {
                           for (std::size_t c = 0; c < count; ++c)
                             strided(watch, x + at + c, y + at + c, axis.n, axis.inner);
                         }
                       }
                     });
  }

  void block(kernel::Watch& watch, const float* x, float* y, const Axis& axis, std::size_t count) const {
    const auto binary = [&](BinaryOp op) { return elementwise_.vector_vector[static_cast<std::size_t>(op)]; };
    const auto max_of_columns = reduce_.columns[static_cast<std::size_t>(microkernels::ReduceOp::kMax)];
    const double ns_of_row = static_cast<double>(count) + step_ns(axis.inner * sizeof(float));
    float most[kBlock], sum[kBlock], power[kBlock];
    std::fill(most, most + count, -std::numeric_limits<float>::infinity());
    in_pieces(watch, axis.n, ns_of_row, [&](std::size_t begin, std::size_t end) {
      max_of_columns(x + begin * axis.inner, end - begin, axis.inner, count, power);
      binary(BinaryOp::kMax)(most, power, most, count);
    });
    std::fill(sum, sum + count, 0.0f);
    each_in_pieces(watch, axis.n, ns_of_row, [&](std::size_t r) {
      float* out = y + r * axis.inner;
      binary(BinaryOp::kSub)(x + r * axis.inner, most, out, count);
      float* terms = Log ? power : out;
      elementwise_[UnaryOp::kExp](out, terms, count, 0, 0);
      binary(BinaryOp::kAdd)(sum, terms, sum, count);
    });
    if (Log) elementwise_[UnaryOp::kLog](sum, sum, count, 0, 0);
    each_in_pieces(watch, axis.n, ns_of_row, [&](std::size_t r) {
      float* out = y + r * axis.inner;
      binary(Log ? BinaryOp::kSub : BinaryOp::kDiv)(out, sum, out, count);
    });
  }

  static void strided(kernel::Watch& watch, const double* x, double* y, std::size_t n, std::size_t stride) {
    const double step = step_ns(stride * sizeof(double));
    double most = -std::numeric_limits<double>::infinity();
    each_in_pieces(watch, n, step, [&](std::size_t i) {
      if (!(x[i * stride] <= most)) most = x[i * stride];
    });
    const auto sum = sum_in_pieces<double>(watch, n, 10.0 + step, [&](std::size_t i) {
      const double shifted = x[i * stride] - most, power = std::exp(shifted);
      y[i * stride] = Log ? shifted : power;
      return power;
    });
    const double total = Log ? std::log(sum) : sum;
    each_in_pieces(watch, n, step,
                   [&](std::size_t i) { y[i * stride] = Log ? y[i * stride] - total : y[i * stride] / total; });
  }

  const microkernels::KernelSet& kernels_;
  const microkernels::ReduceTable& reduce_;
  const microkernels::ElementwiseTable& elementwise_;
  FloatRows rows_;
  AxisAttribute axis_;
};

/// 1 for the first greatest element along the axis, 0 for the others; NaN is greater than any number.
class Hardmax final : public kernel::Kernel {
 public:
  explicit Hardmax(KernelInfo& info) : axis_(info) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Axis axis = axis_.of(x.shape());
    const Tensor y = ctx.output(0, x.shape());
    if (x.numel() == 0) return;
    tensor::dispatch_floats(x.dtype(), "Hardmax", [&]<class T>(tensor::TypeTag<T>) {
      using Wide = tensor::ComputeTypeOf<T>;
      const T* from = x.data<T>();
      T* to = y.mutable_data<T>();
      ctx.parallel_for(axis.outer * axis.inner, static_cast<double>(axis.n),
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         kernel::Watch watch(ctx.run());
                         const double step = step_ns(axis.inner * sizeof(T));
                         for (std::size_t i = begin; i < end; ++i) {
                           const std::size_t at = i / axis.inner * axis.n * axis.inner + i % axis.inner;
                           std::size_t best = 0;
                           each_in_pieces(watch, axis.n, step, [&](std::size_t k) {
                             const auto v = static_cast<Wide>(from[at + k * axis.inner]),
                                        most = static_cast<Wide>(from[at + best * axis.inner]);
                             if (v > most || (v != v && most == most)) best = k;
                           });
                           each_in_pieces(watch, axis.n, step, [&](std::size_t k) {
                             to[at + k * axis.inner] = static_cast<T>(static_cast<Wide>(k == best ? 1 : 0));
                           });
                         }
                       });
    });
  }

 private:
  AxisAttribute axis_;
};

template <class K>
void add(kernel::OpRegistrar& r, const char* name) {
  r.op(name)
      .version(1, "input:T -> output:T; T = floats")
      .version(11, "input:T -> output:T; T = floats")
      .version(13, "input:T -> output:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<K>()
      .in_place(0, 0)
      .axes(kernel::Axes::From)
      .along_axis(-1, 13);
}

}  // namespace

void register_softmax(kernel::OpRegistrar& r) {
  add<SoftmaxKernel<false>>(r, "Softmax");
  add<SoftmaxKernel<true>>(r, "LogSoftmax");
  add<Hardmax>(r, "Hardmax");
}

}  // namespace infernode::ops
