#include "microkernels/transpose/transpose.h"

#include "microkernels/common/simd_file.h"

namespace infernode::microkernels {
namespace {

// A square of elements whose rows and columns fit the cache together.
constexpr std::size_t kBlock = 16;

INFERNODE_SIMD void transpose_words(const std::uint32_t* x, std::size_t ld_x, std::uint32_t* y, std::size_t ld_y) {
  transpose4(reinterpret_cast<const float*>(x), ld_x, reinterpret_cast<float*>(y), ld_y);
}

template <typename T>
INFERNODE_SIMD void transpose_block(const T* x, std::size_t ld_x, T* y, std::size_t ld_y, std::size_t rows,
                                    std::size_t cols) {
  std::size_t c = 0;
  if constexpr (sizeof(T) == 4) {
    for (; c + 4 <= cols; c += 4) {
      std::size_t r = 0;
      for (; r + 4 <= rows; r += 4) transpose_words(x + r * ld_x + c, ld_x, y + c * ld_y + r, ld_y);
      for (; r < rows; ++r) {
        for (std::size_t i = c; i < c + 4; ++i) y[i * ld_y + r] = x[r * ld_x + i];
      }
    }
  }
  for (; c < cols; ++c) {
    for (std::size_t r = 0; r < rows; ++r) y[c * ld_y + r] = x[r * ld_x + c];
  }
}

// y = a[0] b[0] a[1] b[1] ...
void interleave(const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* y, std::size_t count) noexcept {
  const auto numbers = [](const std::uint32_t* p) { return as_float(load(reinterpret_cast<const std::int32_t*>(p))); };
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes, y += 2 * kLanes) {
    const VecF left = numbers(a + i), right = numbers(b + i);
    store(reinterpret_cast<std::int32_t*>(y), as_int(zip_low(left, right)));
    store(reinterpret_cast<std::int32_t*>(y + kLanes), as_int(zip_high(left, right)));
  }
  for (; i < count; ++i, y += 2) {
    y[0] = a[i];
    y[1] = b[i];
  }
}

// y[c * kRows + r] = x[r * ld_x + c]: so few rows that each write takes a number of all.
template <std::size_t kRows, typename T>
INFERNODE_SIMD void weave(const T* x, std::size_t ld_x, T* y, std::size_t cols) {
  for (std::size_t c = 0; c < cols; ++c, y += kRows) {
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) y[r] = x[r * ld_x + c];
  }
}
// y[c * ld_y + r] = x[r * kCols + c].
template <std::size_t kCols, typename T>
INFERNODE_SIMD void part(const T* x, T* y, std::size_t ld_y, std::size_t rows) {
  for (std::size_t r = 0; r < rows; ++r, x += kCols) {
    INFERNODE_UNROLL
    for (std::size_t c = 0; c < kCols; ++c) y[c * ld_y + r] = x[c];
  }
}

template <typename T>
void transpose(const T* x, std::size_t ld_x, T* y, std::size_t ld_y, std::size_t rows, std::size_t cols) noexcept {
  if constexpr (sizeof(T) == 4) {
    if (rows == 2 && ld_y == 2) return interleave(x, x + ld_x, y, cols);
  }
  if (rows == 2 && ld_y == 2) return weave<2>(x, ld_x, y, cols);
  if (rows == 3 && ld_y == 3) return weave<3>(x, ld_x, y, cols);
  if (cols == 2 && ld_x == 2) return part<2>(x, y, ld_y, rows);
  if (cols == 3 && ld_x == 3) return part<3>(x, y, ld_y, rows);
  for (std::size_t r = 0; r < rows; r += kBlock) {
    for (std::size_t c = 0; c < cols; c += kBlock) {
      transpose_block(x + r * ld_x + c, ld_x, y + c * ld_y + r, ld_y, smaller(kBlock, rows - r),
                      smaller(kBlock, cols - c));
    }
  }
}

}  // namespace

INFERNODE_TABLE(TransposeTable, transpose) = {INFERNODE_TARGET_NAME(INFERNODE_TARGET), transpose<std::uint8_t>,
                                              transpose<std::uint16_t>, transpose<std::uint32_t>,
                                              transpose<std::uint64_t>};

}  // namespace infernode::microkernels
