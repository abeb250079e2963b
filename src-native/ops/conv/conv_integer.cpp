#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/op_registrar.h"
#include "kernel/scratch.h"
#include "kernel/watch.h"
#include "microkernels/convert/convert.h"
#include "microkernels/qgemm/qgemm.h"
#include "microkernels/transpose/transpose.h"
#include "ops/common/packed_weight.h"
#include "ops/conv/methods/depthwise.h"
#include "ops/conv/window.h"
#include "ops/quant/qlinear.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using microkernels::ConvShape;
using microkernels::QgemmOutput;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

bool is_integer8(DType type) { return type == DType::Int8 || type == DType::UInt8; }

/// What a call computes beside the geometry. Vectors hold one element for all output channels or one for each.
struct Quantization {
  std::int32_t x_zero = 0, y_zero = 0;
  std::vector<std::int32_t> w_zeros{0};
  std::vector<float> scales{1.0f};
  const std::int32_t* bias = nullptr;  ///< by output channel
  QgemmOutput output = QgemmOutput::kS32;
  std::size_t element() const { return output == QgemmOutput::kS32 ? sizeof(std::int32_t) : 1; }
};

/// Convolution of 8-bit tensors with exact 32-bit sums. Images are turned channels-last, so that what lies under a
/// window is a few runs of bytes; positions times weights are then integer products, whose result is turned back.
class IntegerConv : public kernel::Kernel {
 protected:
  IntegerConv(KernelInfo& info, std::size_t w_input)
      : w_input_(w_input),
        table_(info.kernels().qgemm),
        transpose_(info.kernels().transpose),
        convert_(info.kernels().convert),
        conv_(info.kernels().exact().conv),
        window_(info.attributes()),
        groups_(info.attributes().get_int("group", 1)),
        last_(info.attributes().get_int("channels_last", 0) != 0) {
    const Tensor* w = info.constant(w_input);
    if (w == nullptr || w->rank() < 3 || !is_integer8(w->dtype()) || w->numel() == 0) return;
    if (groups_ < 1 || w->dim(0) % groups_ != 0 || (w->dim(1) == 1 && groups_ > 1)) return;
    w_shape_ = w->shape();
    packed_ = PackedWeight(info, w_input, "conv", operand(w_shape_), size(groups_),
                           [&](const Tensor& weight, std::size_t group, std::byte* to) {
                             pack(weight, group, 0, operand(w_shape_).n, to);
                           });
    info.release_constant(w_input);
  }

  /// Shapes of X and of `out` are those of channels-first tensors.
  ConvProblem plan(const KernelContext& ctx, const Shape& x) const {
    return plan_conv(window_, groups_, last_ ? channels_first(x) : x, packed_ ? w_shape_ : ctx.input(w_input_).shape());
  }
  /// Output 0.
  Tensor result(KernelContext& ctx, const ConvProblem& p) const {
    if (!last_) return ctx.output(0, p.out);
    Shape shape{p.out[0]};
    for (std::size_t i = 2; i < p.out.rank(); ++i) shape.push_back(p.out[i]);
    shape.push_back(p.out[1]);
    return ctx.output(0, shape);
  }

  void compute(KernelContext& ctx, const ConvProblem& p, const Tensor& x, const Quantization& q,
               const Tensor& y) const {
    const auto fits = [&](std::size_t count) { return count == 1 || count == size(p.out_channels); };
    if (!fits(q.w_zeros.size()) || !fits(q.scales.size())) {
      fail(ErrorCode::ShapeMismatch, cat("a scale or zero point of W has neither one element nor ", p.out_channels));
    }
    if (y.numel() == 0) return;
    if (p.depthwise() && last_) {
      const Tensor first = Tensor::make(x.dtype(), channels_first(x.shape()), *ctx.run().allocator);
      const Tensor out = Tensor::make(y.dtype(), p.out, *ctx.run().allocator);
      const std::size_t places = p.shape.in_d * p.shape.in_h * p.shape.in_w;
      turn(ctx, x, first, size(p.images), places, size(p.channels));
      depthwise(ctx, p, first, q, out);
      return turn(ctx, out, y, size(p.images), size(p.out_channels), p.shape.positions());
    }
    if (p.depthwise()) return depthwise(ctx, p, x, q, y);
    const Tensor* const w = packed_ ? nullptr : &ctx.input(w_input_);
    const auto fill = [&](std::size_t group, std::size_t begin, std::size_t end, std::byte* to) {
      pack(*w, group, begin, end, to);
    };
    const PackedWeight weights =
        packed_ ? packed_ : PackedWeight(ctx.run(), operand(w->shape()), size(groups_), table_.nr, fill);
    multiply(ctx, p, channels_last(ctx, p, x), x.dtype() == DType::Int8, weights, q, y);
  }

