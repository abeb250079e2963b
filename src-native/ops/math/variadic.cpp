// Min, Max, Sum, Mean of any number of inputs.

#include "kernel/op_registrar.h"
#include "ops/common/binary.h"
#include "ops/common/contents.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using microkernels::BinaryOp;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

struct MinOp {
  static constexpr BinaryOp kLoop = BinaryOp::kMin;
  static constexpr double kCost = 0.2;
  template <class T>
  static T apply(T a, T b) {
    return minimum(a, b);
  }
};
struct MaxOp {
  static constexpr BinaryOp kLoop = BinaryOp::kMax;
  static constexpr double kCost = 0.2;
  template <class T>
  static T apply(T a, T b) {
    return maximum(a, b);
  }
};
struct SumOp {
  static constexpr BinaryOp kLoop = BinaryOp::kAdd;
  static constexpr double kCost = 0.2;
  template <class T>
  static T apply(T a, T b) {
    return wrap_add(a, b);
  }
};

/// out = x0 op x1 op x2 ..., left to right.
template <class Op>
void accumulate(KernelContext& ctx, const FloatLoops& loops, const Tensor& out, const char* what) {
  const Shape& shape = out.shape();
  const Tensor& first = ctx.input(0);
  if (ctx.input_count() == 1) return copy_all(ctx.run(), first, out);
  binary_numeric<Op>(ctx.run(), loops, BroadcastPlan(shape, {&first.shape(), &ctx.input(1).shape()}), first,
                     ctx.input(1), out, what);
  for (std::size_t i = 2; i < ctx.input_count(); ++i)
    binary_numeric<Op>(ctx.run(), loops, BroadcastPlan(shape, {&shape, &ctx.input(i).shape()}), out, ctx.input(i), out,
                       what);
}

Shape broadcast_inputs(const KernelContext& ctx) {
  Shape shape = ctx.input(0).shape();
  for (std::size_t i = 1; i < ctx.input_count(); ++i) shape = tensor::broadcast(shape, ctx.input(i).shape());
  return shape;
}

template <class Op>
class Variadic final : public Kernel {
 public:
  explicit Variadic(KernelInfo& info) : loops_(info.kernels()), name_(info.node().op_type) {}
  void run(KernelContext& ctx) const override {
    accumulate<Op>(ctx, loops_, ctx.output(0, broadcast_inputs(ctx)), name_.c_str());
  }

 private:
  FloatLoops loops_;
  std::string name_;
};

class Mean final : public Kernel {
 public:
  explicit Mean(KernelInfo& info) : loops_(info.kernels()) {}
  void run(KernelContext& ctx) const override {
    const Tensor out = ctx.output(0, broadcast_inputs(ctx));
    const std::size_t count = ctx.input_count();
    accumulate<SumOp>(ctx, loops_, out, "Mean");
    if (count == 1) return;
    const auto divisor = static_cast<double>(count);
    tensor::dispatch_floats(out.dtype(), "Mean", [&]<class T>(TypeTag<T>) {
      using C = tensor::ComputeTypeOf<T>;
      map_elements<T, T>(ctx, out, out, 0.3,
                         [divisor](T x) { return static_cast<T>(static_cast<C>(x) / static_cast<C>(divisor)); });
    });
  }

 private:
  FloatLoops loops_;
};

void infer_variadic(InferContext& ctx) { kernel::infer_broadcast(ctx); }

void infer_min(InferContext& ctx) {
  kernel::infer_broadcast(ctx);
  if (ctx.input_count() == 2)
    infer_binary_contents(ctx, [](const Dim& a, const Dim& b) -> std::optional<Dim> { return min(a, b); });
}

void infer_max(InferContext& ctx) {
  kernel::infer_broadcast(ctx);
  if (ctx.input_count() == 2)
    infer_binary_contents(ctx, [](const Dim& a, const Dim& b) -> std::optional<Dim> { return max(a, b); });
}

template <class K>
void register_extreme(kernel::OpRegistrar& r, const char* name, kernel::InferFn infer) {
  r.op(name)
      .version(1, "data_0:T* -> result:T; T = floats")
      .version(6, "data_0:T* -> result:T; T = floats")
      .version(8, "data_0:T* -> result:T; T = floats")
      .version(12, "data_0:T* -> result:T; T = numeric")
      .version(13, "data_0:T* -> result:T; T = numeric_bf16")
      .infer(infer)
      .kernel<K>()
      .broadcasts(6)
      .commutative()
      .passes_one_on();
}

template <class K>
void register_sum(kernel::OpRegistrar& r, const char* name) {
  r.op(name)
      .version(1, "data_0:T* -> result:T; T = floats")
      .version(6, "data_0:T* -> result:T; T = floats")
      .version(8, "data_0:T* -> result:T; T = floats")
      .version(13, "data_0:T* -> result:T; T = floats_bf16")
      .infer(infer_variadic)
      .kernel<K>()
      .broadcasts(6)
      .commutative()
      .passes_one_on();
}

}  // namespace

void register_variadic(kernel::OpRegistrar& r) {
  register_extreme<Variadic<MinOp>>(r, "Min", infer_min);
  register_extreme<Variadic<MaxOp>>(r, "Max", infer_max);
  register_sum<Variadic<SumOp>>(r, "Sum");
  register_sum<Mean>(r, "Mean");
}

}  // namespace infernode::ops
