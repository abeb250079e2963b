#include "microkernels/conv.h"

#include "microkernels/activate.simd.h"
#include "microkernels/conv_columns.simd.h"
#include "microkernels/conv_direct.simd.h"
#include "microkernels/gemm_tiles.h"
#include "microkernels/register_tile.simd.h"
#include "microkernels/simd_file.h"

namespace infernode::microkernels {

extern const GemmTable INFERNODE_TABLE(gemm_table);

namespace {

constexpr std::size_t kGroup = 4;    // panels that are packed before weights pass over them
constexpr std::size_t kRowPad = 16;  // floats between rows of packed weights, against conflicts in the cache

// ---- Weights: a block of K after the other, each [out_channels][block + kRowPad] ----

std::size_t packed_weight_floats(std::size_t out_channels, std::size_t depth) noexcept {
  const std::size_t block = larger(gemm_block_k(depth), std::size_t{1});
  return divide_up(depth, block) * out_channels * (block + kRowPad);
}

void pack_weight(std::size_t out_channels, std::size_t depth, const float* weight, float* out) noexcept {
  const std::size_t block = larger(gemm_block_k(depth), std::size_t{1});
  for (std::size_t k0 = 0; k0 < depth; k0 += block) {
    const std::size_t k = smaller(block, depth - k0);
    for (std::size_t m = 0; m < out_channels; ++m, out += block + kRowPad) {
      for (std::size_t i = 0; i < block + kRowPad; ++i) out[i] = i < k ? weight[m * depth + k0 + i] : 0.0f;
    }
  }
}

void conv(const ConvArgs& args, const GemmRange& range, float* scratch) noexcept {
  const ConvShape& s = args.shape;
  if (range.m_begin >= range.m_end || range.n_begin >= range.n_end) return;
  const GemmTiles& tiles = *INFERNODE_TABLE(gemm_table).tiles;
  const std::size_t depth = s.depth(), positions = s.positions();
  const std::size_t block = larger(gemm_block_k(depth), std::size_t{1}), lda = block + kRowPad;
  if (is_direct(s)) return direct(args, tiles, range, block, lda, scratch);
  const std::size_t rows = range.m_end - range.m_begin, row_tiles = divide_up(rows, kMr);
  alignas(64) float tile[GemmTiles::kMaxFloats];
  for (std::size_t g0 = range.n_begin; g0 < range.n_end; g0 += kGroup * kNr) {
    const std::size_t g1 = smaller(range.n_end, g0 + kGroup * kNr);
    const float* weight = args.packed_weight;
    std::size_t k0 = 0;
    do {
      const std::size_t k = smaller(block, depth - k0);
      for (std::size_t n0 = g0; n0 < g1; n0 += kNr) {
        pack_columns(s, args.input, k0, k, n0, smaller(kNr, g1 - n0), scratch + (n0 - g0) * block);
      }
      for (std::size_t t = 0; t < row_tiles; ++t) {
        const std::size_t m0 = range.m_begin + t * rows / row_tiles, m1 = range.m_begin + (t + 1) * rows / row_tiles;
        for (std::size_t n0 = g0; n0 < g1; n0 += kNr) {
          const std::size_t cols = smaller(kNr, g1 - n0), at = m0 * positions + n0;
          tiles.accumulate[m1 - m0 - 1][divide_up(cols, kLanes) - 1](k, weight + m0 * lda, lda,
                                                                     scratch + (n0 - g0) * block, kNr, tile);
          tiles.finish({args.output + at, positions, m1 - m0, cols, 1.0f, k0 > 0, k0 + k == depth,
                        args.bias ? args.bias + m0 : nullptr, nullptr, args.residual ? args.residual + at : nullptr,
                        positions, 1.0f, args.activation},
                       tile);
        }
      }
      weight += s.out_channels * lda;
      k0 += k;
    } while (k0 < depth);
  }
}

// ---- Depthwise ----

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

// The zero-padded input lies flat, parted by row and column phase, with a pitch that outputs share; all outputs are
// then one run of consecutive floats, and vectors do not end with rows. The few outputs between rows are computed and
// dropped.
constexpr std::size_t kFlatFloats = 8192;  // input
constexpr std::size_t kFlatOutputs = 4096;
constexpr std::size_t kFlatTaps = 128;

struct FlatLayout {
  std::size_t pitch, rows;   // of one phase
  std::size_t phase_floats;  // with room for what the last vectors read too much
  std::size_t outputs;       // flat outputs of a plane

