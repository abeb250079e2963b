#include "ops/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/checked.h"
#include "microkernels/convert.h"
#include "microkernels/elementwise.h"
#include "microkernels/reduce.h"
#include "ops/arithmetic.h"
#include "ops/strided_copy.h"

namespace infernode::ops {

using kernel::RunContext;
using microkernels::ReduceOp;
using microkernels::ReduceTable;
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

constexpr std::int64_t kColumns = 128;       ///< columns of one unit of work
constexpr std::int64_t kRowBlock = 1 << 15;  ///< longer rows are reduced in blocks of this many elements
constexpr std::int64_t kBlockRows = 1024;    ///< rows of one block of tall columns

/// Calls f(outer index, first column, columns) for tiles of columns, in parallel.
template <class F>
void for_each_tile(const RunContext& run, const ReduceLayout& l, std::int64_t width, double ns_per_element, F&& f) {
  const std::int64_t tiles = ceil_div(l.inner, width);
  const double cost =
      5.0 + ns_per_element * static_cast<double>(std::max<std::int64_t>(1, l.reduced) * std::min(l.inner, width));
  run.parallel_for(
      static_cast<std::size_t>(l.outer * tiles), cost, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i) {
          const std::int64_t o = static_cast<std::int64_t>(i) / tiles, c = static_cast<std::int64_t>(i) % tiles * width;
          f(o, c, std::min(width, l.inner - c));
        }
      });
}

// ---- float32

ReduceOp first_pass(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Max:
      return ReduceOp::kMax;
    case ReduceKind::Min:
      return ReduceOp::kMin;
    case ReduceKind::Prod:
      return ReduceOp::kProd;
    case ReduceKind::L1:
      return ReduceOp::kSumAbs;
    case ReduceKind::L2:
    case ReduceKind::SumSquare:
      return ReduceOp::kSumSquare;
    default:
      return ReduceOp::kSum;
  }
}

/// The operation that joins results of the first pass over parts.
ReduceOp joining(ReduceOp op) { return op == ReduceOp::kSumAbs || op == ReduceOp::kSumSquare ? ReduceOp::kSum : op; }

void finish(ReduceKind kind, float* y, std::int64_t n, std::int64_t count) {
  if (kind == ReduceKind::Mean) {
    for (std::int64_t i = 0; i < n; ++i) y[i] /= static_cast<float>(count);
  } else if (kind == ReduceKind::L2) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = std::sqrt(y[i]);
  } else if (kind == ReduceKind::LogSum) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = std::log(y[i]);
  }
}

/// Rows are reduced block by block, then the blocks' results: the same cuts whatever the number of threads.
void reduce_rows(const RunContext& run, const ReduceTable& table, ReduceKind kind, const ReduceLayout& l,
                 const float* x, float* y) {
  const ReduceOp op = first_pass(kind);
  const auto reduce_row = table.row[static_cast<std::size_t>(op)];
  if (l.reduced <= kRowBlock) {
    run.parallel_for(static_cast<std::size_t>(l.outer), 5.0 + 0.1 * static_cast<double>(l.reduced),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       for (std::size_t i = begin; i < end; ++i) {
                         y[i] = reduce_row(x + static_cast<std::int64_t>(i) * l.reduced,
                                           static_cast<std::size_t>(l.reduced));
                       }
                       finish(kind, y + begin, static_cast<std::int64_t>(end - begin), l.reduced);
                     });
    return;
  }
  const std::int64_t blocks = ceil_div(l.reduced, kRowBlock);
  std::vector<float> partial(static_cast<std::size_t>(l.outer * blocks));
  run.parallel_for(partial.size(), 0.1 * kRowBlock, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::int64_t o = static_cast<std::int64_t>(i) / blocks,
                         at = static_cast<std::int64_t>(i) % blocks * kRowBlock;
      partial[i] = reduce_row(x + o * l.reduced + at, static_cast<std::size_t>(std::min(kRowBlock, l.reduced - at)));
    }
  });
  const auto join = table.row[static_cast<std::size_t>(joining(op))];
  for (std::int64_t o = 0; o < l.outer; ++o) y[o] = join(partial.data() + o * blocks, static_cast<std::size_t>(blocks));
  finish(kind, y, l.outer, l.reduced);
}

