// RandomUniform, RandomNormal, their *Like forms, Bernoulli and Multinomial. Draws: ops/math/random.h.

#include "ops/math/random.h"

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "kernel/op_registrar.h"
#include "kernel/scratch.h"
#include "kernel/watch.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using graph::Attributes;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

constexpr double kDrawNs = 15;

std::optional<std::uint64_t> read_seed(const Attributes& attributes) {
  if (!attributes.has("seed")) return std::nullopt;
  return seed_key(attributes.get_float("seed"));
}

/// The type that attribute `dtype` names, else `fallback`.
DType read_dtype(const Attributes& attributes, DType fallback) {
  if (!attributes.has("dtype")) return fallback;
  const std::int64_t code = attributes.get_int("dtype");
  const auto type = tensor::dtype_from_code(code);
  if (!type) fail(ErrorCode::InvalidModel, cat("attribute 'dtype' is ", code, ", which is no element type"));
  return *type;
}

/// A RandomNormal or RandomUniform has the shape in an attribute, a *Like takes that of its input.
Shape read_shape(const Attributes& attributes) {
  const std::vector<std::int64_t> dims = attributes.get_ints("shape");
  if (!attributes.has("shape")) fail(ErrorCode::InvalidModel, "attribute 'shape' is missing");
  for (const std::int64_t dim : dims) {
    if (dim < 0) fail(ErrorCode::InvalidModel, cat("attribute 'shape' has the negative dim ", dim));
  }
  return Shape{std::span<const std::int64_t>(dims)};
}

/// Bits of the significand: a uniform draw keeps so many, and stays below 1 in its type.
template <class T>
constexpr int kSignificandBits = std::is_same_v<T, double>    ? 53
                                 : std::is_same_v<T, float>   ? 24
                                 : std::is_same_v<T, Float16> ? 11
                                                              : 8;

struct UniformDraws {
  static constexpr auto kPairs = &Philox::uniform_pair;
  explicit UniformDraws(const Attributes& attributes)
      : low(attributes.get_float("low", 0)), span(static_cast<double>(attributes.get_float("high", 1)) - low) {}
  template <class T>
  double value(double u) const {
    constexpr double kSteps = static_cast<double>(std::uint64_t{1} << kSignificandBits<T>);
    return low + span * (std::floor(u * kSteps) / kSteps);
  }
  double low, span;
};

struct NormalDraws {
  static constexpr auto kPairs = &Philox::normal_pair;
  explicit NormalDraws(const Attributes& attributes)
      : mean(attributes.get_float("mean", 0)), scale(attributes.get_float("scale", 1)) {}
  template <class T>
  double value(double z) const {
    return mean + scale * z;
  }
  double mean, scale;
};

template <class Draws, bool kLike>
class RandomTensor final : public Kernel {
 public:
  explicit RandomTensor(KernelInfo& info)
      : draws_(info.attributes()),
        seed_(read_seed(info.attributes())),
        dtype_(read_dtype(info.attributes(), kLike ? DType::Undefined : DType::Float32)) {
    if constexpr (!kLike) shape_ = read_shape(info.attributes());
  }

  void run(KernelContext& ctx) const override {
    Shape shape = shape_;
    DType dtype = dtype_;
    if constexpr (kLike) {
      shape = ctx.input(0).shape();
      if (dtype == DType::Undefined) dtype = ctx.input(0).dtype();
    }
    const Tensor out = ctx.output(0, dtype, shape);
    const Philox philox = philox_of(seed_);
    tensor::dispatch_floats(dtype, "random draws", [&]<class T>(TypeTag<T>) {
      T* y = out.mutable_data<T>();
      ctx.parallel_for(static_cast<std::size_t>(out.numel()), kDrawNs,
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         philox.each(Draws::kPairs, begin, end, [&](std::size_t i, double draw) {
                           y[i] = static_cast<T>(static_cast<tensor::ComputeTypeOf<T>>(draws_.template value<T>(draw)));
                         });
                       });
    });
  }

 private:
  Draws draws_;
  std::optional<std::uint64_t> seed_;
  DType dtype_;
  Shape shape_;
};

