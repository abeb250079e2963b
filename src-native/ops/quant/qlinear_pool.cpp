// Poolings of 8-bit tensors: QLinearAveragePool, QLinearGlobalAveragePool, NhwcMaxPool.

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/conv/window.h"
#include "ops/quant/qlinear.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr std::size_t kAxes = 3;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// The elements of one axis that a window covers.
struct Span {
  std::size_t first, taps;
  std::size_t counted;  ///< taps with those over pads
};

/// One call, as pooling of [images, places, channels] over up to three axes of places: planes of a channels-first
/// tensor are images of one channel.
struct Problem {
  std::size_t images = 0, channels = 1, in_plane = 1, out_plane = 1;
  std::array<std::size_t, kAxes> in{1, 1, 1}, dilation{1, 1, 1};
  std::array<std::vector<Span>, kAxes> spans{{{{0, 1, 1}}, {{0, 1, 1}}, {{0, 1, 1}}}};

  /// Calls take(place) for each place under window `at` and returns how many count.
  template <class Take>
  std::size_t slide(kernel::Watch& watch, std::size_t at, Take take) const {
    const Span& w = spans[2][at % spans[2].size()];
    const Span& h = spans[1][at / spans[2].size() % spans[1].size()];
    const Span& d = spans[0][at / spans[2].size() / spans[1].size()];
    for (std::size_t i = 0; i < d.taps; ++i) {
      for (std::size_t j = 0; j < h.taps; ++j) {
        const std::size_t row = ((d.first + i * dilation[0]) * in[1] + h.first + j * dilation[1]) * in[2] + w.first;
        for (std::size_t k = 0; k < w.taps;) {
          const std::size_t begin = k, end = std::min(w.taps, k + kernel::kPiece);
          for (; k < end; ++k) take(row + k * dilation[2]);
          watch.did(static_cast<double>((end - begin) * channels));
        }
      }
    }
    return d.counted * h.counted * w.counted;
  }
};

/// f(watch, image, position, scratch of a number per channel) for all windows, in parallel.
template <class T, class F>
void for_windows(KernelContext& ctx, const Problem& p, F f) {
  double taps = 1;
  kernel::Watch looks(ctx.run());
  for (const std::vector<Span>& spans : p.spans) {
    std::size_t most = 0;
    each_in_pieces(looks, spans.size(), 1, [&](std::size_t i) { most = std::max(most, spans[i].taps); });
    taps *= static_cast<double>(most);
  }
  ctx.parallel_for(p.images * p.out_plane, (taps + 2) * static_cast<double>(p.channels) * 0.5,
                   [&](std::size_t begin, std::size_t end, std::size_t) {
                     std::vector<T> scratch(p.channels);
                     kernel::Watch watch(ctx.run());
                     for (std::size_t i = begin; i < end; ++i) f(watch, i / p.out_plane, i % p.out_plane, scratch);
                   });
}

Span span_at(std::int64_t start, std::int64_t taps, std::int64_t step, std::int64_t in, std::int64_t limit) {
  const auto below = [&](std::int64_t end) {  // taps before `end`
    return std::clamp<std::int64_t>(end <= start ? 0 : (end - start + step - 1) / step, 0, taps);
  };
  const std::int64_t skipped = below(0);
  return {size(std::max<std::int64_t>(0, start + skipped * step)), size(below(in) - skipped), size(below(limit))};
}

std::size_t spatial_axes(std::size_t rank) {
  if (rank < 3 || rank - 2 > kAxes)
    fail(rank < 3 ? ErrorCode::ShapeMismatch : ErrorCode::UnsupportedOperator,
         cat("8-bit pooling takes tensors of rank 3 to 5, not ", rank));
  return rank - 2;
}

class BytePool : public kernel::Kernel {
 protected:
  BytePool(KernelInfo& info, bool channels_last) : window_(info.attributes()), channels_last_(channels_last) {}

  Tensor plan(KernelContext& ctx, const Tensor& x, Problem& p) const {
    const std::size_t count = spatial_axes(x.rank()), first = channels_last_ ? 1 : 2;
    Window window = window_;
    window.complete(count, {});
    Shape out = x.shape();
    for (std::size_t i = 0; i < count; ++i) out[first + i] = window.axis(i, x.dim(first + i)).out;
    const Tensor y = ctx.output(0, out);  // before the plan: what can be allocated has sane sizes
    if (y.numel() == 0) return y;         // its other dims may be of any size
    p.images = size(channels_last_ ? x.dim(0) : x.dim(0) * x.dim(1));
    p.channels = size(channels_last_ ? x.dim(x.rank() - 1) : 1);
    kernel::Watch watch(ctx.run());
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t in = x.dim(first + i);
      const Window::Axis axis = window.axis(i, in);
      const std::size_t at = kAxes - count + i;
      p.in[at] = size(in);
      p.dilation[at] = size(window.dilations[i]);
      p.spans[at].clear();
      each_in_pieces(watch, size(axis.out), 20, [&](std::size_t o) {
        p.spans[at].push_back(span_at(static_cast<std::int64_t>(o) * window.strides[i] - axis.pad_begin,
                                      window.kernel[i], window.dilations[i], in, in + axis.pad_end));
      });
      p.in_plane *= p.in[at];
      p.out_plane *= p.spans[at].size();
    }
    return y;
  }

  Window window_;
  bool channels_last_;
};

