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
INFERNODE_SIMD void interleave_vectors(const float* rows, std::size_t ld, std::size_t n, float* out) {
  VecF row[kVectors];
  for (; n >= kVectors * kLanes; n -= kVectors * kLanes, rows += kLanes, out += kVectors * kLanes) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) row[v] = load(rows + v * ld);
    store_turns(row, kVectors * kLanes, out);
  }
  if (n == 0) return;
  INFERNODE_UNROLL
  for (std::size_t v = 0; v < kVectors; ++v) row[v] = load_partial(rows + v * ld, (n + kVectors - 1 - v) / kVectors);
  store_turns(row, n, out);
}

void interleave(const float* rows, std::size_t ld, std::size_t count, std::size_t n, float* out) noexcept {
  if (count == 1) return interleave_vectors<1>(rows, ld, n, out);
  if (count == 2) return interleave_vectors<2>(rows, ld, n, out);
  if (count == 4) return interleave_vectors<4>(rows, ld, n, out);
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

// Adds what the taps of one row of the kernel find in a row of products: phase e's element m to phases[e * ld + m].
void add_taps(const ConvShape& s, const float* products, std::size_t ld, float* phases) noexcept {
  const auto stride = static_cast<std::ptrdiff_t>(s.stride_w), length = static_cast<std::ptrdiff_t>(s.out_w);
  const auto most = static_cast<std::ptrdiff_t>(s.in_w + s.stride_w - 1) / stride;
  const auto dilation = static_cast<std::ptrdiff_t>(s.dilation_w);
  // Tap k adds place i to output i * stride + to, to = k * dilation - pad: phase to mod stride, from element to /
  // stride.
  std::ptrdiff_t phase = -s.pad_left % stride, element = -s.pad_left / stride;
  if (phase < 0) {
    phase += stride;
    --element;
  }
  for (std::size_t k = 0; k < s.kernel_w; ++k, products += s.positions()) {
    const std::ptrdiff_t begin = larger(element, std::ptrdiff_t{0}), end = smaller(most, length + element);
    if (begin < end)
      add_row(products + (begin - element), static_cast<std::size_t>(end - begin),
              phases + static_cast<std::size_t>(phase) * ld + begin);
    phase += dilation % stride;
    element += dilation / stride;
    if (phase >= stride) {
      phase -= stride;
      ++element;
    }
  }
}

// Windows that lie side by side and fill the output, except for what may be left over at its end: each output is one
// product.
bool is_side_by_side(const ConvShape& s) noexcept {
  const auto fills = [](std::size_t kernel, std::size_t stride, std::size_t dilation, std::ptrdiff_t pad) {
    return kernel == stride && (kernel == 1 || dilation == 1) && pad == 0;
  };
  return fills(s.kernel_d, s.stride_d, s.dilation_d, s.pad_front) &&
         fills(s.kernel_h, s.stride_h, s.dilation_h, s.pad_top) &&
         fills(s.kernel_w, s.stride_w, s.dilation_w, s.pad_left);
}

// A row of such an output, at d and h.
void place_row(const TapSumArgs& args, std::size_t d, std::size_t h, VecF bias, float* out) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t place_d = d / s.stride_d, place_h = h / s.stride_h, positions = s.positions();
  const bool any = place_d < s.out_d && place_h < s.out_h;
  const std::size_t count = any ? smaller(s.in_w, s.out_w * s.stride_w) : 0;
  if (any) {
    const std::size_t tap = (d % s.stride_d * s.kernel_h + h % s.stride_h) * s.kernel_w;
    interleave(args.products + tap * positions + (place_d * s.out_h + place_h) * s.out_w, positions, s.stride_w, count,
               out);
    map_row(out, count, [&](VecF v) { return v + bias; });
  }
  map_row(out + count, s.in_w - count, [&](VecF) { return bias; });
}

// A row of any output, by rows of its phases.
void sum_row(const TapSumArgs& args, std::size_t at_d, std::size_t at_h, VecF bias, float* scratch,
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
      add_taps(
          s,
          args.products + (kd * s.kernel_h + kh) * s.kernel_w * s.positions() + (d.place * s.out_h + h.place) * s.out_w,
          ld, phases);
    }
  }
  if (phases != out) interleave(phases, ld, s.stride_w, s.in_w, out);
}

void sum_taps(const TapSumArgs& args, float* scratch) noexcept {
  const ConvShape& s = args.shape;
  const ClampBounds bounds = clamp_bounds(args.activation);
  const VecF bias = set(args.bias), low = set(bounds.low), high = set(bounds.high);
  const bool side_by_side = is_side_by_side(s);
  for (std::size_t r = 0; r < s.in_d * s.in_h; ++r) {
    float* const out = args.output + r * s.in_w;
    if (side_by_side) {
      place_row(args, r / s.in_h, r % s.in_h, bias, out);
    } else {
      sum_row(args, r / s.in_h, r % s.in_h, bias, scratch, out);
    }
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
