#include "ops/math/reduction.h"
#include "ops/math/columns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ops/common/arithmetic.h"
#include "ops/common/strided_copy.h"
#include "ops/math/reduction_tiles.h"

namespace infernode::ops {

using kernel::RunContext;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

namespace {

bool contains(std::span<const std::int64_t> axes, std::size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
}

template <class Dims>
Dims drop_axes(const Dims& in, std::size_t rank, std::span<const std::int64_t> axes, bool keep_dims) {
  Dims out;
  for (std::size_t i = 0; i < rank; ++i) {
    if (!contains(axes, i)) {
      out.push_back(in[i]);
    } else if (keep_dims) {
      out.push_back(1);
    }
  }
  return out;
}

}  // namespace

Shape reduced_shape(const Shape& in, std::span<const std::int64_t> axes, bool keep_dims) {
  return drop_axes(in, in.rank(), axes, keep_dims);
}

graph::SymShape reduced_shape(const graph::SymShape& in, std::span<const std::int64_t> axes, bool keep_dims) {
  return drop_axes(in, in.size(), axes, keep_dims);
}

ReduceLayout reduce_layout(const Shape& in, std::span<const std::int64_t> axes) {
  ReduceLayout out;
  int runs = 0;  // of reduced axes, axes of one element aside
  bool in_run = false, last_kept = false;
  std::size_t last = in.rank();
  for (std::size_t i = 0; i < in.rank(); ++i) {
    const bool reduced = contains(axes, i);
    (reduced ? out.reduced : out.outer) *= in[i];
    if (in[i] == 1) continue;
    if (reduced && !in_run) ++runs;
    in_run = reduced;
    last_kept = !reduced;
    last = i;
  }
  if (runs <= 1) {
    // [outer, reduced, inner] as it lies: what follows the last reduced axis of more than one element is inner.
    std::size_t from = 0;
    bool seen = false;
    for (std::size_t i = 0; i < in.rank(); ++i) {
      if (contains(axes, i) && in[i] != 1) {
        from = i + 1;
        seen = true;
      }
    }
    out.outer = 1;
    for (std::size_t i = 0; i < in.rank(); ++i) {
      if (!contains(axes, i)) (i < from || !seen ? out.outer : out.inner) *= in[i];
    }
    if (!seen) std::swap(out.outer, out.inner);  // nothing is reduced: elementwise over one long row
    return out;
  }
  out.gather = true;
  const Shape strides = in.strides();
  const auto add = [&](std::size_t i) {
    out.dims.push_back(in[i]);
    out.strides.push_back(strides[i]);
  };
  for (std::size_t i = 0; i < in.rank(); ++i) {
    if (!contains(axes, i) && !(last_kept && i == last)) add(i);
  }
  for (std::size_t i = 0; i < in.rank(); ++i) {
    if (contains(axes, i)) add(i);
  }
  if (last_kept) {
    add(last);
    out.inner = in[last];
    out.outer = in[last] == 0 ? 0 : out.outer / in[last];
  }
  return out;
}

Tensor arranged(const RunContext& run, const Tensor& in, const ReduceLayout& layout) {
  if (!layout.gather) return in;
  Tensor out = Tensor::make(in.dtype(), layout.dims, *run.allocator);
  strided_copy(run, layout.dims, {in, 0, layout.strides}, {out, 0, layout.dims.strides()});
  return out;
}

namespace {

// ---- other types

template <class Acc, class T, class Step, class Finish>
void fold(const RunContext& run, const ReduceLayout& l, const T* x, T* y, Acc init, Step step, Finish finish) {
  for_each_tile(run, l, kReduceColumns, 1.0, [&](std::int64_t o, std::int64_t c, std::int64_t n, kernel::Watch& watch) {
    std::array<Acc, kReduceColumns> acc;
    std::fill_n(acc.begin(), n, init);
    const T* from = x + o * l.reduced * l.inner + c;
    in_pieces(watch, static_cast<std::size_t>(l.reduced),
              static_cast<double>(n) + step_ns(static_cast<std::size_t>(l.inner) * sizeof(T)),
              [&](std::size_t begin, std::size_t end) {
                for (std::size_t r = begin; r < end; ++r, from += l.inner) {
                  for (std::int64_t k = 0; k < n; ++k)
                    acc[static_cast<std::size_t>(k)] = step(acc[static_cast<std::size_t>(k)], from[k]);
                }
              });
    T* to = y + o * l.inner + c;
    for (std::int64_t k = 0; k < n; ++k) to[k] = finish(acc[static_cast<std::size_t>(k)]);
  });
}

template <class T>
void log_sum_exp(const RunContext& run, const ReduceLayout& l, const T* x, T* y) {
  for_each_tile(run, l, 1, 20.0, [&](std::int64_t o, std::int64_t c, std::int64_t, kernel::Watch& watch) {
    const T* from = x + o * l.reduced * l.inner + c;
    const auto n = static_cast<std::size_t>(l.reduced), step = static_cast<std::size_t>(l.inner);
    const double ns = step_ns(step * sizeof(T));
    double greatest = -std::numeric_limits<double>::infinity();
    each_in_pieces(watch, n, 2.0 + ns,
                   [&](std::size_t r) { greatest = maximum(greatest, static_cast<double>(from[r * step])); });
    const double shift = std::isfinite(greatest) ? greatest : 0.0;
    const auto sum = sum_in_pieces<double>(
        watch, n, 20.0 + ns, [&](std::size_t r) { return std::exp(static_cast<double>(from[r * step]) - shift); });
    y[o * l.inner + c] = convert<T>(shift + std::log(sum));
  });
}

template <class T>
void extreme(const RunContext& run, ReduceKind kind, const ReduceLayout& l, const T* x, T* y) {
  using Limits = std::numeric_limits<T>;
  constexpr T kLow = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  constexpr T kHigh = Limits::has_infinity ? Limits::infinity() : Limits::max();
  const auto same = [](T v) { return v; };
  if (kind == ReduceKind::Max)
    return fold(
        run, l, x, y, kLow, [](T a, T b) { return maximum(a, b); }, same);
  fold(
      run, l, x, y, kHigh, [](T a, T b) { return minimum(a, b); }, same);
}

template <class T>
void reduce_other(const RunContext& run, ReduceKind kind, const ReduceLayout& l, const T* x, T* y) {
  const auto same = [](T v) { return v; };
  const auto sum = [](T a, T b) { return wrap_add(a, b); };
  const auto square_sum = [](double a, T b) { return a + static_cast<double>(b) * static_cast<double>(b); };
  switch (kind) {
    case ReduceKind::Sum:
      return fold(run, l, x, y, T{0}, sum, same);
    case ReduceKind::Mean: {
      using Wide = std::conditional_t<std::is_floating_point_v<T>, double,
                                      std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
      const auto count = static_cast<Wide>(l.reduced);
      return fold(
          run, l, x, y, Wide{0}, [](Wide a, T b) { return wrap_add(a, static_cast<Wide>(b)); },
          [count](Wide a) { return count != 0 || std::is_floating_point_v<T> ? static_cast<T>(a / count) : T{0}; });
    }
    case ReduceKind::Max:
    case ReduceKind::Min:
      return extreme(run, kind, l, x, y);
    case ReduceKind::Prod:
      return fold(
          run, l, x, y, T{1}, [](T a, T b) { return wrap_multiply(a, b); }, same);
    case ReduceKind::L1:
      return fold(
          run, l, x, y, T{0}, [](T a, T b) { return wrap_add(a, b < T{0} ? wrap_multiply(b, static_cast<T>(-1)) : b); },
          same);
    case ReduceKind::L2:
      return fold(run, l, x, y, 0.0, square_sum, [](double a) { return convert<T>(std::sqrt(a)); });
    case ReduceKind::SumSquare:
      return fold(
          run, l, x, y, T{0}, [](T a, T b) { return wrap_add(a, wrap_multiply(b, b)); }, same);
    case ReduceKind::LogSum:
      return fold(
          run, l, x, y, 0.0, [](double a, T b) { return a + static_cast<double>(b); },
          [](double a) { return convert<T>(std::log(a)); });
    case ReduceKind::LogSumExp:
      return log_sum_exp(run, l, x, y);
  }
}

}  // namespace

void reduce(const RunContext& run, const microkernels::KernelSet& kernels, ReduceKind kind,
            std::span<const std::int64_t> axes, const Tensor& in, const Tensor& out) {
  if (out.numel() == 0) return;
  if (in.dtype() == DType::Float32 || in.dtype() == DType::Float16 || in.dtype() == DType::BFloat16) {
    return reduce_floats(run, kernels, kind, axes, in, out);
  }
  const ReduceLayout layout = reduce_layout(in.shape(), axes);
  const Tensor source = arranged(run, in, layout);
  switch (in.dtype()) {
    case DType::Int8:
    case DType::UInt8:
    case DType::Bool:
      INFERNODE_CHECK(kind == ReduceKind::Max || kind == ReduceKind::Min, ErrorCode::UnsupportedOperator,
                      "no such reduction of ", tensor::name(in.dtype()));
      return tensor::dispatch<std::int8_t, std::uint8_t, bool>(in.dtype(), "reduction", [&]<class T>(TypeTag<T>) {
        extreme(run, kind, layout, source.data<T>(), out.mutable_data<T>());
      });
    default:
      tensor::dispatch<double, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>(
          in.dtype(), "reduction",
          [&]<class T>(TypeTag<T>) { reduce_other(run, kind, layout, source.data<T>(), out.mutable_data<T>()); });
  }
}

}  // namespace infernode::ops
