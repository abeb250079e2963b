#pragma once

#include <cstddef>
#include <cstdint>

#include "microkernels/gemm/gemm.h"

// Float32 convolution in plain NCDHW layout, one image and one group per call.
// A convolution is the product  weight [out_channels][K] * columns [K][P],  K = in_channels * kernel_d * kernel_h *
// kernel_w, P = out_d * out_h * out_w; columns are packed a panel at a time and never stored as a whole. 1-D and 2-D
// convolutions leave the outer dimensions at 1.
namespace infernode::microkernels {

struct ConvShape {
  std::size_t in_channels = 1, out_channels = 1;  // of one group
  std::size_t in_d = 1, in_h = 1, in_w = 1;
  std::size_t out_d = 1, out_h = 1, out_w = 1;
  std::size_t kernel_d = 1, kernel_h = 1, kernel_w = 1;
  std::size_t stride_d = 1, stride_h = 1, stride_w = 1;
  std::size_t dilation_d = 1, dilation_h = 1, dilation_w = 1;
  std::ptrdiff_t pad_front = 0, pad_top = 0, pad_left = 0;  // pads at the begin; may be negative

  std::size_t kernel_points() const noexcept { return kernel_d * kernel_h * kernel_w; }
  std::size_t depth() const noexcept { return in_channels * kernel_points(); }
  std::size_t positions() const noexcept { return out_d * out_h * out_w; }
};

// A way to pack weights [out_channels][in_channels][kernel_points] of one group. Of a shape it reads channels and the
// window's extent.
struct ConvPacking {
  const char* name;  // with the family's; of packings that make the same, the same
  PackedForm (*form)(const ConvShape& shape) noexcept;
  std::size_t (*bytes)(const ConvShape& shape) noexcept;
  void (*pack)(const ConvShape& shape, const float* weight, void* out) noexcept;  // `out` is 64-byte aligned

  PackedOperand packed(const ConvShape& shape, const void* data) const noexcept {
    return {form(shape), data, bytes(shape), shape.out_channels, shape.depth(), name};
  }
};

// How the loops of a table go about it.
enum class ConvWay : std::uint8_t {
  kAny,      // what suits the shape
  kFew,      // dot products, for few positions
  kDirect,   // shifted rows of the padded input, for windows of stride 1 in a plane
  kColumns,  // packed columns
  kUnit,     // images of pairs of channels, on the matrix unit
};

struct ConvArgs {
  ConvShape shape;
  const float* input = nullptr;     // [in_channels][in_d][in_h][in_w]
  PackedOperand weights = {};       // by the table's packing
  const float* bias = nullptr;      // [out_channels]
  const float* residual = nullptr;  // like output, added before the activation; must not alias output
  ActivationArgs activation;
  float* output = nullptr;      // [out_channels][out_d][out_h][out_w]
  ConvWay way = ConvWay::kAny;  // where it runs that shape, else kAny
};

struct DepthwiseArgs {
  ConvShape shape;                // in_channels = out_channels = 1
  const float* input = nullptr;   // [input_planes()][in_d][in_h][in_w]
  const float* weight = nullptr;  // [planes][kernel_d][kernel_h][kernel_w]
  float bias = 0.0f;
  const float* residual = nullptr;  // like output, or null
  ActivationArgs activation;
  float* output = nullptr;        // [planes][out_d][out_h][out_w]
  std::size_t planes = 1;         // consecutive channels; several at once save preparations
  const float* biases = nullptr;  // [planes]; overrides bias
  std::size_t made = 1;           // how many output channels each plane of the input makes
  std::size_t before = 0;         // how many of them the first plane of the input makes before the first of `planes`

