#include <algorithm>
#include <numeric>
#include <vector>

#include "kernel/op_registrar.h"
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
      std::vector<C> row;
      std::vector<std::int64_t> order;
      for (auto r = static_cast<std::int64_t>(begin); r < static_cast<std::int64_t>(end); ++r) {
        const std::int64_t o = r / inner, i = r % inner;
        const T* from = x + o * count * inner + i;
        choose(Before<C, Largest>{contiguous(from, inner, count, row)}, count, k, order);
        for (std::int64_t j = 0; j < k; ++j) {
          const std::int64_t at = order[static_cast<std::size_t>(j)], to = (o * k + j) * inner + i;
          value[to] = from[at * inner];
          index[to] = at;
        }
      }
    });
  }

  /// The row as it lies in memory, or a copy in `row`.
  template <class T, class C>
  static const C* contiguous(const T* from, std::int64_t stride, std::int64_t count, std::vector<C>& row) {
    if constexpr (std::is_same_v<T, C>) {
      if (stride == 1) return from;
    }
    row.resize(static_cast<std::size_t>(count));
    for (std::int64_t j = 0; j < count; ++j) row[static_cast<std::size_t>(j)] = widen(from[j * stride]);
    return row.data();
  }

  /// The first k elements in `before`'s order. Few of many are kept in a heap that most elements never enter.
  template <class B>
  void choose(const B& before, std::int64_t count, std::int64_t k, std::vector<std::int64_t>& order) const {
    const bool few = k <= count / 16;
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
      std::nth_element(order.begin(), order.begin() + k - 1, order.end(), before);
      order.resize(static_cast<std::size_t>(k));
    }
    if (sorted_) {
      std::sort(order.begin(), order.end(), before);
    } else {
      std::sort(order.begin(), order.end());
    }
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
