// CumSum and CumProd.

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "microkernels/transpose/transpose.h"
#include "ops/common/arithmetic.h"
#include "ops/common/elementwise.h"
#include "ops/math/columns.h"

namespace infernode::ops {
namespace {

using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using microkernels::BinaryOp;
using tensor::Tensor;
using tensor::TypeTag;

/// The input as [outer, count, inner], summed along count.
struct Axis {
  std::size_t outer, count, inner;
};

/// Running sums (or products) along an axis: of the elements up to the current one, without it where `exclusive`, from
/// the end where `reverse`.
template <bool Product>
class Cumulative final : public Kernel {
 public:
  explicit Cumulative(KernelInfo& info)
      : loops_(info.kernels()),
        transpose_(info.kernels().transpose),
        exclusive_(info.attributes().get_int("exclusive", 0) != 0),
        reverse_(info.attributes().get_int("reverse", 0) != 0) {}

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Tensor out = ctx.output(0, in.shape());
    if (in.rank() == 0) fail(ErrorCode::ShapeMismatch, "a running sum of a scalar has no axis");
    const std::size_t at = tensor::normalize_axis(tensor::to_int64_scalar(ctx.input(1)), in.rank());
    if (in.numel() == 0) return;
    const auto part = [&](std::size_t from, std::size_t to) {
      return static_cast<std::size_t>(in.shape().numel(from, to));
    };
    const Axis axis{part(0, at), part(at, at + 1), part(at + 1, in.rank())};
    tensor::dispatch<float, double, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t, Float16, BFloat16>(
        in.dtype(), "CumSum", [&]<class T>(TypeTag<T>) {
          constexpr std::size_t kFewColumns = 16;
          const T* x = in.data<T>();
          T* y = out.mutable_data<T>();
          if constexpr (std::is_same_v<tensor::ComputeTypeOf<T>, float>) {
            if (axis.inner >= kFewColumns) return rows(ctx, axis, x, y);
          }
          if constexpr (std::is_same_v<T, float>) {
            constexpr std::size_t kFewParts = 8, kMostTurned = 2048;
            if (axis.outer >= kFewParts && axis.count * axis.inner <= kMostTurned) return turned(ctx, axis, x, y);
          }
          lines(ctx, axis, x, y);
        });
  }

 private:
  static constexpr std::size_t kColumns = 1024;  ///< summed together: a row of sums stays in the first-level cache
  static constexpr std::size_t kLines = 8;       ///< whose sums do not wait for each other

  /// Row after row along the axis, in blocks of columns.
  template <class T>
  void rows(KernelContext& ctx, const Axis& axis, const T* x, T* y) const {
    const std::size_t blocks = (axis.inner + kColumns - 1) / kColumns;
    ctx.parallel_for(axis.outer * blocks,
                     0.3 * static_cast<double>(axis.count) * static_cast<double>(std::min(kColumns, axis.inner)),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       kernel::Watch watch(ctx.run());
                       for (std::size_t i = begin; i < end; ++i) {
                         const std::size_t first = i % blocks * kColumns;
                         const std::size_t at = i / blocks * axis.count * axis.inner + first;
                         block(axis, x + at, y + at, std::min(kColumns, axis.inner - first), watch);
                       }
                     });
  }

  /// The sums of float32 rows stand in the output itself, others' beside it, since 16-bit floats would round them.
  template <class T>
  void block(const Axis& axis, const T* x, T* y, std::size_t columns, kernel::Watch& watch) const {
    constexpr bool kFloat = std::is_same_v<T, float>;
    constexpr auto kLoop = static_cast<std::size_t>(Product ? BinaryOp::kMul : BinaryOp::kAdd);
    const auto& table = loops_.elementwise;
    float buffers[2][kColumns], piece[kColumns];
    const float neutral = Product ? 1.0f : 0.0f;
    float *total = buffers[0], *next = buffers[1];
    std::fill_n(total, columns, neutral);
    const double ns_of_row = static_cast<double>(columns) + step_ns(axis.inner * sizeof(T));
    for (std::size_t i = 0; i < axis.count; ++i) {
      const std::size_t at = (reverse_ ? axis.count - 1 - i : i) * axis.inner;
      const float* term = piece;
      if constexpr (kFloat) {
        term = x + at;
        if (!exclusive_) next = y + at;
      } else {
        loops_.load(x + at, piece, columns);
      }
      table.vector_vector[kLoop](total, term, next, columns);
      const float* const result = exclusive_ ? total : next;
      if constexpr (kFloat) {
        if (exclusive_) std::copy_n(result, columns, y + at);
      } else {
        loops_.store(result, y + at, columns);
      }
      std::swap(total, next);
      watch.did(ns_of_row);
    }
  }

