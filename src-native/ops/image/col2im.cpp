#include <algorithm>
#include <complex>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/checked.h"
#include "kernel/charge.h"
#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"
#include "ops/common/arithmetic.h"
#include "ops/common/mover.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::SymShape;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

void infer_col2im(InferContext& ctx) {
  const SymShape* in = ctx.input_shape(0);
  const auto image = ctx.input_contents(1), block = ctx.input_contents(2);
  if (!image) {
    const SymShape* spatial = ctx.input_shape(1);
    if (spatial && spatial->size() == 1 && (*spatial)[0].known() && (*spatial)[0].value() < 64) {
      ctx.set_output_shape(0, unknown_shape(2 + static_cast<std::size_t>((*spatial)[0].value())));
    }
    return;
  }
  Dim channels = Dim::unknown();
  if (in && in->size() == 3 && block) channels = floor_div((*in)[1], numel(*block));
  SymShape out{in && !in->empty() ? (*in)[0] : Dim::unknown(), channels};
  out.insert(out.end(), image->begin(), image->end());
  ctx.set_output_shape(0, std::move(out));
}

/// One spatial axis: an image of `length` covered by `count` blocks of `size` elements.
struct Axis {
  std::int64_t length, size, count, stride, pad, dilation;
};
using Axes = InlineVector<Axis, 4>;

/// What a place of the image is summed up in.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, tensor::ComputeTypeOf<T>>;

/// Sums as numpy makes them: of bools the logical or, of strings the joined text.
template <class T>
void add([[maybe_unused]] Mover& mover, Sum<T>& sum, const T& v) {
  if constexpr (std::is_same_v<T, std::string>) {
    mover.append(sum, v);
  } else if constexpr (std::is_same_v<T, bool>) {
    sum |= static_cast<std::uint8_t>(v);
  } else {
    sum = wrap_add<Sum<T>>(sum, static_cast<Sum<T>>(v));
  }
}

template <class T>
T finished(Sum<T>& sum) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::move(sum);
  } else if constexpr (std::is_same_v<T, bool>) {
    return sum != 0;
  } else if constexpr (std::is_arithmetic_v<Sum<T>>) {
    return convert<T>(sum);
  } else {
    return sum;
  }
}

template <class F>
void dispatch_summable(tensor::DType type, F&& f) {
  switch (type) {
    case tensor::DType::String:
      return f(TypeTag<std::string>{});
    case tensor::DType::Bool:
      return f(TypeTag<bool>{});
    case tensor::DType::Complex64:
      return f(TypeTag<std::complex<float>>{});
    case tensor::DType::Complex128:
      return f(TypeTag<std::complex<double>>{});
    default:
      return tensor::dispatch_numeric(type, "Col2Im", static_cast<F&&>(f));
  }
}

