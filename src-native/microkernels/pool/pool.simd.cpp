#include "microkernels/pool/pool.h"

#include "microkernels/common/simd_file.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kRowFloats = 8192;     // input columns that a strip of outputs reads, of all its lines
constexpr std::size_t kStripOutputs = 1024;  // columns of outputs at a time
constexpr std::size_t kLines = 8;            // rows of outputs at a time
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
  static VecF take(VecF most, VecF x) { return max_nan(x, most); }
  static float take(float most, float x) { return x > most || x != x ? x : most; }
};
struct Sum {
  static constexpr float kNeutral = 0.0f;
  static VecF take(VecF sum, VecF x) { return sum + x; }
  static float take(float sum, float x) { return sum + x; }
};

INFERNODE_SIMD void store_some(float* p, VecF x, std::size_t n) {
  if (n == kLanes) return store(p, x);
  store_partial(p, x, n);
}

// What becomes of reduced windows: strip(w, count) says which columns are next, row(h) which row, and store() takes n
// results from column w on.
class StoreMaximum {
 public:
  StoreMaximum(const PoolShape& shape, float* y) : shape_(shape), y_(y) {}
  void strip(std::size_t, std::size_t) {}
  void row(std::size_t h) { row_ = y_ + h * shape_.out_w; }
  void store(std::size_t w, VecF most, std::size_t n) { store_some(row_ + w, most, n); }

 private:
  const PoolShape& shape_;
  float *y_, *row_ = nullptr;
};

class StoreMean {
 public:
  StoreMean(const PoolShape& shape, bool include_pad, float* y) : shape_(shape), include_pad_(include_pad), y_(y) {}
  void strip(std::size_t first, std::size_t count) {
    first_ = first;
    constexpr std::size_t kSmall = std::size_t{1} << 30;
    const std::size_t end = (first + count + kLanes) * shape_.stride_w + shape_.kernel_w;
    const std::size_t padded =
        shape_.in_w + static_cast<std::size_t>(shape_.pad_left + larger(shape_.pad_right, std::ptrdiff_t{0}));
    if (shape_.dilation_w == 1 && larger(larger(end, padded), shape_.in_w) < kSmall) return strip_together(count);
    for (std::size_t i = 0; i < count; ++i) {
      columns_[i] = taps((first + i) * shape_.stride_w, shape_.kernel_w, shape_.dilation_w, shape_.pad_left,
                         shape_.in_w, shape_.pad_right);
    }
    for (std::size_t i = count; i < count + kLanes; ++i) columns_[i] = 1.0f;
  }
  void row(std::size_t h) {
    rows_ =
        taps(h * shape_.stride_h, shape_.kernel_h, shape_.dilation_h, shape_.pad_top, shape_.in_h, shape_.pad_bottom);
    row_ = y_ + h * shape_.out_w;
  }
  void store(std::size_t w, VecF sum, std::size_t n) {
    const VecF counts = set(rows_) * load(columns_ + (w - first_));
    store_some(row_ + w, sum / max(counts, set(1.0f)), n);
  }

 private:
  // Windows without gaps, all numbers small.
  void strip_together(std::size_t count) {
    const auto number = [](auto v) { return set(static_cast<std::int32_t>(v)); };
    const auto in = static_cast<std::ptrdiff_t>(shape_.in_w);
    const VecI low = number(include_pad_ ? -shape_.pad_left : 0);
    const VecI high = number(include_pad_ ? in + shape_.pad_right : in);
    const auto start = static_cast<std::ptrdiff_t>(first_ * shape_.stride_w) - shape_.pad_left;
    for (std::size_t i = 0; i < count; i += kLanes) {
      const VecI begin = number(start) + (iota() + number(i)) * number(shape_.stride_w);
      const VecI taps = min(begin + number(shape_.kernel_w), high) - max(begin, low);
      simd::INFERNODE_TARGET::store(columns_ + i, to_float(max(taps, number(0))));
    }
  }

