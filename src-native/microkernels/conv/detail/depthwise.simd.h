#pragma once

#include "microkernels/common/activate.simd.h"
#include "microkernels/common/columns.simd.h"
#include "microkernels/common/simd_file.h"
#include "microkernels/conv/conv.h"
#include "microkernels/conv/detail/depthwise_apart.simd.h"
#include "microkernels/conv/detail/depthwise_layout.simd.h"
#include "microkernels/conv/detail/depthwise_rows.simd.h"
#include "microkernels/conv/detail/depthwise_short.simd.h"

// Convolutions of one channel each. Rows of strides may be read where they lie (`depthwise_short`, `depthwise_apart`);
// else planes that fit the first-level cache are laid out there (`depthwise_flat`), wider ones pass through a buffer of
// rows (`depthwise_strip`), and the rest are computed one output at a time.
namespace infernode::microkernels {
namespace {

constexpr std::size_t kRowFloats = 16384;  // all buffered input rows of a depthwise strip
constexpr std::size_t kMaxTaps = 64;       // kernel width

// Input rows are kept zero-padded and parted by phase: column w goes to phase w % stride, place w / stride, so that a
// kernel tap reads consecutive places whatever the stride.
struct RowBuffer {
  float* data;
  std::size_t phase_width;  // floats of one phase
  std::size_t row_width;    // floats of one row: stride * phase_width
};

// out[v] for kVectors vectors of output columns from `at` on.
template <std::size_t kVectors>
INFERNODE_SIMD void depthwise_block(const float* const* rows, const float* const* weights, std::size_t row_count,
                                    const std::size_t* taps, std::size_t tap_count, std::size_t at, VecF bias,
                                    VecF* out) {
  INFERNODE_UNROLL
  for (std::size_t v = 0; v < kVectors; ++v) out[v] = bias;
  for (std::size_t r = 0; r < row_count; ++r) {
    for (std::size_t i = 0; i < tap_count; ++i) {
      const float* x = rows[r] + taps[i] + at;
      const VecF w = set(weights[r][i]);
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) out[v] = fma(load(x + v * kLanes), w, out[v]);
    }
  }
}

// Any shape, one output at a time.
void depthwise_scalar(const DepthwiseArgs& args) noexcept {
  const ConvShape& s = args.shape;
  std::size_t at = 0;
  for (std::size_t d = 0; d < s.out_d; ++d) {
    for (std::size_t h = 0; h < s.out_h; ++h) {
      for (std::size_t w = 0; w < s.out_w; ++w, ++at) {
        float sum = args.bias;
        for (std::size_t i = 0; i < s.kernel_points(); ++i) {
          const std::size_t kd = i / s.kernel_w / s.kernel_h, kh = i / s.kernel_w % s.kernel_h, kw = i % s.kernel_w;
          const auto z = static_cast<std::ptrdiff_t>(d * s.stride_d + kd * s.dilation_d) - s.pad_front;
          const auto y = static_cast<std::ptrdiff_t>(h * s.stride_h + kh * s.dilation_h) - s.pad_top;
          const auto x = static_cast<std::ptrdiff_t>(w * s.stride_w + kw * s.dilation_w) - s.pad_left;
          const bool inside = z >= 0 && z < static_cast<std::ptrdiff_t>(s.in_d) && y >= 0 &&
                              y < static_cast<std::ptrdiff_t>(s.in_h) && x >= 0 &&
                              x < static_cast<std::ptrdiff_t>(s.in_w);
          if (inside)
            sum += args.weight[i] *
                   args.input[(static_cast<std::size_t>(z) * s.in_h + static_cast<std::size_t>(y)) * s.in_w +
                              static_cast<std::size_t>(x)];
        }
        args.output[at] = sum + (args.residual ? args.residual[at] : 0.0f);
      }
    }
  }
  const ClampBounds bounds = clamp_bounds(args.activation);
  if (is_clamp(args.activation)) {
    map_row(args.output, at, [&](VecF v) { return clamp(v, set(bounds.low), set(bounds.high)); });
  } else {
    activate_row(args.activation, args.output, at);
  }
}

// Output columns [w0, w0 + count) of all rows.
void depthwise_strip(const DepthwiseArgs& args, const RowBuffer& buffer, std::size_t w0, std::size_t count) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t span = (s.kernel_h - 1) * s.dilation_h + 1;  // slots; input row h lies in slot h % span
  std::size_t taps[kMaxTaps];
  for (std::size_t i = 0; i < s.kernel_w; ++i) {
    const std::size_t column = i * s.dilation_w;
    taps[i] = column % s.stride_w * buffer.phase_width + column / s.stride_w;
  }
  const auto start = static_cast<std::ptrdiff_t>(w0 * s.stride_w) - s.pad_left;
  const std::size_t places = count + (s.kernel_w - 1) * s.dilation_w / s.stride_w;
  const ClampBounds bounds = clamp_bounds(args.activation);
  const VecF bias = set(args.bias), low = set(bounds.low), high = set(bounds.high);