 private:
  static std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

  static Shape channels_first(const Shape& x) {
    if (x.rank() < 3) return x;
    Shape out{x[0], x[x.rank() - 1]};
    for (std::size_t i = 1; i + 1 < x.rank(); ++i) out.push_back(x[i]);
    return out;
  }

  /// Matrices of bytes [rows, columns] to [columns, rows].
  void turn(KernelContext& ctx, const Tensor& from, const Tensor& to, std::size_t count, std::size_t rows,
            std::size_t columns) const {
    constexpr std::size_t kTile = 1024;  // of rows and columns that are turned at once
    const std::size_t down = ceil_div(rows, kTile), across = ceil_div(columns, kTile);
    const auto* const x = static_cast<const std::uint8_t*>(from.raw());
    auto* const y = static_cast<std::uint8_t*>(to.mutable_raw());
    const auto tile = [&](std::size_t i) {
      const std::size_t matrix = i / across / down * rows * columns, r = i / across % down * kTile,
                        c = i % across * kTile;
      transpose_.bytes1(x + matrix + r * columns + c, columns, y + matrix + c * rows + r, rows,
                        std::min(kTile, rows - r), std::min(kTile, columns - c));
    };
    ctx.parallel_for(count * down * across, 0.1 * static_cast<double>(std::min(rows, kTile) * std::min(columns, kTile)),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       for (std::size_t i = begin; i < end; ++i) tile(i);
                     });
  }

  /// One group's weights.
  microkernels::PackedOperand operand(const Shape& w) const {
    return table_.weights.packed(size(w[0]) / size(groups_), size(w.numel(1, w.rank())), nullptr);
  }
  /// Output channels [begin, end) of a group, of [channel of the output][place in the window][channel], as many at a
  /// time as a panel holds.
  void pack(const Tensor& w, std::size_t group, std::size_t begin, std::size_t end, std::byte* to) const {
    const std::size_t n = size(w.dim(0)) / size(groups_), channels = size(w.dim(1));
    const std::size_t points = size(w.shape().numel(2, w.rank())), depth = channels * points;
    std::vector<std::uint8_t> turned(std::min(table_.nr, end - begin) * depth);
    const auto* const from = static_cast<const std::uint8_t*>(w.raw()) + group * n * depth;
    for (std::size_t first = begin; first < end; first += table_.nr) {
      const std::size_t count = std::min(table_.nr, end - first);
      for (std::size_t m = 0; m < count; ++m) {
        for (std::size_t c = 0; c < channels; ++c) {
          for (std::size_t k = 0; k < points; ++k)
            turned[m * depth + k * channels + c] = from[(first + m) * depth + c * points + k];
        }
      }
      // Panels follow each other.
      table_.weights.pack(count, depth, turned.data(), w.dtype() == DType::Int8, depth, true,
                          to + table_.weights.bytes(first, depth), 0, count);
    }
  }

  /// X as [image][group][place][channel of the group].
  tensor::Buffer channels_last(KernelContext& ctx, const ConvProblem& p, const Tensor& x) const {
    const ConvShape& s = p.shape;
    const std::size_t plane = s.in_d * s.in_h * s.in_w, channels = s.in_channels;
    if (last_ ? p.groups == 1 : channels == 1) return x.buffer().slice(0, x.bytes());
    const tensor::Buffer turned = ctx.scratch(x.bytes());
    if (last_) {  // a group's channels lie within those of all
      const auto* all = static_cast<const std::uint8_t*>(x.raw());
      auto* own = reinterpret_cast<std::uint8_t*>(turned.data());
      const std::size_t groups = size(p.groups);
      ctx.parallel_for(size(p.images) * groups * plane, static_cast<double>(channels) * 0.1 + 2,
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         for (std::size_t i = begin; i < end; ++i) {
                           const std::size_t product = i / plane, place = product / groups * plane + i % plane;
                           std::copy_n(all + (place * groups + product % groups) * channels, channels,
                                       own + i * channels);
                         }
                       });
      return turned;
    }
    const auto* from = static_cast<const std::uint8_t*>(x.raw());
    auto* to = reinterpret_cast<std::uint8_t*>(turned.data());
    constexpr std::size_t kPlaces = 1024;
    const std::size_t parts = ceil_div(plane, kPlaces);
    ctx.parallel_for(size(p.images * p.groups) * parts, static_cast<double>(std::min(plane, kPlaces) * channels) * 0.1,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       for (std::size_t i = begin; i < end; ++i) {
                         const std::size_t base = i / parts * plane * channels, first = i % parts * kPlaces;
                         transpose_.bytes1(from + base + first, plane, to + base + first * channels, channels, channels,
                                           std::min(kPlaces, plane - first));
                       }
                     });
    return turned;
  }

  void multiply(KernelContext& ctx, const ConvProblem& p, const tensor::Buffer& x, bool x_signed,
                const PackedWeight& weights, const Quantization& q, const Tensor& y) const {
    const ConvShape& s = p.shape;
    const std::size_t depth = s.depth(), positions = s.positions(), n = s.out_channels, groups = size(p.groups);
    const std::size_t plane = s.in_d * s.in_h * s.in_w;
    const bool direct = s.kernel_points() == 1 && s.stride_d == 1 && s.stride_h == 1 && s.stride_w == 1 &&
                        plane == positions && s.pad_front == 0 && s.pad_top == 0 && s.pad_left == 0;
    constexpr std::size_t kBytes = 128 << 10;  // of the rows of A that are made at a time
    const std::size_t rows = std::min(positions, std::clamp<std::size_t>(kBytes / (depth + 1), 8, 256));
    const std::size_t parts = ceil_div(positions, rows);
    const std::size_t a_bytes = align_up(direct ? 0 : checked_mul(rows, depth), 64);
    const std::size_t c_bytes = align_up(checked_mul(rows, n) * q.element(), 64);
    const std::size_t stride = checked_add(a_bytes + c_bytes, align_up(table_.scratch_bytes(depth), 64));
    const tensor::Buffer scratch = ctx.scratch(checked_mul(stride, std::max<std::size_t>(1, ctx.run().max_threads)));
    const double cost = static_cast<double>(rows) * static_cast<double>(depth * (n + 4)) / 30;
    ctx.parallel_for(size(p.images) * groups * parts, cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
      std::byte* const memory = scratch.data() + slot * stride;
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t product = i / parts, group = product % groups, first = i % parts * rows;
        const std::size_t count = std::min(rows, positions - first);
        const auto* image = reinterpret_cast<const std::uint8_t*>(x.data()) + product * plane * s.in_channels;
        const std::uint8_t* a = image + first * depth;
        if (!direct) {
          gather(s, image, first, count, static_cast<std::uint8_t>(q.x_zero), reinterpret_cast<std::uint8_t*>(memory));
          a = reinterpret_cast<const std::uint8_t*>(memory);
        }
        std::byte* c = memory + a_bytes;
        microkernels::QgemmArgs args{.m = count, .n = n, .k = depth, .a = a, .lda = depth, .a_signed = x_signed};
        args.a_zero = q.x_zero;
        args.packed_b = weights.read(table_.weights.name, group);
        args.b_zero = q.w_zeros[0];
        if (q.w_zeros.size() > 1) args.b_zeros = q.w_zeros.data() + group * n;
        args.c = c;
        args.ldc = n;
        args.output = q.output;
        args.bias = q.bias == nullptr ? nullptr : q.bias + group * n;
        args.scale = q.scales[0];
        if (q.scales.size() > 1) args.scales = q.scales.data() + group * n;
        args.out_zero = q.y_zero;
        if (last_) {
          args.ldc = n * groups;
          const std::size_t row = product / groups * positions + first;
          args.c = static_cast<std::byte*>(y.mutable_raw()) + (row * args.ldc + group * n) * q.element();
          table_.qgemm(args, {0, count, 0, n}, memory + a_bytes + c_bytes);
          continue;
        }
        table_.qgemm(args, {0, count, 0, n}, memory + a_bytes + c_bytes);
        const std::size_t at = product * n * positions + first;
        if (q.output == QgemmOutput::kS32) {
          transpose_.bytes4(reinterpret_cast<const std::uint32_t*>(c), n,
                            static_cast<std::uint32_t*>(y.mutable_raw()) + at, positions, count, n);
        } else {
          transpose_.bytes1(reinterpret_cast<const std::uint8_t*>(c), n,
                            static_cast<std::uint8_t*>(y.mutable_raw()) + at, positions, count, n);
        }
      }
    });
  }

  /// Taps [first, last) of a kernel that starts at `start` and falls inside [0, in).
  static std::pair<std::size_t, std::size_t> inside(std::ptrdiff_t start, std::size_t taps, std::size_t dilation,
                                                    std::size_t in) {
    const auto step = static_cast<std::ptrdiff_t>(dilation), end = static_cast<std::ptrdiff_t>(in);
    const auto before = [&](std::ptrdiff_t limit) {
      if (limit <= start) return std::size_t{0};
      return std::min(taps, static_cast<std::size_t>((limit - start + step - 1) / step));
    };
    return {before(0), before(end)};
  }

  /// Rows of what lies under the windows of output positions [first, first + count), pads as `zero`.
  static void gather(const ConvShape& s, const std::uint8_t* image, std::size_t first, std::size_t count,
                     std::uint8_t zero, std::uint8_t* out) {
    const std::size_t c = s.in_channels, line = s.kernel_w * c;
    const auto start = [](std::size_t o, std::size_t stride, std::ptrdiff_t pad) {
      return static_cast<std::ptrdiff_t>(o * stride) - pad;
    };
    for (std::size_t at = first; at < first + count; ++at) {
      const std::ptrdiff_t w0 = start(at % s.out_w, s.stride_w, s.pad_left);
      const std::ptrdiff_t h0 = start(at / s.out_w % s.out_h, s.stride_h, s.pad_top);
      const std::ptrdiff_t d0 = start(at / s.out_w / s.out_h, s.stride_d, s.pad_front);
      const auto [w_first, w_last] = inside(w0, s.kernel_w, s.dilation_w, s.in_w);
      for (std::size_t kd = 0; kd < s.kernel_d; ++kd) {
        const std::ptrdiff_t d = d0 + static_cast<std::ptrdiff_t>(kd * s.dilation_d);
        for (std::size_t kh = 0; kh < s.kernel_h; ++kh, out += line) {
          const std::ptrdiff_t h = h0 + static_cast<std::ptrdiff_t>(kh * s.dilation_h);
          const bool out_of_reach = d < 0 || d >= static_cast<std::ptrdiff_t>(s.in_d) || h < 0 ||
                                    h >= static_cast<std::ptrdiff_t>(s.in_h) || w_first >= w_last;
          if (out_of_reach) {
            std::memset(out, zero, line);
            continue;
          }
          const std::uint8_t* row = image + (size(d) * s.in_h + size(h)) * s.in_w * c;
          const auto from = [&](std::size_t kw) {
            return row + size(w0 + static_cast<std::ptrdiff_t>(kw * s.dilation_w)) * c;
          };
          std::memset(out, zero, w_first * c);
          std::memset(out + w_last * c, zero, line - w_last * c);
          if (s.dilation_w == 1) {
            std::memcpy(out + w_first * c, from(w_first), (w_last - w_first) * c);
          } else {
            for (std::size_t kw = w_first; kw < w_last; ++kw) std::memcpy(out + kw * c, from(kw), c);
          }
        }
      }
    }
  }

  /// Whether float32 holds every sum of a plane, and all on the way to it: whole numbers of at most 24 bits, times a
  /// scale.
  static bool sums_are_floats(const ConvProblem& p, const Quantization& q) {
    constexpr std::int64_t kMost = 1 << 24, kProduct = 255 * 255;
    const auto points = static_cast<std::int64_t>(p.shape.kernel_points());
    if (points > kMost / kProduct) return false;
    constexpr float kMostScale = 1e30f;
    if (!std::ranges::all_of(q.scales, [](float s) { return std::abs(s) <= kMostScale; })) return false;
    const std::int64_t room = kMost - points * kProduct;
    return q.bias == nullptr ||
           std::all_of(q.bias, q.bias + p.out_channels, [&](std::int64_t b) { return -room <= b && b <= room; });
  }

  void to_floats(DType type, const void* from, std::size_t n, std::int32_t zero, float* to) const {
    if (type == DType::Int8) {
      convert_.dequantize_s8(static_cast<const std::int8_t*>(from), to, n, 1, zero);
    } else {
      convert_.dequantize_u8(static_cast<const std::uint8_t*>(from), to, n, 1, zero);
    }
  }

  /// Planes become floats, a few at a time, and the sums codes again: those are exact but for the roundings of the
  /// weights' products with the scale, some millionths of a step.
  void depthwise_floats(KernelContext& ctx, const ConvProblem& p, const Tensor& x, const Quantization& q,
                        const Tensor& y) const {
    const ConvShape& s = p.shape;
    const Tensor& w = ctx.input(w_input_);
    const std::size_t channels = size(p.out_channels), planes = size(p.images) * channels, points = s.kernel_points();
    const std::size_t in_plane = s.in_d * s.in_h * s.in_w, positions = s.positions(), multiplier = s.out_channels;
    ConvShape plane = s;
    plane.out_channels = 1;
    const kernel::Scratch<float> taps(ctx.run(), checked_mul(channels, points));
    std::vector<float> biases(q.bias == nullptr ? 0 : channels);
    const bool one_zero = std::all_of(q.w_zeros.begin(), q.w_zeros.end(), [&](auto z) { return z == q.w_zeros[0]; });
    if (q.bias != nullptr) convert_.s32_to_f32(q.bias, biases.data(), channels);
    ctx.parallel_for(channels, static_cast<double>(points), [&](std::size_t begin, std::size_t end, std::size_t) {
      const std::size_t alike = one_zero ? end - begin : 1;  // channels that are done at once
      for (std::size_t c = begin; c < end; c += alike) {
        to_floats(w.dtype(), static_cast<const std::uint8_t*>(w.raw()) + c * points, alike * points,
                  q.w_zeros[one_zero ? 0 : c], taps.data() + c * points);
      }
      for (std::size_t c = begin; c < end && q.output != QgemmOutput::kS32; ++c) {
        const float scale = q.scales[q.scales.size() == 1 ? 0 : c];
        for (std::size_t k = 0; k < points; ++k) taps[c * points + k] *= scale;
        if (q.bias != nullptr) biases[c] *= scale;
      }
    });
    constexpr std::size_t kFloats = 32 << 10;  // of planes that are treated at a time
    // Without a multiplier the planes of an image follow each other on both sides.
    const std::size_t most =
        multiplier == 1 ? std::clamp<std::size_t>(kFloats / (in_plane + positions), 1, channels) : 1;
    const std::size_t in_floats = align_up(most * in_plane, 16), floats = in_floats + align_up(most * positions, 16);
    const tensor::Buffer scratch =
        ctx.scratch(checked_mul(floats * sizeof(float), std::max<std::size_t>(1, ctx.run().max_threads)));
    const double cost = static_cast<double>(positions * points) / 4 + static_cast<double>(in_plane + positions) / 2;
    const std::size_t bands = depthwise_bands(plane);
    ctx.parallel_for(planes, cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
      kernel::Watch watch(ctx.run());
      float* const in = reinterpret_cast<float*>(scratch.data()) + slot * floats;
      float* const out = in + in_floats;
      for (std::size_t i = begin, count = 1; i < end; i += count) {
        const std::size_t channel = i % channels, from = i / channels * size(p.channels) + channel / multiplier;
        const auto* bytes = static_cast<const std::uint8_t*>(x.raw()) + from * in_plane;
        count = std::min({most, end - i, channels - channel});
        in_pieces(watch, count * in_plane, 0.5, [&](std::size_t first, std::size_t last) {
          to_floats(x.dtype(), bytes + first, last - first, q.x_zero, in + first);
        });
        microkernels::DepthwiseArgs args{.shape = plane, .input = in, .activation = {}, .output = out};
        args.weight = taps.data() + channel * points;
        args.planes = count;
        if (q.bias != nullptr) args.biases = biases.data() + channel;
        run_bands(ctx.run(), conv_, args, bands);
        in_pieces(watch, count * positions, 0.5, [&](std::size_t first, std::size_t last) {
          store_floats(q, out + first, last - first, i * positions + first, y);
        });
      }
    });
  }

  void store_floats(const Quantization& q, const float* from, std::size_t n, std::size_t at, const Tensor& y) const {
    if (q.output == QgemmOutput::kS32) {
      std::transform(from, from + n, static_cast<std::int32_t*>(y.mutable_raw()) + at,
                     [](float v) { return static_cast<std::int32_t>(v); });
    } else if (q.output == QgemmOutput::kS8) {
      convert_.quantize_s8(from, static_cast<std::int8_t*>(y.mutable_raw()) + at, n, 1, q.y_zero);
    } else {
      convert_.quantize_u8(from, static_cast<std::uint8_t*>(y.mutable_raw()) + at, n, 1, q.y_zero);
    }
  }

  /// One channel a group: each plane by itself.
  void depthwise(KernelContext& ctx, const ConvProblem& p, const Tensor& x, const Quantization& q,
                 const Tensor& y) const {
    if (sums_are_floats(p, q)) return depthwise_floats(ctx, p, x, q, y);
    const ConvShape& s = p.shape;
    const Tensor& w = ctx.input(w_input_);
    const std::size_t planes = size(p.images * p.out_channels), channels = size(p.out_channels);
    const std::size_t in_plane = s.in_d * s.in_h * s.in_w, positions = s.positions(), points = s.kernel_points();
    tensor::dispatch<std::int8_t, std::uint8_t>(x.dtype(), "ConvInteger", [&]<class X>(tensor::TypeTag<X>) {
      tensor::dispatch<std::int8_t, std::uint8_t>(w.dtype(), "ConvInteger", [&]<class W>(tensor::TypeTag<W>) {
        ctx.parallel_for(planes, static_cast<double>(positions * points) * 0.5,
                         [&](std::size_t begin, std::size_t end, std::size_t) {
                           kernel::Watch watch(ctx.run());
                           std::vector<std::uint32_t> sums(positions);
                           std::vector<std::int32_t> taps(points);
                           for (std::size_t i = begin; i < end; ++i) {
                             const std::size_t channel = i % channels, image = i / channels;
                             const std::int32_t zero = q.w_zeros[q.w_zeros.size() == 1 ? 0 : channel];
                             for (std::size_t k = 0; k < points; ++k)
                               taps[k] = w.data<W>()[channel * points + k] - zero;
                             std::fill(sums.begin(), sums.end(),
                                       q.bias == nullptr ? 0u : static_cast<std::uint32_t>(q.bias[channel]));
                             const std::size_t from = image * size(p.channels) + channel / s.out_channels;
                             slide(s, x.data<X>() + from * in_plane, q.x_zero, taps.data(), sums.data(), watch);
                             store(q, channel, sums, i * positions, y);
                           }
                         });
      });
    });
  }

  template <class X>
  static void slide(const ConvShape& s, const X* x, std::int32_t zero, const std::int32_t* taps, std::uint32_t* sums,
                    kernel::Watch& watch) {
    const auto start = [](std::size_t o, std::size_t stride, std::ptrdiff_t pad) {
      return static_cast<std::ptrdiff_t>(o * stride) - pad;
    };
    for (std::size_t row = 0; row < s.out_d * s.out_h; ++row, sums += s.out_w) {
      const std::ptrdiff_t d0 = start(row / s.out_h, s.stride_d, s.pad_front);
      const std::ptrdiff_t h0 = start(row % s.out_h, s.stride_h, s.pad_top);
      const auto [d_first, d_last] = inside(d0, s.kernel_d, s.dilation_d, s.in_d);
      const auto [h_first, h_last] = inside(h0, s.kernel_h, s.dilation_h, s.in_h);
      for (std::size_t kd = d_first; kd < d_last; ++kd) {
        for (std::size_t kh = h_first; kh < h_last; ++kh) {
          const std::size_t d = size(d0 + static_cast<std::ptrdiff_t>(kd * s.dilation_d));
          const std::size_t h = size(h0 + static_cast<std::ptrdiff_t>(kh * s.dilation_h));
          const X* line = x + (d * s.in_h + h) * s.in_w;
          watch.did(static_cast<double>(s.kernel_w * s.out_w));
          for (std::size_t kw = 0; kw < s.kernel_w; ++kw) {
            const std::int32_t tap = taps[(kd * s.kernel_h + kh) * s.kernel_w + kw];
            // Outputs whose element under this tap lies inside the line.
            const std::ptrdiff_t shift = static_cast<std::ptrdiff_t>(kw * s.dilation_w) - s.pad_left;
            const auto [first, last] = inside(shift, s.out_w, s.stride_w, s.in_w);
            for (std::size_t o = first; o < last; ++o)
              sums[o] +=
                  static_cast<std::uint32_t>(tap * (line[shift + static_cast<std::ptrdiff_t>(o * s.stride_w)] - zero));
          }
        }
      }
    }
  }

  static void store(const Quantization& q, std::size_t channel, const std::vector<std::uint32_t>& sums, std::size_t at,
                    const Tensor& y) {
    if (q.output == QgemmOutput::kS32) {
      std::copy(sums.begin(), sums.end(), static_cast<std::uint32_t*>(y.mutable_raw()) + at);
      return;
    }
    const float scale = q.scales[q.scales.size() == 1 ? 0 : channel];
    Quantized8 codes;
    codes.zero = q.y_zero;
    codes.is_signed = q.output == QgemmOutput::kS8;
    auto* to = static_cast<std::uint8_t*>(y.mutable_raw()) + at;
    for (std::size_t i = 0; i < sums.size(); ++i)
      to[i] = codes.quantize(static_cast<float>(static_cast<std::int32_t>(sums[i])) * scale);
  }

  std::size_t w_input_;
  const microkernels::QgemmTable& table_;
  const microkernels::TransposeTable& transpose_;
  const microkernels::ConvertTable& convert_;
  const microkernels::ConvTable& conv_;
  Window window_;
  std::int64_t groups_;
  bool last_;  ///< X and the output are [N, ..., C]
  Shape w_shape_;
  PackedWeight packed_;
};

