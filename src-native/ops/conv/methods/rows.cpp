#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/checked.h"
#include "microkernels/transpose/transpose.h"
#include "ops/common/packed_weight.h"
#include "ops/conv/methods/counts.h"
#include "ops/conv/methods/method.h"
#include "ops/conv/methods/tap_ranges.h"
#include "ops/matmul/product.h"

// Convolutions as products whose rows are positions and whose columns are output channels, so that any window over any
// number of positions fills the loops: the input is laid out with its channels beside each other, and what a kernel
// point sees at a position is one run of floats there. Where parts of the output see only some of the kernel, and the
// rest of it sees padding, each part is a product by those kernel points alone.
namespace infernode::ops {

namespace {

using microkernels::ConvShape;
using microkernels::GemmArgs;
using microkernels::GemmTable;

constexpr std::size_t kMostFloats = std::size_t{1} << 19;  // of gathered rows at a time
constexpr std::size_t kLeastRows = 64;                     // of them, whatever they take

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

bool sees_input_as_it_is(const ConvShape& s) {
  return s.kernel_points() == 1 && s.pad_front == 0 && s.pad_top == 0 && s.pad_left == 0 &&
         s.positions() == s.in_d * s.in_h * s.in_w;
}

std::size_t rows_at_a_time(std::size_t row_floats) { return std::max(kLeastRows, kMostFloats / row_floats); }

/// Positions and kernel points of one product: along each axis a range of both.
struct Part {
  std::array<TapRange, 3> along;
  std::size_t rows() const { return along[0].count() * along[1].count() * along[2].count(); }
};

class ConvRows final : public ConvRunner {
 public:
  ConvRows(kernel::KernelInfo& info, const ConvSite& site, bool by_point)
      : kernels_(site.kernels()), table_(site.kernels().gemm), by_point_(by_point) {
    const std::size_t n = size(site.weight->dim(0)), channels = site.shape.in_channels,
                      points = site.shape.kernel_points();
    const std::size_t k = by_point_ ? channels : channels * points, count = by_point_ ? points : 1;
    const auto pack = [&](const tensor::Tensor& weight, std::size_t first, std::byte* to) {
      const float* const kernel = weight.data<float>() + first;
      const auto put = [&](const float* rows) {
        table_.weights.pack(n, k, rows, microkernels::FloatType::kF32, k, true, to, 0, n);
      };
      if (points == 1) return put(kernel);
      const auto rows = std::make_unique_for_overwrite<float[]>(n * k);
      const std::size_t taken = by_point_ ? 1 : points;
      for (std::size_t m = 0; m < n; ++m) {
        for (std::size_t point = 0; point < taken; ++point) {
          const float* from = kernel + m * channels * points + point;
          float* row = rows.get() + m * k + point * channels;
          for (std::size_t c = 0; c < channels; ++c) row[c] = from[c * points];
        }
      }
      put(rows.get());
    };
    packed_ = PackedWeight(info, 1, by_point_ ? "conv.rows.points" : "conv.rows", table_.weights.packed(n, k, nullptr),
                           count, pack);
    info.release_constant(1);
  }

  void run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
           const microkernels::ActivationArgs& activation) const override {
    const ConvShape& s = p.shape;
    const std::size_t in_plane = s.in_d * s.in_h * s.in_w, out_size = s.out_channels * s.positions();
    GemmArgs args{.n = s.out_channels, .k = s.in_channels, .ldc = s.out_channels, .epilogue = {}};
    args.epilogue.bias_n = o.bias;
    args.epilogue.activation = activation;
    if (s.positions() == 1 && sees_input_as_it_is(s)) return run_images(ctx, p, o, args);
    const bool laid = in_plane > 1;
    const tensor::Buffer hold =
        ctx.scratch(laid ? checked_mul(checked_mul(in_plane, s.in_channels), sizeof(float)) : sizeof(float));
    for (std::size_t i = 0; i < size(p.images); ++i) {
      ctx.run().check();
      const float* x = o.x + i * s.in_channels * in_plane;
      if (laid) {
        auto* const to = reinterpret_cast<float*>(hold.data());
        transpose_rows(ctx, kernels_, x, in_plane, to, s.in_channels, s.in_channels, in_plane);
        x = to;
      }
      const ConvOperands image{x, nullptr, o.bias, o.residual == nullptr ? nullptr : o.residual + i * out_size,
                               o.y + i * out_size};
      if (by_point_) {
        run_parts(ctx, s, image, args);
      } else {
        run_whole(ctx, s, image, args);
      }
    }
  }