void columns_pass(const RunContext& run, const ReduceTable& table, ReduceOp op, const ReduceLayout& l, const float* x,
                  float* y) {
  const auto columns = table.columns[static_cast<std::size_t>(op)];
  for_each_tile(run, l, kColumns, 0.15, [&](std::int64_t o, std::int64_t c, std::int64_t n) {
    columns(x + o * l.reduced * l.inner + c, static_cast<std::size_t>(l.reduced), static_cast<std::size_t>(l.inner),
            static_cast<std::size_t>(n), y + o * l.inner + c);
  });
}

void reduce_columns(const RunContext& run, const ReduceTable& table, ReduceKind kind, const ReduceLayout& l,
                    const float* x, float* y) {
  const ReduceOp op = first_pass(kind);
  if (l.outer == 1 && l.inner <= 4 * kColumns && l.reduced >= 4 * kBlockRows) {
    // Few tall columns: blocks of rows first, so that there is work for all threads.
    const std::int64_t blocks = l.reduced / kBlockRows, rest = l.reduced % kBlockRows;
    std::vector<float> partial(static_cast<std::size_t>((blocks + (rest > 0 ? 1 : 0)) * l.inner));
    ReduceLayout part = l;
    part.outer = blocks;
    part.reduced = kBlockRows;
    columns_pass(run, table, op, part, x, partial.data());
    if (rest > 0) {
      part.outer = 1;
      part.reduced = rest;
      columns_pass(run, table, op, part, x + blocks * kBlockRows * l.inner, partial.data() + blocks * l.inner);
    }
    part.outer = 1;
    part.reduced = blocks + (rest > 0 ? 1 : 0);
    columns_pass(run, table, joining(op), part, partial.data(), y);
  } else {
    columns_pass(run, table, op, l, x, y);
  }
  finish(kind, y, l.outer * l.inner, l.reduced);
}

/// The greatest element where it is finite, 0 otherwise: subtracting it keeps infinities and NaN what they are.
float shift_of(float greatest) { return std::isfinite(greatest) ? greatest : 0.0f; }

void log_sum_exp(const RunContext& run, CpuRung rung, const ReduceTable& table, const ReduceLayout& l, const float* x,
                 float* y) {
  using microkernels::BinaryOp;
  using microkernels::UnaryOp;
  const auto& elementwise = microkernels::elementwise_table(rung);
  const auto exp = elementwise[UnaryOp::kExp];
  constexpr std::size_t kChunk = 1024;
  if (l.inner == 1) {
    run.parallel_for(
        static_cast<std::size_t>(l.outer), 10.0 + static_cast<double>(l.reduced),
        [&](std::size_t begin, std::size_t end, std::size_t) {
          std::array<float, kChunk> scratch;
          const auto count = static_cast<std::size_t>(l.reduced);
          for (std::size_t i = begin; i < end; ++i) {
            const float* row = x + i * count;
            const float shift = shift_of(table.row[static_cast<std::size_t>(ReduceOp::kMax)](row, count));
            double sum = 0;
            for (std::size_t at = 0; at < count; at += kChunk) {
              const std::size_t n = std::min(kChunk, count - at);
              elementwise[UnaryOp::kAffine](row + at, scratch.data(), n, 1.0f, -shift);
              exp(scratch.data(), scratch.data(), n, 0, 0);
              sum += static_cast<double>(table.row[static_cast<std::size_t>(ReduceOp::kSum)](scratch.data(), n));
            }
            y[i] = shift + static_cast<float>(std::log(sum));
          }
        });
    return;
  }
  const auto subtract = elementwise.vector_vector[static_cast<std::size_t>(BinaryOp::kSub)];
  const auto add = elementwise.vector_vector[static_cast<std::size_t>(BinaryOp::kAdd)];
  for_each_tile(run, l, kColumns, 1.0, [&](std::int64_t o, std::int64_t c, std::int64_t width) {
    std::array<float, kColumns> shift, sum{}, scratch;
    const auto n = static_cast<std::size_t>(width);
    const float* from = x + o * l.reduced * l.inner + c;
    table.columns[static_cast<std::size_t>(ReduceOp::kMax)](from, static_cast<std::size_t>(l.reduced),
                                                            static_cast<std::size_t>(l.inner), n, shift.data());
    for (std::size_t k = 0; k < n; ++k) shift[k] = shift_of(shift[k]);
    for (std::int64_t r = 0; r < l.reduced; ++r) {
      subtract(from + r * l.inner, shift.data(), scratch.data(), n);
      exp(scratch.data(), scratch.data(), n, 0, 0);
      add(sum.data(), scratch.data(), sum.data(), n);
    }
    float* to = y + o * l.inner + c;
    for (std::size_t k = 0; k < n; ++k) to[k] = shift[k] + std::log(sum[k]);
  });
}

