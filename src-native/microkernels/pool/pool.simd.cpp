#include "microkernels/pool/pool.h"

#include "microkernels/common/simd_file.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kRowFloats = 8192;  // input columns that a strip of outputs reads
constexpr float kInfinity = __builtin_inff();

// First and last (exclusive) kernel index whose tap start + i * dilation lies in [low, high).
struct Taps {
  std::size_t begin, end;
  std::size_t count() const { return end - begin; }
};
Taps taps_inside(std::ptrdiff_t start, std::size_t kernel, std::size_t dilation, std::ptrdiff_t low,
                 std::ptrdiff_t high) noexcept {
  Taps taps{0, kernel};
  const auto at = [&](std::size_t i) { return start + static_cast<std::ptrdiff_t>(i * dilation); };
  while (taps.begin < taps.end && at(taps.begin) < low) ++taps.begin;
  while (taps.end > taps.begin && at(taps.end - 1) >= high) --taps.end;
  return taps;
}

struct Maximum {
  static constexpr float kNeutral = -kInfinity;
  static VecF take(VecF sum, VecF x) { return max_nan(x, sum); }
};
struct Sum {
  static constexpr float kNeutral = 0.0f;
  static VecF take(VecF sum, VecF x) { return sum + x; }
};

INFERNODE_SIMD VecF load_step(const float* p, std::size_t stride) {
  if (stride == 1) return load(p);
  if (stride == 2) return load_stride2(p);
  float lanes[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = p[i * stride];
  return load(lanes);
}

// Rows first: line[c] = reduction of the window's rows at input column c; then columns. finish(row, column, value, n)
// stores n results.
template <typename Op, typename Finish>
void pool_strip(const PoolShape& s, const float* x, float* line, std::size_t w0, std::size_t count,
                Finish finish) noexcept {
  const auto start = static_cast<std::ptrdiff_t>(w0 * s.stride_w) - s.pad_left;
  const auto width = static_cast<std::ptrdiff_t>((count - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1);
  // Input columns of the strip that exist; the others stay neutral, and so does what vectors read beyond the strip.
  const std::ptrdiff_t first = larger(start, std::ptrdiff_t{0});
  const std::ptrdiff_t last = smaller(start + width, static_cast<std::ptrdiff_t>(s.in_w));
  const std::size_t lead = static_cast<std::size_t>(first - start);
  const std::size_t body = last > first ? static_cast<std::size_t>(last - first) : 0;
  const std::size_t all = static_cast<std::size_t>(width) + kLanes * s.stride_w;
  for (std::size_t i = 0; i < all; ++i) line[i] = Op::kNeutral;

  for (std::size_t h = 0; h < s.out_h; ++h) {
    const auto top = static_cast<std::ptrdiff_t>(h * s.stride_h) - s.pad_top;
    const Taps taps = taps_inside(top, s.kernel_h, s.dilation_h, 0, static_cast<std::ptrdiff_t>(s.in_h));
    for (std::size_t i = 0; i < body; i += kLanes) {
      const std::size_t n = smaller(kLanes, body - i);
      VecF sum = set(Op::kNeutral);
      for (std::size_t k = taps.begin; k < taps.end; ++k) {
        const auto row = static_cast<std::size_t>(top + static_cast<std::ptrdiff_t>(k * s.dilation_h));
        sum = Op::take(sum, load_partial(x + row * s.in_w + static_cast<std::size_t>(first) + i, n));
      }
      store_partial(line + lead + i, sum, n);
    }
    for (std::size_t i = 0; i < count; i += kLanes) {
      VecF sum = set(Op::kNeutral);
      for (std::size_t k = 0; k < s.kernel_w; ++k) {
        sum = Op::take(sum, load_step(line + i * s.stride_w + k * s.dilation_w, s.stride_w));
      }
      finish(h, w0 + i, sum, smaller(kLanes, count - i));
    }
  }
}

template <typename Op, typename Finish>
void pool(const PoolShape& s, const float* x, Finish finish) noexcept {
  const std::size_t reach = (s.kernel_w - 1) * s.dilation_w + 1 + (kLanes + 1) * s.stride_w;
  if (s.out_w == 0) return;
  if (reach > kRowFloats) {
    // A window wider than the buffer: one output at a time.
    for (std::size_t h = 0; h < s.out_h; ++h) {
      const auto top = static_cast<std::ptrdiff_t>(h * s.stride_h) - s.pad_top;
      const Taps rows = taps_inside(top, s.kernel_h, s.dilation_h, 0, static_cast<std::ptrdiff_t>(s.in_h));
      for (std::size_t w = 0; w < s.out_w; ++w) {
        const auto left = static_cast<std::ptrdiff_t>(w * s.stride_w) - s.pad_left;
        const Taps cols = taps_inside(left, s.kernel_w, s.dilation_w, 0, static_cast<std::ptrdiff_t>(s.in_w));
        VecF sum = set(Op::kNeutral);
        for (std::size_t i = rows.begin; i < rows.end; ++i) {
          const auto row = static_cast<std::size_t>(top + static_cast<std::ptrdiff_t>(i * s.dilation_h));
          for (std::size_t j = cols.begin; j < cols.end; ++j) {
            const auto col = static_cast<std::size_t>(left + static_cast<std::ptrdiff_t>(j * s.dilation_w));
            sum = Op::take(sum, set(x[row * s.in_w + col]));
          }
        }
        finish(h, w, sum, std::size_t{1});
      }
    }
    return;
  }
  float line[kRowFloats];
  const std::size_t strip = (kRowFloats - reach) / s.stride_w + 1;
  for (std::size_t w0 = 0; w0 < s.out_w; w0 += strip) {
    pool_strip<Op>(s, x, line, w0, smaller(strip, s.out_w - w0), finish);
  }
}

void pool_max(const PoolShape& s, const float* x, float* y) noexcept {
  pool<Maximum>(s, x,
                [&](std::size_t h, std::size_t w, VecF v, std::size_t n) { store_partial(y + h * s.out_w + w, v, n); });
}

void pool_average(const PoolShape& s, bool include_pad, const float* x, float* y) noexcept {
  const auto in_h = static_cast<std::ptrdiff_t>(s.in_h), in_w = static_cast<std::ptrdiff_t>(s.in_w);
  pool<Sum>(s, x, [&](std::size_t h, std::size_t w, VecF v, std::size_t n) {
    const auto count = [&](std::size_t at, std::size_t stride, std::size_t kernel, std::size_t dilation,
                           std::ptrdiff_t pad_begin, std::ptrdiff_t size, std::ptrdiff_t pad_end) {
      const auto start = static_cast<std::ptrdiff_t>(at * stride) - pad_begin;
      return include_pad ? taps_inside(start, kernel, dilation, -pad_begin, size + pad_end).count()
                         : taps_inside(start, kernel, dilation, 0, size).count();
    };
    const std::size_t rows = count(h, s.stride_h, s.kernel_h, s.dilation_h, s.pad_top, in_h, s.pad_bottom);
    const auto first = static_cast<std::ptrdiff_t>(w * s.stride_w) - s.pad_left;
    const auto last =
        static_cast<std::ptrdiff_t>((w + n - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w) - s.pad_left;
    if (first >= 0 && last < in_w) {
      const float whole = static_cast<float>(larger(rows * s.kernel_w, std::size_t{1}));
      store_partial(y + h * s.out_w + w, v / set(whole), n);
      return;
    }
    float counts[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::size_t column = smaller(w + i, s.out_w - 1);
      const std::size_t cols = count(column, s.stride_w, s.kernel_w, s.dilation_w, s.pad_left, in_w, s.pad_right);
      counts[i] = static_cast<float>(larger(rows * cols, std::size_t{1}));
    }
    store_partial(y + h * s.out_w + w, v / load(counts), n);
  });
}

// ---- Places of kPlace planes ----

INFERNODE_SIMD VecF load_lanes(const float* p) { return load(p); }
INFERNODE_SIMD VecF load_lanes(const std::uint16_t* p) { return load_bf16(p); }
INFERNODE_SIMD void store_lanes(float* p, VecF x) { store(p, x); }
INFERNODE_SIMD void store_lanes(std::uint16_t* p, VecF x) { store_bf16(p, x); }

// The greatest of places at x, x + step, ...
template <typename T>
INFERNODE_SIMD VecF greatest(const T* x, std::size_t step, std::size_t count) {
  VecF most = set(-kInfinity);
  for (std::size_t i = 0; i < count; ++i) most = max_nan(load_lanes(x + i * step), most);
  return most;
}

// Rows first where a line holds all columns.
template <typename T>
void max_places(const PoolShape& s, const T* x, T* y) noexcept {
  float line[kRowFloats];
  const bool rows_first = s.in_w * kPlace <= kRowFloats;
  const std::size_t row = s.in_w * kPlace;
  for (std::size_t h = 0; h < s.out_h; ++h) {
    const auto top = static_cast<std::ptrdiff_t>(h * s.stride_h) - s.pad_top;
    const Taps rows = taps_inside(top, s.kernel_h, s.dilation_h, 0, static_cast<std::ptrdiff_t>(s.in_h));
    const auto first = static_cast<std::size_t>(top + static_cast<std::ptrdiff_t>(rows.begin * s.dilation_h));
    const T* const from = rows.count() > 0 ? x + first * row : x;
    for (std::size_t at = 0; rows_first && at < row; at += kLanes)
      store(line + at, greatest(from + at, s.dilation_h * row, rows.count()));
    for (std::size_t w = 0; w < s.out_w; ++w, y += kPlace) {
      const auto left = static_cast<std::ptrdiff_t>(w * s.stride_w) - s.pad_left;
      const Taps columns = taps_inside(left, s.kernel_w, s.dilation_w, 0, static_cast<std::ptrdiff_t>(s.in_w));
      const std::size_t begin =
          columns.count() > 0
              ? static_cast<std::size_t>(left + static_cast<std::ptrdiff_t>(columns.begin * s.dilation_w)) * kPlace
              : 0;
      const std::size_t step = s.dilation_w * kPlace;
      for (std::size_t lane = 0; lane < kPlace; lane += kLanes) {
        if (rows_first) {
          store_lanes(y + lane, greatest(line + begin + lane, step, columns.count()));
          continue;
        }
        VecF most = set(-kInfinity);
        for (std::size_t i = 0; i < rows.count(); ++i) {
          const T* const at = from + i * s.dilation_h * row + begin + lane;
          most = max_nan(greatest(at, step, columns.count()), most);
        }
        store_lanes(y + lane, most);
      }
    }
  }
}

}  // namespace

INFERNODE_TABLE(PoolTable, pool) = {INFERNODE_TARGET_NAME(INFERNODE_TARGET), pool_max, pool_average, max_places<float>,
                                    max_places<std::uint16_t>};

}  // namespace infernode::microkernels