 private:
  /// Of one kernel point, or of all.
  microkernels::PackedOperand weights(std::size_t point) const { return packed_.read(table_.weights.name, point); }

  /// Of one position that sees the input as it is: images are rows.
  void run_images(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o, GemmArgs args) const {
    args.m = size(p.images);
    args.a = o.x;
    args.lda = args.k;
    args.packed_b = weights(0);
    args.c = o.y;
    args.epilogue.residual = o.residual;
    args.epilogue.ld_residual = args.n;
    run_gemm(ctx, table_, args);
  }

  /// Every position by all kernel points, some positions at a time.
  void run_whole(kernel::KernelContext& ctx, const ConvShape& s, const ConvOperands& o, GemmArgs args) const {
    const std::size_t positions = s.positions(), depth = s.depth();
    const bool as_it_is = sees_input_as_it_is(s);
    const std::size_t most = std::min(positions, rows_at_a_time(std::max(depth, args.n)));
    const std::size_t floats = checked_mul(most, (as_it_is ? 0 : depth) + args.n);
    const tensor::Buffer hold = ctx.scratch(checked_mul(floats, sizeof(float)));
    args.c = reinterpret_cast<float*>(hold.data());
    float* const gathered = args.c + most * args.n;
    args.k = args.lda = depth;
    args.packed_b = weights(0);
    const std::size_t pieces = ceil_div(positions, most);
    for (std::size_t i = 0; i < pieces; ++i) {
      const std::size_t begin = i * positions / pieces, end = (i + 1) * positions / pieces;
      args.m = end - begin;
      args.a = as_it_is ? o.x + begin * depth : gathered;
      if (!as_it_is) {
        ctx.parallel_for(args.m, 0.2 * number(depth), [&](std::size_t from, std::size_t to, std::size_t) {
          for (std::size_t r = from; r < to; ++r) gather(s, o.x, begin + r, gathered + r * depth);
        });
      }
      args.accumulate = o.residual != nullptr;
      if (args.accumulate) transpose_rows(ctx, kernels_, o.residual + begin, positions, args.c, args.n, args.n, args.m);
      run_gemm(ctx, table_, args);
      transpose_rows(ctx, kernels_, args.c, args.n, o.y + begin, positions, args.m, args.n);
    }
  }

  /// What the kernel sees at one position: out[kernel point][channel]; `x` is [place][channel].
  static void gather(const ConvShape& s, const float* x, std::size_t position, float* out) {
    const std::size_t channels = s.in_channels;
    const std::ptrdiff_t w0 = first_place(position % s.out_w, s.stride_w, s.pad_left),
                         h0 = first_place(position / s.out_w % s.out_h, s.stride_h, s.pad_top),
                         d0 = first_place(position / s.out_w / s.out_h, s.stride_d, s.pad_front);
    const auto inside = [](std::ptrdiff_t i, std::size_t n) { return i >= 0 && i < static_cast<std::ptrdiff_t>(n); };
    for (std::size_t kd = 0; kd < s.kernel_d; ++kd) {
      const std::ptrdiff_t d = d0 + static_cast<std::ptrdiff_t>(kd * s.dilation_d);
      for (std::size_t kh = 0; kh < s.kernel_h; ++kh) {
        const std::ptrdiff_t h = h0 + static_cast<std::ptrdiff_t>(kh * s.dilation_h);
        const std::size_t floats = s.kernel_w * channels;
        if (!inside(d, s.in_d) || !inside(h, s.in_h)) {
          std::fill_n(out, floats, 0.0f);
          out += floats;
          continue;
        }
        const float* const from = x + (size(d) * s.in_h + size(h)) * s.in_w * channels;
        if (s.dilation_w == 1) {  // columns lie beside each other
          const auto width = static_cast<std::ptrdiff_t>(s.in_w), columns = static_cast<std::ptrdiff_t>(s.kernel_w);
          const std::ptrdiff_t first = std::clamp<std::ptrdiff_t>(-w0, 0, columns),
                               last = std::clamp<std::ptrdiff_t>(width - w0, first, columns);
          out = std::fill_n(out, size(first) * channels, 0.0f);
          out = std::copy_n(from + size(std::clamp<std::ptrdiff_t>(w0, 0, width)) * channels,
                            size(last - first) * channels, out);
          out = std::fill_n(out, size(columns - last) * channels, 0.0f);
          continue;
        }
        for (std::size_t kw = 0; kw < s.kernel_w; ++kw, out += channels) {
          const std::ptrdiff_t w = w0 + static_cast<std::ptrdiff_t>(kw * s.dilation_w);
          if (inside(w, s.in_w)) {
            std::copy_n(from + size(w) * channels, channels, out);
          } else {
            std::fill_n(out, channels, 0.0f);
          }
        }
      }
    }
  }

