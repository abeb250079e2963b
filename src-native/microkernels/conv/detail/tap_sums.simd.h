#pragma once

#include "microkernels/common/activate.simd.h"
#include "microkernels/common/simd_file.h"
#include "microkernels/conv/conv.h"

// Sums of products by taps, a row of the output after the other. With strides a row falls into phases, in which taps
// that reach it add consecutive elements; phases take turns in the row that is written.
namespace infernode::microkernels {
namespace {

// out[i] += x[i]
INFERNODE_SIMD void add_row(const float* x, std::size_t n, float* out) {
  for (; n >= kLanes; n -= kLanes, x += kLanes, out += kLanes) store(out, load(out) + load(x));
  if (n) store_partial(out, load_partial(out, n) + load_partial(x, n), n);
}

// `vectors` vectors that take turns in n <= vectors * kLanes elements.
template <std::size_t kVectors>
INFERNODE_SIMD void store_turns(const VecF (&rows)[kVectors], std::size_t n, float* out) {
  VecF turns[kVectors];
  if constexpr (kVectors == 1) {
    turns[0] = rows[0];
  } else if constexpr (kVectors == 2) {
    turns[0] = zip_low(rows[0], rows[1]);
    turns[1] = zip_high(rows[0], rows[1]);
  } else {
    const VecF first[2] = {zip_low(rows[0], rows[2]), zip_low(rows[1], rows[3])},
               last[2] = {zip_high(rows[0], rows[2]), zip_high(rows[1], rows[3])};
    turns[0] = zip_low(first[0], first[1]);
    turns[1] = zip_high(first[0], first[1]);
    turns[2] = zip_low(last[0], last[1]);
    turns[3] = zip_high(last[0], last[1]);
  }
  INFERNODE_UNROLL
  for (std::size_t v = 0; v < kVectors; ++v) {
    if (n >= (v + 1) * kLanes) {
      store(out + v * kLanes, turns[v]);
    } else if (n > v * kLanes) {
      store_partial(out + v * kLanes, turns[v], n - v * kLanes);
    }
  }
}

template <std::size_t kVectors>
INFERNODE_SIMD void interleave_vectors(const float* const* rows, std::size_t n, float* out) {
  VecF row[kVectors];
  std::size_t at = 0;
  for (; n >= kVectors * kLanes; n -= kVectors * kLanes, at += kLanes, out += kVectors * kLanes) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) row[v] = load(rows[v] + at);
    store_turns(row, kVectors * kLanes, out);
  }
  if (n == 0) return;
  INFERNODE_UNROLL
  for (std::size_t v = 0; v < kVectors; ++v) row[v] = load_partial(rows[v] + at, (n + kVectors - 1 - v) / kVectors);
  store_turns(row, n, out);
}

// How many rows have vectors that take turns.
constexpr std::size_t kMostTurns = 4;
constexpr bool takes_turns(std::size_t count) noexcept { return count == 1 || count == 2 || count == kMostTurns; }
INFERNODE_SIMD void take_turns(const float* const* rows, std::size_t count, std::size_t n, float* out) {
  if (count == 1) interleave_vectors<1>(rows, n, out);
  if (count == 2) interleave_vectors<2>(rows, n, out);
  if (count == kMostTurns) interleave_vectors<kMostTurns>(rows, n, out);
}

void interleave(const float* rows, std::size_t ld, std::size_t count, std::size_t n, float* out) noexcept {
  if (takes_turns(count)) {
    const float* each[kMostTurns];
    for (std::size_t r = 0; r < count; ++r) each[r] = rows + r * ld;
    return take_turns(each, count, n, out);
  }
  for (std::size_t r = 0; r < count; ++r) {
    const float* from = rows + r * ld;
    for (std::size_t i = r; i < n; i += count) out[i] = *from++;
  }
}

// Where along an axis a tap finds what it adds to output `at`: in [0, size), or none.
struct TapPlace {
  bool any;
  std::size_t place;
};
TapPlace tap_place(std::size_t at, std::ptrdiff_t pad, std::size_t tap, std::size_t dilation, std::size_t stride,
                   std::size_t size) noexcept {
  const std::ptrdiff_t from = static_cast<std::ptrdiff_t>(at) + pad - static_cast<std::ptrdiff_t>(tap * dilation);
  const auto step = static_cast<std::ptrdiff_t>(stride);
  if (from < 0 || from % step != 0 || from / step >= static_cast<std::ptrdiff_t>(size)) return {false, 0};
  return {true, static_cast<std::size_t>(from / step)};
}

