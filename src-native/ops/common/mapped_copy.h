#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernel/run_context.h"
#include "ops/common/arguments.h"
#include "ops/common/mover.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {

/// For each axis of an output, which element of the input's axis stands at each place; -1 for the constant.
using AxisMaps = std::vector<std::vector<std::int64_t>>;

namespace mapped_copy_detail {

/// `count` neighbours in a row that are neighbours in the source too, from `source` on; -1 for constants.
struct Run {
  std::int64_t source, count;
};

inline std::vector<Run> runs_of(const std::vector<std::int64_t>& map) {
  std::vector<Run> runs;
  for (const std::int64_t source : map) {
    if (!runs.empty() && source == (runs.back().source < 0 ? -1 : runs.back().source + runs.back().count)) {
      ++runs.back().count;
    } else {
      runs.push_back({source, 1});
    }
  }
  return runs;
}

/// One row of blocks, run by run.
template <class T>
void copy_row(Mover& mover, const T* x, T* y, const std::vector<Run>& runs, std::int64_t block, const T& constant) {
  for (const Run& run : runs) {
    const std::int64_t n = run.count * block;
    if (run.source < 0) {
      mover.fill(y, n, constant);
    } else if (n == 1) {
      mover.set(*y, x[run.source]);
    } else {
      mover.copy(x + run.source * block, n, y);
    }
    y += n;
  }
}

/// Rows of single elements that are mostly no runs (an image enlarged by repeating pixels).
template <class T>
void gather_row(Mover& mover, const T* x, T* y, const std::vector<std::int64_t>& map, bool constants,
                const T& constant) {
  if (constants) {
    for (std::size_t i = 0; i < map.size(); ++i) mover.set(y[i], map[i] < 0 ? constant : x[map[i]]);
  } else {
    for (std::size_t i = 0; i < map.size(); ++i) mover.set(y[i], x[map[i]]);
  }
}

}  // namespace mapped_copy_detail

/// out[i0, i1, ...] = in[maps[0][i0], maps[1][i1], ...], or `constant` where a map says -1. T moves elements of the
/// dtype (see dispatch_elements). Every source index is inside its axis.
template <class T>
void mapped_copy(const kernel::RunContext& run, const tensor::Tensor& in, const tensor::Tensor& out,
                 const AxisMaps& maps, const T& constant) {
  namespace detail = mapped_copy_detail;
  if (out.numel() == 0) return;
  if (in.rank() == 0) return copy_all(run, in, out);
  // Rows go along the last axis that is not copied whole; what lies inside it moves as blocks.
  std::size_t row_axis = in.rank() - 1;
  const auto whole = [&](std::size_t axis) {
    const auto& map = maps[axis];
    for (std::size_t i = 0; i < map.size(); ++i) {
      if (map[i] != static_cast<std::int64_t>(i)) return false;
    }
    return static_cast<std::int64_t>(map.size()) == in.dim(axis);
  };
  while (row_axis > 0 && whole(row_axis)) --row_axis;
  const std::vector<std::int64_t>& row = maps[row_axis];
  const std::int64_t block = in.shape().numel(row_axis + 1, in.rank());
  const std::int64_t row_size = static_cast<std::int64_t>(row.size()) * block;
  const std::vector<detail::Run> runs = detail::runs_of(row);
  const bool gather = block == 1 && runs.size() * 8 > row.size();
  const bool constants = std::any_of(row.begin(), row.end(), [](std::int64_t source) { return source < 0; });
  const tensor::Shape strides = in.shape().strides();
  const T* from = elements<T>(in);
  T* to = mutable_elements<T>(out);
  const auto rows = static_cast<std::size_t>(out.shape().numel(0, row_axis));
  const double cost = 10.0 + static_cast<double>(row_size) * (gather ? 1.0 : sizeof(T) / 4.0);
  run.parallel_for(rows, cost, [&](std::size_t begin, std::size_t end, std::size_t) {
    Ints at(row_axis, 0);
    auto rest = static_cast<std::int64_t>(begin);
    for (std::size_t d = row_axis; d-- > 0;) {
      at[d] = rest % out.dim(d);
      rest /= out.dim(d);
    }
    Mover mover(run);
    std::int64_t previous = -2;  // source of the row before; -1 for a row of constants
    for (std::size_t r = begin; r < end; ++r) {
      std::int64_t offset = 0;
      for (std::size_t d = 0; d < row_axis; ++d) {
        const std::int64_t source = maps[d][static_cast<std::size_t>(at[d])];
        offset = source < 0 || offset < 0 ? -1 : offset + source * strides[d];
      }
      T* y = to + static_cast<std::int64_t>(r) * row_size;
      if (offset < 0) {
        mover.fill(y, row_size, constant);
      } else if (offset == previous) {
        mover.copy(y - row_size, row_size, y);
      } else if (gather) {
        detail::gather_row(mover, from + offset, y, row, constants, constant);
      } else {
        detail::copy_row(mover, from + offset, y, runs, block, constant);
      }
      previous = offset;
      for (std::size_t d = row_axis; d-- > 0;) {
        if (++at[d] < out.dim(d)) break;
        at[d] = 0;
      }
    }
  });
}

}  // namespace infernode::ops
