// ArgMax and ArgMin: where the greatest or smallest element of an axis stands.

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "microkernels/reduce/reduce.h"
#include "ops/common/arithmetic.h"
#include "ops/math/columns.h"
#include "ops/math/reduction.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Tensor;
using tensor::TypeTag;

constexpr std::int64_t kColumns = 64;

void infer_arg(InferContext& ctx) {
  ctx.set_output_dtype(0, tensor::DType::Int64);
  const graph::SymShape* in = ctx.input_shape(0);
  if (!in) return;
  const auto axis = static_cast<std::int64_t>(tensor::normalize_axis(ctx.attributes().get_int("axis", 0), in->size()));
  ctx.set_output_shape(0, reduced_shape(*in, {&axis, 1}, ctx.attributes().get_int("keepdims", 1) != 0));
}

/// Whether `v` takes the place of `best`. The first NaN beats everything, as in NumPy.
template <bool Max, class T>
bool beats(T v, T best, bool last) {
  if (is_nan(best)) return is_nan(v) && last;
  if (is_nan(v)) return true;
  return (Max ? v > best : v < best) || (last && v == best);
}

template <bool Max>
class ArgReduce : public Kernel {
 public:
  explicit ArgReduce(KernelInfo& info)
      : kernels_(info.kernels()),
        axis_(info.attributes().get_int("axis", 0)),
        keep_dims_(info.attributes().get_int("keepdims", 1) != 0),
        last_(info.attributes().get_int("select_last_index", 0) != 0) {}

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const auto axis = static_cast<std::int64_t>(tensor::normalize_axis(axis_, in.rank()));
    const Tensor out = ctx.output(0, tensor::DType::Int64, reduced_shape(in.shape(), {&axis, 1}, keep_dims_));
    if (out.numel() == 0) return;
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t outer = in.shape().numel(0, a), count = in.dim(a), inner = in.shape().numel(a + 1, in.rank());
    INFERNODE_CHECK(count > 0, ErrorCode::InvalidArgument, "axis ", axis, " has no elements to choose from");
    auto* to = out.mutable_data<std::int64_t>();
    if (in.dtype() == tensor::DType::Float32 && inner == 1) return rows(ctx, in.data<float>(), outer, count, to);
    tensor::dispatch_numeric(in.dtype(), "ArgMax or ArgMin",
                             [&]<class T>(TypeTag<T>) { columns(ctx, in.data<T>(), outer, count, inner, to); });
  }

 private:
  void rows(KernelContext& ctx, const float* x, std::int64_t outer, std::int64_t count, std::int64_t* to) const {
    const auto& table = kernels_.reduce;
    const auto search = Max ? table.arg_max : table.arg_min;
    const auto n = static_cast<std::size_t>(count);
    ctx.parallel_for(static_cast<std::size_t>(outer), 5.0 + 0.3 * static_cast<double>(n),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       kernel::Watch watch(ctx.run());
                       for (std::size_t i = begin; i < end; ++i) {
                         const float* row = x + i * n;
                         std::size_t best = 0;
                         in_pieces(watch, n, 0.3, [&](std::size_t from, std::size_t until) {
                           const std::size_t at = from + search(row + from, until - from, last_);
                           if (from == 0 || beats<Max>(row[at], row[best], last_)) best = at;
                         });
                         to[i] = static_cast<std::int64_t>(best);
                       }
                     });
  }

  template <class T>
  void columns(KernelContext& ctx, const T* x, std::int64_t outer, std::int64_t count, std::int64_t inner,
               std::int64_t* to) const {
    const std::int64_t tiles = ceil_div(inner, kColumns);
    const double cost = 1.5 * static_cast<double>(count * std::min(inner, kColumns));
    ctx.parallel_for(static_cast<std::size_t>(outer * tiles), cost,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       std::array<tensor::ComputeTypeOf<T>, kColumns> best;
                       kernel::Watch watch(ctx.run());
                       for (auto i = static_cast<std::int64_t>(begin); i < static_cast<std::int64_t>(end); ++i) {
                         const std::int64_t first = i % tiles * kColumns, n = std::min(kColumns, inner - first);
                         const T* from = x + i / tiles * count * inner + first;
                         std::int64_t* at = to + i / tiles * inner + first;
                         for (std::int64_t k = 0; k < n; ++k) best[static_cast<std::size_t>(k)] = widen(from[k]);
                         std::fill_n(at, n, 0);
                         const double cost_of_row =
                             1.5 * static_cast<double>(n) + step_ns(static_cast<std::size_t>(inner) * sizeof(T));
                         each_in_pieces(watch, static_cast<std::size_t>(count - 1), cost_of_row, [&](std::size_t r) {
                           from += inner;
                           for (std::int64_t k = 0; k < n; ++k) {
                             const auto v = widen(from[k]);
                             auto& held = best[static_cast<std::size_t>(k)];
                             if (beats<Max>(v, held, last_)) {
                               held = v;
                               at[k] = static_cast<std::int64_t>(r) + 1;
                             }
                           }
                         });
                       }
                     });
  }

  const microkernels::KernelSet& kernels_;
  std::int64_t axis_;
  bool keep_dims_, last_;
};

template <bool Max>
void register_arg(kernel::OpRegistrar& r, std::string_view name) {
  r.op(name)
      .version(1, "data:T -> reduced:int64; T = numeric")
      .version(11, "data:T -> reduced:int64; T = numeric")
      .version(12, "data:T -> reduced:int64; T = numeric")
      .version(13, "data:T -> reduced:int64; T = numeric_bf16")
      .infer(infer_arg)
      .template kernel<ArgReduce<Max>>()
      .axes(kernel::Axes::ReducedOne);
}

}  // namespace

void register_arg_reduce(kernel::OpRegistrar& r) {
  register_arg<true>(r, "ArgMax");
  register_arg<false>(r, "ArgMin");
}

}  // namespace infernode::ops
