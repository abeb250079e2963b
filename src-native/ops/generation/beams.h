#pragma once
// Beam search: of the continuations of each prompt the likeliest are kept, and those that have ended stay aside.

#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"

namespace infernode::ops {

struct BeamOptions {
  std::size_t beams = 1;
  float length_penalty = 1;
  bool early_stopping = false;
  std::int32_t eos_token = 0, pad_token = 0;
};

/// The beams of one prompt.
class Beams {
 public:
  struct Ended {
    float score;  ///< the sum of log-probabilities over length ^ length_penalty
    std::vector<std::int32_t> tokens;
  };
  /// How a beam goes on.
  struct Next {
    float sum;
    std::size_t parent;  ///< of this prompt's beams
    std::int32_t token;
  };

  explicit Beams(const BeamOptions& options) : o_(options) {}
  bool done() const { return done_; }

  /// `sums` [beams, vocabulary] are the sums of log-probabilities of all continuations; `tokens(beam)` is what a beam
  /// says, all of one length. Fills `next` with a continuation for each beam.
  void advance(std::span<const float> sums, FunctionRef<std::span<const std::int32_t>(std::size_t)> tokens,
               std::span<Next> next);
  /// Puts what has not ended aside, too.
  void end(std::span<const float> sums, FunctionRef<std::span<const std::int32_t>(std::size_t)> tokens);
  /// The best first, at most one for each beam.
  const std::vector<Ended>& ended() const { return ended_; }

 private:
  void put_aside(std::span<const std::int32_t> tokens, float sum);
  float score(float sum, std::size_t length) const;

  BeamOptions o_;
  std::vector<Ended> ended_;
  bool done_ = false;
};

}  // namespace infernode::ops
