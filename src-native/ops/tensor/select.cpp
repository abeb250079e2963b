// NonZero and Compress: elements chosen by what they or a mask hold.

#include <algorithm>
#include <complex>
#include <span>

#include "kernel/op_registrar.h"
#include "kernel/scratch.h"
#include "ops/common/arguments.h"
#include "ops/common/mover.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::SymShape;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

void infer_non_zero(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::Int64);
  const SymShape* in = ctx.input_shape(0);
  ctx.set_output_shape(0, SymShape{in ? Dim(static_cast<std::int64_t>(in->size())) : Dim::unknown(), Dim::unknown()});
}

template <class T>
bool not_zero(const T& v) {
  if constexpr (std::is_same_v<T, std::string>)
    return !v.empty();
  else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
    return (v.bits & 0x7fff) != 0;
  else
    return v != T{};
}

/// Calls f(TypeTag<T>) with a type in which elements of `dtype` compare with zero.
template <class F>
void dispatch_values(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float32:
      return f(TypeTag<float>{});
    case DType::Float64:
      return f(TypeTag<double>{});
    case DType::Float16:
      return f(TypeTag<Float16>{});
    case DType::BFloat16:
      return f(TypeTag<BFloat16>{});
    case DType::Complex64:
      return f(TypeTag<std::complex<float>>{});
    case DType::Complex128:
      return f(TypeTag<std::complex<double>>{});
    case DType::String:
      return f(TypeTag<std::string>{});
    default:
      tensor::dispatch_size(tensor::bit_size(dtype) / 8, "NonZero", [&]<class T>(TypeTag<T>) {
        if constexpr (std::is_integral_v<T>) f(TypeTag<T>{});
      });
  }
}

class NonZero : public Kernel {
 public:
  explicit NonZero(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    dispatch_values(in.dtype(), [&]<class T>(TypeTag<T>) { list<T>(ctx, in); });
  }

 private:
  template <class T>
  static void list(KernelContext& ctx, const Tensor& in) {
    const Shape& dims = in.shape();
    const T* x = elements<T>(in);
    kernel::Watch watch(ctx.run());
    std::int64_t count = 0;
    in_pieces(watch, static_cast<std::size_t>(in.numel()), 1.0,
              [&](std::size_t begin, std::size_t end) { count += std::count_if(x + begin, x + end, not_zero<T>); });
    const Tensor out = ctx.output(0, DType::Int64, Shape{static_cast<std::int64_t>(in.rank()), count});
    auto* to = out.mutable_data<std::int64_t>();
    if (count == 0 || in.rank() == 0) return;  // a scalar has no coordinates
    const std::size_t last = dims.rank() - 1;
    Ints at(dims.rank(), 0);
    std::int64_t found = 0;
    for (std::int64_t row = 0; row < in.numel() / dims[last]; ++row, x += dims[last]) {
      for (std::int64_t j = 0; j < dims[last]; ++j) {
        watch.did(1);
        if (!not_zero(x[j])) continue;
        for (std::size_t d = 0; d < last; ++d) to[static_cast<std::int64_t>(d) * count + found] = at[d];
        to[static_cast<std::int64_t>(last) * count + found++] = j;
        watch.did(sizeof(std::int64_t) * static_cast<double>(dims.rank()));  // pages that are written first
      }
      for (std::size_t d = last; d-- > 0;) {
        if (++at[d] < dims[d]) break;
        at[d] = 0;
      }
    }
  }
};

// ---- Compress

void infer_compress(InferContext& ctx) {
  const SymShape* in = ctx.input_shape(0);
  if (!ctx.attributes().has("axis")) return ctx.set_output_shape(0, SymShape{Dim::unknown()});
  if (!in) return;
  SymShape out = *in;
  out[tensor::normalize_axis(ctx.attributes().get_int("axis"), in->size())] = Dim::unknown();
  ctx.set_output_shape(0, std::move(out));
}

/// Calls f(begin, end) for runs of true elements, in order.
template <class F>
void each_run(kernel::Watch& watch, std::span<const bool> mask, F&& f) {
  in_pieces(watch, mask.size(), 2.0, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end;) {
      if (!mask[i++]) continue;
      const std::size_t first = i - 1;
      while (i < end && mask[i]) ++i;
      f(static_cast<std::int64_t>(first), static_cast<std::int64_t>(i));
    }
  });
}

class Compress : public Kernel {
 public:
  explicit Compress(KernelInfo& info) {
    if (info.attributes().has("axis")) axis_ = info.attributes().get_int("axis");
  }
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const auto mask = ctx.input(1).span<bool>();
    const std::size_t axis = axis_ ? tensor::normalize_axis(*axis_, in.rank()) : 0;
    Shape dims = axis_ ? in.shape() : Shape{in.numel()};
    const std::int64_t bound = dims[axis];
    kernel::Watch watch(ctx.run());
    std::int64_t kept = 0;
    std::size_t runs = 0;
    each_run(watch, mask, [&](std::int64_t begin, std::int64_t end) {
      INFERNODE_CHECK(end <= bound, ErrorCode::InvalidArgument, "the condition selects element ",
                      std::max(begin, bound), " of an axis with ", bound);
      kept += end - begin;
      ++runs;
    });
    const std::int64_t outer = dims.numel(0, axis), inner = dims.numel(axis + 1, dims.rank());
    dims[axis] = kept;
    const Tensor out = ctx.output(0, dims);
    if (out.numel() == 0) return;
    kernel::Scratch<Run> list;  // several parts are gone through by what the first one found
    if (outer > 1) {
      list = kernel::Scratch<Run>(ctx.run(), runs);
      Run* next = list.data();
      each_run(watch, mask, [&](std::int64_t begin, std::int64_t end) { *next++ = {begin, end}; });
    }
    dispatch_elements(in.dtype(), "Compress", [&]<class T>(TypeTag<T>) {
      const T* from = elements<T>(in);
      T* to = mutable_elements<T>(out);
      Mover mover(ctx.run());
      const auto copy = [&](std::int64_t begin, std::int64_t end) {
        to = mover.copy(from + begin * inner, (end - begin) * inner, to);
        mover.did(5);
      };
      if (outer == 1) return each_run(watch, mask, copy);
      for (std::int64_t o = 0; o < outer; ++o, from += bound * inner) {
        for (const Run& run : list) copy(run.begin, run.end);
      }
    });
  }

 private:
  struct Run {
    std::int64_t begin, end;
  };

  std::optional<std::int64_t> axis_;
};

}  // namespace

void register_select(kernel::OpRegistrar& r) {
  r.op("NonZero")
      .version(9, "X:T -> Y:int64; T = all")
      .version(13, "X:T -> Y:int64; T = all_ir4")
      .infer(infer_non_zero)
      .kernel<NonZero>();
  r.op("Compress")
      .version(9, "input:T, condition:bool -> output:T; T = all")
      .version(11, "input:T, condition:bool -> output:T; T = all")
      .version(28, "input:T, condition:bool -> output:T; T = all_ir4")
      .infer(infer_compress)
      .kernel<Compress>();
}

}  // namespace infernode::ops