  std::ptrdiff_t loaded = 0;  // rows below are in the buffer or no longer wanted
  for (std::size_t h = 0; h < s.out_h; ++h) {
    const auto top = static_cast<std::ptrdiff_t>(h * s.stride_h) - s.pad_top;
    const auto bottom = smaller(top + static_cast<std::ptrdiff_t>(span), static_cast<std::ptrdiff_t>(s.in_h));
    for (std::ptrdiff_t y = larger(larger(top, loaded), std::ptrdiff_t{0}); y < bottom; ++y) {
      if ((y - top) % static_cast<std::ptrdiff_t>(s.dilation_h) != 0 && s.stride_h % s.dilation_h == 0) continue;
      const float* row = args.input + static_cast<std::size_t>(y) * s.in_w;
      float* slot = buffer.data + static_cast<std::size_t>(y) % span * buffer.row_width;
      for (std::size_t phase = 0; phase < s.stride_w; ++phase) {
        copy_padded(row, static_cast<std::ptrdiff_t>(s.in_w), start + static_cast<std::ptrdiff_t>(phase),
                    static_cast<std::ptrdiff_t>(s.stride_w), places, slot + phase * buffer.phase_width);
      }
    }
    loaded = larger(loaded, bottom);

    const float* rows[kMaxTaps];
    const float* weights[kMaxTaps];
    std::size_t row_count = 0;
    for (std::size_t i = 0; i < s.kernel_h; ++i) {
      const std::ptrdiff_t y = top + static_cast<std::ptrdiff_t>(i * s.dilation_h);
      if (y < 0 || y >= static_cast<std::ptrdiff_t>(s.in_h)) continue;
      rows[row_count] = buffer.data + static_cast<std::size_t>(y) % span * buffer.row_width;
      weights[row_count++] = args.weight + i * s.kernel_w;
    }
    float* out = args.output + h * s.out_w + w0;
    const float* residual = args.residual ? args.residual + h * s.out_w + w0 : nullptr;
    for (std::size_t at = 0; at < count;) {
      const std::size_t left = count - at, vectors = smaller(divide_up(left, kLanes), std::size_t{4});
      VecF sum[4];
      switch (vectors) {
        case 1:
          depthwise_block<1>(rows, weights, row_count, taps, s.kernel_w, at, bias, sum);
          break;
        case 2:
          depthwise_block<2>(rows, weights, row_count, taps, s.kernel_w, at, bias, sum);
          break;
        case 3:
          depthwise_block<3>(rows, weights, row_count, taps, s.kernel_w, at, bias, sum);
          break;
        default:
          depthwise_block<4>(rows, weights, row_count, taps, s.kernel_w, at, bias, sum);
      }
      for (std::size_t v = 0; v < vectors; ++v, at += kLanes) {
        const std::size_t n = smaller(kLanes, count - at);
        VecF value = sum[v];
        if (residual) value = value + load_partial(residual + at, n);
        store_partial(out + at, clamp(value, low, high), n);
      }
    }
    if (!is_clamp(args.activation)) activate_row(args.activation, out, count);
  }
}

template <std::size_t kVectors>
INFERNODE_SIMD void flat_block(const float* data, const std::size_t* taps, const float* weight, std::size_t count,
                               VecF bias, float* out) {
  VecF sum[kVectors];
  INFERNODE_UNROLL
  for (std::size_t v = 0; v < kVectors; ++v) sum[v] = bias;
  for (std::size_t i = 0; i < count; ++i) {
    const float* x = data + taps[i];
    const VecF w = set(weight[i]);
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) sum[v] = fma(load(x + v * kLanes), w, sum[v]);
  }
  INFERNODE_UNROLL
  for (std::size_t v = 0; v < kVectors; ++v) store(out + v * kLanes, sum[v]);
}

void flat_outputs(const FlatLayout& layout, const float* data, const std::size_t* taps, const float* weight,
                  std::size_t count, VecF bias, float* flat) noexcept {
  std::size_t at = 0;
  for (; at + 4 * kLanes <= layout.outputs; at += 4 * kLanes)
    flat_block<4>(data + at, taps, weight, count, bias, flat + at);
  for (; at < layout.outputs; at += kLanes) flat_block<1>(data + at, taps, weight, count, bias, flat + at);
}