class Col2Im : public Kernel {
 public:
  explicit Col2Im(KernelInfo& info)
      : strides_(info.attributes().get_ints("strides")),
        pads_(info.attributes().get_ints("pads")),
        dilations_(info.attributes().get_ints("dilations")) {}

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    INFERNODE_CHECK(in.rank() == 3, ErrorCode::ShapeMismatch, "the input has rank ", in.rank(),
                    " instead of 3 [N, C * block, L]");
    const Axes axes = resolve(read_ints(ctx.input(1)), read_ints(ctx.input(2)));
    Shape dims{in.dim(0), 0};
    std::int64_t block = 1, blocks = 1;
    for (const Axis& a : axes) {
      dims.push_back(a.length);
      block = checked_mul(block, a.size);
      blocks = checked_mul(blocks, a.count);
    }
    INFERNODE_CHECK(in.dim(1) % block == 0 && in.dim(2) == blocks, ErrorCode::ShapeMismatch, "an input of shape ",
                    in.shape().dims(), " does not hold ", blocks, " blocks of a multiple of ", block, " elements");
    dims[1] = in.dim(1) / block;
    const Tensor out = ctx.output(0, dims);
    if (out.numel() == 0) return;
    const std::int64_t plane = dims.numel(2, dims.rank());
    dispatch_summable(in.dtype(), [&]<class T>(TypeTag<T>) {
      const auto* from = static_cast<const T*>(in.raw());
      auto* to = static_cast<T*>(out.mutable_raw());
      ctx.parallel_for(static_cast<std::size_t>(dims[0] * dims[1]), 2.0 * static_cast<double>(block * blocks + plane),
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         const auto count = static_cast<std::size_t>(plane);
                         const kernel::Charge charge(ctx.run(), checked_mul(count, sizeof(Sum<T>)));
                         const auto image = std::make_unique_for_overwrite<Sum<T>[]>(count);
                         Mover mover(ctx.run());
                         for (auto i = static_cast<std::int64_t>(begin); i < static_cast<std::int64_t>(end); ++i) {
                           mover.fill(image.get(), plane, Sum<T>{});
                           add_blocks(mover, from + i * block * blocks, axes, block, blocks, image.get());
                           for_pieces(mover, plane, [&](std::int64_t first, std::int64_t last) {
                             std::transform(image.get() + first, image.get() + last, to + i * plane + first,
                                            finished<T>);
                           });
                         }
                       });
    });
  }

 private:
  Axes resolve(const Ints& image, const Ints& block) const {
    const std::size_t n = image.size();
    INFERNODE_CHECK(n > 0 && block.size() == n, ErrorCode::InvalidArgument, "image_shape ", image, " and block_shape ",
                    block, " must have one element per spatial axis");
    INFERNODE_CHECK((strides_.empty() || strides_.size() == n) && (dilations_.empty() || dilations_.size() == n) &&
                        (pads_.empty() || pads_.size() == 2 * n),
                    ErrorCode::InvalidModel,
                    "strides, pads and dilations must have one element (pads two) per spatial axis");
    Axes axes;
    for (std::size_t d = 0; d < n; ++d) {
      Axis a{image[d],
             block[d],
             0,
             strides_.empty() ? 1 : strides_[d],
             pads_.empty() ? 0 : pads_[d],
             dilations_.empty() ? 1 : dilations_[d]};
      INFERNODE_CHECK(a.length >= 0 && a.size > 0 && a.stride > 0 && a.dilation > 0, ErrorCode::InvalidArgument,
                      "image, block, stride and dilation of axis ", d, " are ", a.length, ", ", a.size, ", ", a.stride,
                      ", ", a.dilation);
      const std::int64_t padded = checked_add(checked_add(a.length, a.pad), pads_.empty() ? 0 : pads_[d + n]);
      const std::int64_t room = checked_sub(padded, checked_add(checked_mul(a.dilation, a.size - 1), 1));
      a.count = room < 0 ? 0 : room / a.stride + 1;
      axes.push_back(a);
    }
    return axes;
  }

  /// Calls work(begin, end) for pieces of [0, count), with a look between two.
  template <class Work>
  static void for_pieces(Mover& mover, std::int64_t count, const Work& work) {
    constexpr std::int64_t kPiece = 1 << 16;
    for (std::int64_t first = 0; first < count; first += kPiece) {
      const std::int64_t last = std::min(count, first + kPiece);
      work(first, last);
      mover.did(3.0 * static_cast<double>(last - first));
    }
  }

  /// Adds one channel's [block][blocks] to its image.
  template <class T>
  static void add_blocks(Mover& mover, const T* x, const Axes& axes, std::int64_t block, std::int64_t blocks,
                         Sum<T>* image) {
    const std::size_t last = axes.size() - 1;
    const Axis& inner = axes[last];
    Ints k(axes.size(), 0), at(axes.size(), 0);
    for (std::int64_t b = 0; b < block; ++b) {
      for (std::int64_t row = 0; row < blocks / std::max<std::int64_t>(1, inner.count); ++row, x += inner.count) {
        std::int64_t offset = 0;
        bool inside = true;
        for (std::size_t d = 0; d < last; ++d) {
          const std::int64_t place = at[d] * axes[d].stride - axes[d].pad + k[d] * axes[d].dilation;
          inside = inside && place >= 0 && place < axes[d].length;
          offset = offset * axes[d].length + place;
        }
        mover.did(10);
        if (inside) {
          Sum<T>* line = image + offset * inner.length;
          const std::int64_t start = k[last] * inner.dilation - inner.pad;
          for_pieces(mover, inner.count, [&](std::int64_t begin, std::int64_t end) {
            std::int64_t place = start + begin * inner.stride;
            for (std::int64_t i = begin; i < end; ++i, place += inner.stride) {
              if (place >= 0 && place < inner.length) add<T>(mover, line[place], x[i]);
            }
          });
        }
        advance(at, axes, last, [](const Axis& a) { return a.count; });
      }
      advance(k, axes, axes.size(), [](const Axis& a) { return a.size; });
    }
  }

  template <class Limit>
  static void advance(Ints& at, const Axes& axes, std::size_t count, Limit limit) {
    for (std::size_t d = count; d-- > 0;) {
      if (++at[d] < limit(axes[d])) return;
      at[d] = 0;
    }
  }

  std::vector<std::int64_t> strides_, pads_, dilations_;
};

}  // namespace

void register_col2im(kernel::OpRegistrar& r) {
  r.op("Col2Im")
      .version(18, "input:T, image_shape:int64, block_shape:int64 -> output:T; T = all_ir4")
      .infer(infer_col2im)
      .kernel<Col2Im>();
}

}  // namespace infernode::ops