/// What makes unsigned bytes in the same order of a tensor's codes, by exclusive or.
std::uint8_t flip_of(DType type) { return type == DType::Int8 ? 0x80 : 0; }

/// Code of the mean over `count` elements; `sum` is that of `taps` flipped bytes of x.
std::uint8_t mean(const Quantized8& x, const Quantized8& y, std::uint64_t sum, std::size_t taps, std::size_t count) {
  const std::int64_t offset = x.zero + (x.is_signed ? 128 : 0);
  const auto total = static_cast<double>(static_cast<std::int64_t>(sum) - offset * static_cast<std::int64_t>(taps));
  return y.quantize(static_cast<float>(total / static_cast<double>(count)) * x.scale);
}

class QLinearAveragePool final : public BytePool {
 public:
  explicit QLinearAveragePool(KernelInfo& info)
      : BytePool(info, info.attributes().get_int("channels_last", 0) != 0),
        counts_pads_(info.attributes().get_int("count_include_pad", 0) != 0) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Quantized8 from(ctx.input(1), ctx.optional_input(2), x.dtype()),
        to(ctx.input(3), ctx.optional_input(4), x.dtype());
    Problem p;
    const Tensor y = plan(ctx, x, p);
    const std::uint8_t flip = flip_of(x.dtype());
    using Sums = std::vector<std::uint64_t>;
    for_windows<std::uint64_t>(ctx, p, [&](kernel::Watch& watch, std::size_t image, std::size_t position, Sums& sums) {
      std::fill(sums.begin(), sums.end(), 0);
      const std::uint8_t* plane = bytes_of(x) + image * p.in_plane * p.channels;
      std::size_t taps = 0;
      const std::size_t counted = p.slide(watch, position, [&](std::size_t place) {
        const std::uint8_t* row = plane + place * p.channels;
        for (std::size_t c = 0; c < p.channels; ++c) sums[c] += row[c] ^ flip;
        ++taps;
      });
      std::uint8_t* out = mutable_bytes_of(y) + (image * p.out_plane + position) * p.channels;
      for (std::size_t c = 0; c < p.channels; ++c)
        out[c] = mean(from, to, sums[c], taps, counts_pads_ ? counted : taps);
    });
  }

 private:
  bool counts_pads_;
};

/// Sum of bytes, `flip` applied to each: eight at a time, in lanes of a word.
std::uint64_t sum_of(const std::uint8_t* x, std::size_t n, std::uint8_t flip) {
  constexpr std::uint64_t kBytes = 0x00ff00ff00ff00ff, kPairs = 0x0000ffff0000ffff;
  constexpr std::size_t kWords = 128;  // whose bytes 16 bits can sum, two at a time
  const std::uint64_t flips = flip * std::uint64_t{0x0101010101010101};
  std::uint64_t total = 0;
  while (n >= sizeof(std::uint64_t)) {
    std::uint64_t lanes = 0;
    const std::size_t words = std::min(kWords, n / sizeof(std::uint64_t));
    for (std::size_t i = 0; i < words; ++i, x += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, x, sizeof word);
      word ^= flips;
      lanes += (word & kBytes) + (word >> 8 & kBytes);
    }
    n -= words * sizeof(std::uint64_t);
    lanes = (lanes & kPairs) + (lanes >> 16 & kPairs);
    total += (lanes & 0xffffffff) + (lanes >> 32);
  }
  for (std::size_t i = 0; i < n; ++i) total += x[i] ^ flip;
  return total;
}

