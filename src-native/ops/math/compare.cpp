// Equal, Less, LessOrEqual, Greater, GreaterOrEqual.

#include "kernel/op_registrar.h"
#include "ops/common/binary.h"
#include "ops/common/contents.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

enum class Relation { kEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

template <Relation R, class T>
bool holds(const T& a, const T& b) {
  if constexpr (std::is_same_v<tensor::ComputeTypeOf<T>, T>) {
    if constexpr (R == Relation::kEqual)
      return a == b;
    else if constexpr (R == Relation::kLess)
      return a < b;
    else if constexpr (R == Relation::kLessOrEqual)
      return a <= b;
    else if constexpr (R == Relation::kGreater)
      return a > b;
    else
      return a >= b;
  } else {
    return holds<R>(static_cast<float>(a), static_cast<float>(b));
  }
}

template <Relation R>
class Compare final : public Kernel {
 public:
  explicit Compare(KernelInfo& info) {
    if (info.since_version() < 7) legacy_.emplace(info.attributes());
  }

  void run(KernelContext& ctx) const override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    const Shape b_shape = legacy_ ? legacy_->align(a.shape(), b.shape()) : b.shape();
    const Shape shape = legacy_ ? a.shape() : tensor::broadcast(a.shape(), b_shape);
    bool* out = ctx.output(0, tensor::DType::Bool, shape).mutable_data<bool>();
    const BroadcastPlan plan(shape, {&a.shape(), &b_shape});
    const auto loop = [&]<class T>(TypeTag<T>) {
      binary_map(ctx.run(), plan, a.data<T>(), b.data<T>(), out, 0.5,
                 [](const T& x, const T& y) { return holds<R>(x, y); });
    };
    if constexpr (R == Relation::kEqual) {
      if (a.dtype() == tensor::DType::Bool) return loop(TypeTag<bool>{});
      if (a.dtype() == tensor::DType::String) return loop(TypeTag<std::string>{});
    }
    tensor::dispatch_numeric(a.dtype(), "a comparison", loop);
  }

 private:
  std::optional<LegacyBroadcast> legacy_;
};

template <Relation R>
void infer_compare(InferContext& ctx) {
  ctx.set_output_dtype(0, tensor::DType::Bool);
  if (ctx.since_version() < 7) {
    if (const auto* shape = ctx.input_shape(0)) ctx.set_output_shape(0, *shape);
    return;
  }
  kernel::infer_broadcast(ctx);
  if constexpr (R == Relation::kEqual) infer_binary_contents(ctx, equal_dims);
}

template <Relation R>
void register_ordered(kernel::OpRegistrar& r, const char* name) {
  r.op(name)
      .version(1, "A:T, B:T -> C:T1; T = floats, T1 = bool")
      .version(7, "A:T, B:T -> C:T1; T = floats, T1 = bool")
      .version(9, "A:T, B:T -> C:T1; T = numeric, T1 = bool")
      .version(13, "A:T, B:T -> C:T1; T = numeric_bf16, T1 = bool")
      .infer(infer_compare<R>)
      .template kernel<Compare<R>>()
      .broadcasts(7);
}

template <Relation R>
void register_ordered_or_equal(kernel::OpRegistrar& r, const char* name) {
  r.op(name)
      .version(12, "A:T, B:T -> C:T1; T = numeric, T1 = bool")
      .version(16, "A:T, B:T -> C:T1; T = numeric_bf16, T1 = bool")
      .infer(infer_compare<R>)
      .template kernel<Compare<R>>()
      .broadcasts(7);
}

}  // namespace

void register_compare(kernel::OpRegistrar& r) {
  r.op("Equal")
      .version(1, "A:T, B:T -> C:T1; T = bool|int32|int64, T1 = bool")
      .version(7, "A:T, B:T -> C:T1; T = bool|int32|int64, T1 = bool")
      .version(11, "A:T, B:T -> C:T1; T = numeric|bool, T1 = bool")
      .version(13, "A:T, B:T -> C:T1; T = numeric_bf16|bool, T1 = bool")
      .version(19, "A:T, B:T -> C:T1; T = numeric_bf16|bool|string, T1 = bool")
      .infer(infer_compare<Relation::kEqual>)
      .kernel<Compare<Relation::kEqual>>()
      .broadcasts(7)
      .commutative();
  register_ordered<Relation::kLess>(r, "Less");
  register_ordered<Relation::kGreater>(r, "Greater");
  register_ordered_or_equal<Relation::kLessOrEqual>(r, "LessOrEqual");
  register_ordered_or_equal<Relation::kGreaterOrEqual>(r, "GreaterOrEqual");
}

}  // namespace infernode::ops
