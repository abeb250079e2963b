#pragma once
// Rates of a method from measurements: least absolute values of relative errors, about, with no rate below zero.

#include <span>

#include "cost/model.h"

namespace infernode::cost {

struct Sample {
  Terms terms;
  double nanoseconds;
};

struct Fit {
  Terms rates{};
  double residual = 0;  ///< root of the mean square of relative errors
  double worst = 0;     ///< the largest of them
};

Fit fit(std::span<const Sample> samples);

}  // namespace infernode::cost