  float taps(std::size_t at, std::size_t kernel, std::size_t dilation, std::ptrdiff_t pad_begin, std::size_t in,
             std::ptrdiff_t pad_end) const {
    const auto start = static_cast<std::ptrdiff_t>(at) - pad_begin, size = static_cast<std::ptrdiff_t>(in);
    const Taps counted = include_pad_ ? taps_inside(start, kernel, dilation, -pad_begin, size + pad_end)
                                      : taps_inside(start, kernel, dilation, 0, size);
    return static_cast<float>(counted.count());
  }

  const PoolShape& shape_;
  bool include_pad_;
  float *y_, *row_ = nullptr;
  std::size_t first_ = 0;
  float rows_ = 0;                         // that count of the current row's windows
  float columns_[kStripOutputs + kLanes];  // and columns of each of the strip's
};

// read(p), read(p + step), ... reduced, `count` of them; kTaps is what count mostly is, 0 where that is not known.
template <typename Op, std::size_t kTaps, typename Read>
INFERNODE_SIMD VecF reduce_taps(const float* p, std::size_t step, std::size_t count, Read read) {
  VecF sum = set(Op::kNeutral);
  if (kTaps > 0 && count == kTaps) {
    INFERNODE_UNROLL
    for (std::size_t k = 0; k < kTaps; ++k) sum = Op::take(sum, read(p + k * step));
    return sum;
  }
  for (std::size_t k = 0; k < count; ++k) sum = Op::take(sum, read(p + k * step));
  return sum;
}

// The windows of kLanes outputs along a line of reduced rows.
template <typename Op, std::size_t kTaps>
INFERNODE_SIMD VecF reduce_columns(const PoolShape& s, const float* line, std::size_t n) {
  if (s.stride_w == 1)
    return reduce_taps<Op, kTaps>(line, s.dilation_w, s.kernel_w, [](const float* p) { return load(p); });
  if (s.stride_w == 2)
    return reduce_taps<Op, kTaps>(line, s.dilation_w, s.kernel_w, [](const float* p) { return load_stride2(p); });
  if (s.stride_w == 3)
    return reduce_taps<Op, kTaps>(line, s.dilation_w, s.kernel_w, [](const float* p) { return load_stride3(p); });
  if (s.stride_w == 4)
    return reduce_taps<Op, kTaps>(line, s.dilation_w, s.kernel_w, [](const float* p) { return load_stride4(p); });
  float lanes[kLanes];
  store(lanes, set(Op::kNeutral));
  for (std::size_t i = 0; i < n; ++i) {
    const float* p = line + i * s.stride_w;
    float lane = Op::kNeutral;
    for (std::size_t k = 0; k < s.kernel_w; ++k) lane = Op::take(lane, p[k * s.dilation_w]);
    lanes[i] = lane;
  }
  return load(lanes);
}

