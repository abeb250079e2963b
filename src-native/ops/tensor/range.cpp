#include <cmath>

#include "kernel/op_registrar.h"
#include "ops/common/contents.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

/// max(ceil((limit - start) / delta), 0) in exact integer arithmetic.
std::int64_t count_integers(std::int64_t start, std::int64_t limit, std::int64_t delta) {
  const bool up = delta > 0;
  if (up ? limit <= start : limit >= start) return 0;
  // Unsigned differences cannot overflow.
  const std::uint64_t distance = up ? static_cast<std::uint64_t>(limit) - static_cast<std::uint64_t>(start)
                                    : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(limit);
  const std::uint64_t step = up ? static_cast<std::uint64_t>(delta) : 0 - static_cast<std::uint64_t>(delta);
  const std::uint64_t count = distance / step + (distance % step != 0 ? 1 : 0);
  if (count > static_cast<std::uint64_t>(INT64_MAX)) fail(ErrorCode::OutOfMemory, "Range: too many elements");
  return static_cast<std::int64_t>(count);
}

std::int64_t count_reals(double start, double limit, double delta) {
  const double count = std::ceil((limit - start) / delta);
  if (std::isnan(count))
    fail(ErrorCode::InvalidArgument, cat("Range: from ", start, " to ", limit, " by ", delta, " is no range"));
  if (!(count > 0)) return 0;
  if (count > 0x1p53) fail(ErrorCode::OutOfMemory, cat("Range: ", count, " elements"));
  return static_cast<std::int64_t>(count);
}

/// start, start + delta, ... below limit (above, for a negative delta). 16-bit floats count in float32 (stash_type 1,
/// the default), and without it in their own precision, rounding each element once.
class Range final : public Kernel {
 public:
  explicit Range(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    const bool stepped = ctx.has_input(2);  // com.microsoft's form has a default
    for (std::size_t i = 0; i < (stepped ? 3 : 2); ++i) {
      if (ctx.input(i).numel() != 1)
        fail(ErrorCode::ShapeMismatch,
             cat("Range: input ", i, " must be one number, got ", ctx.input(i).shape().to_string()));
    }
    tensor::dispatch<std::int64_t, float, std::int32_t, double, std::int16_t, Float16, BFloat16>(
        ctx.input(0).dtype(), "Range", [&]<class T>(TypeTag<T>) {
          using C = tensor::ComputeTypeOf<T>;
          const auto start = static_cast<C>(*ctx.input(0).data<T>()), limit = static_cast<C>(*ctx.input(1).data<T>()),
                     delta = stepped ? static_cast<C>(*ctx.input(2).data<T>()) : C(1);
          if (delta == C(0)) fail(ErrorCode::InvalidArgument, "Range: delta is 0");
          std::int64_t count;
          if constexpr (std::is_integral_v<C>)
            count = count_integers(start, limit, delta);
          else
            count = count_reals(start, limit, delta);
          const Tensor out = ctx.output(0, {count});
          T* to = out.mutable_data<T>();
          ctx.parallel_for(static_cast<std::size_t>(count), 1.0, [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t i = begin; i < end; ++i) {
              if constexpr (std::is_integral_v<C>) {
                to[i] = static_cast<T>(static_cast<std::uint64_t>(start) +
                                       static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(delta));
              } else {
                to[i] = static_cast<T>(start + static_cast<C>(i) * delta);
              }
            }
          });
        });
  }
};

void infer_range(InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  const auto start = ctx.input_contents(0), limit = ctx.input_contents(1), delta = ctx.input_contents(2);
  Dim count = Dim::unknown();
  if (start && limit && delta && start->size() == 1 && limit->size() == 1 && delta->size() == 1) {
    const Dim &a = start->front(), &b = limit->front(), &d = delta->front();
    if (a.known() && b.known() && d.known()) {
      if (d.value() == 0) fail(ErrorCode::InvalidArgument, "Range: delta is 0");
      count = count_integers(a.value(), b.value(), d.value());
    } else if (is_positive(d)) {
      count = ceil_div(b - a, d);
      if (!is_non_negative(b - a)) count = max(count, Dim(0));
    } else if (is_positive(Dim(0) - d)) {
      count = max(ceil_div(a - b, Dim(0) - d), Dim(0));
    }
  } else if (ctx.input_constant(0) && ctx.input_constant(1) && ctx.input_constant(2) &&
             tensor::is_floating(ctx.input_dtype(0))) {
    const float a = tensor::to_float_scalar(*ctx.input_constant(0)),
                b = tensor::to_float_scalar(*ctx.input_constant(1)),
                d = tensor::to_float_scalar(*ctx.input_constant(2));
    // Doubles would be rounded here: their count is left to the run.
    if (d != 0 && ctx.input_dtype(0) != tensor::DType::Float64) count = count_reals(a, b, d);
  }
  ctx.set_output_shape(0, graph::SymShape{count});
}

}  // namespace

void register_range(kernel::OpRegistrar& r) {
  r.op("Range")
      .version(11, "start:T, limit:T, delta:T -> output:T; T = float|double|int16|int32|int64")
      .version(27, "start:T, limit:T, delta:T -> output:T; T = floats_bf16|int16|int32|int64")
      .infer(infer_range)
      .kernel<Range>();
  r.op("Range", "com.microsoft")
      .version(1, "start:T, limit:T, delta:T? -> Y:T; T = float|double|int16|int32|int64")
      .infer(infer_range)
      .kernel<Range>();
}

}  // namespace infernode::ops
