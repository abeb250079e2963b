// Identity and Dropout.

#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"
#include "ops/common/arithmetic.h"
#include "ops/common/mover.h"
#include "ops/common/strided_copy.h"
#include "ops/math/random.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Tensor;
using tensor::TypeTag;

/// The input itself: tensor, sequence, optional or map.
class Identity final : public Kernel {
 public:
  explicit Identity(KernelInfo&) {}
  void run(KernelContext& ctx) const override { ctx.set_output(0, ctx.input_value(0)); }
};

void infer_identity(InferContext& ctx) {
  kernel::infer_same_as_first(ctx);
  infer_same_contents(ctx);
}

/// Without training the input itself and a mask of ones. With it (version 12 on, input 2) each element is dropped with
/// probability `ratio` and the others are scaled by 1 / (1 - ratio). Versions before 12 know training at most as
/// `is_test`=0, which inference does not do.
class Dropout final : public Kernel {
 public:
  explicit Dropout(KernelInfo& info) : may_train_(info.since_version() >= 12) {
    if (info.attributes().has("seed")) seed_ = static_cast<std::uint64_t>(info.attributes().get_int("seed"));
  }

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Tensor* ratio_input = may_train_ ? ctx.optional_input(1) : nullptr;
    const Tensor* training = may_train_ ? ctx.optional_input(2) : nullptr;
    const float ratio = ratio_input ? tensor::to_float_scalar(*ratio_input) : 0.5f;
    const bool trains = training && tensor::to_int64_scalar(*training) != 0;
    if (trains && !(ratio >= 0.0f && ratio < 1.0f))
      fail(ErrorCode::InvalidArgument, cat("Dropout: ratio must be in [0, 1), got ", ratio));
    const bool drops = trains && ratio > 0.0f;
    const Tensor out = ctx.output(0, in.dtype(), in.shape());
    Tensor mask;
    if (ctx.wants_output(1))
      mask = ctx.output(1, may_train_ || ctx.output_dtype(1) == DType::Bool ? DType::Bool : in.dtype(), in.shape());
    if (!drops) {
      if (out.raw() != in.raw()) copy_all(ctx.run(), in, out);
      return fill_mask(ctx.run(), mask);
    }
    const Philox philox = philox_of(seed_);
    bool* kept = mask ? mask.mutable_data<bool>() : nullptr;
    const float scale = 1.0f / (1.0f - ratio);
    tensor::dispatch<float, double, Float16, BFloat16, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ>(
        in.dtype(), "Dropout", [&]<class T>(TypeTag<T>) {
          using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
          const T* x = in.data<T>();
          T* y = out.mutable_data<T>();
          ctx.parallel_for(static_cast<std::size_t>(in.numel()), 15,
                           [&](std::size_t begin, std::size_t end, std::size_t) {
                             philox.each(&Philox::uniform_pair, begin, end, [&](std::size_t i, double u) {
                               const bool keep = u >= static_cast<double>(ratio);
                               y[i] = static_cast<T>(keep ? static_cast<C>(x[i]) * static_cast<C>(scale) : C(0));
                               if (kept) kept[i] = keep;
                             });
                           });
        });
  }

 private:
  static void fill_mask(const kernel::RunContext& run, const Tensor& mask) {
    if (!mask) return;
    if (mask.dtype() == DType::Bool) return fill_bytes(run, mask, 1);
    tensor::dispatch_floats(mask.dtype(), "Dropout", [&]<class T>(TypeTag<T>) {
      Mover(run).fill(mask.mutable_data<T>(), mask.numel(), static_cast<T>(tensor::ComputeTypeOf<T>(1)));
    });
  }

  bool may_train_;
  std::optional<std::uint64_t> seed_;
};

void infer_dropout(InferContext& ctx) {
  const graph::SymShape* shape = ctx.input_shape(0);
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  if (shape) ctx.set_output_shape(0, *shape);
  if (!ctx.has_output(1)) return;
  ctx.set_output_dtype(1, ctx.since_version() >= 10 ? DType::Bool : ctx.input_dtype(0));
  if (shape) ctx.set_output_shape(1, *shape);
}

}  // namespace

void register_identity(kernel::OpRegistrar& r) {
  constexpr const char* kMore = "|seq(all)|optional(all)|optional(seq(all))";
  const auto any = [](const char* tensors, const char* more) {
    return cat("input:V -> output:V; V = ", tensors, more);
  };
  r.op("Identity")
      .version(1, "input:V -> output:V; V = all")
      .version(13, "input:V -> output:V; V = all_ir4")
      .version(14, any("all_ir4", "|seq(all)"))
      .version(16, any("all_ir4", kMore))
      .version(19, any("all_ir9", kMore))
      .version(21, any("all_ir10", kMore))
      .version(23, any("all_ir11", kMore))
      .version(24, any("all_ir12", kMore))
      .version(25, any("all_ir13", kMore))
      .infer(infer_identity)
      .kernel<Identity>()
      .alias(0, 0)
      .elementwise();
  r.op("Dropout")
      .version(1, "data:T -> output:T, mask:T?; T = floats")
      .version(6, "data:T -> output:T, mask:T?; T = floats")
      .version(7, "data:T -> output:T, mask:T?; T = floats")
      .version(10, "data:T -> output:T, mask:T1?; T = floats, T1 = bool")
      .version(12, "data:T, ratio:T1?, training_mode:T2? -> output:T, mask:T2?; T = floats, T1 = floats, T2 = bool")
      .version(13,
               "data:T, ratio:T1?, training_mode:T2? -> output:T, mask:T2?; T = floats_bf16, T1 = floats, T2 = bool")
      .version(22,
               "data:T, ratio:T1?, training_mode:T2? -> output:T, mask:T2?; T = floats_bf16|float8, T1 = "
               "floats_bf16|float8, T2 = bool")
      .infer(infer_dropout)
      .nondeterministic()
      .kernel<Dropout>()
      .in_place(0, 0);
}

}  // namespace infernode::ops