  /// Parts of the output, each by the kernel points that see input there.
  void run_parts(kernel::KernelContext& ctx, const ConvShape& s, const ConvOperands& o, GemmArgs args) const {
    const TapRanges ranges(s);
    std::size_t most = 0;
    const std::vector<Part> parts = cut(s, ranges, most);
    const tensor::Buffer hold = ctx.scratch(checked_mul(checked_mul(most, s.in_channels + args.n), sizeof(float)));
    args.c = reinterpret_cast<float*>(hold.data());
    float* const gathered = args.c + most * args.n;
    const microkernels::GemmEpilogue epilogue = args.epilogue;
    for (const Part& part : parts) {
      args.m = part.rows();
      args.lda = s.in_channels;
      if (o.residual != nullptr) turn(ctx, s, part, o.residual, args.c, true);
      const std::array<std::size_t, 3> last{part.along[0].last - 1, part.along[1].last - 1, part.along[2].last - 1};
      bool first = true;
      for (std::size_t kd = part.along[0].first; kd <= last[0]; ++kd) {
        for (std::size_t kh = part.along[1].first; kh <= last[1]; ++kh) {
          for (std::size_t kw = part.along[2].first; kw <= last[2]; ++kw) {
            gather_point(ctx, s, part, o.x, {kd, kh, kw}, gathered);
            args.a = gathered;
            args.packed_b = weights((kd * s.kernel_h + kh) * s.kernel_w + kw);
            args.accumulate = !first || o.residual != nullptr;
            first = false;
            const bool done = kd == last[0] && kh == last[1] && kw == last[2];
            args.epilogue = done ? epilogue : microkernels::GemmEpilogue{};
            run_gemm(ctx, table_, args);
          }
        }
      }
      turn(ctx, s, part, args.c, o.y, false);
    }
  }

  /// All combinations of the axes' ranges, cut along rows where they would take much memory; `most`: of their rows.
  static std::vector<Part> cut(const ConvShape& s, const TapRanges& ranges, std::size_t& most) {
    std::vector<Part> parts;
    const std::size_t rows = rows_at_a_time(std::max(s.in_channels, s.out_channels));
    for (const TapRange& d : ranges.along[0]) {
      for (const TapRange& h : ranges.along[1]) {
        for (const TapRange& w : ranges.along[2]) {
          const std::size_t step = std::max<std::size_t>(1, rows / (d.count() * w.count()));
          for (std::size_t begin = h.begin; begin < h.end; begin += step) {
            TapRange some = h;
            some.begin = begin;
            some.end = std::min(h.end, begin + step);
            parts.push_back({{d, some, w}});
            most = std::max(most, parts.back().rows());
          }
        }
      }
    }
    return parts;
  }