// What a tap of a row of the kernel adds to a row of the output: its place m - element to element m of a phase, for m
// in [begin, end).
struct PhaseTap {
  std::size_t tap, phase;
  std::ptrdiff_t element, begin, end;
};
// Calls each(PhaseTap) for the taps of a row that add anything.
template <typename Each>
INFERNODE_SIMD void find_phase_taps(const ConvShape& s, Each each) {
  const auto stride = static_cast<std::ptrdiff_t>(s.stride_w), length = static_cast<std::ptrdiff_t>(s.out_w),
             dilation = static_cast<std::ptrdiff_t>(s.dilation_w), width = static_cast<std::ptrdiff_t>(s.in_w);
  const std::ptrdiff_t fewest = width / stride, longer = width % stride, step = dilation % stride,
                       steps = dilation / stride;
  // Tap k adds place i to output i * stride + to, to = k * dilation - pad: phase to mod stride, from element to /
  // stride.
  std::ptrdiff_t phase = -s.pad_left % stride, element = -s.pad_left / stride;
  if (phase < 0) {
    phase += stride;
    --element;
  }
  for (std::size_t k = 0; k < s.kernel_w; ++k) {
    const std::ptrdiff_t most = fewest + (phase < longer ? 1 : 0), begin = larger(element, std::ptrdiff_t{0}),
                         end = smaller(most, length + element);
    if (begin < end) each(PhaseTap{k, static_cast<std::size_t>(phase), element, begin, end});
    phase += step;
    element += steps;
    if (phase >= stride) {
      phase -= stride;
      ++element;
    }
  }
}

// The same for every row, found once where they are few.
class RowTaps {
 public:
  static constexpr std::size_t kMost = 16;

  explicit RowTaps(const ConvShape& s) noexcept : s_(s) {
    if (s.kernel_w <= kMost) find_phase_taps(s, [&](const PhaseTap& t) { taps_[count_++] = t; });
  }
  template <typename Each>
  void for_each(Each each) const noexcept {
    if (s_.kernel_w > kMost) return find_phase_taps(s_, each);
    for (std::size_t i = 0; i < count_; ++i) each(taps_[i]);
  }

 private:
  const ConvShape& s_;
  PhaseTap taps_[kMost];
  std::size_t count_ = 0;
};

// Adds what the taps of one row of the kernel find in a row of products: phase e's element m to phases[e * ld + m].
void add_taps(const RowTaps& taps, std::size_t positions, const float* products, std::size_t ld,
              float* phases) noexcept {
  taps.for_each([&](const PhaseTap& t) {
    add_row(products + t.tap * positions + (t.begin - t.element), static_cast<std::size_t>(t.end - t.begin),
            phases + t.phase * ld + t.begin);
  });
}

// A row of any output, by rows of its phases.
void sum_row(const TapSumArgs& args, const RowTaps& taps, std::size_t at_d, std::size_t at_h, VecF bias, float* scratch,
             float* out) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t ld = divide_up(s.in_w, s.stride_w);
  float* const phases = s.stride_w == 1 ? out : scratch;
  map_row(phases, ld * s.stride_w, [&](VecF) { return bias; });
  for (std::size_t kd = 0; kd < s.kernel_d; ++kd) {
    const TapPlace d = tap_place(at_d, s.pad_front, kd, s.dilation_d, s.stride_d, s.out_d);
    for (std::size_t kh = 0; d.any && kh < s.kernel_h; ++kh) {
      const TapPlace h = tap_place(at_h, s.pad_top, kh, s.dilation_h, s.stride_h, s.out_h);
      if (!h.any) continue;
      const std::size_t row =
          (kd * s.kernel_h + kh) * s.kernel_w * s.positions() + (d.place * s.out_h + h.place) * s.out_w;
      add_taps(taps, s.positions(), args.products + row, ld, phases);
    }
  }
  if (phases != out) interleave(phases, ld, s.stride_w, s.in_w, out);
}

// ---- Windows that lie side by side or apart: each output is one product or none ----

bool lies_apart(const ConvShape& s) noexcept {
  return (s.kernel_d - 1) * s.dilation_d < s.stride_d && (s.kernel_h - 1) * s.dilation_h < s.stride_h &&
         (s.kernel_w - 1) * s.dilation_w < s.stride_w && s.kernel_w <= RowTaps::kMost;
}
// Whether each output is a product.
bool fills_output(const ConvShape& s) noexcept {
  const auto fills = [](std::size_t in, std::size_t out, std::size_t kernel, std::size_t stride, std::size_t dilation,
                        std::ptrdiff_t pad) {
    return kernel == stride && (kernel == 1 || dilation == 1) && pad == 0 && in == out * stride;
  };
  return fills(s.in_d, s.out_d, s.kernel_d, s.stride_d, s.dilation_d, s.pad_front) &&
         fills(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top) &&
         fills(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left);
}

