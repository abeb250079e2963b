#include "microkernels/transpose/transpose.h"

#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

template <typename T>
void check(Transpose2d<T> transpose) {
  for (const std::size_t rows : {1u, 3u, 4u, 15u, 16u, 17u, 35u}) {
    for (const std::size_t cols : {1u, 2u, 4u, 7u, 16u, 33u}) {
      const std::size_t ld_x = cols + 2, ld_y = rows + 1;
      Guarded<T> x((rows - 1) * ld_x + cols), y((cols - 1) * ld_y + rows);
      Random random(rows * 100 + cols);
      for (auto& v : x) v = static_cast<T>(random.bits() | static_cast<std::uint64_t>(random.bits()) << 32);
      for (auto& v : y) v = 77;
      transpose(x.data(), ld_x, y.data(), ld_y, rows, cols);
      std::size_t wrong = 0;
      for (std::size_t c = 0; c < cols; ++c) {
        for (std::size_t r = 0; r < rows; ++r) wrong += y[c * ld_y + r] != x[r * ld_x + c];
        if (c + 1 < cols) wrong += y[c * ld_y + rows] != 77;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("transposes of every element size keep to their rows and columns") {
  for_each_target([](CpuRung rung) {
    const TransposeTable& table = kernel_set(rung).transpose;
    check(table.bytes1);
    check(table.bytes2);
    check(table.bytes4);
    check(table.bytes8);
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
