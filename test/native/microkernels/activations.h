#pragma once
// Every activation of microkernels/common/activations.inc with its formula, written here a second time and in double.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "microkernels/common/activation.h"

namespace infernode::microkernels::test {

struct ActivationCase {
  std::string name;
  ActivationArgs args;
  double (*formula)(double x, double a, double b);
};

/// kNone comes first. Fails the test where an activation has no formula.
inline std::vector<ActivationCase> every_activation() {
  using Formula = double (*)(double, double, double);
  static const std::map<std::string, Formula> formulas{
      {"Relu", [](double x, double, double) { return std::max(x, 0.0); }},
      {"LeakyRelu", [](double x, double a, double) { return x < 0 ? a * x : x; }},
      {"Clip", [](double x, double a, double b) { return std::min(std::max(x, a), b); }},
      {"Sigmoid", [](double x, double, double) { return 1 / (1 + std::exp(-x)); }},
      {"Tanh", [](double x, double, double) { return std::tanh(x); }},
      {"HardSigmoid", [](double x, double a, double b) { return std::clamp(a * x + b, 0.0, 1.0); }},
      {"HardSwish", [](double x, double, double) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {"Gelu", [](double x, double, double) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
      {"GeluTanh",
       [](double x, double, double) {
         return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
       }},
      {"Silu", [](double x, double, double) { return x / (1 + std::exp(-x)); }},
  };
  std::vector<ActivationCase> out{{"None", {}, [](double x, double, double) { return x; }}};
  const auto add = [&](const char* name, Activation kind) {
    const auto found = formulas.find(name);
    if (found == formulas.end())
      FAIL_CHECK("write the formula of ", name, " into ", __FILE__);
    else
      out.push_back({name, {kind, kind == Activation::kClip ? -1.5f : 0.2f, 0.5f}, found->second});
  };
#define INFERNODE_ACTIVATION(name, a, b, vectors, definition) add(#name, Activation::k##name);
#include "microkernels/common/activations.inc"
#undef INFERNODE_ACTIVATION
  return out;
}

}  // namespace infernode::microkernels::test
