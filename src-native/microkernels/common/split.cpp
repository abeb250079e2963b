#include "microkernels/common/split.h"

#include <algorithm>
#include <cmath>

namespace infernode::microkernels {

GemmSplit split_grid(std::size_t mr, std::size_t nr, std::size_t m, std::size_t n, std::size_t k, std::size_t workers,
                     SplitCost weight) noexcept {
  const std::size_t panels = std::max<std::size_t>(1, (n + nr - 1) / nr);
  const std::size_t row_tiles = std::max<std::size_t>(1, (m + mr - 1) / mr);
  // A range should be worth waking a thread for; a few ranges per thread even out what the system does meanwhile.
  constexpr double kMinimalWork = 1 << 17;
  const double work =
      static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(std::max<std::size_t>(k, 1));
  const std::size_t parts = workers <= 1 ? 1 : m <= 4 ? workers : workers * 4;
  // Between two ranges a thread looks whether its run is to end; ranges as large as this lose nothing to one another.
  // An element of a short sum takes as long as one of many more products: it is written, and columns are filled up.
  constexpr double kMostWork = 1 << 26, kPerElement = 64;
  const double taken =
      static_cast<double>(m) * static_cast<double>(panels * nr) * (static_cast<double>(k) + kPerElement);
  const auto least = static_cast<std::size_t>(std::ceil(taken / kMostWork));
  const auto wanted =
      std::max(least, static_cast<std::size_t>(std::clamp(work / kMinimalWork, 1.0, static_cast<double>(parts))));

  // Ranges of a product of few columns are of rows.
  const std::size_t least_m = std::clamp<std::size_t>((least + panels - 1) / panels, 1, row_tiles);
  std::size_t best_m = least_m, best_n = std::min(panels, wanted);
  double best_cost = -1;
  for (std::size_t i = least_m; i <= std::min(row_tiles, wanted); ++i) {
    const std::size_t j = std::min(panels, (wanted + i - 1) / i);
    const double rows = static_cast<double>(std::min(m, (row_tiles + i - 1) / i * mr));
    const double columns = static_cast<double>((panels + j - 1) / j * nr);
    // The slowest thread decides; ranges are dealt out evenly.
    const double rounds = static_cast<double>((i * j + workers - 1) / std::max<std::size_t>(workers, 1));
    const double cost = rounds * (rows * columns + weight.per_row * rows + weight.per_column * columns);
    if (best_cost < 0 || cost < best_cost) {
      best_cost = cost;
      best_m = i;
      best_n = j;
    }
  }
  GemmSplit split;
  split.tile_m = (row_tiles + best_m - 1) / best_m * mr;
  split.tile_n = (panels + best_n - 1) / best_n * nr;
  if (best_m == 1) split.tile_m = std::max<std::size_t>(m, 1);
  split.count_m = std::max<std::size_t>(1, (m + split.tile_m - 1) / split.tile_m);
  split.count_n = std::max<std::size_t>(1, (n + split.tile_n - 1) / split.tile_n);
  return split;
}

}  // namespace infernode::microkernels