// Rows first: line[c] = reduction of the window's rows at input column c; then columns. A few lines are made before the
// first is read, since what was just stored is not read across its vectors.
template <typename Op, std::size_t kTaps, typename Finish>
void pool_strip(const PoolShape& s, const float* x, float* lines, std::size_t w0, std::size_t count,
                Finish& finish) noexcept {
  const auto start = static_cast<std::ptrdiff_t>(w0 * s.stride_w) - s.pad_left;
  const auto width = static_cast<std::ptrdiff_t>((count - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1);
  // Input columns of the strip that exist; the others stay neutral, and so does what vectors read beyond the strip.
  const std::ptrdiff_t first = larger(start, std::ptrdiff_t{0});
  const std::ptrdiff_t last = smaller(start + width, static_cast<std::ptrdiff_t>(s.in_w));
  const std::size_t lead = static_cast<std::size_t>(first - start);
  const std::size_t body = last > first ? static_cast<std::size_t>(last - first) : 0;
  const std::size_t all = static_cast<std::size_t>(width) + kLanes * s.stride_w;
  const std::size_t made = smaller(smaller(kLines, s.out_h), larger(kRowFloats / all, std::size_t{1}));
  for (std::size_t i = 0; i < made * all; ++i) lines[i] = Op::kNeutral;

  finish.strip(w0, count);
  for (std::size_t h0 = 0; h0 < s.out_h; h0 += made) {
    const std::size_t rows = smaller(made, s.out_h - h0);
    for (std::size_t r = 0; r < rows; ++r) {
      const auto top = static_cast<std::ptrdiff_t>((h0 + r) * s.stride_h) - s.pad_top;
      const Taps taps = taps_inside(top, s.kernel_h, s.dilation_h, 0, static_cast<std::ptrdiff_t>(s.in_h));
      const auto row = static_cast<std::size_t>(top + static_cast<std::ptrdiff_t>(taps.begin * s.dilation_h));
      const float* const from = taps.count() > 0 ? x + row * s.in_w + static_cast<std::size_t>(first) : x;
      float* const line = lines + r * all + lead;
      std::size_t i = 0;
      for (; i + kLanes <= body; i += kLanes) {
        store(line + i, reduce_taps<Op, kTaps>(from + i, s.dilation_h * s.in_w, taps.count(),
                                               [](const float* p) { return load(p); }));
      }
      if (i < body) {
        const std::size_t n = body - i;
        store_partial(line + i,
                      reduce_taps<Op, kTaps>(from + i, s.dilation_h * s.in_w, taps.count(),
                                             [&](const float* p) { return load_partial(p, n); }),
                      n);
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      finish.row(h0 + r);
      for (std::size_t i = 0; i < count; i += kLanes) {
        const std::size_t n = smaller(kLanes, count - i);
        finish.store(w0 + i, reduce_columns<Op, kTaps>(s, lines + r * all + i * s.stride_w, n), n);
      }
    }
  }
}

// One output at a time, of a window wider than the lines.
template <typename Op, typename Finish>
void pool_each(const PoolShape& s, const float* x, Finish& finish) noexcept {
  for (std::size_t w = 0; w < s.out_w; ++w) {
    const auto left = static_cast<std::ptrdiff_t>(w * s.stride_w) - s.pad_left;
    const Taps cols = taps_inside(left, s.kernel_w, s.dilation_w, 0, static_cast<std::ptrdiff_t>(s.in_w));
    finish.strip(w, 1);
    for (std::size_t h = 0; h < s.out_h; ++h) {
      const auto top = static_cast<std::ptrdiff_t>(h * s.stride_h) - s.pad_top;
      const Taps rows = taps_inside(top, s.kernel_h, s.dilation_h, 0, static_cast<std::ptrdiff_t>(s.in_h));
      VecF sum = set(Op::kNeutral);
      for (std::size_t i = rows.begin; i < rows.end; ++i) {
        const auto row = static_cast<std::size_t>(top + static_cast<std::ptrdiff_t>(i * s.dilation_h));
        for (std::size_t j = cols.begin; j < cols.end; ++j) {
          const auto col = static_cast<std::size_t>(left + static_cast<std::ptrdiff_t>(j * s.dilation_w));
          sum = Op::take(sum, set(x[row * s.in_w + col]));
        }
      }
      finish.row(h);
      finish.store(w, sum, std::size_t{1});
    }
  }
}

template <typename Op, std::size_t kTaps, typename Finish>
void pool_taps(const PoolShape& s, const float* x, Finish& finish) noexcept {
  const std::size_t reach = (s.kernel_w - 1) * s.dilation_w + 1 + (kLanes + 1) * s.stride_w;
  if (s.out_w == 0) return;
  if (reach > kRowFloats) return pool_each<Op>(s, x, finish);
  float lines[kRowFloats];
  const std::size_t strip = smaller((kRowFloats - reach) / s.stride_w + 1, kStripOutputs);
  for (std::size_t w0 = 0; w0 < s.out_w; w0 += strip) {
    pool_strip<Op, kTaps>(s, x, lines, w0, smaller(strip, s.out_w - w0), finish);
  }
}

template <typename Op, typename Finish>
void pool(const PoolShape& s, const float* x, Finish finish) noexcept {
  if (s.kernel_w == 2) return pool_taps<Op, 2>(s, x, finish);
  if (s.kernel_w == 3) return pool_taps<Op, 3>(s, x, finish);
  pool_taps<Op, 0>(s, x, finish);
}

void pool_max(const PoolShape& s, const float* x, float* y) noexcept { pool<Maximum>(s, x, StoreMaximum(s, y)); }

void pool_average(const PoolShape& s, bool include_pad, const float* x, float* y) noexcept {
  pool<Sum>(s, x, StoreMean(s, include_pad, y));
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
