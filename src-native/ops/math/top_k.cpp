#include <algorithm>
#include <numeric>
#include <vector>

#include "kernel/charge.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
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

class TopK : public Kernel {
 public:
  explicit TopK(KernelInfo& info)
      : axis_(info.attributes().get_int("axis", -1)),
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
    tensor::dispatch_numeric(in.dtype(), "TopK", [&]<class T>(TypeTag<T>) {
      if (largest_) {
        search<T, true>(ctx, in, axis, k, values, indices);
      } else {
        search<T, false>(ctx, in, axis, k, values, indices);
      }
    });
  }

 private:
  template <class T, bool Largest>
  void search(KernelContext& ctx, const Tensor& in, std::size_t axis, std::int64_t k, const Tensor& values,
              const Tensor& indices) const {
    using C = tensor::ComputeTypeOf<T>;
    const std::int64_t count = in.dim(axis), inner = in.shape().numel(axis + 1, in.rank());
    const auto rows = static_cast<std::size_t>(in.shape().numel(0, axis) * inner);
    const T* x = in.data<T>();
    T* value = values.mutable_data<T>();
    auto* index = indices.mutable_data<std::int64_t>();
    ctx.parallel_for(rows, 5.0 * static_cast<double>(count), [&](std::size_t begin, std::size_t end, std::size_t) {
      const kernel::Charge charge(
          ctx.run(),
          (is_copied<T, C>(inner) ? static_cast<std::size_t>(count) * sizeof(C) : 0) + order_bytes(count, k));
      std::vector<C> row;
      std::vector<std::int64_t> order;
      for (auto r = static_cast<std::int64_t>(begin); r < static_cast<std::int64_t>(end); ++r) {
        const std::int64_t o = r / inner, i = r % inner;
        const T* from = x + o * count * inner + i;
        choose(ctx.run(), Before<C, Largest>{contiguous(from, inner, count, row)}, count, k, order);
        for (std::int64_t j = 0; j < k; ++j) {
          const std::int64_t at = order[static_cast<std::size_t>(j)], to = (o * k + j) * inner + i;
          value[to] = from[at * inner];
          index[to] = at;
        }
      }
    });
  }

  static bool are_few(std::int64_t k, std::int64_t count) { return k <= count / 16; }
  /// Bytes of the lists that choose() makes.
  static std::size_t order_bytes(std::int64_t count, std::int64_t k) {
    return 2 * sizeof(std::int64_t) * static_cast<std::size_t>(are_few(k, count) ? k : count);
  }

  template <class T, class C>
  static bool is_copied(std::int64_t stride) {
    return !std::is_same_v<T, C> || stride != 1;
  }

  /// The row as it lies in memory, or a copy in `row`.
  template <class T, class C>
  static const C* contiguous(const T* from, std::int64_t stride, std::int64_t count, std::vector<C>& row) {
    if constexpr (std::is_same_v<T, C>) {
      if (!is_copied<T, C>(stride)) return from;
    }
    row.resize(static_cast<std::size_t>(count));
    for (std::int64_t j = 0; j < count; ++j) row[static_cast<std::size_t>(j)] = widen(from[j * stride]);
    return row.data();
  }

  /// The first k elements in `before`'s order. Few of many are kept in a heap that most elements never enter.
  template <class B>
  void choose(const kernel::RunContext& run, const B& before, std::int64_t count, std::int64_t k,
              std::vector<std::int64_t>& order) const {
    const bool few = are_few(k, count);
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
