// Pow and Mod.

#include <cmath>

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
using microkernels::UnaryOp;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

/// Wraps like repeated multiplication. Negative exponents: 1 / x toward zero (0 for x = 0).
template <class T, class E>
T integer_power(T base, E exponent) {
  if constexpr (std::is_signed_v<E>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return exponent % 2 == 0 ? 1 : -1;
      return 0;
    }
  }
  T result = 1;
  for (; exponent != 0; exponent = static_cast<E>(exponent / 2)) {
    if (exponent % 2 != 0) result = wrap_multiply(result, base);
    base = wrap_multiply(base, base);
  }
  return result;
}

template <class T, class E>
T power(T base, E exponent) {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<E>) {
    return integer_power(base, exponent);
  } else if constexpr (std::is_integral_v<T>) {
    return convert<T>(
        std::pow(static_cast<double>(base), static_cast<double>(static_cast<tensor::ComputeTypeOf<E>>(exponent))));
  } else {
    // An integer exponent stays exact in double where the base is single precision.
    const auto x = static_cast<double>(static_cast<tensor::ComputeTypeOf<T>>(base));
    const auto y = static_cast<double>(static_cast<tensor::ComputeTypeOf<E>>(exponent));
    if constexpr (std::is_same_v<T, double>)
      return std::pow(x, y);
    else
      return static_cast<T>(static_cast<float>(std::pow(x, y)));
  }
}

class Pow final : public Kernel {
 public:
  explicit Pow(KernelInfo& info) : loops_(info.kernels()) {
    if (info.since_version() < 7) legacy_.emplace(info.attributes());
  }

  void run(KernelContext& ctx) const override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    const Shape b_shape = legacy_ ? legacy_->align(a.shape(), b.shape()) : b.shape();
    const Shape shape = legacy_ ? a.shape() : tensor::broadcast(a.shape(), b_shape);
    const Tensor out = ctx.output(0, shape);
    if (b.numel() == 1 && a.shape() == shape && simple_power(ctx, a, b, out)) return;

    const BroadcastPlan plan(shape, {&a.shape(), &b_shape});
    if (a.dtype() == DType::Float32 && b.dtype() == DType::Float32) {
      const float *x = a.data<float>(), *y = b.data<float>();
      float* z = out.mutable_data<float>();
      plan.for_each_run(ctx.run(), 6, [&](std::size_t o, const std::size_t* in, std::size_t n) {
        float_run(loops_.elementwise, BinaryOp::kPow, x + in[0], y + in[1], z + o, n, plan.still(0), plan.still(1));
      });
      return;
    }
    tensor::dispatch<float, double, Float16, BFloat16, std::int32_t, std::int64_t>(
        a.dtype(), "Pow", [&]<class T>(TypeTag<T>) {
          tensor::dispatch_numeric(b.dtype(), "Pow", [&]<class E>(TypeTag<E>) {
            const T* x = a.data<T>();
            const E* y = b.data<E>();
            T* z = out.mutable_data<T>();
            plan.for_each_run(ctx.run(), 20, [&](std::size_t o, const std::size_t* in, std::size_t n) {
              const std::size_t x_step = plan.still(0) ? 0 : 1, y_step = plan.still(1) ? 0 : 1;
              for (std::size_t i = 0; i < n; ++i) z[o + i] = power(x[in[0] + i * x_step], y[in[1] + i * y_step]);
            });
          });
        });
  }

 private:
  /// x^1, x^2, x^0.5 of floats: one exponent for all elements, as models mostly have it.
  bool simple_power(KernelContext& ctx, const Tensor& a, const Tensor& b, const Tensor& out) const {
    if (a.dtype() != DType::Float32) return false;
    const float exponent = tensor::to_float_scalar(b);
    microkernels::UnaryLoop loop = nullptr;
    if (exponent == 2.0f) loop = loops_.elementwise[UnaryOp::kSquare];
    if (exponent == -1.0f) loop = loops_.elementwise[UnaryOp::kReciprocal];
    if (!loop) return false;
    const float* x = a.data<float>();
    float* y = out.mutable_data<float>();
    ctx.parallel_for(static_cast<std::size_t>(a.numel()), 0.2, [&](std::size_t begin, std::size_t end, std::size_t) {
      loop(x + begin, y + begin, end - begin, 0.0f, 0.0f);
    });
    return true;
  }

  FloatLoops loops_;
  std::optional<LegacyBroadcast> legacy_;
};

void infer_pow(InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  if (ctx.since_version() < 7) return kernel::infer_same_as_first(ctx);
  kernel::infer_broadcast(ctx);
}

/// A - floor(A / B) * B; by zero: 0.
template <class T>
T floor_mod(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
    const T rest = static_cast<T>(a % b);
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  } else {
    return static_cast<T>(a % b);
  }
}

template <class T>
T trunc_mod(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}

