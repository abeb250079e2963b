// Reductions of float32, by microkernels over rows and columns.

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/checked.h"
#include "kernel/scratch.h"
#include "microkernels/elementwise/convert.h"
#include "microkernels/elementwise/elementwise.h"
#include "microkernels/reduce/reduce.h"
#include "microkernels/transforms/transpose.h"
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

void finish(const microkernels::KernelSet& kernels, ReduceKind kind, float* y, std::int64_t n, std::int64_t count) {
  if (kind == ReduceKind::Mean) {
    const auto divisor = static_cast<float>(count);
    kernels.elementwise.vector_scalar[static_cast<std::size_t>(microkernels::BinaryOp::kDiv)](
        y, &divisor, y, static_cast<std::size_t>(n));
  } else if (kind == ReduceKind::L2) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = std::sqrt(y[i]);
  } else if (kind == ReduceKind::LogSum) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = std::log(y[i]);
  }
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

void columns_pass(const RunContext& run, const ReduceTable& table, ReduceOp op, const ReduceLayout& l, const float* x,
                  float* y) {
  const auto columns = table.columns[static_cast<std::size_t>(op)];
  for_each_tile(run, l, kReduceColumns, 0.15, [&](std::int64_t o, std::int64_t c, std::int64_t n, kernel::Watch&) {
    columns(x + o * l.reduced * l.inner + c, static_cast<std::size_t>(l.reduced), static_cast<std::size_t>(l.inner),
            static_cast<std::size_t>(n), y + o * l.inner + c);
  });
}

void reduce_columns(const RunContext& run, const microkernels::KernelSet& kernels, ReduceOp op, const ReduceLayout& l,
                    const float* x, float* y) {
  const ReduceTable& table = kernels.reduce;
  if (l.outer != 1 || l.inner > 4 * kReduceColumns || l.reduced < 4 * kBlockRows) {
    return columns_pass(run, table, op, l, x, y);
  }
  // Few tall columns: blocks of rows first, so that there is work for all threads.
  const std::int64_t blocks = l.reduced / kBlockRows, rest = l.reduced % kBlockRows;
  std::vector<float> partial(static_cast<std::size_t>((blocks + (rest > 0 ? 1 : 0)) * l.inner));
  ReduceLayout part = l;
  part.outer = blocks;
  part.reduced = kBlockRows;
  columns_pass(run, table, op, part, x, partial.data());
  part.outer = 1;
  if (rest > 0) {
    part.reduced = rest;
    columns_pass(run, table, op, part, x + blocks * kBlockRows * l.inner, partial.data() + blocks * l.inner);
  }
  part.reduced = blocks + (rest > 0 ? 1 : 0);
  columns_pass(run, table, joining(op), part, partial.data(), y);
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
  for_each_tile(run, l, kReduceColumns, 1.0,
                [&](std::int64_t o, std::int64_t c, std::int64_t width, kernel::Watch& watch) {
                  std::array<float, kReduceColumns> shift, sum{}, scratch;
                  const auto n = static_cast<std::size_t>(width);
                  const float* from = x + o * l.reduced * l.inner + c;
                  table.columns[static_cast<std::size_t>(ReduceOp::kMax)](
                      from, static_cast<std::size_t>(l.reduced), static_cast<std::size_t>(l.inner), n, shift.data());
                  for (std::size_t k = 0; k < n; ++k) shift[k] = shift_of(shift[k]);
                  const auto rows = static_cast<std::size_t>(l.reduced), step = static_cast<std::size_t>(l.inner);
                  each_in_pieces(watch, rows, static_cast<double>(n), [&](std::size_t r) {
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
  finish(kernels, kind, y, layout.outer * layout.inner, layout.reduced);
}

}  // namespace

void reduce_floats(const RunContext& run, const microkernels::KernelSet& kernels, ReduceKind kind,
                   std::span<const std::int64_t> axes, const Tensor& in, const Tensor& out) {
  if (in.dtype() == DType::Float32) return reduce_float(run, kernels, kind, axes, in, out.mutable_data<float>());
  const auto& table = kernels.convert;
  const bool half = in.dtype() == DType::Float16;
  const Tensor x = Tensor::make(DType::Float32, in.shape(), *run.allocator);
  const Tensor y = Tensor::make(DType::Float32, out.shape(), *run.allocator);
  float* wide = x.mutable_data<float>();
  const auto* from = static_cast<const std::uint16_t*>(in.raw());
  run.parallel_for(static_cast<std::size_t>(in.numel()), 0.2, [&](std::size_t begin, std::size_t end, std::size_t) {
    (half ? table.f16_to_f32 : table.bf16_to_f32)(from + begin, wide + begin, end - begin);
  });
  reduce_float(run, kernels, kind, axes, x, y.mutable_data<float>());
  (half ? table.f32_to_f16 : table.f32_to_bf16)(y.data<float>(), static_cast<std::uint16_t*>(out.mutable_raw()),
                                                static_cast<std::size_t>(out.numel()));
}

}  // namespace infernode::ops
