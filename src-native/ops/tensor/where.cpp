#include <algorithm>

#include "kernel/op_registrar.h"
#include "microkernels/elementwise/elementwise.h"
#include "ops/common/broadcast.h"
#include "ops/common/contents.h"
#include "ops/common/mover.h"
#include "ops/common/repeated_row.h"
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

/// to[i] = c[i] ? a[i] : b[i]; a still side is one element.
template <class T>
using Choose = void (*)(const std::uint8_t* c, const T* a, bool still_a, const T* b, bool still_b, T* to,
                        std::size_t n);

/// Of elements that no vector loop moves.
template <class T>
void choose_each(const std::uint8_t* c, const T* a, bool still_a, const T* b, bool still_b, T* to, std::size_t n) {
  const std::size_t step_a = still_a ? 0 : 1, step_b = still_b ? 0 : 1;
  for (std::size_t i = 0; i < n; ++i) to[i] = c[i] != 0 ? a[i * step_a] : b[i * step_b];
}

template <class T>
Choose<T> choose_loop(const microkernels::ElementwiseTable& table) {
  if constexpr (std::is_same_v<T, std::uint8_t>) return table.choose1;
  if constexpr (std::is_same_v<T, std::uint16_t>) return table.choose2;
  if constexpr (std::is_same_v<T, std::uint32_t>) return table.choose4;
  if constexpr (std::is_same_v<T, std::uint64_t>) return table.choose8;
  return choose_each<T>;
}

/// Output element = X where the condition is true, Y elsewhere; all three broadcast.
class Where final : public Kernel {
 public:
  explicit Where(KernelInfo& info) : table_(info.kernels().elementwise) {}
  void run(KernelContext& ctx) const override {
    const Tensor &condition = ctx.input(0), &x = ctx.input(1), &y = ctx.input(2);
    const Tensor out = ctx.output(0, tensor::broadcast(condition.shape(), tensor::broadcast(x.shape(), y.shape())));
    const BroadcastPlan plan(out.shape(), {&condition.shape(), &x.shape(), &y.shape()});
    const auto* chosen = static_cast<const std::uint8_t*>(condition.raw());  // bytes: all but 0 are true
    dispatch_elements(x.dtype(), "Where", [&]<class T>(TypeTag<T>) {
      choose(ctx.run(), plan, chosen, elements<T>(x), elements<T>(y), mutable_elements<T>(out));
    });
  }

 private:
  static constexpr double kCost = 0.5;

  template <class T>
  void choose(const kernel::RunContext& run, const BroadcastPlan& plan, const std::uint8_t* c, const T* a, const T* b,
              T* to) const {
    const Choose<T> loop = choose_loop<T>(table_);
    if constexpr (std::is_trivially_copyable_v<T>) {
      for (std::size_t k = 0; k < BroadcastPlan::kMaxInputs; ++k) {
        const auto longer = plan.repeating(k);
        if (!longer) continue;
        const auto length = static_cast<std::size_t>(plan.run_length());
        const auto take = [&]<class E>(TypeTag<E>, const E* row, auto&& f) {
          longer->for_each_run(run, kCost, [&](std::size_t o, const std::size_t* in, std::size_t n) {
            for_repeated_row(row + in[k], length, n,
                             [&](std::size_t i, const E* rows, std::size_t count) { f(o, in, i, rows, count); });
          });
        };
        using In = const std::size_t*;
        if (k == 0) {
          return take(TypeTag<std::uint8_t>{}, c,
                      [&](std::size_t o, In in, std::size_t i, const std::uint8_t* rows, std::size_t n) {
                        loop(rows, a + in[1] + i, false, b + in[2] + i, false, to + o + i, n);
                      });
        }
        return take(TypeTag<T>{}, k == 1 ? a : b,
                    [&](std::size_t o, In in, std::size_t i, const T* rows, std::size_t n) {
                      loop(c + in[0] + i, k == 1 ? rows : a + in[1] + i, false, k == 2 ? rows : b + in[2] + i, false,
                           to + o + i, n);
                    });
      }
    }
    plan.for_each_run(run, kCost, [&](std::size_t o, const std::size_t* in, std::size_t n) {
      const T *x = a + in[1], *y = b + in[2];
      Mover mover(run);
      if (!plan.still(0)) {
        if constexpr (std::is_trivially_copyable_v<T>)
          return loop(c + in[0], x, plan.still(1), y, plan.still(2), to + o, n);
        const std::size_t step_x = plan.still(1) ? 0 : 1, step_y = plan.still(2) ? 0 : 1;
        for (std::size_t i = 0; i < n; ++i) mover.set(to[o + i], c[in[0] + i] != 0 ? x[i * step_x] : y[i * step_y]);
        return;
      }
      const bool first = c[in[0]] != 0;
      const auto count = static_cast<std::int64_t>(n);
      if (plan.still(first ? 1 : 2)) {
        mover.fill(to + o, count, first ? *x : *y);
      } else {
        mover.copy(first ? x : y, count, to + o);
      }
    });
  }

  const microkernels::ElementwiseTable& table_;
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