// Elements [first, last) of a row that vectors of phases make: those that all of them have.
struct TurnRange {
  std::ptrdiff_t first = 0, last = 0;

  TurnRange(const ConvShape& s, const RowTaps& taps) noexcept {
    if (!takes_turns(s.stride_w)) return;
    last = static_cast<std::ptrdiff_t>(s.in_w / s.stride_w);
    taps.for_each([&](const PhaseTap& t) {
      first = larger(first, t.begin);
      last = smaller(last, t.end);
    });
    if (first >= last) first = last = 0;
  }
};

// A row that holds the bias where it has no product; where a phase has no tap it reads `zeros`.
void place_row(const RowTaps& taps, const TurnRange& range, const ConvShape& s, const float* products, float bias,
               const float* zeros, float* out) noexcept {
  const std::size_t positions = s.positions();
  if (range.first < range.last) {
    const float* turns[kMostTurns] = {zeros, zeros, zeros, zeros};
    taps.for_each(
        [&](const PhaseTap& t) { turns[t.phase] = products + t.tap * positions + (range.first - t.element); });
    const std::size_t n = static_cast<std::size_t>(range.last - range.first) * s.stride_w;
    float* const to = out + static_cast<std::size_t>(range.first) * s.stride_w;
    take_turns(turns, s.stride_w, n, to);
    map_row(to, n, [&](VecF v) { return v + set(bias); });
  }
  const auto stride = static_cast<std::ptrdiff_t>(s.stride_w);
  taps.for_each([&](const PhaseTap& t) {
    const float* const from = products + t.tap * positions;
    float* const to = out + t.phase;
    for (std::ptrdiff_t m = t.begin; m < smaller(range.first, t.end); ++m) to[m * stride] = from[m - t.element] + bias;
    for (std::ptrdiff_t m = larger(t.begin, range.last); m < t.end; ++m) to[m * stride] = from[m - t.element] + bias;
  });
}

void place_rows(const TapSumArgs& args, const RowTaps& taps, float* scratch) noexcept {
  const ConvShape& s = args.shape;
  const TurnRange range(s, taps);
  fill_zero(scratch, s.in_w / s.stride_w);
  if (!fills_output(s)) map_row(args.output, s.in_d * s.in_h * s.in_w, [&](VecF) { return set(args.bias); });
  const float* products = args.products;
  const auto output = [](std::size_t place, std::size_t stride, std::size_t tap, std::size_t dilation,
                         std::ptrdiff_t pad) {  // beyond any where it lies before the first
    return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(place * stride + tap * dilation) - pad);
  };
  for (std::size_t kd = 0; kd < s.kernel_d; ++kd) {
    for (std::size_t kh = 0; kh < s.kernel_h; ++kh, products += s.kernel_w * s.positions()) {
      for (std::size_t place = 0; place < s.out_d * s.out_h; ++place) {
        const std::size_t d = output(place / s.out_h, s.stride_d, kd, s.dilation_d, s.pad_front),
                          h = output(place % s.out_h, s.stride_h, kh, s.dilation_h, s.pad_top);
        if (d < s.in_d && h < s.in_h)
          place_row(taps, range, s, products + place * s.out_w, args.bias, scratch,
                    args.output + (d * s.in_h + h) * s.in_w);
      }
    }
  }
}

void sum_taps(const TapSumArgs& args, float* scratch) noexcept {
  const ConvShape& s = args.shape;
  const ClampBounds bounds = clamp_bounds(args.activation);
  const VecF bias = set(args.bias), low = set(bounds.low), high = set(bounds.high);
  const RowTaps taps(s);
  const bool apart = lies_apart(s);
  if (apart) place_rows(args, taps, scratch);
  for (std::size_t r = 0; r < s.in_d * s.in_h; ++r) {
    float* const out = args.output + r * s.in_w;
    if (!apart) sum_row(args, taps, r / s.in_h, r % s.in_h, bias, scratch, out);
    if (args.residual) add_row(args.residual + r * s.in_w, s.in_w, out);
    if (!is_clamp(args.activation)) {
      activate_row(args.activation, out, s.in_w);
    } else if (args.activation.kind != Activation::kNone) {
      map_row(out, s.in_w, [&](VecF v) { return clamp(v, low, high); });
    }
  }
}

}  // namespace
}  // namespace infernode::microkernels
