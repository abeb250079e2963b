// Steps of optimization of ai.onnx.preview.training: Adagrad, Adam, Momentum; and Gradient, which is refused.

#include <cmath>

#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using graph::Attributes;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Tensor;
using tensor::TypeTag;

constexpr std::string_view kDomain = "ai.onnx.preview.training";

/// How many tensors are optimized: the inputs after R and T are these, their gradients and `states` more of each.
std::size_t count_of(std::size_t inputs, std::size_t outputs, std::size_t states) {
  const std::size_t given = inputs - std::min<std::size_t>(inputs, 2), count = given / (states + 2);
  if (count == 0 || given != count * (states + 2)) {
    fail(ErrorCode::InvalidModel,
         cat("takes, after R and T, ", states + 2, " inputs for each optimized tensor, got ", given));
  }
  if (outputs > count * (states + 1))
    fail(ErrorCode::InvalidModel, cat("gives ", states + 1, " outputs for each of ", count, " tensors, not ", outputs));
  return count;
}

// Each rule: its count of state tensors, its attributes, and one step of one element. `x` and the states are updated.
struct Adagrad {
  static constexpr std::size_t kStates = 1;
  explicit Adagrad(const Attributes& a)
      : norm(a.get_float("norm_coefficient", 0)),
        decay(a.get_float("decay_factor", 0)),
        epsilon(a.get_float("epsilon", 1e-6f)) {}
  template <class T>
  T rate(T r, std::int64_t t) const {
    return r / (1 + static_cast<T>(t) * static_cast<T>(decay));
  }
  template <class T>
  void step(T rate, std::int64_t, T& x, T g, T* state) const {
    const T regular = static_cast<T>(norm) * x + g;
    state[0] += regular * regular;
    x -= rate * regular / (std::sqrt(state[0]) + static_cast<T>(epsilon));
  }
  float norm, decay, epsilon;
};

struct Adam {
  static constexpr std::size_t kStates = 2;
  explicit Adam(const Attributes& a)
      : norm(a.get_float("norm_coefficient", 0)),
        norm_post(a.get_float("norm_coefficient_post", 0)),
        alpha(a.get_float("alpha", 0.9f)),
        beta(a.get_float("beta", 0.999f)),
        epsilon(a.get_float("epsilon", 1e-6f)) {}
  template <class T>
  T rate(T r, std::int64_t t) const {
    if (t <= 0) return r;
    const double n = static_cast<double>(t);
    return static_cast<T>(static_cast<double>(r) * std::sqrt(1 - std::pow(static_cast<double>(beta), n)) /
                          (1 - std::pow(static_cast<double>(alpha), n)));
  }
  template <class T>
  void step(T rate, std::int64_t, T& x, T g, T* state) const {
    const T regular = static_cast<T>(norm) * x + g, a = static_cast<T>(alpha), b = static_cast<T>(beta);
    state[0] = a * state[0] + (1 - a) * regular;
    state[1] = b * state[1] + (1 - b) * regular * regular;
    x = (1 - static_cast<T>(norm_post)) * (x - rate * state[0] / (std::sqrt(state[1]) + static_cast<T>(epsilon)));
  }
  float norm, norm_post, alpha, beta, epsilon;
};

struct Momentum {
  static constexpr std::size_t kStates = 1;
  explicit Momentum(const Attributes& a)
      : norm(a.get_float("norm_coefficient")), alpha(a.get_float("alpha")), beta(a.get_float("beta")) {
    const std::string mode = a.get_string("mode");
    nesterov = mode == "nesterov";
    if (!nesterov && mode != "standard")
      fail(ErrorCode::InvalidModel, cat("Momentum's mode is '", mode, "' instead of 'standard' or 'nesterov'"));
  }
  template <class T>
  T rate(T r, std::int64_t) const {
    return r;
  }
  template <class T>
  void step(T rate, std::int64_t t, T& x, T g, T* state) const {
    const T regular = static_cast<T>(norm) * x + g, a = static_cast<T>(alpha);
    state[0] = a * state[0] + (t > 0 ? static_cast<T>(beta) : T(1)) * regular;
    x -= rate * (nesterov ? regular + a * state[0] : state[0]);
  }
  float norm, alpha, beta;
  bool nesterov = false;
};

template <class Rule>
class Optimizer final : public Kernel {
 public:
  explicit Optimizer(KernelInfo& info)
      : rule_(info.attributes()), count_(count_of(info.input_count(), info.output_count(), Rule::kStates)) {}

