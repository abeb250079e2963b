#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fuzz/mutator.h"
#include "session/engine.h"

namespace infernode::fuzz {

/// Size of the file kWeights.
inline constexpr std::size_t kWeightBytes = 256;

struct Verdict {
  enum class Stage { Refused, Failed, Ran } stage = Stage::Refused;  ///< by create, by run, by neither
  std::string error;                                                 ///< what create or run said
  std::string fault;  ///< empty, or what may not happen whatever the model says
};

/// Loads a model and runs it once with small inputs of `random`, within a memory limit and a deadline. A good outcome
/// is an answer or an Error that blames the model. `folder` holds the file kWeights; "": there is none.
Verdict try_model(const std::shared_ptr<session::Engine>& engine, std::string_view model, Mutator& random,
                  const std::string& folder = {});

}  // namespace infernode::fuzz