  std::size_t input_plane(std::size_t plane) const noexcept { return (before + plane) / made; }
  std::size_t input_planes() const noexcept { return input_plane(planes - 1) + 1; }
};

// Whether depthwise loops sum up several rows of outputs at once, which share rows of the input.
constexpr bool has_row_loops(std::size_t kernel_h, std::size_t stride_h) noexcept {
  const bool rows = (kernel_h >= 2 && kernel_h <= 5) || kernel_h == 7 || kernel_h == 9 || kernel_h == 11;
  return rows && kernel_h > stride_h && stride_h >= 1 && (stride_h <= 2 || (stride_h <= 4 && kernel_h >= 5));
}
constexpr bool has_row_loops(const ConvShape& s) noexcept {
  return s.in_d == 1 && s.kernel_d == 1 && (s.stride_h == 1 || s.dilation_h == 1) &&
         has_row_loops(s.kernel_h, s.stride_h);
}
// Whether they take two rows of outputs in one vector, each from rows of the input that are one vector each.
constexpr bool pairs_rows(const ConvShape& s, std::size_t lanes) noexcept {
  return lanes >= 16 && s.in_d == 1 && s.kernel_d == 1 && s.out_d == 1 && s.stride_w > 1 && s.in_w <= lanes &&
         2 * s.out_w <= lanes && s.kernel_w >= 2 && s.kernel_w <= 7 && s.kernel_w != 6;
}
// Whether depthwise loops of vectors of `lanes` floats read rows where they lie and part them by phase in registers.
// That pays where a window is hardly wider than its stride; with short vectors, each column beyond it costs more.
constexpr bool parts_in_registers(std::size_t stride_w, std::size_t kernel_w, std::size_t lanes) noexcept {
  const std::size_t fewer = lanes >= 16 ? 0 : lanes == 8 ? 2 : 3;
  return stride_w >= 2 && stride_w <= 4 && kernel_w + 1 >= stride_w && kernel_w + fewer <= 2 * stride_w + 1 &&
         kernel_w >= 2 && kernel_w <= 7 && kernel_w != 6;
}
constexpr bool parts_in_registers(const ConvShape& s, std::size_t lanes) noexcept {
  return s.in_d == 1 && s.kernel_d == 1 && s.out_d == 1 && s.dilation_w == 1 &&
         parts_in_registers(s.stride_w, s.kernel_w, lanes);
}

// One channel of a transposed convolution, or of a convolution of stride 1 read backwards.
struct TapSumArgs {
  ConvShape shape;  // of the forward convolution from `output` to places of `products`
  // [kernel points][out_d][out_h][out_w]: place i of tap k adds to output i * stride + k * dilation - pad.
  const float* products = nullptr;
  float bias = 0.0f;
  const float* residual = nullptr;  // like output, or null
  ActivationArgs activation;
  float* output = nullptr;  // [in_d][in_h][in_w]
};
// The same of all channels of a place together, places [begin, end) of the image.
struct TapRowArgs {
  ConvShape shape;  // as above
  std::size_t channels = 1;
  const float* products = nullptr;  // [out_d][out_h][out_w][kernel points][channels]
  const float* bias = nullptr;      // [channels], or null
  ActivationArgs activation;
  float* rows = nullptr;  // [in_d][in_h][in_w][channels]
};
// Of the scratch that sums of taps take.
constexpr std::size_t tap_sum_floats(const ConvShape& shape) noexcept { return shape.in_w + shape.stride_w; }

struct ConvTable {
  const char* name;
  std::size_t mr, nr;          // register tile; ranges of output positions start at multiples of nr
  std::size_t scratch_floats;  // per call
  ConvPacking weights;
  // Whether a way runs shapes of this kind; all of them read the same weights.
  bool (*runs)(ConvWay way, const ConvShape& shape) noexcept;
  // Computes output channels [m_begin, m_end) at positions [n_begin, n_end); cut with split_conv.
  void (*conv)(const ConvArgs& args, const GemmRange& range, float* scratch) noexcept;
  // Consecutive channels of a depthwise convolution, all of their output planes.
  void (*depthwise)(const DepthwiseArgs& args) noexcept;
  void (*sum_taps)(const TapSumArgs& args, float* scratch) noexcept;
  void (*sum_tap_rows)(const TapRowArgs& args, std::size_t begin, std::size_t end) noexcept;
  // out[i * count + r] = rows[r * ld + i], n elements in all.
  void (*interleave)(const float* rows, std::size_t ld, std::size_t count, std::size_t n, float* out) noexcept;
};

GemmSplit split_conv(const ConvTable& table, const ConvShape& shape, std::size_t workers) noexcept;

}  // namespace infernode::microkernels