std::vector<std::int32_t> zeros_of(const Tensor* t) {
  if (t == nullptr) return {0};
  std::vector<std::int32_t> out;
  for (const std::int64_t v : tensor::to_int64_vector(*t)) out.push_back(static_cast<std::int32_t>(v));
  return out;
}

std::int32_t zero_of(const Tensor* t) {
  return t == nullptr ? 0 : static_cast<std::int32_t>(tensor::to_int64_scalar(*t));
}

class ConvInteger final : public IntegerConv {
 public:
  explicit ConvInteger(KernelInfo& info) : IntegerConv(info, 1) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const ConvProblem p = plan(ctx, x.shape());
    Quantization q;
    q.x_zero = zero_of(ctx.optional_input(2));
    q.w_zeros = zeros_of(ctx.optional_input(3));
    compute(ctx, p, x, q, result(ctx, p));
  }
};

class QLinearConv final : public IntegerConv {
 public:
  explicit QLinearConv(KernelInfo& info) : IntegerConv(info, 3) {
    Parameters given;
    for (std::size_t i = 0; i < kParameters.size(); ++i) {
      given[i] = info.constant(kParameters[i]);
      if (given[i] == nullptr) return;
    }
    known_ = read(given);
  }

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const ConvProblem p = plan(ctx, x.shape());
    Quantization q;
    if (known_) {
      q = *known_;
    } else {
      Parameters given;
      std::ranges::transform(kParameters, given.begin(), [&](std::size_t i) { return &ctx.input(i); });
      q = read(given);
    }
    if (const Tensor* bias = ctx.optional_input(8)) {
      if (bias->numel() != p.out_channels)
        fail(ErrorCode::ShapeMismatch, cat("B is ", bias->to_string(), " for ", p.out_channels, " output channels"));
      q.bias = bias->data<std::int32_t>();
    }
    const Tensor y = result(ctx, p);
    q.output = y.dtype() == DType::Int8 ? QgemmOutput::kS8 : QgemmOutput::kU8;
    compute(ctx, p, x, q, y);
  }

 private:
  /// x_scale, x_zero_point, w_scale, w_zero_point, y_scale, y_zero_point.
  static constexpr std::array<std::size_t, 6> kParameters{1, 2, 4, 5, 6, 7};
  using Parameters = std::array<const Tensor*, 6>;

  static Quantization read(const Parameters& given) {
    const float factor = tensor::to_float_scalar(*given[0]), divisor = tensor::to_float_scalar(*given[4]);
    Quantization q;
    q.x_zero = zero_of(given[1]);
    q.scales = tensor::to_float_vector(*given[2]);
    for (float& s : q.scales) s = factor * s / divisor;
    q.w_zeros = zeros_of(given[3]);
    q.y_zero = zero_of(given[5]);
    return q;
  }

  std::optional<Quantization> known_;  ///< but for the bias; none where it comes with the run
};

