#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernel/charge.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "microkernels/kernel_set.h"
#include "microkernels/reduce/reduce.h"
#include "microkernels/transpose/transpose.h"
#include "ops/common/arguments.h"
#include "ops/common/arithmetic.h"
#include "ops/common/mover.h"
#include "ops/math/columns.h"
#include "ops/math/first_keys.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::SymShape;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

void infer_top_k(InferContext& ctx) {
  if (ctx.has_output(1)) ctx.set_output_dtype(1, DType::Int64);
  const SymShape* in = ctx.input_shape(0);
  if (!in) return;
  SymShape out = *in;
  const std::size_t axis = tensor::normalize_axis(ctx.attributes().get_int("axis", -1), in->size());
  out[axis] = Dim::unknown();
  if (ctx.since_version() < 10) {
    out[axis] = ctx.attributes().get_int("k");
  } else if (const auto k = ctx.input_contents(1); k && k->size() == 1) {
    out[axis] = (*k)[0];
  }
  for (std::size_t o = 0; o < 2; ++o) {
    if (ctx.has_output(o)) ctx.set_output_shape(o, out);
  }
}

/// The input as [outer, count, inner], chosen from along count; `rows` of outer * inner.
struct Lines {
  std::size_t count, inner, rows, k;
  std::size_t start(std::size_t row) const { return row / inner * count * inner + row % inner; }
  std::size_t chosen(std::size_t row) const { return row / inner * k * inner + row % inner; }
};

/// Whether elements have keys of 32 bits, whole numbers that compare as the elements do.
template <class T>
constexpr bool kHasKeys = sizeof(T) <= sizeof(std::int32_t);
/// Of these keys none is the least int32.
template <class T>
constexpr bool kLeastUnused = std::is_same_v<T, float> || sizeof(T) < sizeof(std::int32_t);
/// Whether keys are those of float32 numbers.
template <class T>
constexpr bool kByFloat = std::is_same_v<tensor::ComputeTypeOf<T>, float>;

template <class T>
using KeyOf = std::conditional_t<kHasKeys<T>, std::int32_t, std::int64_t>;

/// The key of an element that is not kByFloat: the greatest comes first, or the smallest where not `largest`.
template <class T>
KeyOf<T> key_of(T v, bool largest) {
  KeyOf<T> key;
  if constexpr (std::is_same_v<T, std::uint32_t>) {
    key = static_cast<std::int32_t>(v ^ 0x80000000u);
  } else if constexpr (kHasKeys<T>) {
    key = static_cast<std::int32_t>(v);
  } else {
    key = order_key(v);
  }
  return largest ? key : ~key;
}