  /// Several of the outer parts turned, so that their columns lie beside each other, then row after row.
  void turned(KernelContext& ctx, const Axis& axis, const float* x, float* y) const {
    constexpr std::size_t kFloats = 32768, kMultiple = 16;
    const std::size_t part = axis.count * axis.inner;
    const std::size_t most = std::min(kColumns / axis.inner, kFloats / part) / kMultiple * kMultiple;
    const auto turn = [&](const float* from, float* to, std::size_t n, std::size_t m) {
      transpose_.bytes4(reinterpret_cast<const std::uint32_t*>(from), m, reinterpret_cast<std::uint32_t*>(to), n, n, m);
    };
    ctx.parallel_for((axis.outer + most - 1) / most, static_cast<double>(part * most),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       kernel::Watch watch(ctx.run());
                       std::vector<float> columns(part * std::min(most, axis.outer));
                       for (std::size_t i = begin; i < end; ++i) {
                         const std::size_t first = i * most, parts = std::min(most, axis.outer - first);
                         const std::size_t inner = axis.inner * parts;
                         turn(x + first * part, columns.data(), parts, part);
                         block({1, axis.count, inner}, columns.data(), columns.data(), inner, watch);
                         turn(columns.data(), y + first * part, part, parts);
                       }
                     });
  }

  /// A few lines at a time, element by element.
  template <class T>
  void lines(KernelContext& ctx, const Axis& axis, const T* x, T* y) const {
    const std::size_t count = axis.outer * axis.inner, groups = (count + kLines - 1) / kLines;
    ctx.parallel_for(groups, static_cast<double>(axis.count * std::min(kLines, count)),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       kernel::Watch watch(ctx.run());
                       for (std::size_t group = begin; group < end; ++group) {
                         const std::size_t first = group * kLines;
                         std::array<std::size_t, kLines> starts{};
                         const std::size_t n = std::min(kLines, count - first);
                         std::size_t part = first / axis.inner, column = first % axis.inner;
                         for (std::size_t l = 0; l < n; ++l) {
                           starts[l] = part * axis.count * axis.inner + column;
                           if (++column == axis.inner) ++part, column = 0;
                         }
                         if (n == kLines) {
                           together<kLines>(axis, x, y, starts.data(), watch);
                         } else {
                           for (std::size_t l = 0; l < n; ++l) together<1>(axis, x, y, starts.data() + l, watch);
                         }
                       }
                     });
  }

  template <std::size_t Lines, class T>
  void together(const Axis& axis, const T* x, T* y, const std::size_t* starts, kernel::Watch& watch) const {
    using C = tensor::ComputeTypeOf<T>;
    constexpr std::size_t kSteps = 1024;  // between two looks at whether the run is to end
    C total[Lines];
    std::fill_n(total, Lines, Product ? C(1) : C(0));
    for (std::size_t i0 = 0; i0 < axis.count; i0 += kSteps) {
      const std::size_t steps = std::min(kSteps, axis.count - i0);
      for (std::size_t i = i0; i < i0 + steps; ++i) {
        const std::size_t step = (reverse_ ? axis.count - 1 - i : i) * axis.inner;
        for (std::size_t l = 0; l < Lines; ++l) {
          const std::size_t at = starts[l] + step;
          const C before = total[l], v = widen(x[at]);
          total[l] = Product ? wrap_multiply(before, v) : wrap_add(before, v);
          y[at] = static_cast<T>(exclusive_ ? before : total[l]);
        }
      }
      watch.did((4.0 * static_cast<double>(Lines) + step_ns(axis.inner * sizeof(T))) * static_cast<double>(steps));
    }
  }

  FloatLoops loops_;
  const microkernels::TransposeTable& transpose_;
  bool exclusive_, reverse_;
};

}  // namespace

void register_cumulative(kernel::OpRegistrar& r) {
  r.op("CumSum")
      .version(11, "x:T, axis:T2 -> y:T; T = float|double|int32|int64|uint32|uint64, T2 = int32|int64")
      .version(14, "x:T, axis:T2 -> y:T; T = floats_bf16|int32|int64|uint32|uint64, T2 = int32|int64")
      .infer(kernel::infer_same_as_first)
      .kernel<Cumulative<false>>()
      .in_place(0, 0)
      .axes(kernel::Axes::AlongInput);
  r.op("CumProd")
      .version(26, "x:T, axis:T2 -> y:T; T = floats_bf16|int32|int64|uint32|uint64, T2 = int32|int64")
      .infer(kernel::infer_same_as_first)
      .kernel<Cumulative<true>>()
      .in_place(0, 0);
}

}  // namespace infernode::ops
