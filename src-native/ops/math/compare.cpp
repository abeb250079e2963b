// Equal, Less, LessOrEqual, Greater, GreaterOrEqual.

#include "kernel/op_registrar.h"
#include "ops/common/binary.h"
#include "ops/common/contents.h"
#include "ops/common/long_text.h"

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

/// The float32 loop that holds<R>(a, b) is, with its sides swapped where `swapped`.
struct FloatLoop {
  microkernels::CompareLoop loop;
  bool swapped;
  void operator()(const float* a, bool still_a, const float* b, bool still_b, bool* out, std::size_t n) const {
    auto* const bytes = reinterpret_cast<std::uint8_t*>(out);
    if (swapped) return loop(b, still_b, a, still_a, bytes, n);
    loop(a, still_a, b, still_b, bytes, n);
  }
};
template <Relation R>
FloatLoop float_loop(const microkernels::ElementwiseTable& table) {
  using Of = microkernels::Relation;
  constexpr Of kLoop = R == Relation::kEqual                             ? Of::kEqual
                       : R == Relation::kLess || R == Relation::kGreater ? Of::kLess
                                                                         : Of::kLessOrEqual;
  return {table.compare[static_cast<std::size_t>(kLoop)], R == Relation::kGreater || R == Relation::kGreaterOrEqual};
}

template <Relation R>
class Compare final : public Kernel {
 public:
  explicit Compare(KernelInfo& info) : loops_(info.kernels()) {
    if (info.since_version() < 7) legacy_.emplace(info.attributes());
  }

  void run(KernelContext& ctx) const override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    const Shape b_shape = legacy_ ? legacy_->align(a.shape(), b.shape()) : b.shape();
    const Shape shape = legacy_ ? a.shape() : tensor::broadcast(a.shape(), b_shape);
    bool* out = ctx.output(0, tensor::DType::Bool, shape).mutable_data<bool>();
    const BroadcastPlan plan(shape, {&a.shape(), &b_shape});
    const auto loop = [&]<class T>(TypeTag<T>) {
      if constexpr (std::is_same_v<T, float>) {
        floats(ctx.run(), plan, a.data<float>(), b.data<float>(), out);
      } else if constexpr (std::is_same_v<tensor::ComputeTypeOf<T>, float>) {
        halves(ctx.run(), plan, a.data<T>(), b.data<T>(), out);
      } else {
        binary_map(ctx.run(), plan, a.data<T>(), b.data<T>(), out, kCost,
                   [](const T& x, const T& y) { return holds<R>(x, y); });
      }
    };
    if constexpr (R == Relation::kEqual) {
      const auto look = [&] { ctx.run().check(); };
      const auto same = [&](const std::string& x, const std::string& y) {
        return x.size() == y.size() && compare_texts(x, y, look) == 0;
      };
      if (a.dtype() == tensor::DType::Bool) return loop(TypeTag<bool>{});
      if (a.dtype() == tensor::DType::String)
        return binary_map(ctx.run(), plan, a.data<std::string>(), b.data<std::string>(), out, kCost, same);
    }
    tensor::dispatch_numeric(a.dtype(), "a comparison", loop);
  }

 private:
  static constexpr double kCost = 0.5;

  void floats(const kernel::RunContext& run, const BroadcastPlan& plan, const float* a, const float* b,
              bool* out) const {
    const FloatLoop loop = float_loop<R>(loops_.elementwise);
    for (std::size_t k = 0; k < 2; ++k) {
      const auto longer = plan.repeating(k);
      if (!longer) continue;
      const auto length = static_cast<std::size_t>(plan.run_length());
      return longer->for_each_run(run, kCost, [&](std::size_t o, const std::size_t* in, std::size_t n) {
        for_repeated_row((k == 0 ? a : b) + in[k], length, n, [&](std::size_t i, const float* rows, std::size_t count) {
          loop(k == 0 ? rows : a + in[0] + i, false, k == 1 ? rows : b + in[1] + i, false, out + o + i, count);
        });
      });
    }
    plan.for_each_run(run, kCost, [&](std::size_t o, const std::size_t* in, std::size_t n) {
      loop(a + in[0], plan.still(0), b + in[1], plan.still(1), out + o, n);
    });
  }

  template <class T>
  void halves(const kernel::RunContext& run, const BroadcastPlan& plan, const T* a, const T* b, bool* out) const {
    const FloatLoop loop = float_loop<R>(loops_.elementwise);
    plan.for_each_run(run, 2 * kCost, [&](std::size_t o, const std::size_t* in, std::size_t n) {
      half_pieces(loops_, a + in[0], plan.still(0), b + in[1], plan.still(1), n,
                  [&](std::size_t i, const float* x, const float* y, std::size_t count) {
                    loop(x, plan.still(0), y, plan.still(1), out + o + i, count);
                  });
    });
  }

  FloatLoops loops_;
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
