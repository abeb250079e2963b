#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernel/run_context.h"
#include "ops/arguments.h"
#include "ops/strided_copy.h"

namespace infernode::ops {

/// For each axis of an output, which element of the input's axis stands at each place; -1 for the constant.
using AxisMaps = std::vector<std::vector<std::int64_t>>;

namespace mapped_copy_detail {

/// One row of blocks; neighbours in the source are copied as one run.
template <class T>
void copy_row(const T* x, T* y, const std::vector<std::int64_t>& map, std::int64_t block, const T& constant) {
  for (std::size_t i = 0; i < map.size();) {
    std::size_t n = 1;
    if (map[i] < 0) {
      while (i + n < map.size() && map[i + n] < 0) ++n;
      std::fill_n(y, static_cast<std::int64_t>(n) * block, constant);
    } else {
      while (i + n < map.size() && map[i + n] == map[i] + static_cast<std::int64_t>(n)) ++n;
      std::copy_n(x + map[i] * block, static_cast<std::int64_t>(n) * block, y);
    }
    y += static_cast<std::int64_t>(n) * block;
    i += n;
  }
}

/// Rows of single elements that are mostly no runs (an image enlarged by repeating pixels).
template <class T>
void gather_row(const T* x, T* y, const std::vector<std::int64_t>& map, const T& constant) {
  for (std::size_t i = 0; i < map.size(); ++i) y[i] = map[i] < 0 ? constant : x[map[i]];
}

inline bool has_runs(const std::vector<std::int64_t>& map) {
  std::size_t breaks = 0;
  for (std::size_t i = 1; i < map.size(); ++i) breaks += map[i] != map[i - 1] + 1 ? 1 : 0;
  return breaks * 8 < map.size();
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
  const bool gather = block == 1 && !detail::has_runs(row);
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
    std::int64_t previous = -2;  // source of the row before; -1 for a row of constants
    for (std::size_t r = begin; r < end; ++r) {
      std::int64_t offset = 0;
      for (std::size_t d = 0; d < row_axis; ++d) {
        const std::int64_t source = maps[d][static_cast<std::size_t>(at[d])];
        offset = source < 0 || offset < 0 ? -1 : offset + source * strides[d];
      }
      T* y = to + static_cast<std::int64_t>(r) * row_size;
      if (offset < 0) {
        std::fill_n(y, row_size, constant);
      } else if (offset == previous) {
        std::copy_n(y - row_size, row_size, y);
      } else if (gather) {
        detail::gather_row(from + offset, y, row, constant);
      } else {
        detail::copy_row(from + offset, y, row, block, constant);
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