void reduce_float(const RunContext& run, CpuRung rung, ReduceKind kind, const ReduceLayout& l, const float* x,
                  float* y) {
  const ReduceTable& table = microkernels::reduce_table(rung);
  if (kind == ReduceKind::LogSumExp) return log_sum_exp(run, rung, table, l, x, y);
  if (l.inner == 1) return reduce_rows(run, table, kind, l, x, y);
  reduce_columns(run, table, kind, l, x, y);
}

/// 16-bit floats are reduced in float32 and rounded once.
void reduce_narrow(const RunContext& run, CpuRung rung, ReduceKind kind, const ReduceLayout& l, const Tensor& in,
                   const Tensor& out) {
  const auto& table = microkernels::convert_table(rung);
  const bool half = in.dtype() == DType::Float16;
  const Tensor x = Tensor::make(DType::Float32, in.shape(), *run.allocator);
  const Tensor y = Tensor::make(DType::Float32, out.shape(), *run.allocator);
  float* wide = x.mutable_data<float>();
  const auto* from = static_cast<const std::uint16_t*>(in.raw());
  run.parallel_for(static_cast<std::size_t>(in.numel()), 0.2, [&](std::size_t begin, std::size_t end, std::size_t) {
    (half ? table.f16_to_f32 : table.bf16_to_f32)(from + begin, wide + begin, end - begin);
  });
  reduce_float(run, rung, kind, l, wide, y.mutable_data<float>());
  (half ? table.f32_to_f16 : table.f32_to_bf16)(y.data<float>(), static_cast<std::uint16_t*>(out.mutable_raw()),
                                                static_cast<std::size_t>(out.numel()));
}

// ---- other types

template <class Acc, class T, class Step, class Finish>
void fold(const RunContext& run, const ReduceLayout& l, const T* x, T* y, Acc init, Step step, Finish finish) {
  for_each_tile(run, l, kColumns, 1.0, [&](std::int64_t o, std::int64_t c, std::int64_t n) {
    std::array<Acc, kColumns> acc;
    std::fill_n(acc.begin(), n, init);
    const T* from = x + o * l.reduced * l.inner + c;
    for (std::int64_t r = 0; r < l.reduced; ++r, from += l.inner) {
      for (std::int64_t k = 0; k < n; ++k)
        acc[static_cast<std::size_t>(k)] = step(acc[static_cast<std::size_t>(k)], from[k]);
    }
    T* to = y + o * l.inner + c;
    for (std::int64_t k = 0; k < n; ++k) to[k] = finish(acc[static_cast<std::size_t>(k)]);
  });
}

template <class T>
void log_sum_exp(const RunContext& run, const ReduceLayout& l, const T* x, T* y) {
  for_each_tile(run, l, 1, 20.0, [&](std::int64_t o, std::int64_t c, std::int64_t) {
    const T* from = x + o * l.reduced * l.inner + c;
    double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::int64_t r = 0; r < l.reduced; ++r) greatest = maximum(greatest, static_cast<double>(from[r * l.inner]));
    const double shift = std::isfinite(greatest) ? greatest : 0.0;
    for (std::int64_t r = 0; r < l.reduced; ++r) sum += std::exp(static_cast<double>(from[r * l.inner]) - shift);
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

void reduce(const RunContext& run, CpuRung rung, ReduceKind kind, const ReduceLayout& layout, const Tensor& in,
            const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor source = arranged(run, in, layout);
  switch (in.dtype()) {
    case DType::Float32:
      return reduce_float(run, rung, kind, layout, source.data<float>(), out.mutable_data<float>());
    case DType::Float16:
    case DType::BFloat16:
      return reduce_narrow(run, rung, kind, layout, source, out);
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
