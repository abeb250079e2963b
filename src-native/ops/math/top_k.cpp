#include <algorithm>
#include <numeric>
#include <vector>

#include "kernel/charge.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "microkernels/kernel_set.h"
#include "microkernels/reduce/reduce.h"
#include "microkernels/transforms/transpose.h"
#include "ops/common/arguments.h"
#include "ops/common/arithmetic.h"

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

/// Orders by value, equal ones by index; NaN counts as greater than every number.
template <class C, bool Largest>
struct Before {
  const C* values;
  bool operator()(std::int64_t a, std::int64_t b) const {
    const C x = values[a], y = values[b];
    if (is_nan(x) || is_nan(y)) {
      if (is_nan(x) != is_nan(y)) return is_nan(x) == Largest;
      return a < b;
    }
    if (x != y) return Largest ? x > y : x < y;
    return a < b;
  }
  /// Surely not before `worst`, of a lower index: the quick test that most elements end with.
  static bool beaten(C x, C worst) { return Largest ? x <= worst : x >= worst; }
};

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

/// The key of a whole number: the greatest comes first, or the smallest where not `largest`.
template <class T>
std::int32_t key_of(T v, bool largest) {
  const std::int32_t key = std::is_same_v<T, std::uint32_t>
                               ? static_cast<std::int32_t>(static_cast<std::uint32_t>(v) ^ 0x80000000u)
                               : static_cast<std::int32_t>(v);
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
      std::copy_n(x, lines.rows, value);
      std::fill_n(index, lines.rows, 0);
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
    if (largest_) {
      search<true>(ctx, lines, x, value, index);
    } else {
      search<false>(ctx, lines, x, value, index);
    }
  }

  /// Many rows at once, the best few of each in registers.
  template <class T>
  void by_columns(KernelContext& ctx, const Lines& lines, const T* x, T* value, std::int64_t* index) const {
    constexpr std::size_t kColumns = microkernels::kOrderColumns;
    ctx.parallel_for((lines.rows + kColumns - 1) / kColumns,
                     static_cast<double>(kColumns + lines.count * (1 + lines.k) * 3),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
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
                           emit(lines, first + c, order, x, value, index);
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
                       std::vector<float> floats(kByFloat<T> ? count : 0);
                       std::vector<std::int32_t> keys(count), ranks(count), order(count);
                       for (std::size_t row = begin; row < end; ++row) {
                         row_keys(lines, x + lines.start(row), floats.data(), keys.data());
                         reduce_.ranks(keys.data(), count, ranks.data());
                         for (std::size_t i = 0; i < count; ++i)
                           order[static_cast<std::size_t>(ranks[i])] = static_cast<std::int32_t>(i);
                         if (!sorted_) std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(lines.k));
                         emit(lines, row, order.data(), x, value, index);
                       }
                     });
  }

  template <class T>
  void row_keys(const Lines& lines, const T* from, [[maybe_unused]] float* floats, std::int32_t* keys) const {
    if constexpr (kByFloat<T>) {
      const float* row = floats;
      if constexpr (std::is_same_v<T, float>) row = lines.inner == 1 ? from : floats;
      for (std::size_t i = 0; row == floats && i < lines.count; ++i) floats[i] = widen(from[i * lines.inner]);
      reduce_.order_keys(row, keys, lines.count, largest_);
    } else {
      for (std::size_t i = 0; i < lines.count; ++i) keys[i] = key_of(from[i * lines.inner], largest_);
    }
  }

  /// Any element, any number of them.
  template <bool Largest, class T>
  void search(KernelContext& ctx, const Lines& lines, const T* x, T* value, std::int64_t* index) const {
    using C = tensor::ComputeTypeOf<T>;
    ctx.parallel_for(lines.rows, 5.0 * static_cast<double>(lines.count),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       const std::size_t copied = is_copied<T, C>(lines) ? lines.count * sizeof(C) : 0;
                       const kernel::Charge charge(ctx.run(), copied + order_bytes(lines));
                       std::vector<C> row;
                       std::vector<std::int64_t> order;
                       for (std::size_t r = begin; r < end; ++r) {
                         const C* values = contiguous(x + lines.start(r), lines, row);
                         first_of(ctx.run(), Before<C, Largest>{values}, lines, order);
                         emit(lines, r, order.data(), x, value, index);
                       }
                     });
  }

  /// The elements of `row` at order[0 .. k), and where they stand.
  template <class T, class I>
  static void emit(const Lines& lines, std::size_t row, const I* order, const T* x, T* value, std::int64_t* index) {
    const T* from = x + lines.start(row);
    const std::size_t to = lines.chosen(row);
    for (std::size_t j = 0; j < lines.k; ++j) {
      const auto at = static_cast<std::size_t>(order[j]);
      value[to + j * lines.inner] = from[at * lines.inner];
      index[to + j * lines.inner] = static_cast<std::int64_t>(at);
    }
  }

  static bool are_few(const Lines& lines) { return lines.k <= lines.count / 16; }
  /// Bytes of the lists that first_of() makes.
  static std::size_t order_bytes(const Lines& lines) {
    return 2 * sizeof(std::int64_t) * (are_few(lines) ? lines.k : lines.count);
  }

  template <class T, class C>
  static bool is_copied(const Lines& lines) {
    return !std::is_same_v<T, C> || lines.inner != 1;
  }

  /// The row as it lies in memory, or a copy in `row`.
  template <class T, class C>
  static const C* contiguous(const T* from, const Lines& lines, std::vector<C>& row) {
    if constexpr (std::is_same_v<T, C>) {
      if (!is_copied<T, C>(lines)) return from;
    }
    row.resize(lines.count);
    for (std::size_t j = 0; j < lines.count; ++j) row[j] = widen(from[j * lines.inner]);
    return row.data();
  }

  /// The first k elements in `before`'s order. Few of many are kept in a heap that most elements never enter.
  template <class B>
  void first_of(const kernel::RunContext& run, const B& before, const Lines& lines,
                std::vector<std::int64_t>& order) const {
    const auto count = static_cast<std::int64_t>(lines.count), k = static_cast<std::int64_t>(lines.k);
    const bool few = are_few(lines);
    order.resize(static_cast<std::size_t>(few ? k : count));
    std::iota(order.begin(), order.end(), 0);
    if (few) {
      std::make_heap(order.begin(), order.end(), before);
      auto worst = before.values[order.front()];
      for (std::int64_t j = k; j < count; ++j) {
        if (B::beaten(before.values[j], worst) || !before(j, order.front())) continue;
        std::pop_heap(order.begin(), order.end(), before);
        order.back() = j;
        std::push_heap(order.begin(), order.end(), before);
        worst = before.values[order.front()];
      }
    } else if (k < count) {
      kernel::Watch watch(run);
      std::nth_element(order.begin(), order.begin() + k - 1, order.end(), watched(watch, before));
      order.resize(static_cast<std::size_t>(k));
    }
    if (sorted_) {
      sort(run, before, order);
    } else {
      std::sort(order.begin(), order.end());
    }
  }

  /// Sorts, with looks in between whether the run is to end: runs that take a moment, which are merged then.
  template <class B>
  static void sort(const kernel::RunContext& run, const B& before, std::vector<std::int64_t>& order) {
    constexpr std::size_t kRun = std::size_t{1} << 16;
    const std::size_t count = order.size();
    const auto at = [&](std::size_t i) { return static_cast<std::ptrdiff_t>(std::min(i, count)); };
    for (std::size_t i = 0; i < count; i += kRun) {
      if (i > 0) run.check();
      std::sort(order.begin() + at(i), order.begin() + at(i + kRun), before);
    }
    if (count <= kRun) return;
    kernel::Watch watch(run);
    std::vector<std::int64_t> merged(count);
    for (std::size_t width = kRun; width < count; width *= 2) {
      for (std::size_t i = 0; i < count; i += 2 * width) {
        const auto middle = order.begin() + at(i + width);
        std::merge(order.begin() + at(i), middle, middle, order.begin() + at(i + 2 * width), merged.begin() + at(i),
                   watched(watch, before));
      }
      order.swap(merged);
    }
  }

  template <class B>
  static auto watched(kernel::Watch& watch, const B& before) {
    constexpr double kNsPerComparison = 10;
    return [&](std::int64_t a, std::int64_t b) {
      watch.did(kNsPerComparison);
      return before(a, b);
    };
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
