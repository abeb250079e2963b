#pragma once
// What mixtures of experts share: the choice of experts for each token, the experts' activations, and the walk over
// experts, each of which is given all of its tokens at once.

#include <cstdint>
#include <span>

#include "graph/attributes.h"
#include "kernel/kernel.h"

namespace infernode::ops {

/// The experts of each token and their weights: [tokens][k].
struct Routes {
  std::size_t k = 0;
  std::span<std::uint32_t> experts;
  std::span<float> weights;
  tensor::Buffer memory;  ///< where they stand
};

/// Attributes k, normalize_routing_weights and use_sparse_mixer: how tokens choose experts.
class Router {
 public:
  /// `among_chosen`: a weight is the softmax over the chosen experts, not over all.
  Router(const graph::Attributes& attributes, const char* op, bool among_chosen);
  std::size_t k() const { return k_; }
  /// `scores` are [tokens, experts]; weights are taken from `given` of the same dims, where it is not null.
  Routes route(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const float* scores,
               const float* given, std::size_t tokens, std::size_t experts) const;

 private:
  void choose(const float* scores, float* soft, std::size_t experts, std::uint32_t* chosen, float* weights,
              const microkernels::KernelSet& kernels) const;
  static void mix_sparsely(const float* scores, std::size_t experts, std::uint32_t* chosen, float* weights);

  const char* op_;
  std::size_t k_;
  bool normalize_, sparse_, among_chosen_;
};

/// What experts do between their two products: an activation, or a gate that multiplies a second projection. The two
/// lie in one product's result (alternating, or one half each) or in those of two products, fc1 and fc3.
class ExpertActivation {
 public:
  ExpertActivation(const graph::Attributes& attributes, const char* op, bool has_fc3);
  /// Columns that fc1 gives for each column that fc2 takes.
  std::size_t fused() const { return layout_ == Layout::Alternating || layout_ == Layout::Halves ? 2 : 1; }
  /// Rows of `n` columns, from fc1's [rows, fused() * n], which is overwritten, and where there is one fc3's [rows, n].
  void apply(const kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, float* fc1, float* fc3,
             float* out, std::size_t rows, std::size_t n) const;

 private:
  enum class Kind : std::uint8_t { Relu, Gelu, Silu, Identity, SquaredRelu, Swiglu, Geglu };
  enum class Layout : std::uint8_t { Plain, Separate, Alternating, Halves };
  void activate(const microkernels::KernelSet& kernels, float* gate, float* up, float* out, std::size_t n) const;

  Kind kind_ = Kind::Relu;
  Layout layout_ = Layout::Plain;
  float alpha_, beta_, limit_;
  bool limit_after_;
};

enum class Projection : std::uint8_t { Fc1, Fc2, Fc3 };

/// Sizes of experts: fc1 is [fused * inner, width], fc2 [width, inner], fc3 [inner, width].
struct ExpertSizes {
  std::size_t tokens = 0, experts = 0, width = 0, inner = 0;
  bool has_fc3 = false;
};

/// A token's row of `y` [tokens, width] becomes the weighted sum of its experts' answers. `product` multiplies `rows`
/// rows of x by an expert's matrix and adds its bias.
void run_experts(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const ExpertSizes& sizes,
                 const ExpertActivation& activation, const Routes& routes, const float* x, float* y,
                 FunctionRef<void(Projection, std::size_t expert, std::size_t rows, const float* x, float* y)> product);

/// Tokens and width of an operator's inputs `input` ([tokens, width] or [batch, length, width]) and `router_probs`
/// ([tokens, experts]). Throws ShapeMismatch.
ExpertSizes token_sizes(const kernel::KernelContext& ctx, const char* op);
/// Throws ShapeMismatch naming the input where it has other dims. An absent one passes.
void expect_shape(const kernel::KernelContext& ctx, const char* op, std::size_t input, const tensor::Shape& shape);

}  // namespace infernode::ops
