// Reductions of float32, by microkernels over rows and columns.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/checked.h"
#include "kernel/scratch.h"
#include "microkernels/elementwise/elementwise.h"
#include "microkernels/reduce/reduce.h"
#include "microkernels/transpose/transpose.h"
#include "ops/common/reals.h"
#include "ops/math/columns.h"
#include "ops/math/reduction_tiles.h"

namespace infernode::ops {
namespace {

using kernel::RunContext;
using microkernels::ReduceOp;
using microkernels::ReduceTable;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr std::int64_t kRowBlock = 1 << 15;  ///< longer rows are reduced in blocks of this many elements
constexpr std::int64_t kBlockRows = 1024;    ///< rows of one block of tall columns
constexpr std::size_t kShortRow = 16;        ///< elements of rows that are turned, kShortRows at a time
constexpr std::size_t kShortRows = 128;

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

void finish(const RunContext& run, const microkernels::KernelSet& kernels, ReduceKind kind, float* y, std::int64_t n,
            std::int64_t count) {
  const auto divisor = static_cast<float>(count);
  const auto divide = kernels.elementwise.vector_scalar[static_cast<std::size_t>(microkernels::BinaryOp::kDiv)];
  const bool root = kind == ReduceKind::L2, log = kind == ReduceKind::LogSum;
  if (!root && !log && kind != ReduceKind::Mean) return;
  kernel::Watch watch(run);
  in_pieces(watch, static_cast<std::size_t>(n), log ? 5.0 : 1.0, [&](std::size_t begin, std::size_t end) {
    if (kind == ReduceKind::Mean) divide(y + begin, &divisor, y + begin, end - begin);
    for (std::size_t i = begin; root && i < end; ++i) y[i] = std::sqrt(y[i]);
    for (std::size_t i = begin; log && i < end; ++i) y[i] = std::log(y[i]);
  });
}

/// Rows of few elements, turned: their elements are then reduced side by side.
void reduce_short_rows(const RunContext& run, const microkernels::KernelSet& kernels, ReduceOp op,
                       const ReduceLayout& l, const float* x, float* y) {
  const auto columns = kernels.reduce.columns[static_cast<std::size_t>(op)];
  const auto n = static_cast<std::size_t>(l.reduced), rows = static_cast<std::size_t>(l.outer);
  const std::size_t tiles = ceil_div(rows, kShortRows);
  run.parallel_for(tiles, 0.3 * static_cast<double>(kShortRows * n),
                   [&](std::size_t begin, std::size_t end, std::size_t) {
                     std::array<float, kShortRows * kShortRow> turned;
                     for (std::size_t r = begin * kShortRows; r < std::min(end * kShortRows, rows); r += kShortRows) {
                       const std::size_t count = std::min(kShortRows, rows - r);
                       kernels.transpose.bytes4(reinterpret_cast<const std::uint32_t*>(x + r * n), n,
                                                reinterpret_cast<std::uint32_t*>(turned.data()), count, count, n);
                       columns(turned.data(), n, count, count, y + r);
                     }
                   });
}

/// Rows are reduced block by block, then the blocks' results: the same cuts whatever the number of threads.
void reduce_rows(const RunContext& run, const microkernels::KernelSet& kernels, ReduceOp op, const ReduceLayout& l,
                 const float* x, float* y) {
  if (l.reduced >= 2 && l.reduced <= static_cast<std::int64_t>(kShortRow) && l.outer >= 16)
    return reduce_short_rows(run, kernels, op, l, x, y);
  const ReduceTable& table = kernels.reduce;
  const auto reduce_row = table.row[static_cast<std::size_t>(op)];
  if (l.reduced <= kRowBlock) {
    run.parallel_for(static_cast<std::size_t>(l.outer), 5.0 + 0.1 * static_cast<double>(l.reduced),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       const auto n = static_cast<std::size_t>(l.reduced);
                       for (std::size_t i = begin; i < end; ++i) y[i] = reduce_row(x + i * n, n);
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
}

/// How results of two parts of a column are joined.
microkernels::BinaryOp joined_by(ReduceOp op) {
  using microkernels::BinaryOp;
  return op == ReduceOp::kMax    ? BinaryOp::kMax
         : op == ReduceOp::kMin  ? BinaryOp::kMin
         : op == ReduceOp::kProd ? BinaryOp::kMul
                                 : BinaryOp::kAdd;
}

void columns_pass(const RunContext& run, const microkernels::KernelSet& kernels, ReduceOp op, const ReduceLayout& l,
                  const float* x, float* y) {
  constexpr std::size_t kMostRows = std::size_t{1} << 15;  // between two looks
  const auto columns = kernels.reduce.columns[static_cast<std::size_t>(op)];
  const auto join = kernels.elementwise.vector_vector[static_cast<std::size_t>(joined_by(op))];
  const auto rows = static_cast<std::size_t>(l.reduced), step = static_cast<std::size_t>(l.inner);
  for_each_tile(
      run, l, kReduceColumns, 0.15, [&](std::int64_t o, std::int64_t c, std::int64_t width, kernel::Watch& watch) {
        const auto n = static_cast<std::size_t>(width);
        const float* from = x + o * l.reduced * l.inner + c;
        float* to = y + o * l.inner + c;
        if (rows <= kMostRows) return columns(from, rows, step, n, to);
        std::array<float, kReduceColumns> part;
        for (std::size_t r = 0; r < rows; r += kMostRows) {
          columns(from + r * step, std::min(kMostRows, rows - r), step, n, r == 0 ? to : part.data());
          if (r > 0) join(to, part.data(), to, n);
          watch.did(static_cast<double>(kMostRows) * (0.15 * static_cast<double>(n) + step_ns(step * sizeof(float))));
        }
      });
}

void reduce_columns(const RunContext& run, const microkernels::KernelSet& kernels, ReduceOp op, const ReduceLayout& l,
                    const float* x, float* y) {
  if (l.outer != 1 || l.inner > 4 * kReduceColumns || l.reduced < 4 * kBlockRows) {
    return columns_pass(run, kernels, op, l, x, y);
  }
  // Few tall columns: blocks of rows first, so that there is work for all threads.
  const std::int64_t blocks = l.reduced / kBlockRows, rest = l.reduced % kBlockRows;
  std::vector<float> partial(static_cast<std::size_t>((blocks + (rest > 0 ? 1 : 0)) * l.inner));
  ReduceLayout part = l;
  part.outer = blocks;
  part.reduced = kBlockRows;
  columns_pass(run, kernels, op, part, x, partial.data());
  part.outer = 1;
  if (rest > 0) {
    part.reduced = rest;
    columns_pass(run, kernels, op, part, x + blocks * kBlockRows * l.inner, partial.data() + blocks * l.inner);
  }
  part.reduced = blocks + (rest > 0 ? 1 : 0);
  columns_pass(run, kernels, joining(op), part, partial.data(), y);
}

/// The greatest element where it is finite, 0 otherwise: subtracting it keeps infinities and NaN what they are.
float shift_of(float greatest) { return std::isfinite(greatest) ? greatest : 0.0f; }

void log_sum_exp(const RunContext& run, const microkernels::KernelSet& kernels, const ReduceTable& table,
                 const ReduceLayout& l, const float* x, float* y) {
  using microkernels::BinaryOp;
  using microkernels::UnaryOp;
  const auto& elementwise = kernels.elementwise;
  const auto exp = elementwise[UnaryOp::kExp];
  constexpr std::size_t kChunk = 1024;
  if (l.inner == 1) {
    run.parallel_for(
        static_cast<std::size_t>(l.outer), 10.0 + static_cast<double>(l.reduced),
        [&](std::size_t begin, std::size_t end, std::size_t) {
          std::array<float, kChunk> scratch;
          kernel::Watch watch(run);
          const auto count = static_cast<std::size_t>(l.reduced);
          for (std::size_t i = begin; i < end; ++i) {
            const float* row = x + i * count;
            float greatest = -std::numeric_limits<float>::infinity();
            in_pieces(watch, count, 0.2, [&](std::size_t first, std::size_t last) {
              const float here = table.row[static_cast<std::size_t>(ReduceOp::kMax)](row + first, last - first);
              if (here > greatest || std::isnan(here)) greatest = here;
            });
            const float shift = shift_of(greatest);
            double sum = 0;
            for (std::size_t at = 0; at < count; at += kChunk) {
              const std::size_t n = std::min(kChunk, count - at);
              elementwise[UnaryOp::kAffine](row + at, scratch.data(), n, 1.0f, -shift);
              exp(scratch.data(), scratch.data(), n, 0, 0);
              sum += static_cast<double>(table.row[static_cast<std::size_t>(ReduceOp::kSum)](scratch.data(), n));
              watch.did(static_cast<double>(n));
            }
            y[i] = shift + static_cast<float>(std::log(sum));
          }
        });
    return;
  }
  const auto subtract = elementwise.vector_vector[static_cast<std::size_t>(BinaryOp::kSub)];
  const auto add = elementwise.vector_vector[static_cast<std::size_t>(BinaryOp::kAdd)];
  const auto greater = elementwise.vector_vector[static_cast<std::size_t>(BinaryOp::kMax)];
  for_each_tile(
      run, l, kReduceColumns, 1.0, [&](std::int64_t o, std::int64_t c, std::int64_t width, kernel::Watch& watch) {
        std::array<float, kReduceColumns> shift, sum{}, scratch;
        const auto n = static_cast<std::size_t>(width);
        const float* from = x + o * l.reduced * l.inner + c;
        const auto rows = static_cast<std::size_t>(l.reduced), step = static_cast<std::size_t>(l.inner);
        const double step_time = step_ns(step * sizeof(float));
        shift.fill(-std::numeric_limits<float>::infinity());
        in_pieces(watch, rows, 0.2 * static_cast<double>(n) + step_time, [&](std::size_t first, std::size_t last) {
          table.columns[static_cast<std::size_t>(ReduceOp::kMax)](from + first * step, last - first, step, n,
                                                                  scratch.data());
          greater(shift.data(), scratch.data(), shift.data(), n);
        });
        for (std::size_t k = 0; k < n; ++k) shift[k] = shift_of(shift[k]);
        each_in_pieces(watch, rows, static_cast<double>(n) + step_time, [&](std::size_t r) {
          subtract(from + r * step, shift.data(), scratch.data(), n);
          exp(scratch.data(), scratch.data(), n, 0, 0);
          add(sum.data(), scratch.data(), sum.data(), n);
        });
        float* to = y + o * l.inner + c;
        for (std::size_t k = 0; k < n; ++k) to[k] = shift[k] + std::log(sum[k]);
      });
}

/// Reduces runs of neighbouring axes, the innermost first, each over the results of the one before.
void reduce_runs(const RunContext& run, const microkernels::KernelSet& kernels, ReduceOp op, Shape dims,
                 std::span<const std::int64_t> axes, const float* x, float* y) {
  std::vector<bool> left(dims.rank());
  for (const std::int64_t axis : axes) left[static_cast<std::size_t>(axis)] = true;
  kernel::Scratch<float> current;  // what the pass before made
  bool last = false;
  while (!last) {
    std::size_t end = dims.rank();
    while (end > 0 && !(left[end - 1] && dims[end - 1] != 1)) --end;
    std::size_t begin = end;
    while (begin > 0 && (left[begin - 1] || dims[begin - 1] == 1)) --begin;
    ReduceLayout part;
    part.outer = dims.numel(0, begin);
    part.reduced = dims.numel(begin, end);
    part.inner = dims.numel(end, dims.rank());
    last = true;
    for (std::size_t i = 0; i < begin; ++i) last = last && !(left[i] && dims[i] != 1);
    kernel::Scratch<float> next;
    if (!last) next = kernel::Scratch<float>(run, static_cast<std::size_t>(part.outer * part.inner));
    float* const to = last ? y : next.data();
    (part.inner == 1 ? reduce_rows : reduce_columns)(run, kernels, op, part, x, to);
    for (std::size_t i = begin; i < end; ++i) dims[i] = 1;
    current = std::move(next);
    x = current.data();
    op = joining(op);
  }
}

void reduce_float(const RunContext& run, const microkernels::KernelSet& kernels, ReduceKind kind,
                  std::span<const std::int64_t> axes, const Tensor& in, float* y) {
  const ReduceTable& table = kernels.reduce;
  const ReduceLayout layout = reduce_layout(in.shape(), axes);
  if (kind == ReduceKind::LogSumExp) {
    return log_sum_exp(run, kernels, table, layout, arranged(run, in, layout).data<float>(), y);
  }
  const ReduceOp op = first_pass(kind);
  const auto* x = in.data<float>();
  if (layout.gather) {
    reduce_runs(run, kernels, op, in.shape(), axes, x, y);
  } else {
    (layout.inner == 1 ? reduce_rows : reduce_columns)(run, kernels, op, layout, x, y);
  }
  finish(run, kernels, kind, y, layout.outer * layout.inner, layout.reduced);
}

}  // namespace

void reduce_floats(const RunContext& run, const microkernels::KernelSet& kernels, ReduceKind kind,
                   std::span<const std::int64_t> axes, const Tensor& in, const Tensor& out) {
  if (in.dtype() == DType::Float32) return reduce_float(run, kernels, kind, axes, in, out.mutable_data<float>());
  const auto convert = [&](const Tensor& from, const Tensor& to) {
    convert_reals(run, kernels, from.dtype(), from.raw(), to.dtype(), to.mutable_raw(),
                  static_cast<std::size_t>(from.numel()));
  };
  const Tensor x = Tensor::make(DType::Float32, in.shape(), *run.allocator);
  const Tensor y = Tensor::make(DType::Float32, out.shape(), *run.allocator);
  convert(in, x);
  reduce_float(run, kernels, kind, axes, x, y.mutable_data<float>());
  convert(y, out);
}

}  // namespace infernode::ops
