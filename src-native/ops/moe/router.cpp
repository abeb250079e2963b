#include <algorithm>
#include <cmath>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "microkernels/reduce/reduce.h"
#include "ops/moe/experts.h"

namespace infernode::ops {
namespace {

/// The index of the greatest score that none of `chosen` has; the first of equal ones.
std::uint32_t best_but(const float* scores, std::size_t experts, const std::uint32_t* chosen, std::size_t count) {
  std::uint32_t best = 0;
  bool found = false;
  for (std::uint32_t e = 0; e < experts; ++e) {
    if (found && !(scores[e] > scores[best])) continue;
    if (std::find(chosen, chosen + count, e) != chosen + count) continue;
    best = e;
    found = true;
  }
  return best;
}

}  // namespace

Router::Router(const graph::Attributes& attributes, const char* op, bool among_chosen)
    : op_(op),
      normalize_(attributes.get_int("normalize_routing_weights", 0) != 0),
      sparse_(attributes.get_int("use_sparse_mixer", 0) != 0),
      among_chosen_(among_chosen) {
  const std::int64_t k = attributes.get_int("k", 1);
  if (k < 1 || (sparse_ && k != 2))
    fail(ErrorCode::InvalidModel, cat(op, ": k is ", k, sparse_ ? ", the sparse mixer takes 2" : ""));
  k_ = static_cast<std::size_t>(k);
}

Routes Router::route(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const float* scores,
                     const float* given, std::size_t tokens, std::size_t experts) const {
  if (k_ > experts) fail(ErrorCode::InvalidModel, cat(op_, ": k is ", k_, ", there are ", experts, " experts"));
  const std::size_t count = checked_mul(tokens, k_);
  Routes out{k_, {}, {}, ctx.scratch(checked_mul(count, sizeof(float) + sizeof(std::uint32_t)))};
  out.experts = {reinterpret_cast<std::uint32_t*>(out.memory.data()), count};
  out.weights = {reinterpret_cast<float*>(out.memory.data()) + count, count};
  ctx.parallel_for(tokens, static_cast<double>(experts * k_), [&](std::size_t begin, std::size_t end, std::size_t) {
    std::vector<float> soft(experts);
    for (std::size_t t = begin; t < end; ++t) {
      std::uint32_t* chosen = out.experts.data() + t * k_;
      float* weights = out.weights.data() + t * k_;
      choose(scores + t * experts, soft.data(), experts, chosen, weights, kernels);
      for (std::size_t i = 0; i < k_ && given != nullptr; ++i) weights[i] = given[t * experts + chosen[i]];
      if (!normalize_ || (given == nullptr && sparse_)) continue;
      float sum = 0;
      for (std::size_t i = 0; i < k_; ++i) sum += weights[i];
      for (std::size_t i = 0; i < k_ && sum != 0; ++i) weights[i] /= sum;
    }
  });
  return out;
}

void Router::choose(const float* scores, float* soft, std::size_t experts, std::uint32_t* chosen, float* weights,
                    const microkernels::KernelSet& kernels) const {
  if (sparse_) return mix_sparsely(scores, experts, chosen, weights);
  for (std::size_t i = 0; i < k_; ++i) chosen[i] = best_but(scores, experts, chosen, i);
  if (among_chosen_) {
    for (std::size_t i = 0; i < k_; ++i) weights[i] = scores[chosen[i]];
    kernels.reduce.softmax(weights, weights, k_);
    return;
  }
  kernels.reduce.softmax(scores, soft, experts);
  for (std::size_t i = 0; i < k_; ++i) weights[i] = soft[chosen[i]];
}

/// SparseMixer (Liu et al., arXiv:2310.00811) without noise, as Phi-3.5-MoE uses it: each of two experts is weighted by
/// a softmax over those whose scores are within a hundredth of its own, twice over, the first one out of the second's.
void Router::mix_sparsely(const float* scores, std::size_t experts, std::uint32_t* chosen, float* weights) {
  constexpr float kJitter = 0.01f;
  for (std::size_t i = 0; i < 2; ++i) {
    chosen[i] = best_but(scores, experts, chosen, i);
    const float best = scores[chosen[i]];
    float sum = 0;
    for (std::uint32_t e = 0; e < experts; ++e) {
      if (i == 1 && e == chosen[0]) continue;
      const float factor = std::max(std::abs(scores[e]), best);
      if ((best - scores[e]) / factor > 2 * kJitter) continue;
      sum += std::exp(scores[e] - best);
    }
    weights[i] = 1 / sum;
  }
}

}  // namespace infernode::ops