class QLinearGlobalAveragePool final : public kernel::Kernel {
 public:
  explicit QLinearGlobalAveragePool(KernelInfo& info)
      : channels_last_(info.attributes().get_int("channels_last", 0) != 0) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const std::size_t first = channels_last_ ? 1 : 2;
    if (x.rank() < 3)
      fail(ErrorCode::ShapeMismatch, cat("QLinearGlobalAveragePool takes X [N,C,...], got ", x.to_string()));
    Shape shape = x.shape();
    for (std::size_t i = first; i < first + x.rank() - 2; ++i) shape[i] = 1;
    const Tensor y = ctx.output(0, shape);
    const Quantized8 from(ctx.input(1), ctx.optional_input(2), x.dtype()),
        to(ctx.input(3), ctx.optional_input(4), x.dtype());
    const auto channels = size(x.dim(channels_last_ ? x.rank() - 1 : 1));
    const auto places = size(x.shape().numel(first, first + x.rank() - 2));
    const std::size_t step = channels_last_ ? channels : 1;
    const std::uint8_t flip = flip_of(x.dtype());
    ctx.parallel_for(
        size(y.numel()), static_cast<double>(places) * 0.5, [&](std::size_t begin, std::size_t end, std::size_t) {
          kernel::Watch watch(ctx.run());
          for (std::size_t i = begin; i < end; ++i) {
            const std::size_t at = channels_last_ ? i / channels * places * channels + i % channels : i * places;
            std::uint64_t sum = 0;
            in_pieces(watch, places, 0.5, [&](std::size_t from_place, std::size_t to_place) {
              if (step == 1) sum += sum_of(bytes_of(x) + at + from_place, to_place - from_place, flip);
              for (std::size_t k = from_place; k < to_place && step != 1; ++k) sum += bytes_of(x)[at + k * step] ^ flip;
            });
            mutable_bytes_of(y)[i] = mean(from, to, sum, places, places);
          }
        });
  }

 private:
  bool channels_last_;
};

/// Maxima of 8-bit codes, channels last.
class NhwcMaxPool final : public BytePool {
 public:
  explicit NhwcMaxPool(KernelInfo& info) : BytePool(info, true) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    Problem p;
    const Tensor y = plan(ctx, x, p);
    const std::uint8_t flip = flip_of(x.dtype());
    using Codes = std::vector<std::uint8_t>;
    for_windows<std::uint8_t>(ctx, p, [&](kernel::Watch& watch, std::size_t image, std::size_t position, Codes& most) {
      std::fill(most.begin(), most.end(), std::uint8_t{0});
      const std::uint8_t* plane = bytes_of(x) + image * p.in_plane * p.channels;
      p.slide(watch, position, [&](std::size_t place) {
        const std::uint8_t* row = plane + place * p.channels;
        for (std::size_t c = 0; c < p.channels; ++c)
          most[c] = std::max(most[c], static_cast<std::uint8_t>(row[c] ^ flip));
      });
      std::uint8_t* out = mutable_bytes_of(y) + (image * p.out_plane + position) * p.channels;
      for (std::size_t c = 0; c < p.channels; ++c) out[c] = most[c] ^ flip;
    });
  }
};

bool infers_channels_last(const InferContext& ctx) {
  return ctx.node().op_type == "NhwcMaxPool" || ctx.attributes().get_int("channels_last", 0) != 0;
}

void infer_byte_pool(InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  const graph::SymShape* x = ctx.input_shape(0);
  if (x == nullptr) return;
  const std::size_t count = spatial_axes(x->size()), first = infers_channels_last(ctx) ? 1 : 2;
  Window window(ctx.attributes());
  window.complete(count, {});
  graph::SymShape out = *x;
  for (std::size_t i = 0; i < count; ++i) out[first + i] = window.infer_axis(i, (*x)[first + i]);
  ctx.set_output_shape(0, std::move(out));
}

void infer_global_average(InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  const graph::SymShape* x = ctx.input_shape(0);
  if (x == nullptr || x->size() < 3) return;
  graph::SymShape out = *x;
  const std::size_t first = infers_channels_last(ctx) ? 1 : 2;
  for (std::size_t i = first; i < first + x->size() - 2; ++i) out[i] = 1;
  ctx.set_output_shape(0, std::move(out));
}

}  // namespace

void register_qlinear_pool(kernel::OpRegistrar& r) {
  constexpr const char* kSignature =
      "X:T, x_scale:float, x_zero_point:T?, y_scale:float, y_zero_point:T? -> Y:T; T = int8|uint8";
  r.op("QLinearAveragePool", "com.microsoft")
      .version(1, kSignature)
      .infer(infer_byte_pool)
      .kernel<QLinearAveragePool>();
  r.op("QLinearGlobalAveragePool", "com.microsoft")
      .version(1, kSignature)
      .infer(infer_global_average)
      .kernel<QLinearGlobalAveragePool>();
  r.op("NhwcMaxPool", "com.microsoft")
      .version(1, "x:T -> y:T; T = int8|uint8")
      .infer(infer_byte_pool)
      .kernel<NhwcMaxPool>();
}

}  // namespace infernode::ops
