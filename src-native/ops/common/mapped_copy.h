#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernel/counted.h"
#include "ops/common/arguments.h"
#include "ops/common/mover.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {

/// Which element of an input's axis stands at each place of an output's; -1 for the constant.
using AxisMap = std::span<const std::int64_t>;
using AxisMaps = std::vector<AxisMap>;  ///< of each axis

namespace mapped_copy_detail {

/// `count` neighbours in a row that are neighbours in the source too, from `source` on; -1 for constants.
struct Run {
  std::int64_t source, count;
};

inline constexpr std::size_t kPiece = 1 << 14;  // places of a map between two looks
inline constexpr double kNsPerPlace = 1.5;

/// What can be said of a map as a whole.
struct Nature {
  bool whole = true;       ///< every element stands at its own place
  bool constants = false;  ///< there are some
  std::size_t runs = 0;
};

inline bool continues(AxisMap map, std::size_t i) { return i > 0 && map[i] == (map[i - 1] < 0 ? -1 : map[i - 1] + 1); }

inline Nature nature_of(Mover& mover, AxisMap map, std::int64_t dim) {
  Nature out;
  for (std::size_t first = 0; first < map.size(); first += kPiece) {
    const std::size_t end = std::min(first + kPiece, map.size());
    for (std::size_t i = first; i < end; ++i) {
      out.whole = out.whole && map[i] == static_cast<std::int64_t>(i);
      out.constants = out.constants || map[i] < 0;
      out.runs += continues(map, i) ? 0 : 1;
    }
    mover.did(kNsPerPlace * kPiece);
  }
  out.whole = out.whole && static_cast<std::int64_t>(map.size()) == dim;
  return out;
}

inline kernel::CountedVector<Run> runs_of(const kernel::RunContext& run, Mover& mover, AxisMap map, std::size_t count) {
  kernel::CountedVector<Run> runs(run);
  runs.reserve(count);
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (continues(map, i)) {
      ++runs.back().count;
    } else {
      runs.push_back({map[i], 1});
    }
    mover.did(kNsPerPlace);
  }
  return runs;
}

/// One row of blocks, run by run.
template <class T>
void copy_row(Mover& mover, const T* x, T* y, std::span<const Run> runs, std::int64_t block, const T& constant) {
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
    mover.did(kNsPerPlace);
  }
}

/// Rows of single elements that are mostly no runs (an image enlarged by repeating pixels).
template <class T>
void gather_row(Mover& mover, const T* x, T* y, AxisMap map, bool constants, const T& constant) {
  for (std::size_t first = 0; first < map.size(); first += kPiece) {
    const std::size_t end = std::min(first + kPiece, map.size());
    if (constants) {
      for (std::size_t i = first; i < end; ++i) mover.set(y[i], map[i] < 0 ? constant : x[map[i]]);
    } else {
      for (std::size_t i = first; i < end; ++i) mover.set(y[i], x[map[i]]);
    }
    mover.did(kNsPerPlace * static_cast<double>(end - first));
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
  Mover looks(run);
  detail::Nature nature = detail::nature_of(looks, maps[row_axis], in.dim(row_axis));
  for (; row_axis > 0 && nature.whole; nature = detail::nature_of(looks, maps[row_axis], in.dim(row_axis))) --row_axis;
  const AxisMap row = maps[row_axis];
  const std::int64_t block = in.shape().numel(row_axis + 1, in.rank());
  const std::int64_t row_size = static_cast<std::int64_t>(row.size()) * block;
  const bool gather = block == 1 && nature.runs * 8 > row.size();
  const kernel::CountedVector<detail::Run> runs =
      gather ? kernel::CountedVector<detail::Run>(run) : detail::runs_of(run, looks, row, nature.runs);
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
        detail::gather_row(mover, from + offset, y, row, nature.constants, constant);
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
