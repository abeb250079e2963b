#include "ops/generation/beams.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace infernode::ops {
namespace {

constexpr float kLeast = std::numeric_limits<float>::lowest();

/// Indices of the `count` greatest sums, greatest first, the lower of equal ones first. NaN counts as least.
std::vector<std::size_t> greatest(std::span<const float> sums, std::size_t count) {
  const auto value = [&](std::size_t i) { return std::isnan(sums[i]) ? kLeast : sums[i]; };
  const auto before = [&](std::size_t a, std::size_t b) { return value(a) != value(b) ? value(a) > value(b) : a < b; };
  std::vector<std::size_t> best;  // a heap, the least of them first
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (best.size() == count) {
      if (!before(i, best.front())) continue;
      std::pop_heap(best.begin(), best.end(), before);
      best.pop_back();
    }
    best.push_back(i);
    std::push_heap(best.begin(), best.end(), before);
  }
  std::sort_heap(best.begin(), best.end(), before);
  return best;
}

}  // namespace

float Beams::score(float sum, std::size_t length) const {
  return sum / std::pow(static_cast<float>(length), o_.length_penalty);
}

void Beams::put_aside(std::span<const std::int32_t> tokens, float sum) {
  const float value = score(sum, tokens.size());
  if (ended_.size() == o_.beams) {
    if (!(value > ended_.back().score)) return;
    ended_.pop_back();
  }
  const auto at = std::find_if(ended_.begin(), ended_.end(), [&](const Ended& e) { return value > e.score; });
  ended_.insert(at, {value, {tokens.begin(), tokens.end()}});
}

void Beams::advance(std::span<const float> sums, FunctionRef<std::span<const std::int32_t>(std::size_t)> tokens,
                    std::span<Next> next) {
  std::fill(next.begin(), next.end(), Next{kLeast, 0, o_.pad_token});
  for (std::size_t i = 0; i < next.size(); ++i) next[i].parent = i;
  if (done_) {
    for (Next& beam : next) beam.sum = 0;
    return;
  }
  const std::size_t vocabulary = sums.size() / o_.beams;
  const std::vector<std::size_t> best = greatest(sums, std::min(2 * o_.beams, sums.size()));
  std::size_t found = 0;
  for (std::size_t rank = 0; rank < best.size() && found < o_.beams; ++rank) {
    const std::size_t beam = best[rank] / vocabulary;
    const auto token = static_cast<std::int32_t>(best[rank] % vocabulary);
    if (token != o_.eos_token) {
      next[found++] = {sums[best[rank]], beam, token};
    } else if (rank < o_.beams) {
      put_aside(tokens(beam), sums[best[rank]]);
    }
  }
  if (ended_.size() < o_.beams) return;
  done_ = o_.early_stopping || ended_.back().score >= score(sums[best.front()], tokens(0).size());
}

void Beams::end(std::span<const float> sums, FunctionRef<std::span<const std::int32_t>(std::size_t)> tokens) {
  for (std::size_t beam = 0; beam < sums.size() && !done_; ++beam) put_aside(tokens(beam), sums[beam]);
}

}  // namespace infernode::ops