  explicit FlatLayout(const ConvShape& s)
      : pitch(s.out_w + (s.kernel_w - 1) * s.dilation_w / s.stride_w),
        rows(s.out_h + (s.kernel_h - 1) * s.dilation_h / s.stride_h),
        phase_floats(rows * pitch + 4 * kLanes),
        outputs(s.out_h * pitch) {}
  bool fits(const ConvShape& s) const {
    return s.kernel_d == 1 && s.in_d == 1 && s.out_d == 1 && s.kernel_h * s.kernel_w <= kFlatTaps &&
           phase_floats * s.stride_h * s.stride_w <= kFlatFloats && outputs + 4 * kLanes <= kFlatOutputs;
  }
};

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

// Output rows [h0, h0 + s.out_h) of every plane; `s` is the shape cut to them.
void depthwise_flat(const DepthwiseArgs& args, const ConvShape& s, std::size_t h0) noexcept {
  const FlatLayout layout(s);
  alignas(64) float data[kFlatFloats];
  alignas(64) float flat[kFlatOutputs];
  const std::size_t count = s.kernel_h * s.kernel_w, phases = s.stride_h * s.stride_w, in_size = s.in_h * s.in_w;
  std::size_t taps[kFlatTaps];
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t h = i / s.kernel_w * s.dilation_h, w = i % s.kernel_w * s.dilation_w;
    taps[i] = (h % s.stride_h * s.stride_w + w % s.stride_w) * layout.phase_floats + h / s.stride_h * layout.pitch +
              w / s.stride_w;
  }
  // Padding is the same for every plane: zeroed once, and the copies below leave it alone.
  fill_zero(data, phases * layout.phase_floats);
  const ClampBounds bounds = clamp_bounds(args.activation);
  const VecF low = set(bounds.low), high = set(bounds.high);
  const auto width = static_cast<std::ptrdiff_t>(s.in_w), stride = static_cast<std::ptrdiff_t>(s.stride_w);
  for (std::size_t plane = 0; plane < args.planes; ++plane) {
    const float* input = args.input + plane * in_size;
    for (std::size_t phase = 0; phase < phases; ++phase) {
      float* to = data + phase * layout.phase_floats;
      const auto start = static_cast<std::ptrdiff_t>(phase % s.stride_w) - s.pad_left;
      const std::ptrdiff_t first = start >= 0 ? 0 : (-start + stride - 1) / stride;
      const std::ptrdiff_t end =
          start >= width ? 0 : smaller(static_cast<std::ptrdiff_t>(layout.pitch), (width - 1 - start) / stride + 1);
      if (end <= first) continue;
      for (std::size_t r = 0; r < layout.rows; ++r) {
        const auto y = static_cast<std::ptrdiff_t>(r * s.stride_h + phase / s.stride_w) - s.pad_top;
        if (y < 0 || y >= static_cast<std::ptrdiff_t>(s.in_h)) continue;
        copy_strided(input + static_cast<std::size_t>(y) * s.in_w + static_cast<std::size_t>(start + first * stride),
                     s.stride_w, static_cast<std::size_t>(end - first),
                     to + r * layout.pitch + static_cast<std::size_t>(first));
      }
    }
    const float* weight = args.weight + plane * count;
    const VecF bias = set(args.biases ? args.biases[plane] : args.bias);
    std::size_t at = 0;
    for (; at + 4 * kLanes <= layout.outputs; at += 4 * kLanes)
      flat_block<4>(data + at, taps, weight, count, bias, flat + at);
    for (; at < layout.outputs; at += kLanes) flat_block<1>(data + at, taps, weight, count, bias, flat + at);

    const std::size_t offset = plane * args.shape.positions() + h0 * s.out_w;
    float* out = args.output + offset;
    const float* residual = args.residual ? args.residual + offset : nullptr;
    for (std::size_t h = 0; h < s.out_h; ++h, out += s.out_w) {
      const float* from = flat + h * layout.pitch;
      for (std::size_t i = 0; i < s.out_w; i += kLanes) {
        const std::size_t n = smaller(kLanes, s.out_w - i);
        VecF v = load(from + i);
        if (residual) v = v + load_partial(residual + h * s.out_w + i, n);
        v = clamp(v, low, high);
        if (n == kLanes) {
          store(out + i, v);
        } else {
          store_partial(out + i, v, n);
        }
      }
    }
    if (!is_clamp(args.activation)) activate_row(args.activation, out - s.out_h * s.out_w, s.out_h * s.out_w);
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
    depthwise_plane(plane);
    plane.input += s.in_d * s.in_h * s.in_w;
    plane.weight += s.kernel_points();
    plane.output += s.positions();
    if (plane.residual) plane.residual += s.positions();
  }
}

// ---- Transposed convolution ----

void col2im(const ConvShape& s, const float* columns, float* image) noexcept {
  const std::size_t plane = s.in_d * s.in_h * s.in_w;
  for (std::size_t c = 0; c < s.in_channels; ++c, image += plane) {
    for (std::size_t i = 0; i < s.kernel_points(); ++i) {
      const std::size_t kd = i / s.kernel_w / s.kernel_h, kh = i / s.kernel_w % s.kernel_h, kw = i % s.kernel_w;
      for (std::size_t r = 0; r < s.out_d * s.out_h; ++r, columns += s.out_w) {
        const auto d = static_cast<std::ptrdiff_t>(r / s.out_h * s.stride_d + kd * s.dilation_d) - s.pad_front;
        const auto h = static_cast<std::ptrdiff_t>(r % s.out_h * s.stride_h + kh * s.dilation_h) - s.pad_top;
        if (d < 0 || d >= static_cast<std::ptrdiff_t>(s.in_d) || h < 0 || h >= static_cast<std::ptrdiff_t>(s.in_h))
          continue;
        float* row = image + (static_cast<std::size_t>(d) * s.in_h + static_cast<std::size_t>(h)) * s.in_w;
        const auto w0 = static_cast<std::ptrdiff_t>(kw * s.dilation_w) - s.pad_left;
        const auto stride = static_cast<std::ptrdiff_t>(s.stride_w), width = static_cast<std::ptrdiff_t>(s.in_w);
        const auto length = static_cast<std::ptrdiff_t>(s.out_w);
        std::ptrdiff_t j = w0 >= 0 ? 0 : (-w0 + stride - 1) / stride;
        const std::ptrdiff_t end = w0 >= width ? 0 : smaller(length, (width - 1 - w0) / stride + 1);
        if (stride == 1) {
          for (; j + static_cast<std::ptrdiff_t>(kLanes) <= end; j += static_cast<std::ptrdiff_t>(kLanes)) {
            store(row + w0 + j, load(row + w0 + j) + load(columns + j));
          }
        }
        for (; j < end; ++j) row[w0 + j * stride] += columns[j];
      }
    }
  }
}

}  // namespace

extern const ConvTable INFERNODE_TABLE(conv_table);
constexpr ConvTable INFERNODE_TABLE(conv_table) = {INFERNODE_TARGET_NAME(INFERNODE_TARGET),
                                                   kMr,
                                                   kNr,
                                                   larger(kGroup* kGemmBlockK* kNr, kDirectFloats),
                                                   packed_weight_floats,
                                                   pack_weight,
                                                   conv,
                                                   depthwise,
                                                   col2im};

}  // namespace infernode::microkernels
