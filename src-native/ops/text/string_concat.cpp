#include "kernel/op_registrar.h"
#include "ops/common/broadcast.h"
#include "ops/common/long_text.h"

namespace infernode::ops {
namespace {

class StringConcat final : public kernel::Kernel {
 public:
  explicit StringConcat(kernel::KernelInfo&) {}
  void run(kernel::KernelContext& ctx) const override {
    const tensor::Tensor &a = ctx.input(0), &b = ctx.input(1);
    const tensor::Shape shape = tensor::broadcast(a.shape(), b.shape());
    const tensor::Tensor out = ctx.output(0, shape);
    const BroadcastPlan plan(shape, {&a.shape(), &b.shape()});
    const auto look = [&] { ctx.run().check(); };
    binary_map(ctx.run(), plan, a.data<std::string>(), b.data<std::string>(), out.mutable_data<std::string>(), 50,
               [&](const std::string& x, const std::string& y) {
                 std::string joined;
                 joined.reserve(x.size() + y.size());
                 append_text(joined, x, look);
                 append_text(joined, y, look);
                 return joined;
               });
  }
};

}  // namespace

void register_string_concat(kernel::OpRegistrar& r) {
  r.op("StringConcat").version(20, "X:T, Y:T -> Z:T; T = string").infer(kernel::infer_broadcast).kernel<StringConcat>();
}

}  // namespace infernode::ops