  void run(KernelContext& ctx) const override {
    const Tensor &rate = ctx.input(0), &updates = ctx.input(1);
    if (rate.numel() != 1 || updates.numel() != 1) {
      fail(ErrorCode::ShapeMismatch,
           cat("R and T must be scalars, got ", rate.to_string(), " and ", updates.to_string()));
    }
    const std::int64_t t = tensor::to_int64_scalar(updates);
    for (std::size_t i = 0; i < count_; ++i) {
      tensor::dispatch<float, double>(ctx.input(2 + i).dtype(), "optimizers", [&]<class T>(TypeTag<T>) {
        T r = 0;
        if (rate.dtype() == tensor::DType::Float64) {
          r = static_cast<T>(*rate.data<double>());
        } else {
          r = static_cast<T>(*rate.data<float>());
        }
        this->template step<T>(ctx, i, rule_.rate(r, t), t);
      });
    }
  }

 private:
  /// One tensor: its value, gradient and states are inputs i, count + i, 2 * count + i, ... after R and T.
  template <class T>
  void step(KernelContext& ctx, std::size_t i, T rate, std::int64_t t) const {
    const Tensor& x = ctx.input(2 + i);
    const T* from[Rule::kStates + 2];
    T* to[Rule::kStates + 1];
    for (std::size_t part = 0; part < Rule::kStates + 2; ++part) {
      const Tensor& in = ctx.input(2 + part * count_ + i);
      if (in.shape() != x.shape() || in.dtype() != x.dtype()) {
        fail(ErrorCode::ShapeMismatch,
             cat("an optimized tensor is ", x.to_string(), ", but its gradient or state is ", in.to_string()));
      }
      from[part] = in.data<T>();
    }
    tensor::Tensor hold[Rule::kStates + 1];
    for (std::size_t part = 0; part < Rule::kStates + 1; ++part) {
      const std::size_t o = part * count_ + i;
      hold[part] = ctx.wants_output(o) ? ctx.output(o, x.dtype(), x.shape())
                                       : Tensor::make(x.dtype(), x.shape(), *ctx.run().allocator);
      to[part] = hold[part].template mutable_data<T>();
    }
    ctx.parallel_for(static_cast<std::size_t>(x.numel()), 4, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t e = begin; e < end; ++e) {
        T value = from[0][e], state[Rule::kStates];
        for (std::size_t s = 0; s < Rule::kStates; ++s) state[s] = from[2 + s][e];
        rule_.step(rate, t, value, from[1][e], state);
        to[0][e] = value;
        for (std::size_t s = 0; s < Rule::kStates; ++s) to[1 + s][e] = state[s];
      }
    });
  }

  Rule rule_;
  std::size_t count_;
};

template <class Rule>
void infer_optimizer(InferContext& ctx) {
  const std::size_t count = count_of(ctx.input_count(), ctx.output_count(), Rule::kStates);
  for (std::size_t o = 0; o < ctx.output_count(); ++o) {
    if (!ctx.has_output(o)) continue;
    // The new state of a tensor has the type of its old one, which lies behind the gradients.
    const std::size_t source = 2 + (o < count ? o : o + count);
    ctx.set_output_dtype(o, ctx.input_dtype(source));
    if (const graph::SymShape* shape = ctx.input_shape(source)) ctx.set_output_shape(o, *shape);
  }
}

class Gradient final : public Kernel {
 public:
  explicit Gradient(KernelInfo&) { refuse(); }
  void run(KernelContext&) const override { refuse(); }

  [[noreturn]] static void refuse() {
    fail(
        ErrorCode::UnsupportedOperator,
        "Gradient asks for a derivative of the graph around it. This engine runs models and does not differentiate "
        "them: export the backward pass as ordinary operators (onnxruntime-training's artifacts do), or drop the node");
  }
};

}  // namespace

void register_optimizers(kernel::OpRegistrar& r) {
  constexpr const char* kStep =
      "R:T1, T:T2, inputs:T3** -> outputs:T3**; T1 = float|double, T2 = int64, T3 = float|double";
  r.op("Adagrad", kDomain).version(1, kStep).infer(infer_optimizer<Adagrad>).kernel<Optimizer<Adagrad>>();
  r.op("Adam", kDomain).version(1, kStep).infer(infer_optimizer<Adam>).kernel<Optimizer<Adam>>();
  r.op("Momentum", kDomain).version(1, kStep).infer(infer_optimizer<Momentum>).kernel<Optimizer<Momentum>>();
  r.op("Gradient", kDomain)
      .version(1, "Inputs:T1** -> Outputs:T2**; T1 = all, T2 = floats")
      .infer([](InferContext&) { Gradient::refuse(); })
      .kernel<Gradient>();
}

}  // namespace infernode::ops
