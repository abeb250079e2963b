#include <algorithm>

#include "kernel/op_registrar.h"
#include "ops/common/broadcast.h"
#include "ops/common/contents.h"
#include "ops/common/strided_copy.h"

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

/// to[i] = c[i] ? a[i] : b[i]; a still side is one element. Flags are known to the compiler, so that plain types
/// vectorise.
template <bool kStillA, bool kStillB, class T>
void choose(const std::uint8_t* c, const T* a, const T* b, T* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const T &x = a[kStillA ? 0 : i], &y = b[kStillB ? 0 : i];
    to[i] = c[i] ? x : y;
  }
}

template <class T>
void choose(const std::uint8_t* c, bool still_c, const T* a, bool still_a, const T* b, bool still_b, T* to,
            std::size_t n) {
  if (still_c) {
    const bool still = *c ? still_a : still_b;
    const T* from = *c ? a : b;
    if (still)
      std::fill(to, to + n, *from);
    else
      std::copy(from, from + n, to);
    return;
  }
  const auto loop = still_a ? (still_b ? choose<true, true, T> : choose<true, false, T>)
                            : (still_b ? choose<false, true, T> : choose<false, false, T>);
  loop(c, a, b, to, n);
}

/// Output element = X where the condition is true, Y elsewhere; all three broadcast.
class Where final : public Kernel {
 public:
  explicit Where(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    const Tensor &condition = ctx.input(0), &x = ctx.input(1), &y = ctx.input(2);
    const Tensor out = ctx.output(0, tensor::broadcast(condition.shape(), tensor::broadcast(x.shape(), y.shape())));
    const BroadcastPlan plan(out.shape(), {&condition.shape(), &x.shape(), &y.shape()});
    const auto* chosen = static_cast<const std::uint8_t*>(condition.raw());  // bytes: all but 0 are true
    dispatch_elements(x.dtype(), "Where", [&]<class T>(TypeTag<T>) {
      const T *a = elements<T>(x), *b = elements<T>(y);
      T* to = mutable_elements<T>(out);
      plan.for_each_run(ctx.run(), 0.5, [&](std::size_t o, const std::size_t* in, std::size_t n) {
        choose(chosen + in[0], plan.still(0), a + in[1], plan.still(1), b + in[2], plan.still(2), to + o, n);
      });
    });
  }
};

/// An element is known where the condition is, or where both sides agree.
void infer_where(InferContext& ctx) {
  kernel::infer_broadcast(ctx);
  const auto condition = ctx.input_contents(0), x = ctx.input_contents(1), y = ctx.input_contents(2);
  if (!condition || !x || !y) return;
  const std::size_t count = condition->size() != 1 ? condition->size() : x->size() != 1 ? x->size() : y->size();
  for (const auto* side : {&*condition, &*x, &*y}) {
    if (side->size() != 1 && side->size() != count) return;
  }
  std::vector<Dim> out;
  for (std::size_t i = 0; i < count; ++i) {
    const Dim& c = (*condition)[condition->size() == 1 ? 0 : i];
    const Dim &a = (*x)[x->size() == 1 ? 0 : i], &b = (*y)[y->size() == 1 ? 0 : i];
    out.push_back(c.known() ? (c.value() != 0 ? a : b) : a == b ? a : Dim::unknown());
  }
  ctx.set_output_contents(0, std::move(out));
}

}  // namespace

void register_where(kernel::OpRegistrar& r) {
  r.op("Where")
      .version(9, "condition:B, X:T, Y:T -> output:T; B = bool, T = all")
      .version(16, "condition:B, X:T, Y:T -> output:T; B = bool, T = all_ir4")
      .infer(infer_where)
      .kernel<Where>()
      .broadcasts()
      .on_codes("QLinearWhere");
}

}  // namespace infernode::ops