  /// Calls fn(first position of the run in the output, its row in the part) for each run of positions of a part.
  template <class Fn>
  static void for_each_run(kernel::KernelContext& ctx, const Part& part, double cost, Fn fn) {
    const std::size_t height = part.along[1].count(), width = part.along[2].count();
    ctx.parallel_for(part.along[0].count() * height, cost, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t r = begin; r < end; ++r)
        fn(part.along[0].begin + r / height, part.along[1].begin + r % height, r * width);
    });
  }

  /// What one kernel point sees of a part.
  static void gather_point(kernel::KernelContext& ctx, const ConvShape& s, const Part& part, const float* x,
                           const std::array<std::size_t, 3>& point, float* out) {
    const std::size_t channels = s.in_channels, width = part.along[2].count();
    const auto place = [](std::size_t at, std::size_t stride, std::size_t k, std::size_t dilation, std::ptrdiff_t pad) {
      return first_place(at, stride, pad) + static_cast<std::ptrdiff_t>(k * dilation);
    };
    const auto inside = [](std::ptrdiff_t i, std::size_t n) { return i >= 0 && i < static_cast<std::ptrdiff_t>(n); };
    for_each_run(ctx, part, 0.2 * number(width * channels), [&](std::size_t od, std::size_t oh, std::size_t row) {
      float* to = out + row * channels;
      const std::ptrdiff_t d = place(od, s.stride_d, point[0], s.dilation_d, s.pad_front),
                           h = place(oh, s.stride_h, point[1], s.dilation_h, s.pad_top),
                           w = place(part.along[2].begin, s.stride_w, point[2], s.dilation_w, s.pad_left);
      if (!inside(d, s.in_d) || !inside(h, s.in_h)) {
        std::fill_n(to, width * channels, 0.0f);
        return;
      }
      const float* const from = x + (size(d) * s.in_h + size(h)) * s.in_w * channels;
      if (s.stride_w == 1 && w >= 0 && size(w) + width <= s.in_w) {
        std::copy_n(from + size(w) * channels, width * channels, to);
        return;
      }
      for (std::size_t i = 0; i < width; ++i, to += channels) {
        const std::ptrdiff_t at = w + static_cast<std::ptrdiff_t>(i * s.stride_w);
        if (inside(at, s.in_w)) {
          std::copy_n(from + size(at) * channels, channels, to);
        } else {
          std::fill_n(to, channels, 0.0f);
        }
      }
    });
  }

  /// Rows of a part [row][channel] from an output [channel][position], or to it.
  void turn(kernel::KernelContext& ctx, const ConvShape& s, const Part& part, const float* from, float* to,
            bool to_rows) const {
    const std::size_t width = part.along[2].count(), channels = s.out_channels, positions = s.positions();
    const auto move = kernels_.transpose.bytes4;
    for_each_run(ctx, part, 0.25 * number(width * channels), [&](std::size_t od, std::size_t oh, std::size_t row) {
      const std::size_t at = (od * s.out_h + oh) * s.out_w + part.along[2].begin, in_rows = row * channels;
      const auto* const x = reinterpret_cast<const std::uint32_t*>(from + (to_rows ? at : in_rows));
      auto* const y = reinterpret_cast<std::uint32_t*>(to + (to_rows ? in_rows : at));
      if (to_rows) {
        move(x, positions, y, channels, channels, width);
      } else {
        move(x, channels, y, positions, width, channels);
      }
    });
  }

  const microkernels::KernelSet& kernels_;
  const GemmTable& table_;
  bool by_point_;  ///< a product for each kernel point
  PackedWeight packed_;
};

bool can_run(const ConvSite& site) { return site.weight != nullptr && site.groups == 1; }
bool can_run_points(const ConvSite& site) { return can_run(site) && site.shape.kernel_points() > 1; }

/// Products, multiply-adds, floats turned, floats gathered (twice those that do not stay near), runs gathered, weights
/// read, sums written, floats from far away.
cost::Terms terms(const ConvSite& site) {
  constexpr std::size_t kRows = 192, kBlock = 256;  // of a product that weights are read for at a time, of k; about
  const ConvShape& s = site.shape;
  const double gathered = sees_input_as_it_is(s) ? 0 : number(s.depth() * s.positions());
  const std::size_t most = std::min(s.positions(), rows_at_a_time(std::max(s.depth(), s.out_channels)));
  const double pieces = number(ceil_div(s.positions(), most));
  return {pieces,
          product_adds(site, number(s.depth() * s.positions())),
          turned_floats(site),
          gathered + far_floats(gathered),
          gathered / number(s.in_channels * (s.dilation_w == 1 ? s.kernel_w : 1)),
          pieces * number(ceil_div(most, kRows)) * number(s.out_channels) * number(s.depth()),
          output_floats(s) * number(ceil_div(s.depth(), kBlock)),
          far_floats(site)};
}
/// Products, multiply-adds, floats turned, floats gathered, runs gathered, weights read, sums read and written, floats
/// from far away.
cost::Terms point_terms(const ConvSite& site) {
  const ConvShape& s = site.shape;
  const TapRanges ranges(s);
  const double seen = ranges.seen(), products = ranges.products(), made = number(s.out_channels);
  return {products,
          product_adds(site, number(s.in_channels) * seen),
          turned_floats(site),
          number(s.in_channels) * seen,
          seen / number(s.out_w),
          products * made * number(s.in_channels),
          made * seen,
          far_floats(site)};
}

template <bool kByPoint>
std::unique_ptr<ConvRunner> make(kernel::KernelInfo& info, const ConvSite& site) {
  return std::make_unique<ConvRows>(info, site, kByPoint);
}

}  // namespace

void register_conv_rows(ConvMethods& methods) {
  methods.add_unit(
      {"rows", "gathers the inputs of each position as a row of a product", 50, can_run, terms, make<false>});
  methods.add_unit({"rows.points",
                    "the same with a product for each tap; parts of the output that see some taps in padding alone, as "
                    "with large dilations, leave those taps out",
                    52, can_run_points, point_terms, make<true>});
}

}  // namespace infernode::ops