/// 1 with the probability that the input names, else 0.
class Bernoulli final : public Kernel {
 public:
  explicit Bernoulli(KernelInfo& info)
      : seed_(read_seed(info.attributes())), dtype_(read_dtype(info.attributes(), DType::Undefined)) {}

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Tensor out = ctx.output(0, dtype_ == DType::Undefined ? in.dtype() : dtype_, in.shape());
    const Philox philox = philox_of(seed_);
    tensor::dispatch_floats(in.dtype(), "Bernoulli", [&]<class P>(TypeTag<P>) {
      const P* p = in.data<P>();
      // Which of the draws are ones, as bytes: the output's type does not multiply the loop.
      const tensor::Buffer drawn = ctx.scratch(static_cast<std::size_t>(in.numel()));
      auto* const one = reinterpret_cast<std::uint8_t*>(drawn.data());
      ctx.parallel_for(static_cast<std::size_t>(in.numel()), kDrawNs,
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         philox.each(&Philox::uniform_pair, begin, end, [&](std::size_t i, double u) {
                           one[i] = u < static_cast<double>(static_cast<tensor::ComputeTypeOf<P>>(p[i]));
                         });
                       });
      write(ctx, one, out);
    });
  }

 private:
  static void write(KernelContext& ctx, const std::uint8_t* one, const Tensor& out) {
    const auto fill = [&]<class T>(TypeTag<T>) {
      T* y = out.mutable_data<T>();
      ctx.parallel_for(static_cast<std::size_t>(out.numel()), 0.5,
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         const T ones = static_cast<T>(tensor::ComputeTypeOf<T>(1)), zeros{};
                         for (std::size_t i = begin; i < end; ++i) y[i] = one[i] != 0 ? ones : zeros;
                       });
    };
    if (out.dtype() == DType::Bool) return fill(TypeTag<bool>{});
    tensor::dispatch_numeric(out.dtype(), "Bernoulli", fill);
  }

  std::optional<std::uint64_t> seed_;
  DType dtype_;
};

std::int64_t sample_size(const Attributes& attributes) {
  const std::int64_t size = attributes.get_int("sample_size", 1);
  if (size < 0) fail(ErrorCode::InvalidModel, cat("Multinomial's sample_size is ", size));
  return size;
}

/// Classes drawn with replacement from the distributions whose logarithms, up to a constant, are the rows of the input.
class Multinomial final : public Kernel {
 public:
  explicit Multinomial(KernelInfo& info)
      : seed_(read_seed(info.attributes())),
        dtype_(read_dtype(info.attributes(), DType::Int32)),
        samples_(sample_size(info.attributes())) {}

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    if (in.rank() != 2) fail(ErrorCode::ShapeMismatch, cat("Multinomial takes [batch, classes], got ", in.to_string()));
    const Tensor out = ctx.output(0, dtype_, Shape{in.dim(0), samples_});
    if (out.numel() == 0) return;
    if (in.dim(1) > std::numeric_limits<std::int32_t>::max() && dtype_ == DType::Int32)
      fail(ErrorCode::InvalidArgument, "Multinomial: more classes than int32 can number");
    const Philox philox = philox_of(seed_);
    const auto samples = static_cast<std::size_t>(samples_), classes = static_cast<std::size_t>(in.dim(1));
    tensor::dispatch_floats(in.dtype(), "Multinomial", [&]<class P>(TypeTag<P>) {
      const P* logits = in.data<P>();
      tensor::dispatch<std::int32_t, std::int64_t>(dtype_, "Multinomial", [&]<class T>(TypeTag<T>) {
        T* y = out.mutable_data<T>();
        ctx.parallel_for(static_cast<std::size_t>(in.dim(0)), static_cast<double>(classes * 40 + samples * 30),
                         [&](std::size_t begin, std::size_t end, std::size_t) {
                           const kernel::Scratch<double> memory(ctx.run(), classes);
                           const std::span<double> sums(memory.data(), classes);
                           kernel::Watch watch(ctx.run());
                           for (std::size_t row = begin; row < end; ++row) {
                             accumulate(watch, logits + row * classes, row, sums);
                             philox.each(&Philox::uniform_pair, row * samples, (row + 1) * samples,
                                         [&](std::size_t i, double u) {
                                           y[i] = static_cast<T>(pick(sums, u));
                                           watch.did(30);
                                         });
                           }
                         });
      });
    });
  }

 private:
  /// Running sums of the row's weights relative to the greatest.
  template <class P>
  static void accumulate(kernel::Watch& watch, const P* logits, std::size_t row, std::span<double> sums) {
    const auto at = [&](std::size_t c) {
      return static_cast<double>(static_cast<tensor::ComputeTypeOf<P>>(logits[c]));
    };
    double most = -std::numeric_limits<double>::infinity();
    bool usable = true;
    each_in_pieces(watch, sums.size(), 2.0, [&](std::size_t c) {
      usable = usable && !std::isnan(at(c));
      most = std::max(most, at(c));
    });
    if (!usable || !std::isfinite(most)) {
      fail(ErrorCode::InvalidArgument,
           cat("Multinomial: row ", row, " is no distribution: it must have a finite greatest element and no NaN"));
    }
    double sum = 0;
    each_in_pieces(watch, sums.size(), 20.0, [&](std::size_t c) { sums[c] = sum += portable_exp(at(c) - most); });
  }

  static std::size_t pick(std::span<const double> sums, double u) {
    // The product may round up to the whole sum: then the last class that has a weight.
    const double target = std::min(u * sums.back(), std::nextafter(sums.back(), 0.0));
    return static_cast<std::size_t>(std::upper_bound(sums.begin(), sums.end(), target) - sums.begin());
  }

  std::optional<std::uint64_t> seed_;
  DType dtype_;
  std::int64_t samples_;
};