class TopK : public Kernel {
 public:
  explicit TopK(KernelInfo& info)
      : reduce_(info.kernels().reduce),
        transpose_(info.kernels().transpose),
        axis_(info.attributes().get_int("axis", -1)),
        largest_(info.attributes().get_int("largest", 1) != 0),
        sorted_(info.attributes().get_int("sorted", 1) != 0) {
    if (info.since_version() < 10) k_ = info.attributes().get_int("k");
  }

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    INFERNODE_CHECK(in.rank() > 0, ErrorCode::ShapeMismatch, "the input is a scalar; it needs an axis to choose from");
    const std::size_t axis = tensor::normalize_axis(axis_, in.rank());
    const std::int64_t k = k_ ? *k_ : tensor::to_int64_scalar(ctx.input(1));
    INFERNODE_CHECK(k >= 0, ErrorCode::InvalidArgument, "k argument [", k, "] is negative");
    INFERNODE_CHECK(k <= in.dim(axis), ErrorCode::InvalidArgument, "k argument [", k,
                    "] should not be greater than specified axis dim value [", in.dim(axis), "]");
    Shape dims = in.shape();
    dims[axis] = k;
    const Tensor values = ctx.output(0, dims), indices = ctx.output(1, DType::Int64, dims);
    if (values.numel() == 0) return;
    const auto part = [&](std::size_t from, std::size_t to) {
      return static_cast<std::size_t>(in.shape().numel(from, to));
    };
    const std::size_t inner = part(axis + 1, in.rank());
    const Lines lines{part(axis, axis + 1), inner, part(0, axis) * inner, static_cast<std::size_t>(k)};
    tensor::dispatch_numeric(in.dtype(), "TopK", [&]<class T>(TypeTag<T>) {
      choose(ctx, lines, in.data<T>(), values.mutable_data<T>(), indices.mutable_data<std::int64_t>());
    });
  }

 private:
  template <class T>
  void choose(KernelContext& ctx, const Lines& lines, const T* x, T* value, std::int64_t* index) const {
    constexpr std::size_t kMostRanked = 512;  // the work is the square
    if (lines.count == 1) {
      const auto rows = static_cast<std::int64_t>(lines.rows);
      Mover mover(ctx.run());
      mover.copy(x, rows, value);
      mover.fill(index, rows, std::int64_t{0});
      return;
    }
    if constexpr (kLeastUnused<T>) {
      const bool many = lines.rows >= microkernels::kOrderColumns / 2;
      if (many && lines.k <= microkernels::kMostBest && lines.count <= 2 * kMostRanked)
        return by_columns(ctx, lines, x, value, index);
    }
    if constexpr (kHasKeys<T>) {
      if (lines.count <= kMostRanked) return by_ranks(ctx, lines, x, value, index);
    }
    search(ctx, lines, x, value, index);
  }

  /// Many rows at once, the best few of each in registers.
  template <class T>
  void by_columns(KernelContext& ctx, const Lines& lines, const T* x, T* value, std::int64_t* index) const {
    constexpr std::size_t kColumns = microkernels::kOrderColumns;
    ctx.parallel_for((lines.rows + kColumns - 1) / kColumns,
                     static_cast<double>(kColumns + lines.count * (1 + lines.k) * 3),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       kernel::Watch watch(ctx.run());
                       const std::size_t elements = lines.count * kColumns;
                       const kernel::Charge charge(ctx.run(), elements * (sizeof(float) + sizeof(std::int32_t)));
                       std::vector<float> floats(kByFloat<T> ? elements : 0);
                       std::vector<std::int32_t> keys(elements);
                       std::int32_t best[microkernels::kMostBest * kColumns], order[microkernels::kMostBest];
                       for (std::size_t group = begin; group < end; ++group) {
                         const std::size_t first = group * kColumns, n = std::min(kColumns, lines.rows - first);
                         column_keys(lines, x, first, n, floats.data(), keys.data());
                         reduce_.best(keys.data(), lines.count, lines.k, best);
                         for (std::size_t c = 0; c < n; ++c) {
                           for (std::size_t j = 0; j < lines.k; ++j) order[j] = best[j * kColumns + c];
                           if (!sorted_) std::sort(order, order + lines.k);
                           emit(lines, first + c, order, x, value, index, watch);
                         }
                       }
                     });
  }

  /// keys[i * kOrderColumns + c] of element i of row first + c, c < n.
  template <class T>
  void column_keys(const Lines& lines, const T* x, std::size_t first, std::size_t n, [[maybe_unused]] float* floats,
                   std::int32_t* keys) const {
    constexpr std::size_t kColumns = microkernels::kOrderColumns;
    if (std::is_same_v<T, float> && lines.inner == 1) {
      transpose_.bytes4(reinterpret_cast<const std::uint32_t*>(x + lines.start(first)), lines.count,
                        reinterpret_cast<std::uint32_t*>(floats), kColumns, n, lines.count);
    } else {
      for (std::size_t c = 0; c < n; ++c) {
        const T* from = x + lines.start(first + c);
        for (std::size_t i = 0; i < lines.count; ++i) {
          if constexpr (kByFloat<T>) {
            floats[i * kColumns + c] = widen(from[i * lines.inner]);
          } else {
            keys[i * kColumns + c] = key_of(from[i * lines.inner], largest_);
          }
        }
      }
    }
    if constexpr (kByFloat<T>) reduce_.order_keys(floats, keys, lines.count * kColumns, largest_);
  }

  /// A row at a time, of which each element's place is counted.
  template <class T>
  void by_ranks(KernelContext& ctx, const Lines& lines, const T* x, T* value, std::int64_t* index) const {
    const std::size_t count = lines.count;
    ctx.parallel_for(lines.rows, 0.02 * static_cast<double>(count * count) + static_cast<double>(count),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       kernel::Watch watch(ctx.run());
                       std::vector<float> floats(kByFloat<T> ? count : 0);
                       std::vector<std::int32_t> keys(count), ranks(count), order(count);
                       for (std::size_t row = begin; row < end; ++row) {
                         row_keys(x + lines.start(row), lines.inner, count, floats.data(), keys.data());
                         reduce_.ranks(keys.data(), count, ranks.data());
                         for (std::size_t i = 0; i < count; ++i)
                           order[static_cast<std::size_t>(ranks[i])] = static_cast<std::int32_t>(i);
                         if (!sorted_) std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(lines.k));
                         emit(lines, row, order.data(), x, value, index, watch);
                       }
                     });
  }

  /// Keys of n elements, `stride` apart; `floats` has room for as many, where they are kByFloat.
  template <class T>
  void row_keys(const T* from, std::size_t stride, std::size_t n, [[maybe_unused]] float* floats,
                KeyOf<T>* keys) const {
    if constexpr (kByFloat<T>) {
      const float* row = floats;
      if constexpr (std::is_same_v<T, float>) row = stride == 1 ? from : floats;
      for (std::size_t i = 0; row == floats && i < n; ++i) floats[i] = widen(from[i * stride]);
      reduce_.order_keys(row, keys, n, largest_);
    } else {
      for (std::size_t i = 0; i < n; ++i) keys[i] = key_of(from[i * stride], largest_);
    }
  }

  /// Any element, any number of them.
  template <class T>
  void search(KernelContext& ctx, const Lines& lines, const T* x, T* value, std::int64_t* index) const {
    constexpr std::size_t kBlock = 1024;
    ctx.parallel_for(lines.rows, 5.0 * static_cast<double>(lines.count),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       const double step = step_ns(lines.inner * sizeof(T)), ns_per_key = 5 + step;
                       kernel::Watch watch(ctx.run());
                       FirstKeys first(ctx.run(), lines.count, lines.k, sorted_);
                       float floats[kBlock];
                       KeyOf<T> keys[kBlock];
                       for (std::size_t row = begin; row < end; ++row) {
                         const T* from = x + lines.start(row);
                         first.clear();
                         for (std::size_t i = 0, n = 0; i < lines.count; i += n) {
                           n = std::min(kBlock, lines.count - i);
                           if (!kByFloat<T> && first.is_full()) {  // keys of those only that may enter
                             const std::size_t beaten = count_beaten(from, i, first.worst(), lines);
                             first.skip(beaten);
                             i += beaten;
                             watch.did(step * static_cast<double>(beaten));
                             n = i < lines.count ? 1 : 0;
                           }
                           row_keys(from + i * lines.inner, lines.inner, n, floats, keys);
                           first.take(keys, n);
                           watch.did(ns_per_key * static_cast<double>(n));
                         }
                         first.finish();
                         emit(lines, row, first, x, value, index, watch);
                       }
                     });
  }

  /// How many elements from the i-th on stand surely behind the one at `worst`, which is before them: kMostBeaten at
  /// most.
  template <class T>
  std::size_t count_beaten(const T* from, std::size_t i, std::size_t worst, const Lines& lines) const {
    const auto limit = widen(from[worst * lines.inner]);
    constexpr std::size_t kMostBeaten = 4096;  // between two looks
    const std::size_t begin = i, end = std::min(lines.count, begin + kMostBeaten);
    if (largest_) {
      while (i < end && widen(from[i * lines.inner]) <= limit) ++i;
    } else {
      while (i < end && widen(from[i * lines.inner]) >= limit) ++i;
    }
    return i - begin;
  }

  /// The elements of `row` at order[0 .. k), and where they stand.
  template <class T, class Order>
  static void emit(const Lines& lines, std::size_t row, const Order& order, const T* x, T* value, std::int64_t* index,
                   kernel::Watch& watch) {
    const double ns = 3 + step_ns(lines.inner * sizeof(T));
    const T* from = x + lines.start(row);
    const std::size_t to = lines.chosen(row);
    for (std::size_t j = 0; j < lines.k; ++j) {
      const auto at = static_cast<std::size_t>(order[j]);
      value[to + j * lines.inner] = from[at * lines.inner];
      index[to + j * lines.inner] = static_cast<std::int64_t>(at);
      watch.did(ns);
    }
  }

  const microkernels::ReduceTable& reduce_;
  const microkernels::TransposeTable& transpose_;
  std::int64_t axis_;
  bool largest_, sorted_;
  std::optional<std::int64_t> k_;
};

}  // namespace

void register_top_k(kernel::OpRegistrar& r) {
  r.op("TopK")
      .version(1, "X:T -> Values:T, Indices:int64; T = floats")
      .version(10, "X:T, K:int64 -> Values:T, Indices:int64; T = floats")
      .version(11, "X:T, K:int64 -> Values:T, Indices:int64; T = numeric")
      .version(24, "X:T, K:int64 -> Values:T, Indices:int64; T = numeric_bf16")
      .infer(infer_top_k)
      .kernel<TopK>()
      .along_axis(-1, 10);
}

}  // namespace infernode::ops
