// And, Or, Xor, Not over bool; BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitShift over integers.

#include "kernel/op_registrar.h"
#include "ops/common/binary.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

struct And {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

void infer_logical(InferContext& ctx) {
  ctx.set_output_dtype(0, tensor::DType::Bool);
  if (ctx.since_version() >= 7) return kernel::infer_broadcast(ctx);
  if (const auto* shape = ctx.input_shape(0)) ctx.set_output_shape(0, *shape);
}

template <class Op>
class Logical final : public Kernel {
 public:
  explicit Logical(KernelInfo& info) {
    if (info.since_version() < 7) legacy_.emplace(info.attributes());
  }
  void run(KernelContext& ctx) const override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    const Shape b_shape = legacy_ ? legacy_->align(a.shape(), b.shape()) : b.shape();
    const Shape shape = legacy_ ? a.shape() : tensor::broadcast(a.shape(), b_shape);
    const Tensor out = ctx.output(0, shape);
    // Bytes other than 0 and 1 may come from outside; all but 0 are true.
    binary_map(ctx.run(), BroadcastPlan(shape, {&a.shape(), &b_shape}), static_cast<const std::uint8_t*>(a.raw()),
               static_cast<const std::uint8_t*>(b.raw()), static_cast<std::uint8_t*>(out.mutable_raw()), 0.2,
               [](std::uint8_t x, std::uint8_t y) {
                 return Op{}(static_cast<std::uint8_t>(x != 0), static_cast<std::uint8_t>(y != 0));
               });
  }

 private:
  std::optional<LegacyBroadcast> legacy_;
};

/// Loops over bits need no sign: integers are dispatched by size.
template <class Op>
class Bitwise final : public Kernel {
 public:
  explicit Bitwise(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    const Tensor out = ctx.output(0, tensor::broadcast(a.shape(), b.shape()));
    const BroadcastPlan plan(out.shape(), {&a.shape(), &b.shape()});
    tensor::dispatch_size(tensor::bit_size(a.dtype()) / 8, "bitwise operators", [&]<class T>(TypeTag<T>) {
      if constexpr (std::is_integral_v<T>) {
        binary_map(ctx.run(), plan, static_cast<const T*>(a.raw()), static_cast<const T*>(b.raw()),
                   static_cast<T*>(out.mutable_raw()), 0.3, Op{});
      }
    });
  }
};

/// Amounts that are negative or not below the width leave only copies of the sign bit (right, signed), or 0.
template <class T>
T shift(T x, T amount, bool left) {
  using U = std::make_unsigned_t<T>;
  constexpr auto kBits = static_cast<std::uint64_t>(sizeof(T) * 8);
  const auto by = static_cast<std::uint64_t>(amount);  // negative ones become huge
  if (by >= kBits) {
    if constexpr (std::is_signed_v<T>)
      return !left && x < 0 ? static_cast<T>(-1) : static_cast<T>(0);
    else
      return 0;
  }
  return left ? static_cast<T>(static_cast<std::uint64_t>(static_cast<U>(x)) << by) : static_cast<T>(x >> by);
}

class BitShift final : public Kernel {
 public:
  explicit BitShift(KernelInfo& info) {
    const std::string direction = info.attributes().get_string("direction");
    if (direction != "LEFT" && direction != "RIGHT")
      fail(ErrorCode::InvalidModel, cat("BitShift: direction must be LEFT or RIGHT, not '", direction, "'"));
    left_ = direction == "LEFT";
  }
  void run(KernelContext& ctx) const override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    const Tensor out = ctx.output(0, tensor::broadcast(a.shape(), b.shape()));
    const BroadcastPlan plan(out.shape(), {&a.shape(), &b.shape()});
    tensor::dispatch_ints(a.dtype(), "BitShift", [&]<class T>(TypeTag<T>) {
      binary_map(ctx.run(), plan, a.data<T>(), b.data<T>(), out.mutable_data<T>(), 0.5,
                 [left = left_](T x, T amount) { return shift(x, amount, left); });
    });
  }

 private:
  bool left_ = false;
};

class Not final : public Kernel {
 public:
  explicit Not(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Tensor out = ctx.output(0, in.shape());
    const Shape flat{in.numel()};
    binary_map(ctx.run(), BroadcastPlan(flat, {&flat, &flat}), static_cast<const std::uint8_t*>(in.raw()),
               static_cast<const std::uint8_t*>(in.raw()), static_cast<std::uint8_t*>(out.mutable_raw()), 0.1,
               [](std::uint8_t x, std::uint8_t) { return static_cast<std::uint8_t>(x == 0); });
  }
};

class BitwiseNot final : public Kernel {
 public:
  explicit BitwiseNot(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Tensor out = ctx.output(0, in.shape());
    tensor::dispatch_ints(in.dtype(), "BitwiseNot", [&]<class T>(TypeTag<T>) {
      map_elements<T, T>(ctx, in, out, 0.3, [](T x) { return static_cast<T>(~x); });
    });
  }
};

template <class Op>
void register_pair(kernel::OpRegistrar& r, const char* logical, const char* bitwise) {
  r.op(logical)
      .version(1, "A:T, B:T -> C:T1; T = bool, T1 = bool")
      .version(7, "A:T, B:T -> C:T1; T = bool, T1 = bool")
      .infer(infer_logical)
      .kernel<Logical<Op>>()
      .in_place(0, 0)
      .in_place(1, 0)
      .broadcasts(7)
      .commutative();
  r.op(bitwise)
      .version(18, "A:T, B:T -> C:T; T = ints")
      .infer(kernel::infer_broadcast)
      .kernel<Bitwise<Op>>()
      .in_place(0, 0)
      .in_place(1, 0)
      .broadcasts()
      .commutative();
}

}  // namespace

void register_logical(kernel::OpRegistrar& r) {
  register_pair<And>(r, "And", "BitwiseAnd");
  register_pair<Or>(r, "Or", "BitwiseOr");
  register_pair<Xor>(r, "Xor", "BitwiseXor");
  r.op("Not")
      .version(1, "X:T -> Y:T; T = bool")
      .infer(kernel::infer_same_as_first)
      .kernel<Not>()
      .in_place(0, 0)
      .elementwise();
  r.op("BitwiseNot")
      .version(18, "X:T -> Y:T; T = ints")
      .infer(kernel::infer_same_as_first)
      .kernel<BitwiseNot>()
      .in_place(0, 0)
      .elementwise();
  r.op("BitShift")
      .version(11, "X:T, Y:T -> Z:T; T = uints")
      .version(28, "X:T, Y:T -> Z:T; T = ints")
      .infer(kernel::infer_broadcast)
      .kernel<BitShift>()
      .in_place(0, 0)
      .in_place(1, 0)
      .broadcasts();
}

}  // namespace infernode::ops