template <class F>
F float_floor_mod(F a, F b) {
  const F rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(rest, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

/// The rest that float_floor_mod makes of what fmod gave.
void to_floor_mod(float* rest, const float* b, bool b_still, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float r = rest[i], y = b[b_still ? 0 : i];
    rest[i] = r == 0 ? std::copysign(r, y) : (r < 0) != (y < 0) ? r + y : r;
  }
}

class Mod final : public Kernel {
 public:
  explicit Mod(KernelInfo& info) : loops_(info.kernels()), truncating_(info.attributes().get_int("fmod", 0) != 0) {}

  void run(KernelContext& ctx) const override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    const Shape shape = tensor::broadcast(a.shape(), b.shape());
    const Tensor out = ctx.output(0, shape);
    const BroadcastPlan plan(shape, {&a.shape(), &b.shape()});
    tensor::dispatch_numeric(a.dtype(), "Mod", [&]<class T>(TypeTag<T>) {
      const T *x = a.data<T>(), *y = b.data<T>();
      T* z = out.mutable_data<T>();
      if constexpr (std::is_same_v<tensor::ComputeTypeOf<T>, float>) {
        floats(ctx.run(), plan, x, y, z);
      } else {
        binary_map(ctx.run(), plan, x, y, z, 4, [truncating = truncating_](T p, T q) {
          if constexpr (std::is_integral_v<T>) {
            return truncating ? trunc_mod(p, q) : floor_mod(p, q);
          } else {
            return truncating ? std::fmod(p, q) : float_floor_mod(p, q);
          }
        });
      }
    });
  }

 private:
  /// float32, and 16-bit floats through it.
  template <class T>
  void floats(const kernel::RunContext& run, const BroadcastPlan& plan, const T* x, const T* y, T* z) const {
    if constexpr (std::is_same_v<T, float>) {
      const auto length = static_cast<std::size_t>(plan.run_length());
      for (std::size_t k = 0; k < 2 && truncating_; ++k) {
        const auto longer = plan.repeating(k);
        if (!longer) continue;
        return longer->for_each_run(run, 2, [&](std::size_t o, const std::size_t* in, std::size_t n) {
          for_repeated_row((k == 0 ? x : y) + in[k], length, n,
                           [&](std::size_t i, const float* rows, std::size_t count) {
                             loops_.elementwise.remainder(k == 0 ? rows : x + in[0] + i, false,
                                                          k == 1 ? rows : y + in[1] + i, false, z + o + i, count);
                           });
        });
      }
    }
    plan.for_each_run(run, 2, [&](std::size_t o, const std::size_t* in, std::size_t n) {
      const bool still_x = plan.still(0), still_y = plan.still(1);
      if constexpr (std::is_same_v<T, float>) {
        if (truncating_) return loops_.elementwise.remainder(x + in[0], still_x, y + in[1], still_y, z + o, n);
      }
      const auto piece = [&](std::size_t i, const float* p, const float* q, std::size_t m) {
        float rest[kHalfPiece];
        loops_.elementwise.remainder(p, still_x, q, still_y, rest, m);
        if (!truncating_) to_floor_mod(rest, q, still_y, m);
        if constexpr (std::is_same_v<T, float>) {
          std::copy_n(rest, m, z + o + i);
        } else {
          loops_.store(rest, z + o + i, m);
        }
      };
      if constexpr (std::is_same_v<T, float>) {
        for (std::size_t i = 0; i < n; i += kHalfPiece) {
          piece(i, x + in[0] + (still_x ? 0 : i), y + in[1] + (still_y ? 0 : i), std::min(kHalfPiece, n - i));
        }
      } else {
        half_pieces(loops_, x + in[0], still_x, y + in[1], still_y, n, piece);
      }
    });
  }

  FloatLoops loops_;
  bool truncating_;
};

void infer_mod(InferContext& ctx) {
  kernel::infer_broadcast(ctx);
  infer_binary_contents(ctx, [](const Dim& a, const Dim& b) -> std::optional<Dim> {
    const auto quotient = divide_dims(a, b);
    if (!quotient) return std::nullopt;
    return a - *quotient * b;
  });
}

}  // namespace

void register_pow_mod(kernel::OpRegistrar& r) {
  r.op("Pow")
      .version(1, "X:T, Y:T -> Z:T; T = floats")
      .version(7, "X:T, Y:T -> Z:T; T = floats")
      .version(12, "X:T, Y:T1 -> Z:T; T = floats|int32|int64, T1 = numeric")
      .version(13, "X:T, Y:T1 -> Z:T; T = floats_bf16|int32|int64, T1 = numeric")
      .version(15, "X:T, Y:T1 -> Z:T; T = floats_bf16|int32|int64, T1 = numeric_bf16")
      .infer(infer_pow)
      .kernel<Pow>()
      .in_place(0, 0)
      .broadcasts(7);
  r.op("Mod")
      .version(10, "A:T, B:T -> C:T; T = numeric")
      .version(13, "A:T, B:T -> C:T; T = numeric_bf16")
      .version(28, "A:T, B:T -> C:T; T = numeric_bf16")
      .infer(infer_mod)
      .kernel<Mod>()
      .in_place(0, 0)
      .in_place(1, 0)
      .broadcasts();
}

}  // namespace infernode::ops