void infer_random(InferContext& ctx) {
  ctx.set_output_dtype(0, read_dtype(ctx.attributes(), DType::Float32));
  ctx.set_output_shape(0, read_shape(ctx.attributes()));
}

void infer_like(InferContext& ctx) {
  const DType dtype = read_dtype(ctx.attributes(), ctx.input_dtype(0));
  if (dtype != DType::Undefined) ctx.set_output_dtype(0, dtype);
  if (const graph::SymShape* shape = ctx.input_shape(0)) ctx.set_output_shape(0, *shape);
}

void infer_multinomial(InferContext& ctx) {
  ctx.set_output_dtype(0, read_dtype(ctx.attributes(), DType::Int32));
  const graph::SymShape* in = ctx.input_shape(0);
  if (in != nullptr && in->size() != 2)
    fail(ErrorCode::ShapeMismatch, cat("Multinomial takes [batch, classes], got ", graph::to_string(*in)));
  ctx.set_output_shape(
      0, graph::SymShape{in != nullptr ? (*in)[0] : graph::Dim::unknown(), graph::Dim(sample_size(ctx.attributes()))});
}

}  // namespace

void register_random(kernel::OpRegistrar& r) {
  const auto fresh = [&]<class Draws>(const char* name, TypeTag<Draws>) {
    r.op(name)
        .version(1, "-> output:T; T = floats")
        .version(22, "-> output:T; T = floats_bf16")
        .infer(infer_random)
        .nondeterministic()
        .kernel<RandomTensor<Draws, false>>();
    r.op(cat(name, "Like"))
        .version(1, "input:T1 -> output:T2; T1 = all, T2 = floats")
        .version(22, "input:T1 -> output:T2; T1 = all_ir4, T2 = floats_bf16")
        .infer(infer_like)
        .nondeterministic()
        .kernel<RandomTensor<Draws, true>>();
  };
  fresh("RandomUniform", TypeTag<UniformDraws>{});
  fresh("RandomNormal", TypeTag<NormalDraws>{});
  r.op("Bernoulli")
      .version(15, "input:T1 -> output:T2; T1 = floats, T2 = numeric_bf16|bool")
      .version(22, "input:T1 -> output:T2; T1 = floats_bf16, T2 = numeric_bf16|bool")
      .infer(infer_like)
      .nondeterministic()
      .kernel<Bernoulli>();
  r.op("Multinomial")
      .version(7, "input:T1 -> output:T2; T1 = floats, T2 = int32|int64")
      .version(22, "input:T1 -> output:T2; T1 = floats_bf16, T2 = int32|int64")
      .infer(infer_multinomial)
      .nondeterministic()
      .kernel<Multinomial>();
}

}  // namespace infernode::ops