// Output rows [h0, h0 + s.out_h) of every plane; `s` is the shape cut to them.
void depthwise_flat(const DepthwiseArgs& args, const ConvShape& s, std::size_t h0) noexcept {
  const FlatLayout layout(s);
  alignas(64) float data[kFlatFloats];
  alignas(64) float flat[kFlatOutputs];
  const std::size_t count = s.kernel_h * s.kernel_w, phases = layout.phases(), in_size = s.in_h * s.in_w;
  std::size_t taps[kFlatTaps];
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t h = i / s.kernel_w, w = i % s.kernel_w;
    taps[i] = layout.phase(h, w) * layout.phase_floats + h * s.dilation_h / s.stride_h * layout.pitch +
              w * s.dilation_w / s.stride_w;
  }
  const PlaneCopy copy(s, layout);
  const DepthwiseRows rows = depthwise_rows_of(s);
  // Padding is the same for every plane: zeroed once, and copies leave it alone.
  fill_zero(data, phases * layout.phase_floats);
  const ClampBounds bounds = clamp_bounds(args.activation);
  const VecF low = set(bounds.low), high = set(bounds.high);
  for (std::size_t plane = 0; plane < args.planes; ++plane) {
    const std::size_t seen = args.input_plane(plane);
    const bool fresh = plane == 0 || seen != args.input_plane(plane - 1);
    if (fresh) copy.run(args.input + seen * in_size, args.input + args.input_planes() * in_size, data);
    const float* weight = args.weight + plane * count;
    const VecF bias = set(args.biases ? args.biases[plane] : args.bias);
    const std::size_t offset = plane * args.shape.positions() + h0 * s.out_w;
    float* out = args.output + offset;
    const float* residual = args.residual ? args.residual + offset : nullptr;
    if (rows) {
      // Output rows that lie a dilation apart see the same rows.
      const std::size_t parts = s.dilation_h;
      for (std::size_t part = 0; part < smaller(parts, s.out_h); ++part) {
        const std::size_t first = part * s.out_w;
        rows({data + part * layout.pitch, parts * layout.pitch, layout.phases_w.count * layout.phase_floats, taps,
              s.kernel_w, weight, bias, low, high, residual ? residual + first : nullptr, out + first,
              divide_up(s.out_h - part, parts), s.out_w, parts * s.out_w});
      }
    } else {
      flat_outputs(layout, data, taps, weight, count, bias, flat);
      for (std::size_t h = 0; h < s.out_h; ++h) {
        for (std::size_t i = 0; i < s.out_w; i += kLanes) {
          const std::size_t n = smaller(kLanes, s.out_w - i), to = h * s.out_w + i;
          finish_outputs(load(flat + h * layout.pitch + i), n, low, high, residual ? residual + to : nullptr, out + to);
        }
      }
    }
    if (!is_clamp(args.activation)) activate_row(args.activation, out, s.out_h * s.out_w);
  }
}

void depthwise_plane(const DepthwiseArgs& args) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t span = (s.kernel_h - 1) * s.dilation_h + 1, reach = (s.kernel_w - 1) * s.dilation_w / s.stride_w;
  // Places of one phase: the outputs, what the kernel reaches beyond them, and what the last vectors read too much.
  const std::size_t slack = reach + 4 * kLanes, fit = kRowFloats / span / s.stride_w;
  if (s.kernel_d > 1 || s.in_d > 1 || s.out_d > 1 || s.kernel_w > kMaxTaps || s.kernel_h > kMaxTaps ||
      fit < slack + kLanes) {
    depthwise_scalar(args);
    return;
  }
  alignas(64) float storage[kRowFloats];
  const std::size_t width = smaller(s.out_w, fit - slack);
  RowBuffer buffer{storage, width + slack, (width + slack) * s.stride_w};
  fill_zero(storage, span * buffer.row_width);
  for (std::size_t w0 = 0; w0 < s.out_w; w0 += width) depthwise_strip(args, buffer, w0, smaller(width, s.out_w - w0));
}

void depthwise(const DepthwiseArgs& args) noexcept {
  const ConvShape& s = args.shape;
  if (const ShortPlanes planes = short_planes_of(s)) return planes(args);
  if (const ApartPlane plane = apart_plane_of(s)) {
    for (std::size_t i = 0; i < args.planes; ++i) plane(args, i);
    return;
  }
  // Bands of rows that lie flat in the first-level cache.
  ConvShape band = s;
  while (band.out_h > 1 && !FlatLayout(band).fits(band)) band.out_h = (band.out_h + 1) / 2;
  if (FlatLayout(band).fits(band)) {
    const std::size_t rows = band.out_h;
    for (std::size_t h0 = 0; h0 < s.out_h; h0 += rows) {
      band.out_h = smaller(rows, s.out_h - h0);
      band.pad_top = s.pad_top - static_cast<std::ptrdiff_t>(h0 * s.stride_h);
      depthwise_flat(args, band, h0);
    }
    return;
  }
  DepthwiseArgs plane = args;
  for (std::size_t i = 0; i < args.planes; ++i) {
    if (args.biases) plane.bias = args.biases[i];
    plane.input = args.input + args.input_plane(i) * s.in_d * s.in_h * s.in_w;
    depthwise_plane(plane);
    plane.weight += s.kernel_points();
    plane.output += s.positions();
    if (plane.residual) plane.residual += s.positions();
  }
}

}  // namespace
}  // namespace infernode::microkernels
