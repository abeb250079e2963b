#include "ops/moe/experts.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/charge.h"
#include "microkernels/elementwise/elementwise.h"
#include "ops/common/mover.h"

namespace infernode::ops {

using kernel::KernelContext;
using microkernels::BinaryOp;
using microkernels::UnaryOp;
using tensor::Shape;
using tensor::Tensor;

ExpertActivation::ExpertActivation(const graph::Attributes& attributes, const char* op, bool has_fc3)
    : alpha_(attributes.get_float("activation_alpha", 1)),
      beta_(attributes.get_float("activation_beta", 0)),
      limit_(attributes.get_float("swiglu_limit", std::numeric_limits<float>::infinity())),
      limit_after_(attributes.get_int("swiglu_limit_after_activation", 0) != 0) {
  constexpr const char* kNames[] = {"relu", "gelu", "silu", "identity", "relu2", "swiglu", "geglu"};
  const std::string name = attributes.get_string("activation_type", "relu");
  const auto* const known = std::find(std::begin(kNames), std::end(kNames), name);
  if (known == std::end(kNames)) fail(ErrorCode::InvalidModel, cat(op, ": unknown activation_type '", name, "'"));
  kind_ = static_cast<Kind>(known - std::begin(kNames));
  const std::int64_t fusion = attributes.get_int("swiglu_fusion", 0);
  const bool gated = kind_ == Kind::Swiglu || kind_ == Kind::Geglu;
  layout_ = !gated || fusion == 0 ? (has_fc3 ? Layout::Separate : Layout::Plain)
                                  : (fusion == 1 ? Layout::Alternating : Layout::Halves);
  if (gated && (fusion < 0 || fusion > 2 || layout_ == Layout::Plain || (fusion != 0 && has_fc3) ||
                (kind_ == Kind::Geglu && fusion == 0)))
    fail(ErrorCode::InvalidModel,
         cat(op, ": ", name, " with swiglu_fusion ", fusion, has_fc3 ? " and" : " and no", " fc3_experts_weights"));
}

void ExpertActivation::apply(const KernelContext& ctx, const microkernels::KernelSet& kernels, float* fc1, float* fc3,
                             float* out, std::size_t rows, std::size_t n) const {
  ctx.parallel_for(rows, static_cast<double>(n) * 2, [&](std::size_t begin, std::size_t end, std::size_t) {
    std::vector<float> up(layout_ == Layout::Alternating ? n : 0);
    for (std::size_t r = begin; r < end; ++r) {
      float* row = fc1 + r * n * fused();
      float* to = out + r * n;
      if (layout_ == Layout::Alternating) {
        for (std::size_t i = 0; i < n; ++i) {
          up[i] = row[2 * i + 1];
          row[i] = row[2 * i];
        }
        activate(kernels, row, up.data(), to, n);
      } else if (layout_ == Layout::Plain) {
        activate(kernels, row, nullptr, to, n);
      } else {
        activate(kernels, row, layout_ == Layout::Halves ? row + n : fc3 + r * n, to, n);
      }
    }
  });
}

void ExpertActivation::activate(const microkernels::KernelSet& kernels, float* gate, float* up, float* out,
                                std::size_t n) const {
  const microkernels::ElementwiseTable& loops = kernels.elementwise;
  switch (kind_) {
    case Kind::Relu:
      loops[UnaryOp::kRelu](gate, out, n, 0, 0);
      break;
    case Kind::Gelu:
    case Kind::Geglu:
      loops[UnaryOp::kGeluTanh](gate, out, n, 0, 0);
      break;
    case Kind::Silu:
      loops[UnaryOp::kSilu](gate, out, n, 0, 0);
      break;
    case Kind::Identity:
      std::memcpy(out, gate, n * sizeof(float));
      break;
    case Kind::SquaredRelu:
      loops[UnaryOp::kRelu](gate, out, n, 0, 0);
      loops[UnaryOp::kSquare](out, out, n, 0, 0);
      break;
    case Kind::Swiglu: {
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      if (limit_ < kInfinity && !limit_after_) loops[UnaryOp::kClip](gate, gate, n, -kInfinity, limit_);
      if (limit_ < kInfinity) loops[UnaryOp::kClip](up, up, n, -limit_, limit_);
      loops[UnaryOp::kQuickGelu](gate, out, n, alpha_, 0);
      if (limit_ < kInfinity && limit_after_) loops[UnaryOp::kClip](out, out, n, -kInfinity, limit_);
      if (beta_ != 0) loops[UnaryOp::kAffine](up, up, n, 1, beta_);
      break;
    }
  }
  if (up != nullptr) loops.vector_vector[static_cast<std::size_t>(BinaryOp::kMul)](out, up, out, n);
}

namespace {

/// The tokens of each expert: places [begin[e], begin[e + 1]) of `slots` are indices into Routes.
struct Groups {
  std::vector<std::size_t> begin, slots;
  std::size_t most = 0;  ///< tokens of one expert
};

Groups group(const Routes& routes, std::size_t experts) {
  Groups out{std::vector<std::size_t>(experts + 1), std::vector<std::size_t>(routes.experts.size())};
  for (const std::uint32_t e : routes.experts) ++out.begin[e + 1];
  for (std::size_t e = 0; e < experts; ++e) {
    out.most = std::max(out.most, out.begin[e + 1]);
    out.begin[e + 1] += out.begin[e];
  }
  std::vector<std::size_t> next(out.begin.begin(), out.begin.end() - 1);
  for (std::size_t i = 0; i < routes.experts.size(); ++i) out.slots[next[routes.experts[i]]++] = i;
  return out;
}

}  // namespace

void run_experts(
    KernelContext& ctx, const microkernels::KernelSet& kernels, const ExpertSizes& sizes,
    const ExpertActivation& activation, const Routes& routes, const float* x, float* y,
    FunctionRef<void(Projection, std::size_t expert, std::size_t rows, const float* x, float* y)> product) {
  const kernel::Charge charge(ctx.run(), (routes.experts.size() + 2 * sizes.experts) * sizeof(std::size_t));
  const Groups groups = group(routes, sizes.experts);
  const std::size_t width = sizes.width, inner = sizes.inner;
  Mover mover(ctx.run());
  mover.fill(y, static_cast<std::int64_t>(sizes.tokens * width), 0.0f);
  if (groups.most == 0 || width == 0) return;
  const auto rows_of = [&](std::size_t columns) {
    return ctx.scratch(checked_mul(checked_mul(groups.most, columns), sizeof(float)));
  };
  const tensor::Buffer given = rows_of(width), first = rows_of(checked_mul(inner, activation.fused())),
                       third = rows_of(sizes.has_fc3 ? inner : 0), middle = rows_of(inner), answer = rows_of(width);
  const auto floats = [](const tensor::Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); };
  const std::size_t k = routes.k;
  for (std::size_t e = 0; e < sizes.experts; ++e) {
    const std::size_t* slots = groups.slots.data() + groups.begin[e];
    const std::size_t rows = groups.begin[e + 1] - groups.begin[e];
    if (rows == 0) continue;
    ctx.run().check();
    for (std::size_t r = 0; r < rows; ++r)
      mover.copy(x + slots[r] / k * width, static_cast<std::int64_t>(width), floats(given) + r * width);
    product(Projection::Fc1, e, rows, floats(given), floats(first));
    if (sizes.has_fc3) product(Projection::Fc3, e, rows, floats(given), floats(third));
    activation.apply(ctx, kernels, floats(first), floats(third), floats(middle), rows, inner);
    product(Projection::Fc2, e, rows, floats(middle), floats(answer));
    ctx.parallel_for(rows, static_cast<double>(width), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t r = begin; r < end; ++r) {
        const float weight = routes.weights[slots[r]];
        float* to = y + slots[r] / k * width;
        const float* from = floats(answer) + r * width;
        for (std::size_t c = 0; c < width; ++c) to[c] += weight * from[c];
      }
    });
  }
}

ExpertSizes token_sizes(const KernelContext& ctx, const char* op) {
  const Tensor &input = ctx.input(0), &scores = ctx.input(1);
  if ((input.rank() != 2 && input.rank() != 3) || scores.rank() != 2 ||
      scores.dim(0) != input.shape().numel(0, input.rank() - 1))
    fail(ErrorCode::ShapeMismatch,
         cat(op, ": input ", input.to_string(), " and router_probs ", scores.to_string(), " do not fit"));
  ExpertSizes out;
  out.tokens = static_cast<std::size_t>(scores.dim(0));
  out.experts = static_cast<std::size_t>(scores.dim(1));
  out.width = static_cast<std::size_t>(input.shape().back());
  return out;
}

void expect_shape(const KernelContext& ctx, const char* op, std::size_t input, const Shape& shape) {
  const Tensor* t = ctx.optional_input(input);
  if (t != nullptr && t->shape() != shape)
    fail(ErrorCode::ShapeMismatch,
         cat(op, ": input ", input, " is ", t->to_string(), ", expected ", shape.to_string()));
}

}  // namespace infernode::ops
