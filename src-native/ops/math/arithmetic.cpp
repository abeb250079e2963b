// Add, Sub, Mul, Div.

#include "kernel/op_registrar.h"
#include "ops/common/binary.h"
#include "ops/common/contents.h"

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

struct AddOp {
  static constexpr const char* kName = "Add";
  static constexpr BinaryOp kLoop = BinaryOp::kAdd;
  static constexpr double kCost = 0.2, kNeutral = 0;
  template <class T>
  static T apply(T a, T b) {
    return wrap_add(a, b);
  }
  static std::optional<Dim> dims(const Dim& a, const Dim& b) { return a + b; }
};

struct SubOp {
  static constexpr const char* kName = "Sub";
  static constexpr BinaryOp kLoop = BinaryOp::kSub;
  static constexpr double kCost = 0.2, kNeutral = 0;
  template <class T>
  static T apply(T a, T b) {
    return wrap_subtract(a, b);
  }
  static std::optional<Dim> dims(const Dim& a, const Dim& b) { return a - b; }
};

struct MulOp {
  static constexpr const char* kName = "Mul";
  static constexpr BinaryOp kLoop = BinaryOp::kMul;
  static constexpr double kCost = 0.2, kNeutral = 1;
  template <class T>
  static T apply(T a, T b) {
    return wrap_multiply(a, b);
  }
  static std::optional<Dim> dims(const Dim& a, const Dim& b) { return a * b; }
};

struct DivOp {
  static constexpr const char* kName = "Div";
  static constexpr BinaryOp kLoop = BinaryOp::kDiv;
  static constexpr double kCost = 0.4, kNeutral = 1;
  template <class T>
  static T apply(T a, T b) {
    return safe_divide(a, b);
  }
  static std::optional<Dim> dims(const Dim& a, const Dim& b) { return divide_dims(a, b); }
};

template <class Op>
class Arithmetic final : public Kernel {
 public:
  explicit Arithmetic(KernelInfo& info) : loops_(info.kernels()) {
    if (info.since_version() < 7) legacy_.emplace(info.attributes());
  }

  void run(KernelContext& ctx) const override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    const Shape b_shape = legacy_ ? legacy_->align(a.shape(), b.shape()) : b.shape();
    const Shape shape = legacy_ ? a.shape() : tensor::broadcast(a.shape(), b_shape);
    const Tensor out = ctx.output(0, shape);
    binary_numeric<Op>(ctx.run(), loops_, BroadcastPlan(shape, {&a.shape(), &b_shape}), a, b, out, Op::kName);
  }

 private:
  FloatLoops loops_;
  std::optional<LegacyBroadcast> legacy_;
};

template <class Op>
void infer_arithmetic(InferContext& ctx) {
  if (ctx.since_version() < 7) return kernel::infer_same_as_first(ctx);
  kernel::infer_broadcast(ctx);
  infer_binary_contents(ctx, Op::dims);
}

template <class Op>
kernel::OpBuilder& describe(kernel::OpBuilder&& op) {
  return op.version(1, "A:T, B:T -> C:T; T = floats")
      .version(6, "A:T, B:T -> C:T; T = floats|int32|int64|uint32|uint64")
      .version(7, "A:T, B:T -> C:T; T = floats|int32|int64|uint32|uint64")
      .version(13, "A:T, B:T -> C:T; T = floats_bf16|int32|int64|uint32|uint64")
      .version(14, "A:T, B:T -> C:T; T = numeric_bf16")
      .infer(infer_arithmetic<Op>)
      .template kernel<Arithmetic<Op>>()
      .in_place(0, 0)
      .in_place(1, 0)
      .broadcasts(7)
      .neutral(Op::kNeutral, 7);
}

}  // namespace

void register_arithmetic(kernel::OpRegistrar& r) {
  describe<AddOp>(r.op("Add")).commutative().blocks(kernel::Blocks::Any, 7).on_codes("QLinearAdd");
  describe<SubOp>(r.op("Sub"));
  describe<MulOp>(r.op("Mul")).commutative().on_codes("QLinearMul");
  describe<DivOp>(r.op("Div"));
}

}  // namespace infernode::ops