void infer_conv_integer(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::Int32);
  infer_conv_shape(ctx, 0, 1);
}
void infer_qlinear_conv(InferContext& ctx) { infer_conv_shape(ctx, 0, 3); }

/// com.microsoft's, which may be [N, ..., C].
void infer_channels_last_conv(InferContext& ctx) {
  if (ctx.attributes().get_int("channels_last", 0) == 0) return infer_conv_shape(ctx, 0, 3);
  const graph::SymShape *x = ctx.input_shape(0), *w = ctx.input_shape(3);
  if (x == nullptr || w == nullptr || x->size() < 3 || w->size() != x->size()) return;
  Window window(ctx.attributes());
  std::vector<std::int64_t> kernel;
  for (std::size_t i = 2; i < w->size(); ++i) {
    if (window.kernel.empty() && !(*w)[i].known()) return;
    kernel.push_back((*w)[i].known() ? (*w)[i].value() : 0);
  }
  window.complete(x->size() - 2, kernel);
  graph::SymShape out{(*x)[0]};
  for (std::size_t i = 1; i + 1 < x->size(); ++i) out.push_back(window.infer_axis(i - 1, (*x)[i]));
  out.push_back((*w)[0]);
  ctx.set_output_shape(0, std::move(out));
}

}  // namespace

void register_conv_integer(kernel::OpRegistrar& r) {
  r.op("ConvInteger")
      .version(10,
               "x:T1, w:T2, x_zero_point:T1?, w_zero_point:T2? -> y:T3; T1 = int8|uint8, T2 = int8|uint8, T3 = int32")
      .infer(infer_conv_integer)
      .kernel<ConvInteger>();
  constexpr const char* kQLinearConv =
      "x:T1, x_scale:float, x_zero_point:T1, w:T2, w_scale:float, w_zero_point:T2, y_scale:float, y_zero_point:T3, "
      "B:T4? -> y:T3; T1 = int8|uint8, T2 = int8|uint8, T3 = int8|uint8, T4 = int32";
  r.op("QLinearConv").version(10, kQLinearConv).infer(infer_qlinear_conv).kernel<QLinearConv>();
  r.op("QLinearConv", "com.microsoft").version(1, kQLinearConv).infer(infer_channels_last_conv).kernel<QLinearConv>();
}

}  // namespace infernode::ops
